//! Requests: a closed list of verbs with their arguments. None takes a path, an address or a
//! passphrase, and a verb that changes something needs the right to. [`VERBS`] lists the arguments
//! that a request may set; other options of a verb are refused before they are read.

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Map, Value};

use crate::archive::{Blake3, Role};
use crate::engine::files::{Closed, Leave};
use crate::engine::gate::GatePolicy;
use crate::exit;
use crate::verbs::restore::{Overwrite, Target, Until};
use crate::verbs::timelines::graph;
use crate::verbs::{self, diff, lore, read, restore, search, snapshot, undo};

/// What a front end may do, and what a verb needs.
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
    /// It was not made for this watch: prepared by somebody, or the watch was restarted.
    #[error("{verb:?} changes something, and the request does not name this watch's session")]
    Session { verb: &'static str },
    #[error("more than {most} such requests within a minute are not served")]
    TooMany { most: usize },
    #[error("{verb:?} changes something, and that is not allowed here")]
    ReadOnly { verb: &'static str },
    #[error("{verb:?} was served, and the answer cannot be written: {why}")]
    Unwritable { verb: &'static str, why: String },
    #[error("stvc broke down over {verb:?}; that is a defect in stvc")]
    BrokeDown { verb: &'static str },
}

impl Refusal {
    /// Returns the exit code that the command line would have.
    pub fn exit(&self) -> u8 {
        match self {
            Self::ReadOnly { .. } | Self::Session { .. } => exit::REFUSED,
            Self::Unwritable { .. } | Self::BrokeDown { .. } => exit::FAILED,
            _ => exit::USAGE,
        }
    }

    /// Returns advice for the user.
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
    ($($name:literal $needs:ident $variant:ident($options:ty) [$($argument:ident),*])*) => {
        #[derive(Clone, Debug)]
        pub(super) enum Asked {
            $($variant($options),)*
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
    "library" Read Library(IgnoredAny) []
    "timelines" Read Timelines(IgnoredAny) []
    "status" Read Status(IgnoredAny) []
    "graph" Read Graph(graph::Options) [timeline, lanes_only, scenes, first, count]
    "log" Read Log(Log) [timeline, message, first, count]
    "show" Read Show(Show) [snapshot]
    "messages" Read Messages(read::Options) [snapshot, first, count]
    "lore" Read Lore(lore::Options) [book, entry, at, snapshot, chat, active, blame, all, first, count]
    "diff" Read Diff(diff::Options) [before, after, only, stat]
    "search" Read Search(search::Options) [text, phrase, regex, who, timeline, only, first, count]
    "operations" Read Operations(IgnoredAny) [first, count]
    "doctor" Read Doctor(IgnoredAny) []
    "snapshot" Change Snapshot(snapshot::Options) [timelines, message, tag, at, scenes, holds, strict, wait, allow_active_queue, dry_run]
    "tag" Change Tag(Tag) [name, snapshot]
    "restore" Change Restore(Restore) [snapshot, at, cut, name, strict, wait, allow_active_queue, only, expect, chat_closed, rereads, dry_run]
    "undo" Change Undo(undo::Options) [operation, chat_closed, rereads, dry_run]
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Log {
    pub timeline: Option<String>,
    pub message: Option<usize>,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Show {
    pub snapshot: String,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Tag {
    pub name: String,
    pub snapshot: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Restore {
    snapshot: String,
    at: Option<usize>,
    /// Cut after this message; everything else, also the lorebook, is as the snapshot has it.
    cut: Option<usize>,
    name: Option<String>,
    #[serde(flatten)]
    gate: GatePolicy,
    only: Option<Role>,
    /// Hashes (`there`) of the plan: other files are not replaced. What is replaced is stored
    /// first.
    expect: Option<Vec<Blake3>>,
    #[serde(flatten)]
    closed: Closed,
    #[serde(default)]
    dry_run: bool,
}

impl TryFrom<Restore> for restore::Options {
    type Error = verbs::Error;

    fn try_from(asked: Restore) -> verbs::Result<Self> {
        let Restore { snapshot, at, cut, name, gate, only, expect, closed, dry_run } = asked;
        let together = |option, other| Err(verbs::Error::Together { option, other });
        let only = only.map(|only| if only == Role::Lorebook { only } else { Role::Chat });
        let target = match (name, only) {
            (Some(_), Some(_)) => return together("name", "only"),
            (Some(name), None) => Target::NewTimeline { name, gate: Some(gate) },
            (None, only) => Target::InPlace {
                only,
                // A plan reports what would be replaced, and what is replaced was in a plan.
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

#[derive(Clone, Copy, Debug, Deserialize)]
pub(super) struct Page {
    #[serde(default)]
    pub first: usize,
    count: Option<usize>,
}

impl Page {
    const USUAL: usize = 200;
    pub const LONGEST: usize = 1000;

    pub fn end(self) -> usize {
        let count = self.count.unwrap_or(Self::USUAL).clamp(1, Self::LONGEST);
        self.first.saturating_add(count)
    }
}

/// A request.
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
    /// Reads the arguments of a verb. A null argument counts as not given.
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
            Asked::Snapshot(options) => words.extend(options.subject.names().iter().cloned()),
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
