//! What can be typed.

mod bring_back;
mod copies;
mod examples;
mod keep;
mod look;
mod programs;
mod take;
mod values;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};

pub use bring_back::{Fork, KeptSide, Merge, Reconstruct, Restore, Undo};
pub use copies::{Backup, Import, Sync};
pub use examples::command;
pub use keep::{Config, Doctor, Erase, Forget, Gc, Repair, Tag};
pub use look::{
    Check, Diff, DiffPart, Log, Lore, Messages, Operations, Order, Search, SearchPart, Show,
    Status, Timelines, View,
};
pub use programs::{Completions, Extension, ExtensionDeed, Man};
pub use take::{Kind, Snapshot, Watch};
pub use values::{Only, Secret};

use super::clock::DateStyle;
use values::FOR_ALL;

/// Snapshots of SillyTavern chats and their lorebooks, kept in a git repository and brought back byte for byte.
///
/// Run it inside your SillyTavern folder, or say where that is with --data.
#[derive(Debug, Parser)]
#[command(name = "stvc", version, long_version = env!("STVC_VERSION"), propagate_version = true, arg_required_else_help = true)]
pub struct Args {
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

impl Args {
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
    Snapshot(Snapshot),
    /// Show what changed since the last snapshots
    Status(Status),
    /// List all timelines: every chat, also deleted ones
    Timelines(Timelines),
    /// List the snapshots, newest first
    Log(Log),
    /// Show one snapshot
    Show(Show),
    /// Show what changed between two snapshots, or between one and the files now
    Diff(Diff),
    /// Search everything that was ever said, in every snapshot
    Search(Search),
    /// What the story knew: lorebooks and their entries, when each changed, and at which message
    Lore(Lore),
    /// Bring a snapshot's files back
    Restore(Restore),
    /// Another ending: the beginning of a chat as a chat of its own, with a lorebook of its own
    Fork(Fork),
    /// Merge the lorebook of one timeline into that of another, entry by entry and field by field
    Merge(Merge),
    /// Snapshots of states that were never taken, from what ST-Auto-Recap noted in the messages
    Reconstruct(Reconstruct),
    /// Check that the store, or a backup, is sound: read every object, rebuild every snapshot
    Check(Check),
    /// Check that your chats and lorebooks are sound, one by one and together, and repair what can be repaired
    Doctor(Doctor),
    /// Give a snapshot a name, or list the names
    Tag(Tag),
    /// Copy all snapshots, or those of some timelines, elsewhere: into one file, a folder, or a git server
    Backup(Backup),
    /// Take in a backup, or SillyTavern's own backups as snapshots of the chats they are of
    Import(Import),
    /// Bring two devices to the same state through a folder or a git server that both reach
    Sync(Sync),
    /// Show what the store holds and saves: the share of each timeline, the largest messages
    Stats,
    /// Let snapshots go by a policy; the newest, tagged ones and fork points always stay
    Forget(Forget),
    /// Remove chats for good: out of the history, the log and the disk
    Erase(Erase),
    /// Make the store small: one pack with deltas, without what nobody can ask for any more
    Gc(Gc),
    /// Take the last command back: snapshots, tags, restores
    Undo(Undo),
    /// List what was done, newest first
    Operations(Operations),
    /// Take a snapshot after every save, until it is stopped
    Watch(Watch),
    /// Look at the timelines in the browser
    View(View),
    /// Put the extension into SillyTavern's page, bring it up to date, or take it away
    Extension(Extension),
    /// See and set defaults: where backups go, colours, the pager, dates, retention
    Config(Config),
    /// Print what your shell needs to complete commands and options
    Completions(Completions),
    /// Print the manual page, or write the pages of all commands into a folder
    Man(Man),
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
