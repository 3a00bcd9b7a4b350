//! What can be asked: a closed list of verbs with their arguments. None takes a path, an address or a passphrase, and none that changes something is served unless that was allowed.

use serde::Deserialize;
use serde_json::Value;

use crate::archive::Blake3;

/// One part of a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    Chat,
    Lorebook,
    Metadata,
    Card,
}

/// Why a request is not served.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// It is no request.
    #[error("this is no request: {why}")]
    Malformed { why: String },
    /// There is no such verb.
    #[error("there is no verb {verb:?}")]
    UnknownVerb { verb: String },
    /// Its arguments are not those of the verb.
    #[error("the arguments of {verb:?} cannot be understood: {why}")]
    BadArguments { verb: &'static str, why: String },
    /// Page and program do not understand each other.
    #[error("this page speaks protocol {page}, and this program {program}")]
    Protocol { page: u32, program: u32 },
    /// It was not made for the watch that runs: somebody prepared it, or the watch was started anew.
    #[error("{verb:?} changes something, and the request does not name this watch's session")]
    Session { verb: &'static str },
    /// More was asked than is served.
    #[error("more than {most} such requests within a minute are not served")]
    TooMany { most: usize },
    /// It would change something.
    #[error("{verb:?} changes something, and that is not allowed here")]
    ReadOnly { verb: &'static str },
    /// What was done cannot be told.
    #[error("{verb:?} was served, and the answer cannot be written: {why}")]
    Unwritable { verb: &'static str, why: String },
    /// The program itself is wrong.
    #[error("stvc broke down over {verb:?}; that is a defect in stvc")]
    BrokeDown { verb: &'static str },
}

/// A verb and the names of its arguments.
pub struct Verb {
    pub name: &'static str,
    pub arguments: &'static [&'static str],
    /// Whether it changes something.
    pub changes: bool,
}

macro_rules! requests {
    ($($(#[$doc:meta])* $name:literal $variant:ident changes $changes:literal { $($(#[$of:meta])* $field:ident: $type:ty),* $(,)? })*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Debug, Default, Deserialize)]
            #[serde(deny_unknown_fields)]
            pub struct $variant { $($(#[$of])* pub $field: $type),* }
        )*

        /// What is asked.
        #[derive(Clone, Debug)]
        pub enum Request {
            $($(#[$doc])* $variant($variant),)*
        }

        /// Every verb.
        pub const VERBS: &[Verb] = &[
            $(Verb { name: $name, arguments: &[$(stringify!($field)),*], changes: $changes },)*
        ];

        impl Request {
            /// A verb with its arguments.
            pub fn of(verb: &str, arguments: Option<Value>) -> Result<Self, Refusal> {
                let arguments = arguments.unwrap_or_else(|| Value::Object(Default::default()));
                match verb {
                    $($name => {
                        let read = serde_json::from_value(arguments);
                        let why = |error: serde_json::Error| error.to_string();
                        read.map(Self::$variant).map_err(|error| Refusal::BadArguments { verb: $name, why: why(error) })
                    })*
                    _ => Err(Refusal::UnknownVerb { verb: verb.chars().take(40).collect() }),
                }
            }

            /// The verb.
            pub fn verb(&self) -> &'static str {
                match self { $(Self::$variant(_) => $name,)* }
            }

            /// Whether it changes something.
            pub fn changes(&self) -> bool {
                match self { $(Self::$variant(_) => $changes,)* }
            }
        }
    };
}

requests! {
    /// All timelines with what became of them, what is wrong with them, and the last backup.
    "library" Library changes false {}
    /// All timelines.
    "timelines" Timelines changes false {}
    /// What became of each since its newest snapshot.
    "status" Status changes false {}
    /// The map of the stories: a lane for each timeline, with its snapshots.
    "graph" Graph changes false {
        /// Only the story of this timeline.
        timeline: Option<String>,
        /// Without their snapshots.
        lanes_only: Option<bool>,
        /// With the ends of scenes.
        scenes: Option<bool>,
        first: Option<usize>,
        count: Option<usize>,
    }
    /// Snapshots, newest first; of a message its versions.
    "log" Log changes false {
        timeline: Option<String>,
        message: Option<usize>,
        first: Option<usize>,
        count: Option<usize>,
    }
    /// One snapshot.
    "show" Show changes false { snapshot: String }
    /// Messages of a snapshot, whole.
    "messages" Messages changes false {
        snapshot: String,
        first: Option<usize>,
        count: Option<usize>,
    }
    /// Lorebooks, one of them, or the history of one of their entries.
    "lore" Lore changes false {
        book: Option<String>,
        entry: Option<String>,
        /// As it was then.
        at: Option<String>,
        /// The lorebook that this snapshot has.
        snapshot: Option<String>,
        /// The chat whose messages are counted.
        chat: Option<String>,
        /// Which entries were active at this message.
        active: Option<usize>,
        /// Where each sentence comes from.
        blame: Option<bool>,
        /// Also changes of formatting alone.
        all: Option<bool>,
        /// Which entries of a whole lorebook.
        first: Option<usize>,
        count: Option<usize>,
    }
    /// Two states, or one and the files now, or `A...B`.
    "diff" Diff changes false {
        before: String,
        after: Option<String>,
        only: Option<Part>,
        stat: Option<bool>,
    }
    /// Texts, wherever they were said.
    "search" Search changes false {
        text: String,
        phrase: Option<bool>,
        regex: Option<bool>,
        who: Option<String>,
        timeline: Option<String>,
        only: Option<Part>,
        first: Option<usize>,
        count: Option<usize>,
    }
    /// What was done, newest first.
    "operations" Operations changes false { first: Option<usize>, count: Option<usize> }
    /// What is wrong in the library.
    "doctor" Doctor changes false {}
    /// Take snapshots.
    "snapshot" Snapshot changes true {
        timelines: Option<Vec<String>>,
        message: Option<String>,
        tag: Option<String>,
        /// A checkpoint at this message, with the lorebook of now.
        at: Option<usize>,
        /// A checkpoint at the end of every scene that has none yet.
        scenes: Option<bool>,
        /// Only where the one chat's file is what the page has in memory: its id as a git object.
        holds: Option<String>,
        /// Refuse where the extension is not ready for a checkpoint.
        strict: Option<bool>,
        /// Wait for the lorebook's queue, so many seconds, at most 10: whoever asks next waits, too.
        wait: Option<u64>,
        /// Also while work is pending in the lorebook's queue.
        allow_active_queue: Option<bool>,
        dry_run: Option<bool>,
    }
    /// Name a snapshot; without one, the name goes.
    "tag" Tag changes true { name: String, snapshot: Option<String> }
    /// Bring a state back: in its place, or as a timeline of its own.
    "restore" Restore changes true {
        snapshot: String,
        /// As it was at this message.
        at: Option<usize>,
        /// Cut after this message; all else, the lorebook too, as the snapshot has it.
        cut: Option<usize>,
        /// As a timeline of its own under this name.
        name: Option<String>,
        /// As for `snapshot`, for a timeline of its own.
        strict: Option<bool>,
        wait: Option<u64>,
        allow_active_queue: Option<bool>,
        /// Only the chat, or only the lorebook.
        only: Option<Part>,
        /// What may be replaced: the hashes (`there`) that the plan told. Where something else is by now, nothing is done; what is replaced is stored first.
        expect: Option<Vec<Blake3>>,
        /// SillyTavern has the chat closed.
        chat_closed: Option<bool>,
        /// SillyTavern's page asks, and reads the files again; the chat gets another mark, so that other pages are asked before they save over it.
        rereads: Option<bool>,
        dry_run: Option<bool>,
    }
    /// Take an operation back.
    "undo" Undo changes true {
        operation: Option<u64>,
        chat_closed: Option<bool>,
        /// As for `restore`.
        rereads: Option<bool>,
        dry_run: Option<bool>,
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Envelope {
    verb: String,
    #[serde(default)]
    args: Option<Value>,
}

impl Request {
    /// What is asked in a few words, for the log.
    pub fn words(&self) -> Vec<String> {
        let mut words = vec![self.verb().to_owned()];
        match self {
            Self::Snapshot(asked) => words.extend(asked.timelines.iter().flatten().cloned()),
            Self::Tag(asked) => words.extend(
                [Some(&asked.name), asked.snapshot.as_ref()].into_iter().flatten().cloned(),
            ),
            Self::Restore(asked) => {
                words.push(asked.snapshot.clone());
                words.extend(asked.name.iter().flat_map(|name| ["--as".to_owned(), name.clone()]));
            }
            Self::Undo(asked) => words.extend(asked.operation.map(|number| number.to_string())),
            _ => {}
        }
        words
    }

    /// Read a request: `{"verb": …, "args": {…}}`.
    pub fn read(bytes: &[u8]) -> Result<Self, Refusal> {
        let envelope: Envelope = serde_json::from_slice(bytes)
            .map_err(|error| Refusal::Malformed { why: error.to_string() })?;
        Self::of(&envelope.verb, envelope.args)
    }
}
