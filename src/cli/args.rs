//! The global arguments, the list of commands, and the values that several commands take. The arguments of a command are in its own file.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};

use super::clock::DateStyle;
use super::examples::command;
use super::passphrase::Secret;
use super::{
    backup, check, completions, config, diff, doctor, erase, extension, forget, fork, gc, import,
    log, lore, man, merge, operations, reconstruct, restore, search, show, snapshot, sync, tag,
    timelines, undo, view, watch,
};
use stvc::engine::gate::Wait;
use stvc::history::dates;

/// The heading over the options that every command has.
pub const FOR_ALL: &str = "Options for all commands";

pub const SNAPSHOT_HELP: &str = "A snapshot is named by the beginning of its id (4 or more digits), by a tag, by b3: and the beginning of its \
                             content id, or by a timeline (its newest snapshot); ~N behind any of these goes N snapshots back, @DATE to what it was then, :N to when message N was the last: \"Tide Office@2 weeks ago\", @2026-11-01 (the end of that day), @{2026-11-01 18:30}, \"Tide Office:12\". docs/moments.md tells all of it.";

/// Snapshots of SillyTavern chats and their lorebooks, kept in a git repository and brought back byte for byte.
///
/// Run it inside your SillyTavern folder, or say where that is with --data.
#[derive(Debug, Parser)]
#[command(name = "stvc", version, long_version = env!("STVC_VERSION"), propagate_version = true, arg_required_else_help = true)]
pub struct GlobalArgs {
    /// SillyTavern's folder, or a user's folder in its data/; found from here upward if not given
    #[arg(long, global = true, hide_short_help = true, help_heading = FOR_ALL, value_name = "DIR", env = "STVC_DATA", hide_env_values = true)]
    pub data: Option<PathBuf>,

    /// Which user's chats, where there are several users
    #[arg(long, global = true, hide_short_help = true, help_heading = FOR_ALL, value_name = "NAME")]
    pub user: Option<String>,

    /// All users, one after the other: snapshot, watch, backup, check, doctor, stats. Each keeps a store of their own
    #[arg(long, global = true, hide_short_help = true, help_heading = FOR_ALL, conflicts_with_all = ["user", "store"])]
    pub all_users: bool,

    /// Where the snapshots are kept; <user's folder>/.stvc if not given. A backup can be looked at, too
    #[arg(long, global = true, hide_short_help = true, help_heading = FOR_ALL, value_name = "DIR", env = "STVC_STORE", hide_env_values = true)]
    pub store: Option<PathBuf>,

    /// Print JSON, one object a line
    #[arg(long, global = true, hide_short_help = true, help_heading = FOR_ALL)]
    pub json: bool,

    /// Print only what was asked for, and errors
    #[arg(long, short, global = true, hide_short_help = true, help_heading = FOR_ALL)]
    pub quiet: bool,

    /// When to use colours; auto if nothing is said
    #[arg(long, global = true, hide_short_help = true, help_heading = FOR_ALL, value_name = "WHEN")]
    pub color: Option<Color>,

    /// How moments are told: relative (3 minutes ago), local (2026-11-01 18:30) or iso
    #[arg(long, global = true, hide_short_help = true, help_heading = FOR_ALL, value_name = "STYLE", hide_possible_values = true)]
    pub date: Option<DateStyle>,

    /// Print long answers at once, not in a pager
    #[arg(long, global = true, hide_short_help = true, help_heading = FOR_ALL)]
    pub no_pager: bool,

    #[command(flatten)]
    pub secret: Secret,

    #[command(subcommand)]
    pub command: Command,
}

impl GlobalArgs {
    /// What was typed. To describe every command takes longer than to do most of them, so one that is typed as it should be is read with its own
    /// description alone; all else is answered with all of them at hand.
    pub fn read(arguments: &[OsString]) -> Result<Self, clap::Error> {
        let all = Self::command();
        let alone = arguments.iter().skip(1).find_map(|word| all.find_subcommand(word)).map(|it| {
            clap::Command::new("stvc").args(all.get_arguments().cloned()).subcommand(it.clone())
        });
        let read = |command: clap::Command| {
            Self::from_arg_matches(&command.try_get_matches_from(arguments)?)
        };
        match alone.map(read) {
            Some(Ok(args)) => Ok(args),
            _ => read(command()),
        }
    }
}

/// When to use colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Color {
    /// On a terminal, unless NO_COLOR is set
    Auto,
    Always,
    Never,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Make the store (snapshot does it by itself, too)
    Init,
    /// Take a snapshot of every chat that changed, or of the named ones
    Snapshot(snapshot::Args),
    /// Show what changed since the last snapshots
    Status(timelines::StatusArgs),
    /// List all timelines: every chat, also deleted ones
    Timelines(timelines::Args),
    /// List the snapshots, newest first
    Log(log::Args),
    /// Show one snapshot
    Show(show::Args),
    /// Show what changed between two snapshots, or between one and the files now
    Diff(diff::Args),
    /// Search everything that was ever said, in every snapshot
    Search(search::Args),
    /// What the story knew: lorebooks and their entries, when each changed, and at which message
    Lore(lore::Args),
    /// Bring a snapshot's files back
    Restore(restore::Args),
    /// Another ending: the beginning of a chat as a chat of its own, with a lorebook of its own
    Fork(fork::Args),
    /// Merge the lorebook of one timeline into that of another, entry by entry and field by field
    Merge(merge::Args),
    /// Snapshots of states that were never taken, from what ST-Auto-Recap noted in the messages
    Reconstruct(reconstruct::Args),
    /// Check that the store, or a backup, is sound: read every object, rebuild every snapshot
    Check(check::Args),
    /// Check that your chats and lorebooks are sound, one by one and together, and repair what can be repaired
    Doctor(doctor::Args),
    /// Give a snapshot a name, or list the names
    Tag(tag::Args),
    /// Copy all snapshots, or those of some timelines, elsewhere: into one file, a folder, or a git server
    Backup(backup::Args),
    /// Take in a backup, or SillyTavern's own backups as snapshots of the chats they are of
    Import(import::Args),
    /// Bring two devices to the same state through a folder or a git server that both reach
    Sync(sync::Args),
    /// Show what the store holds and saves: the share of each timeline, the largest messages
    Stats,
    /// Let snapshots go by a policy; the newest, tagged ones and fork points always stay
    Forget(forget::Args),
    /// Remove chats for good: out of the history, the log and the disk
    Erase(erase::Args),
    /// Make the store small: one pack with deltas, without what nobody can ask for any more
    Gc(gc::Args),
    /// Take the last command back: snapshots, tags, restores
    Undo(undo::Args),
    /// List what was done, newest first
    Operations(operations::Args),
    /// Take a snapshot after every save, until it is stopped
    Watch(watch::Args),
    /// Look at the timelines in the browser
    View(view::Args),
    /// Put the extension into SillyTavern's page, bring it up to date, or take it away
    Extension(extension::Args),
    /// See and set defaults: where backups go, colours, the pager, dates, retention
    Config(config::Args),
    /// Print what your shell needs to complete commands and options
    Completions(completions::Args),
    /// Print the manual page, or write the pages of all commands into a folder
    Man(man::Args),
    /// Try it: the whole round trip on a sample library in a temporary folder
    Demo,
}

impl Command {
    /// The word that was typed.
    pub fn name(&self) -> &'static str {
        match self {
            Command::Init => "init",
            Command::Snapshot(_) => "snapshot",
            Command::Status(_) => "status",
            Command::Timelines(_) => "timelines",
            Command::Log(_) => "log",
            Command::Show(_) => "show",
            Command::Diff(_) => "diff",
            Command::Search(_) => "search",
            Command::Lore(_) => "lore",
            Command::Restore(_) => "restore",
            Command::Fork(_) => "fork",
            Command::Merge(_) => "merge",
            Command::Reconstruct(_) => "reconstruct",
            Command::Check(_) => "check",
            Command::Doctor(_) => "doctor",
            Command::Tag(_) => "tag",
            Command::Backup(_) => "backup",
            Command::Import(_) => "import",
            Command::Sync(_) => "sync",
            Command::Stats => "stats",
            Command::Forget(_) => "forget",
            Command::Erase(_) => "erase",
            Command::Gc(_) => "gc",
            Command::Undo(_) => "undo",
            Command::Operations(_) => "operations",
            Command::Watch(_) => "watch",
            Command::View(_) => "view",
            Command::Config(_) => "config",
            Command::Extension(_) => "extension",
            Command::Completions(_) => "completions",
            Command::Man(_) => "man",
            Command::Demo => "demo",
        }
    }

    /// Whether other users are told of, and it can be done for all.
    pub fn is_for_users(&self) -> bool {
        matches!(
            self,
            Command::Snapshot(_)
                | Command::Watch(_)
                | Command::Extension(_)
                | Command::Backup(_)
                | Command::Check(_)
                | Command::Doctor(_)
                | Command::Stats
        )
    }

    /// Whether its answer may be long, and nothing but an answer.
    pub fn is_for_reading(&self) -> bool {
        let reads = matches!(
            self,
            Command::Status(_)
                | Command::Timelines(_)
                | Command::Log(_)
                | Command::Show(_)
                | Command::Diff(_)
                | Command::Search(_)
                | Command::Lore(_)
                | Command::Stats
                | Command::Operations(_)
                | Command::Tag(_)
        );
        reads && (self.only_looks() || matches!(self, Command::Operations(_)))
    }

    /// Whether it changes nothing in the store, and so can be asked of a backup.
    pub fn only_looks(&self) -> bool {
        match self {
            Command::Timelines(timelines) => timelines.parent.is_none() && !timelines.no_parent,
            Command::Status(_)
            | Command::Log(_)
            | Command::Show(_)
            | Command::Diff(_)
            | Command::Search(_)
            | Command::Lore(_)
            | Command::Check(_)
            | Command::Stats => true,
            Command::View(view) => !view.write,
            Command::Restore(restore) => restore.to.is_some(),
            Command::Tag(tag) => tag.snapshot.is_none() && !tag.delete,
            _ => false,
        }
    }
}

/// Returns a parser for one of these words, each of which means a value.
pub fn one_of<T, const N: usize>(
    values: [(impl Into<PossibleValue>, T); N],
) -> impl TypedValueParser<Value = T>
where
    T: Clone + Send + Sync + 'static,
{
    let values = values.map(|(word, value)| (word.into(), value));
    let words = values.each_ref().map(|(word, _)| word.clone());
    PossibleValuesParser::new(words).try_map(move |typed| {
        let meant = values.iter().find(|(word, _)| word.matches(&typed, false));
        meant.map(|(_, value)| value.clone()).ok_or("this is not one of the possible values")
    })
}

pub fn date(text: &str) -> Result<i64, String> {
    dates::parse(text, super::now()).map(|moment| moment.timestamp())
}

pub fn last_date(text: &str) -> Result<i64, String> {
    dates::parse_end(text, super::now()).map(|moment| moment.timestamp())
}

pub fn seconds(text: &str) -> Result<Wait, String> {
    if text.is_empty() {
        return Ok(Wait::Forever);
    }
    let seconds = text.parse::<f64>().ok().and_then(|n| Duration::try_from_secs_f64(n).ok());
    seconds
        .map(Wait::AtMost)
        .ok_or_else(|| "a number of seconds is expected; name the chat before --wait".to_owned())
}
