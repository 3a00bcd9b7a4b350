//! The requests: a closed list of verbs with their arguments. None takes a path, an address or a passphrase, and a verb that changes something is served only if that was allowed.
//!
//! A request is read into the options of its verb. [`VERBS`] lists the arguments that a request may set: options that are not listed there are refused before they are read.

use std::time::Duration;

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::archive::{Blake3, Role};
use crate::engine::files::{Closed, Leave};
use crate::engine::gate::{GatePolicy, SceneRule, Wait};
use crate::exit;
use crate::verbs::restore::{Overwrite, Target, Until};
use crate::verbs::timelines::graph;
use crate::verbs::{self, diff, lore, read, restore, search, snapshot, undo};

/// What a front end may do, and what a verb does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rights {
    Read,
    Change,
}

/// Why a request is not served.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    #[error("this is no request: {why}")]
    Malformed { why: String },
    #[error("there is no verb {verb:?}")]
    UnknownVerb { verb: String },
    #[error("the arguments of {verb:?} cannot be understood: {why}")]
    BadArguments { verb: &'static str, why: String },
    #[error("this page speaks protocol {page}, and this program {program}")]
    Protocol { page: u32, program: u32 },
    /// It was not made for the watch that runs: somebody prepared it, or the watch was started anew.
    #[error("{verb:?} changes something, and the request does not name this watch's session")]
    Session { verb: &'static str },
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

impl Refusal {
    pub fn exit(&self) -> u8 {
        match self {
            Self::ReadOnly { .. } | Self::Session { .. } => exit::REFUSED,
            Self::Unwritable { .. } | Self::BrokeDown { .. } => exit::FAILED,
            _ => exit::USAGE,
        }
    }

    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Protocol { .. } => {
                Some("`stvc extension update`, then reload SillyTavern's page")
            }
            Self::Session { .. } => Some(
                "send it again with the \"session\" of this answer; if nobody sent it, nothing was done",
            ),
            Self::Unwritable { .. } => Some("`stvc operations` says what was done"),
            Self::BrokeDown { .. } => Some(
                "`stvc check` says whether the store is sound; the watch's own output says where it broke down",
            ),
            _ => None,
        }
    }
}

/// A verb and the names of its arguments.
#[derive(Debug)]
pub struct Verb {
    pub name: &'static str,
    pub arguments: &'static [&'static str],
    pub needs: Rights,
    read: fn(Value) -> serde_json::Result<Asked>,
}

macro_rules! requests {
    ($($(#[$doc:meta])* $name:literal $needs:ident $variant:ident($options:ty) [$($argument:ident),*])*) => {
        /// The options of each verb.
        #[derive(Clone, Debug)]
        pub(super) enum Asked {
            $($(#[$doc])* $variant($options),)*
        }

        /// Every verb.
        pub const VERBS: &[Verb] = &[
            $(Verb {
                name: $name,
                arguments: &[$(stringify!($argument)),*],
                needs: Rights::$needs,
                read: |arguments| serde_json::from_value(arguments).map(Asked::$variant),
            },)*
        ];
    };
}

requests! {
    /// All timelines with what became of them, what is wrong with them, and the last backup.
    "library" Read Library(Nothing) []
    /// All timelines.
    "timelines" Read Timelines(Nothing) []
    /// What became of each since its newest snapshot.
    "status" Read Status(Nothing) []
    /// The map of the stories: a lane for each timeline, with its snapshots.
    "graph" Read Graph(graph::Options) [timeline, lanes_only, scenes, first, count]
    /// Snapshots, newest first; of a message its versions.
    "log" Read Log(Log) [timeline, message, first, count]
    /// One snapshot.
    "show" Read Show(Show) [snapshot]
    /// Messages of a snapshot, whole.
    "messages" Read Messages(read::Options) [snapshot, first, count]
    /// Lorebooks, one of them, or the history of one of their entries.
    "lore" Read Lore(lore::Options) [book, entry, at, snapshot, chat, active, blame, all, first, count]
    /// Two states, or one and the files now, or `A...B`.
    "diff" Read Diff(diff::Options) [before, after, only, stat]
    /// Texts, wherever they were said.
    "search" Read Search(search::Options) [text, phrase, regex, who, timeline, only, first, count]
    /// What was done, newest first.
    "operations" Read Operations(Nothing) [first, count]
    /// What is wrong in the library.
    "doctor" Read Doctor(Nothing) []
    /// Take snapshots.
    "snapshot" Change Snapshot(Snapshot) [timelines, message, tag, at, scenes, holds, strict, wait, allow_active_queue, dry_run]
    /// Name a snapshot; without one, the name goes.
    "tag" Change Tag(Tag) [name, snapshot]
    /// Bring a state back: in its place, or as a timeline of its own.
    "restore" Change Restore(Restore) [snapshot, at, cut, name, strict, wait, allow_active_queue, only, expect, chat_closed, rereads, dry_run]
    /// Take an operation back.
    "undo" Change Undo(undo::Options) [operation, chat_closed, rereads, dry_run]
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Nothing {}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Log {
    pub timeline: Option<String>,
    pub message: Option<usize>,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Show {
    pub snapshot: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Snapshot {
    timelines: Vec<String>,
    message: Option<String>,
    tag: Option<String>,
    /// A checkpoint at this message, with the lorebook of now.
    at: Option<usize>,
    /// A checkpoint at the end of every scene that has none yet.
    scenes: bool,
    /// Only where the one chat's file is what the page has in memory: its id as a git object.
    holds: Option<String>,
    #[serde(flatten)]
    gate: Gate,
    dry_run: bool,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Tag {
    pub name: String,
    pub snapshot: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Restore {
    snapshot: String,
    /// As it was at this message.
    at: Option<usize>,
    /// Cut after this message; all else, the lorebook too, as the snapshot has it.
    cut: Option<usize>,
    /// As a timeline of its own under this name.
    name: Option<String>,
    /// For a timeline of its own.
    #[serde(flatten)]
    gate: Gate,
    /// Only the chat, or only the lorebook.
    only: Option<Role>,
    /// What may be replaced: the hashes (`there`) that the plan told. Where something else is by now, nothing is done; what is replaced is stored first.
    expect: Option<Vec<Blake3>>,
    #[serde(flatten)]
    closed: Closed,
    #[serde(default)]
    dry_run: bool,
}

impl TryFrom<Snapshot> for snapshot::Options {
    type Error = verbs::Error;

    fn try_from(asked: Snapshot) -> verbs::Result<Self> {
        let Snapshot { timelines, message, tag, at, scenes, holds, gate, dry_run } = asked;
        let subject = snapshot::Asked { timelines, tag, at, scenes, holds, ..Default::default() };
        let (subject, gate) = (subject.try_into()?, gate.into());
        Ok(Self { subject, message, gate, dry_run, ..Default::default() })
    }
}

impl TryFrom<Restore> for restore::Options {
    type Error = verbs::Error;

    fn try_from(asked: Restore) -> verbs::Result<Self> {
        let Restore { snapshot, at, cut, name, gate, only, expect, closed, dry_run } = asked;
        let together = |option, other| Err(verbs::Error::Together { option, other });
        let only = only.map(|only| if only == Role::Lorebook { only } else { Role::Chat });
        let target = match (name, only) {
            (Some(_), Some(_)) => return together("name", "only"),
            (Some(name), None) => Target::NewTimeline { name, gate: Some(gate.into()) },
            (None, only) => Target::InPlace {
                only,
                // A plan says what would be replaced, and what is replaced was in a plan.
                overwrite: match expect {
                    Some(expected) => Overwrite::Only(expected),
                    None if dry_run => Overwrite::All,
                    None => Overwrite::None,
                },
                leave: Leave { closed, active_queue: gate.allow_active_queue },
            },
        };
        let until = match (at, cut) {
            (Some(_), Some(_)) => return together("at", "cut"),
            (Some(at), None) => Until::Message(at),
            (None, Some(cut)) => Until::Cut(cut),
            (None, None) => Until::End,
        };
        Ok(Self { snapshot, until, target, dry_run, ..Default::default() })
    }
}

/// The arguments of the readiness check.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Gate {
    /// Refuse where the extension is not ready for a checkpoint.
    strict: bool,
    /// Wait for the lorebook's queue, so many seconds.
    wait: Option<u64>,
    /// Also while work is pending in the lorebook's queue.
    allow_active_queue: bool,
}

/// A request waits for a queue at most so many seconds: requests are served one after the other.
const LONGEST_WAIT: u64 = 10;

impl From<Gate> for GatePolicy {
    fn from(gate: Gate) -> Self {
        let wait = gate.wait.map(|seconds| Duration::from_secs(seconds.min(LONGEST_WAIT)));
        Self {
            scene: if gate.strict { SceneRule::Strict } else { SceneRule::Warn },
            wait: wait.map(Wait::AtMost),
            allow_active_queue: gate.allow_active_queue,
        }
    }
}

/// Which lines of a long answer.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(super) struct Page {
    #[serde(default)]
    pub first: usize,
    count: Option<usize>,
}

impl Page {
    const USUAL: usize = 200;
    /// A page is at most so long.
    pub const LONGEST: usize = 1000;

    pub fn end(self) -> usize {
        let count = self.count.unwrap_or(Self::USUAL).clamp(1, Self::LONGEST);
        self.first.saturating_add(count)
    }
}

/// What is asked.
#[derive(Clone, Debug)]
pub struct Request {
    pub verb: &'static Verb,
    pub(super) asked: Asked,
    pub(super) page: Page,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Envelope {
    verb: String,
    #[serde(default)]
    args: Option<Value>,
}

impl Request {
    /// Reads the arguments of a verb. One that is null counts as not given.
    pub fn of(name: &str, arguments: Option<Value>) -> Result<Self, Refusal> {
        let verb = VERBS.iter().find(|verb| verb.name == name);
        let verb =
            verb.ok_or_else(|| Refusal::UnknownVerb { verb: name.chars().take(40).collect() })?;
        let bad = |why: String| Refusal::BadArguments { verb: verb.name, why };
        let mut arguments = match arguments.unwrap_or_else(|| Value::Object(Map::new())) {
            Value::Object(arguments) => arguments,
            _ => return Err(bad("they are not an object".into())),
        };
        if let Some(other) = arguments.keys().find(|name| !verb.arguments.contains(&name.as_str()))
        {
            let other: String = other.chars().take(40).collect();
            return Err(bad(format!("there is no argument {other:?}")));
        }
        arguments.retain(|_, value| !value.is_null());
        let arguments = Value::Object(arguments);
        let page = Page::deserialize(&arguments).map_err(|error| bad(error.to_string()))?;
        let asked = (verb.read)(arguments).map_err(|error| bad(error.to_string()))?;
        Ok(Self { verb, asked, page })
    }

    /// Reads a request: `{"verb": …, "args": {…}}`.
    pub fn read(bytes: &[u8]) -> Result<Self, Refusal> {
        let envelope: Envelope = serde_json::from_slice(bytes)
            .map_err(|error| Refusal::Malformed { why: error.to_string() })?;
        Self::of(&envelope.verb, envelope.args)
    }

    /// Returns the words of a changing request for the operation log.
    pub fn words(&self) -> Vec<String> {
        let mut words = vec![self.verb.name.to_owned()];
        match &self.asked {
            Asked::Snapshot(asked) => words.extend(asked.timelines.iter().cloned()),
            Asked::Tag(asked) => {
                words.push(asked.name.clone());
                words.extend(asked.snapshot.clone());
            }
            Asked::Restore(asked) => {
                words.push(asked.snapshot.clone());
                words.extend(asked.name.iter().flat_map(|name| ["--as".to_owned(), name.clone()]));
            }
            Asked::Undo(options) => {
                words.extend(options.operation.map(|number| number.to_string()))
            }
            _ => {}
        }
        words
    }
}
