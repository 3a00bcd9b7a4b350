//! What can be typed.

use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum};

/// The heading over the options that every command has.
const FOR_ALL: &str = "Options for all commands";

/// Snapshots of SillyTavern chats and their lorebooks, kept in a git repository and brought back byte for byte.
///
/// Run it inside your SillyTavern folder, or say where that is with --data.
#[derive(Debug, Parser)]
#[command(name = "stvc", version, propagate_version = true, arg_required_else_help = true)]
pub struct Args {
    /// SillyTavern's folder, or a user's folder in its data/; found from here upward if not given
    #[arg(long, global = true, help_heading = FOR_ALL, value_name = "DIR", env = "STVC_DATA", hide_env_values = true)]
    pub data: Option<PathBuf>,

    /// Which user's chats, where there are several users
    #[arg(long, global = true, help_heading = FOR_ALL, value_name = "NAME")]
    pub user: Option<String>,

    /// Where the snapshots are kept; <user's folder>/.stvc if not given
    #[arg(long, global = true, help_heading = FOR_ALL, value_name = "DIR", env = "STVC_STORE", hide_env_values = true)]
    pub store: Option<PathBuf>,

    /// Print JSON, one object a line
    #[arg(long, global = true, help_heading = FOR_ALL)]
    pub json: bool,

    /// Print only what was asked for, and errors
    #[arg(long, short, global = true, help_heading = FOR_ALL)]
    pub quiet: bool,

    /// When to use colours
    #[arg(long, global = true, help_heading = FOR_ALL, value_name = "WHEN", default_value = "auto")]
    pub color: Color,

    #[command(subcommand)]
    pub command: Command,
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
    Status,
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
    /// Bring a snapshot's files back
    Restore(Restore),
    /// Check that the store is sound: read every object, rebuild every snapshot
    Check,
    /// Give a snapshot a name, or list the names
    Tag(Tag),
    /// Take in SillyTavern's own backups as snapshots of the chats they are of
    Import(Import),
    /// Take the last command back: snapshots, tags, restores
    Undo(Undo),
    /// List what was done, newest first
    Operations(Operations),
    /// Try it: the whole round trip on a sample library in a temporary folder
    Demo,
}

impl Command {
    /// The word that was typed.
    pub fn name(&self) -> &'static str {
        match self {
            Command::Init => "init",
            Command::Snapshot(_) => "snapshot",
            Command::Status => "status",
            Command::Timelines(_) => "timelines",
            Command::Log(_) => "log",
            Command::Show(_) => "show",
            Command::Diff(_) => "diff",
            Command::Search(_) => "search",
            Command::Restore(_) => "restore",
            Command::Check => "check",
            Command::Tag(_) => "tag",
            Command::Import(_) => "import",
            Command::Undo(_) => "undo",
            Command::Operations(_) => "operations",
            Command::Demo => "demo",
        }
    }
}

const SNAPSHOT_HELP: &str = "A snapshot is named by the beginning of its id (4 or more digits), by a tag, by b3: and the beginning of its \
                             content id, or by a timeline (its newest snapshot); ~N behind any of these goes N snapshots back.";

#[derive(Debug, clap::Args)]
pub struct Snapshot {
    /// Chats: a file, `Character/Chat name`, or any part of that which fits only one
    #[arg(value_name = "TIMELINE")]
    pub timelines: Vec<String>,

    /// A checkpoint at message N: messages 0 to N, kept under a tag; the timeline itself stays as it is
    #[arg(long, value_name = "N")]
    pub at: Option<usize>,

    /// Say what it is, in your own words
    #[arg(long, short, value_name = "TEXT")]
    pub message: Option<String>,

    /// Give it a name
    #[arg(long, value_name = "NAME")]
    pub tag: Option<String>,

    /// Only show what would be done
    #[arg(long, short = 'n')]
    pub dry_run: bool,
}

#[derive(Debug, clap::Args)]
pub struct Timelines {
    /// As a tree: each fork below the timeline it forked from, with the message after which it did
    #[arg(long)]
    pub tree: bool,
}

#[derive(Debug, clap::Args)]
pub struct Log {
    /// Only this timeline
    #[arg(value_name = "TIMELINE")]
    pub timeline: Option<String>,

    /// Draw the timelines with their fork points
    #[arg(long)]
    pub graph: bool,

    /// In a long graph, show every snapshot: nothing is folded
    #[arg(long)]
    pub all: bool,

    /// At most this many
    #[arg(short = 'n', long = "limit", value_name = "N")]
    pub limit: Option<usize>,
}

#[derive(Debug, clap::Args)]
#[command(after_help = SNAPSHOT_HELP)]
pub struct Show {
    /// The snapshot
    #[arg(value_name = "SNAPSHOT")]
    pub snapshot: String,
}

#[derive(Debug, clap::Args)]
#[command(after_help = SNAPSHOT_HELP)]
pub struct Diff {
    /// The snapshot before; or A...B: what two timelines have each for itself since they parted
    #[arg(value_name = "A")]
    pub before: String,

    /// The snapshot after; the files as they are now if not given
    #[arg(value_name = "B")]
    pub after: Option<String>,

    /// One timeline over time: each snapshot of A against the one before it, newest first
    #[arg(long, conflicts_with = "after")]
    pub history: bool,

    /// With --history: at most this many
    #[arg(short = 'n', long = "limit", value_name = "N", requires = "history")]
    pub limit: Option<usize>,

    /// Only this part
    #[arg(long, value_name = "PART")]
    pub only: Option<DiffPart>,

    /// Only how much changed
    #[arg(long)]
    pub stat: bool,

    /// Exit with 1 if something changed, as `git diff` does
    #[arg(long)]
    pub exit_code: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DiffPart {
    Chat,
    Lorebook,
    Metadata,
}

#[derive(Debug, clap::Args)]
#[command(after_help = SEARCH_HELP)]
pub struct Search {
    /// Words, in any case, also parts of words; a text must have them all
    #[arg(value_name = "TEXT", required = true, value_parser = not_blank)]
    pub text: Vec<String>,

    /// The words must stand together, in this order
    #[arg(long)]
    pub phrase: bool,

    /// Only in this timeline's snapshots
    #[arg(long = "in", value_name = "TIMELINE")]
    pub timeline: Option<String>,

    /// Only in chats, or only in lorebooks
    #[arg(long, value_name = "PART")]
    pub only: Option<Only>,

    /// At most this many
    #[arg(short = 'n', long = "limit", value_name = "N")]
    pub limit: Option<usize>,
}

const SEARCH_HELP: &str = "Messages with all their swipes and lorebook entries (title, keys, content) are searched, also hidden and deleted ones. \
                           Each text is listed once: in the newest state of a timeline that still has it, else in the last snapshot that did.";

fn not_blank(text: &str) -> Result<String, &'static str> {
    if text.trim().is_empty() { Err("there is nothing to search for") } else { Ok(text.into()) }
}

#[derive(Debug, clap::Args)]
#[command(after_help = SNAPSHOT_HELP)]
pub struct Restore {
    /// The snapshot
    #[arg(value_name = "SNAPSHOT")]
    pub snapshot: String,

    /// Into this new or empty folder; SillyTavern's files are not touched
    #[arg(long, value_name = "DIR")]
    pub to: Option<PathBuf>,

    /// Only the chat, or only the lorebook
    #[arg(long, value_name = "PART")]
    pub only: Option<Only>,

    /// Also where something else is now; a snapshot of that is taken first
    #[arg(long, conflicts_with = "to")]
    pub overwrite: bool,

    /// Only show what would be done
    #[arg(long, short = 'n')]
    pub dry_run: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Only {
    Chat,
    Lorebook,
}

#[derive(Debug, clap::Args)]
#[command(after_help = SNAPSHOT_HELP)]
pub struct Tag {
    /// The name; alone, it is shown what it names, and without it all names are listed
    #[arg(value_name = "NAME", required_if_eq("delete", "true"))]
    pub name: Option<String>,

    /// The snapshot it names
    #[arg(value_name = "SNAPSHOT", requires = "name", conflicts_with = "delete")]
    pub snapshot: Option<String>,

    /// Take the name away
    #[arg(long, short)]
    pub delete: bool,
}

#[derive(Debug, clap::Args)]
pub struct Undo {
    /// The operation's number, as `stvc operations` lists it; the last one that stands if not given
    #[arg(value_name = "NUMBER")]
    pub operation: Option<u64>,

    /// Only show what would be done
    #[arg(long, short = 'n')]
    pub dry_run: bool,
}

#[derive(Debug, clap::Args)]
pub struct Operations {
    /// At most this many
    #[arg(short = 'n', long = "limit", value_name = "N")]
    pub limit: Option<usize>,
}

#[derive(Debug, clap::Args)]
pub struct Import {
    /// A folder of backups; SillyTavern's own backups/ if not given
    #[arg(value_name = "DIR")]
    pub source: Option<PathBuf>,

    /// Only show what would be done
    #[arg(long, short = 'n')]
    pub dry_run: bool,
}
