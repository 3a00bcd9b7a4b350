//! Requests: a closed list of verbs with their arguments. No verb accepts a path, an address or a
//! passphrase, and verbs that change data need [`Rights::Change`]. [`VERBS`] lists the arguments of
//! each verb. A request with any other argument is refused before the arguments are parsed.

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Map, Value};

use crate::archive::{Blake3, Role};
use crate::engine::CommandRun;
use crate::engine::files::{ChatOpenState, WritePermissions};
use crate::engine::gate::GatePolicy;
use crate::exit;
use crate::verbs::restore::{Overwrite, RestoreRange, Target};
use crate::verbs::timelines::graph;
use crate::verbs::{self, diff, doctor, lore, picture, read, restore, search, snapshot, undo};

/// The rights that a front end has, or that a verb needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rights {
    /// Only verbs that change nothing.
    Read,
    /// All verbs.
    Change,
}

/// The reason for refusing a request.
#[derive(Debug, thiserror::Error, strum::IntoStaticStr)]
#[strum(serialize_all = "kebab-case", prefix = "request-")]
pub enum Refusal {
    #[error("invalid request: {why}")]
    Malformed { why: String },
    #[error("unknown verb {verb:?}")]
    UnknownVerb { verb: String },
    #[error("invalid arguments of {verb:?}: {why}")]
    BadArguments { verb: &'static str, why: String },
    #[error("the page uses protocol {page}, but this program uses protocol {program}")]
    Protocol { page: u32, program: u32 },
    /// The request was meant for another watch, or the watch was restarted.
    #[error(
        "cannot run {verb:?}: it changes data, and the request does not name this watch's session"
    )]
    Session { verb: &'static str },
    #[error("too many requests: at most {most} of this kind are served per minute")]
    TooMany { most: usize },
    #[error("cannot run {verb:?}: it changes data, which is not allowed here")]
    ReadOnly { verb: &'static str },
    #[error("{verb:?} was run, but its answer cannot be written: {why}")]
    Unwritable { verb: &'static str, why: String },
    #[error("stvc crashed while it ran {verb:?}; this is a bug in stvc")]
    Panicked { verb: &'static str },
}

impl Refusal {
    /// Returns the exit code that the command line would return for this error.
    pub fn exit(&self) -> u8 {
        match self {
            Self::ReadOnly { .. } | Self::Session { .. } => exit::REFUSED,
            Self::Unwritable { .. } | Self::Panicked { .. } => exit::FAILED,
            _ => exit::USAGE,
        }
    }

    /// Returns a hint for the user.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Protocol { .. } => {
                Some("run `stvc extension update`, then reload SillyTavern's page")
            }
            Self::Session { .. } => Some(
                "send it again with the \"session\" of this answer; if you did not send it, ignore it: nothing was changed",
            ),
            Self::Unwritable { .. } => Some("run `stvc operations` to see the result"),
            Self::Panicked { .. } => Some(
                "run `stvc check` to check the store; read the output of the watch to see where it crashed",
            ),
            _ => None,
        }
    }
}

/// A verb with the names of its arguments and the rights that it needs.
#[derive(Debug)]
pub struct Verb {
    /// Name in the request.
    pub name: &'static str,
    /// Names that `args` may contain.
    pub arguments: &'static [&'static str],
    /// The least rights that a front end must have.
    pub needs: Rights,
    read: fn(Value) -> serde_json::Result<Arguments>,
}

macro_rules! requests {
    ($($name:literal $needs:ident $variant:ident($options:ty) [$($argument:ident),*])*) => {
        #[derive(Clone, Debug)]
        pub(super) enum Arguments {
            $($variant($options),)*
        }

        /// All verbs.
        pub const VERBS: &[Verb] = &[
            $(Verb {
                name: $name,
                arguments: &[$(stringify!($argument)),*],
                needs: Rights::$needs,
                read: |arguments| serde_json::from_value(arguments).map(Arguments::$variant),
            },)*
        ];
    };
}

requests! {
    "library" Read Library(IgnoredAny) []
    "timelines" Read Timelines(IgnoredAny) []
    "status" Read Status(IgnoredAny) []
    "groups" Read Groups(IgnoredAny) []
    "graph" Read Graph(graph::Options) [timeline, lanes_only, scenes, first, count]
    "log" Read Log(Log) [timeline, message, first, count]
    "show" Read Show(Show) [snapshot, brief]
    "messages" Read Messages(read::Options) [snapshot, first, count]
    "picture" Read Picture(picture::AttachmentOptions) [snapshot, blake3]
    "portrait" Read Portrait(picture::PortraitOptions) [character]
    "lore" Read Lore(lore::Options) [book, entry, at, snapshot, chat, active, blame, all, first, count]
    "diff" Read Diff(diff::Options) [before, after, only, stat, first, count]
    "search" Read Search(search::Options) [text, phrase, regex, who, timeline, only, state, first, count]
    "operations" Read Operations(IgnoredAny) [first, count]
    "doctor" Read Doctor(Doctor) [timelines]
    "snapshot" Change Snapshot(snapshot::Options) [timelines, message, tag, at, scenes, holds, strict, wait, allow_active_queue, dry_run]
    "tag" Change Tag(Tag) [name, snapshot]
    "restore" Change Restore(Restore) [snapshot, at, cut, name, strict, wait, allow_active_queue, only, expect, chat_closed, rereads, dry_run]
    "repair" Change Repair(doctor::ConfirmedRepair) [timelines, what, chat_closed, rereads]
    "undo" Change Undo(undo::Options) [operation, chat_closed, rereads, dry_run]
    "backup" Change Backup(Backup) [running]
    "sync" Change Sync(Sync) [running, chat_closed, rereads]
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Log {
    pub timeline: Option<String>,
    pub message: Option<usize>,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Show {
    pub snapshot: String,
    /// Do not read and validate the files.
    #[serde(default)]
    pub brief: bool,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Doctor {
    #[serde(default)]
    pub timelines: Vec<String>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
pub(super) struct Backup {
    /// Only wait for a backup that was started before.
    #[serde(default)]
    pub running: bool,
}

#[derive(Clone, Copy, Debug, Deserialize)]
pub(super) struct Sync {
    /// Only wait for a sync that was started before.
    #[serde(default)]
    pub running: bool,
    #[serde(flatten)]
    pub closed: ChatOpenState,
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
    /// The last message to restore. The lorebook and everything else are restored as in the
    /// snapshot.
    cut: Option<usize>,
    name: Option<String>,
    #[serde(flatten)]
    gate: GatePolicy,
    only: Option<Role>,
    /// The hashes of the files to replace, from the field `blake3_before` of a plan. A file with
    /// another hash is not replaced. A snapshot of the replaced files is created first.
    expect: Option<Vec<Blake3>>,
    #[serde(flatten)]
    closed: ChatOpenState,
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
                // A dry run plans to replace all files that differ. The restore itself replaces
                // only files whose hashes the request lists.
                overwrite: match expect {
                    Some(expected) => Overwrite::Only(expected),
                    None if dry_run => Overwrite::All,
                    None => Overwrite::None,
                },
                permissions: WritePermissions { closed, active_queue: gate.allow_active_queue },
            },
        };
        let until = match (at, cut) {
            (Some(_), Some(_)) => return together("at", "cut"),
            (Some(at), None) => RestoreRange::Message(at),
            (None, Some(cut)) => RestoreRange::Cut(cut),
            (None, None) => RestoreRange::End,
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
    const DEFAULT_LINES: usize = 200;
    pub const MAX_LINES: usize = 1000;

    pub fn of(first: usize, count: usize) -> Self {
        Self { first, count: Some(count) }
    }

    pub fn end(self) -> usize {
        let count = self.count.unwrap_or(Self::DEFAULT_LINES).clamp(1, Self::MAX_LINES);
        self.first.saturating_add(count)
    }
}

/// A request: a verb with its arguments.
#[derive(Clone, Debug)]
pub struct Request {
    /// The requested verb.
    pub verb: &'static Verb,
    pub(super) asked: Arguments,
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
    /// Parses the arguments of a verb. An argument that is null counts as absent.
    pub fn of(name: &str, arguments: Option<Value>) -> Result<Self, Refusal> {
        let verb = VERBS.iter().find(|verb| verb.name == name);
        let verb =
            verb.ok_or_else(|| Refusal::UnknownVerb { verb: name.chars().take(40).collect() })?;
        let bad = |why: String| Refusal::BadArguments { verb: verb.name, why };
        let mut arguments = match arguments.unwrap_or_else(|| Value::Object(Map::new())) {
            Value::Object(arguments) => arguments,
            _ => return Err(bad("not an object".into())),
        };
        if let Some(other) = arguments.keys().find(|name| !verb.arguments.contains(&name.as_str()))
        {
            let other: String = other.chars().take(40).collect();
            return Err(bad(format!("unknown argument {other:?}")));
        }
        arguments.retain(|_, value| !value.is_null());
        let arguments = Value::Object(arguments);
        let page = Page::deserialize(&arguments).map_err(|error| bad(error.to_string()))?;
        let asked = (verb.read)(arguments).map_err(|error| bad(error.to_string()))?;
        Ok(Self { verb, asked, page })
    }

    /// Parses a request: `{"verb": …, "args": {…}}`.
    pub fn read(bytes: &[u8]) -> Result<Self, Refusal> {
        let envelope: Envelope = serde_json::from_slice(bytes)
            .map_err(|error| Refusal::Malformed { why: error.to_string() })?;
        Self::of(&envelope.verb, envelope.args)
    }

    /// Returns the command line that the operation log records for a request to a front end.
    pub(super) fn command(&self, front_end: &str) -> CommandRun {
        let mut words = ["stvc", front_end, self.verb.name].map(str::to_owned).to_vec();
        match &self.asked {
            Arguments::Snapshot(options) => words.extend(options.subject.names().iter().cloned()),
            Arguments::Tag(asked) => {
                words.push(asked.name.clone());
                words.extend(asked.snapshot.clone());
            }
            Arguments::Restore(asked) => {
                words.push(asked.snapshot.clone());
                words.extend(asked.name.iter().flat_map(|name| ["--as".to_owned(), name.clone()]));
            }
            Arguments::Repair(asked) => words.extend(asked.timelines.iter().cloned()),
            Arguments::Undo(options) => {
                words.extend(options.operation.map(|number| number.to_string()))
            }
            _ => {}
        }
        CommandRun::new(words)
    }
}
