//! What can be typed.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, Subcommand, ValueEnum};

use stvc::verbs;

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

    /// Where the snapshots are kept; <user's folder>/.stvc if not given. A backup can be looked at, too
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

    #[command(flatten)]
    pub secret: Secret,

    #[command(subcommand)]
    pub command: Command,
}

/// Where the passphrase of an encrypted backup comes from. Never from the command line itself, which others can see.
#[derive(Debug, clap::Args)]
pub struct Secret {
    /// For encrypted backups: the passphrase is the first line of this file
    #[arg(long, global = true, help_heading = FOR_ALL, value_name = "FILE")]
    pub passphrase_file: Option<PathBuf>,

    /// For encrypted backups: the passphrase is the first line that this command prints
    #[arg(long, global = true, help_heading = FOR_ALL, value_name = "COMMAND", conflicts_with = "passphrase_file")]
    pub passphrase_command: Option<String>,
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
    /// Make the store small: one pack with deltas, without what nobody can ask for any more
    Gc(Gc),
    /// Take the last command back: snapshots, tags, restores
    Undo(Undo),
    /// List what was done, newest first
    Operations(Operations),
    /// Take a snapshot after every save, until it is stopped
    Watch(Watch),
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
            Command::Status => "status",
            Command::Timelines(_) => "timelines",
            Command::Log(_) => "log",
            Command::Show(_) => "show",
            Command::Diff(_) => "diff",
            Command::Search(_) => "search",
            Command::Restore(_) => "restore",
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
            Command::Gc(_) => "gc",
            Command::Undo(_) => "undo",
            Command::Operations(_) => "operations",
            Command::Watch(_) => "watch",
            Command::Completions(_) => "completions",
            Command::Man(_) => "man",
            Command::Demo => "demo",
        }
    }

    /// Whether it changes nothing in the store, and so can be asked of a backup.
    pub fn only_looks(&self) -> bool {
        match self {
            Command::Status
            | Command::Timelines(_)
            | Command::Log(_)
            | Command::Show(_)
            | Command::Diff(_)
            | Command::Search(_)
            | Command::Check(_)
            | Command::Stats => true,
            Command::Restore(restore) => restore.to.is_some(),
            Command::Tag(tag) => tag.snapshot.is_none() && !tag.delete,
            _ => false,
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

    /// A checkpoint at every message that ends a scene (ST-Auto-Recap) and has none yet, each under a name
    #[arg(long, conflicts_with_all = ["at", "tag"])]
    pub scenes: bool,

    /// With --scenes: what they are called; {scene_number}, {scene_name}, {chat}, {character} and {message} are filled in
    #[arg(long = "name", value_name = "TEMPLATE", requires = "scenes", default_value = verbs::snapshot::TEMPLATE)]
    pub template: String,

    /// Say what it is, in your own words
    #[arg(long, short, value_name = "TEXT")]
    pub message: Option<String>,

    /// Give it a name
    #[arg(long, value_name = "NAME")]
    pub tag: Option<String>,

    /// Refuse where the scene, its recap or its lorebook entry is not finished, instead of warning
    #[arg(long)]
    pub strict: bool,

    /// Wait for the lorebook's queue to finish, at most so many seconds
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, default_missing_value = "", value_parser = seconds)]
    pub wait: Option<Wait>,

    /// Take it though work is pending in the lorebook's queue; the snapshot says so
    #[arg(long)]
    pub allow_active_queue: bool,

    /// Only show what would be done
    #[arg(long, short = 'n')]
    pub dry_run: bool,
}

/// How long to wait; none: as long as it takes.
#[derive(Clone, Copy, Debug)]
pub struct Wait(pub Option<Duration>);

fn seconds(text: &str) -> Result<Wait, String> {
    if text.is_empty() {
        return Ok(Wait(None));
    }
    let seconds = text.parse::<f64>().ok().and_then(|n| Duration::try_from_secs_f64(n).ok());
    seconds
        .map(|limit| Wait(Some(limit)))
        .ok_or_else(|| "a number of seconds is expected; name the chat before --wait".to_owned())
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
    #[arg(value_name = "SNAPSHOT", required_unless_present = "all")]
    pub snapshot: Option<String>,

    /// Every timeline, its newest snapshot: what is missing in the library comes back
    #[arg(long, conflicts_with_all = ["snapshot", "name", "at", "to", "only", "clear_queue", "trim_queue"])]
    pub all: bool,

    /// As a chat of its own under this name, with a lorebook of its own: no other timeline is touched
    #[arg(long = "as", value_name = "NAME", conflicts_with_all = ["to", "overwrite", "only"])]
    pub name: Option<String>,

    /// As it was at message N: messages 0 to N, with the recap and the lorebook of then
    #[arg(long, value_name = "N")]
    pub at: Option<usize>,

    /// Into this new or empty folder; SillyTavern's files are not touched
    #[arg(long, value_name = "DIR")]
    pub to: Option<PathBuf>,

    /// Only the chat, or only the lorebook
    #[arg(long, value_name = "PART")]
    pub only: Option<Only>,

    /// Also where something else is now; a snapshot of that is taken first
    #[arg(long, conflicts_with = "to")]
    pub overwrite: bool,

    /// SillyTavern is running, and the chat is closed there (menu ☰, "Close chat"): it has nothing to write back
    #[arg(long, requires = "overwrite")]
    pub chat_closed: bool,

    /// Drop all work that waits in the lorebook's queue (ST-Auto-Recap)
    #[arg(long)]
    pub clear_queue: bool,

    /// Drop the work in the queue that is about messages which this state does not have
    #[arg(long, conflicts_with = "clear_queue")]
    pub trim_queue: bool,

    /// Only show what would be done
    #[arg(long, short = 'n')]
    pub dry_run: bool,
}

#[derive(Debug, clap::Args)]
#[command(after_help = MERGE_HELP)]
pub struct Merge {
    /// The timeline whose lorebook is changed
    #[arg(value_name = "A")]
    pub into: String,

    /// The timeline or snapshot whose lorebook is merged into it; its own file stays as it is
    #[arg(value_name = "B")]
    pub from: String,

    /// Where both changed one value differently, keep that of A
    #[arg(long)]
    pub ours: bool,

    /// Where both changed one value differently, take that of B
    #[arg(long, conflicts_with = "ours")]
    pub theirs: bool,

    /// Do it without asking
    #[arg(long, short)]
    pub yes: bool,

    /// SillyTavern is running, and the chats that are replaced are closed there (menu ☰, "Close chat"): it has nothing to write back
    #[arg(long)]
    pub chat_closed: bool,

    /// Only show what would be done
    #[arg(long, short = 'n')]
    pub dry_run: bool,
}

const MERGE_HELP: &str = "What would change is always shown first. Entries are the same by what they say, not by their UID alone; a new one whose UID is taken gets the \
                          lowest free one. Both lorebooks are held against the snapshot from which both timelines come: what only one side changed is taken, also that an \
                          entry was removed. An entry that one side removed and the other edited stays. Without --ours or --theirs, conflicts are listed and nothing is changed.";

#[derive(Debug, clap::Args)]
#[command(after_help = RECONSTRUCT_HELP)]
pub struct Reconstruct {
    /// The chat: a file, `Character/Chat name`, or any part of that which fits only one
    #[arg(value_name = "TIMELINE")]
    pub timeline: String,

    /// The state at message N
    #[arg(long, value_name = "N", conflicts_with = "all")]
    pub at: Option<usize>,

    /// The state at the end of every scene; so it is without --at, too
    #[arg(long)]
    pub all: bool,

    /// Only show what would be done
    #[arg(long, short = 'n')]
    pub dry_run: bool,
}

const RECONSTRUCT_HELP: &str = "ST-Auto-Recap notes the whole lorebook on each message that ends a scene. From that, the state of then is put together: messages 0 to N, the running recap \
                                without later versions, the lorebook with its UIDs and an empty queue. Such a snapshot says that it is reconstructed. What the note does not hold comes \
                                from the nearest snapshot's lorebook or today's, where the same entry stands, else it is SillyTavern's default; --json tells which, for every entry.";

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
#[command(after_help = DOCTOR_HELP)]
pub struct Doctor {
    /// Only these chats; the whole library if not given
    #[arg(value_name = "TIMELINE")]
    pub timelines: Vec<String>,

    /// Repair: each repair is shown and asked for, and `stvc undo` takes all of it back
    #[arg(long)]
    pub fix: bool,

    /// Repair all of it without asking
    #[arg(long, short, requires = "fix")]
    pub yes: bool,

    /// SillyTavern is running, and the chats that are replaced are closed there (menu ☰, "Close chat"): it has nothing to write back
    #[arg(long)]
    pub chat_closed: bool,

    /// What to do about missing lorebooks; if not given, those that the store has are brought back
    #[arg(long, value_name = "HOW")]
    pub repair: Option<Repair>,

    /// Also remove lorebooks that nothing uses and that no chat left behind: you may keep them for later
    #[arg(long)]
    pub orphans: bool,
}

const DOCTOR_HELP: &str = "Repairs: a fork that shares its lorebook with the chat it comes from gets a copy of its own; a missing lorebook is brought back; a lorebook \
                           that a deleted chat left behind is removed; the running recap of a renamed chat is told the chat's new name. \
                           Exits with 1 if an error is left, with 0 if there are only warnings and notes.";

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Repair {
    /// Make an empty one
    Empty,
    /// Copy the one of the chat that it was forked from
    Clone,
    /// Let the chat go without
    Detach,
}

/// A stretch of time.
#[derive(Clone, Copy, Debug)]
pub struct Span(pub Duration);

#[derive(Debug, clap::Args)]
#[command(after_help = FORGET_HELP)]
pub struct Forget {
    /// Only these timelines; all if none is named
    #[arg(value_name = "TIMELINE")]
    pub timelines: Vec<String>,

    /// Keep the newest N of each timeline
    #[arg(long, value_name = "N")]
    pub keep_last: Option<u64>,

    /// Keep the newest of each of the last N hours that have any
    #[arg(long, value_name = "N")]
    pub keep_hourly: Option<u64>,

    /// Keep the newest of each of the last N days that have any
    #[arg(long, value_name = "N")]
    pub keep_daily: Option<u64>,

    /// Keep the newest of each of the last N weeks that have any
    #[arg(long, value_name = "N")]
    pub keep_weekly: Option<u64>,

    /// Keep the newest of each of the last N months that have any
    #[arg(long, value_name = "N")]
    pub keep_monthly: Option<u64>,

    /// Keep those younger than this, such as 30d or 36h
    #[arg(long, value_name = "TIME", value_parser = span)]
    pub keep_within: Option<Span>,

    /// Keep tagged ones: they always stay, so on its own it means that nothing else does
    #[arg(long)]
    pub keep_tag: bool,

    /// Only show what would go, and how much space that frees
    #[arg(long, short = 'n')]
    pub dry_run: bool,
}

const FORGET_HELP: &str = "Each option keeps some; what none keeps goes. Without any, the [retention] table in stvc/config.toml of the store is used, for example:\n\n  \
                           [retention]\n  keep-last = 10\n  keep-daily = 30\n  keep-within = \"7d\"\n\n\
                           `stvc undo` brings them back until `stvc gc` drops them; what they take is freed then.";

#[derive(Debug, clap::Args)]
pub struct Gc {
    /// How long commands can be undone; what only older ones need goes
    #[arg(long, value_name = "TIME", default_value = "30d", value_parser = span)]
    pub keep_undo: Span,

    /// Objects that nothing refers to go when they are older than this
    #[arg(long, value_name = "TIME", default_value = "14d", value_parser = span)]
    pub grace: Span,

    /// Only show what would be done
    #[arg(long, short = 'n')]
    pub dry_run: bool,
}

#[derive(Debug, clap::Args)]
pub struct Watch {
    /// How long the files must be left alone before a snapshot is taken
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = span)]
    pub settle: Span,

    /// How long to wait for ST-Auto-Recap's queue before a chat is saved all the same, marked as an autosave
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = span)]
    pub patience: Span,

    /// Look at the files so often, where the system does not tell of changes (network drives, some containers)
    #[arg(long, value_name = "TIME", value_parser = span)]
    pub poll: Option<Span>,

    /// Have it started at every login: write a systemd user unit, or say what to do on other systems
    #[arg(long)]
    pub install: bool,
}

#[derive(Debug, clap::Args)]
pub struct Completions {
    /// The shell
    #[arg(value_name = "SHELL")]
    pub shell: clap_complete::Shell,
}

#[derive(Debug, clap::Args)]
pub struct Man {
    /// Write a page for each command into this folder, such as ~/.local/share/man/man1
    #[arg(value_name = "DIR")]
    pub dir: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
pub struct Undo {
    /// The operation's number, as `stvc operations` lists it; the last one that stands if not given
    #[arg(value_name = "NUMBER")]
    pub operation: Option<u64>,

    /// Only show what would be done
    #[arg(long, short = 'n')]
    pub dry_run: bool,

    /// SillyTavern is running, and the chats that are replaced are closed there (menu ☰, "Close chat"): it has nothing to write back
    #[arg(long)]
    pub chat_closed: bool,
}

#[derive(Debug, clap::Args)]
pub struct Operations {
    /// At most this many
    #[arg(short = 'n', long = "limit", value_name = "N")]
    pub limit: Option<usize>,
}

#[derive(Debug, clap::Args)]
pub struct Check {
    /// A backup: a file, a folder or a git server; the store if not given
    #[arg(value_name = "SRC")]
    pub source: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
#[command(after_help = BACKUP_HELP)]
pub struct Backup {
    /// Where to: a file that ends in .stvc, a folder, or a git server; - for standard output
    #[arg(value_name = "DEST", required_unless_present = "last")]
    pub destination: Option<String>,

    /// Only these timelines, with the history they come from and their tags; everything if none is named
    #[arg(value_name = "TIMELINE")]
    pub timelines: Vec<String>,

    /// Encrypt it with a passphrase, which is asked for on the terminal if neither --passphrase-file nor --passphrase-command is given
    #[arg(long)]
    pub encrypt: bool,

    /// Also in the place of a backup that holds snapshots which this one does not; a folder or server keeps them out of sight
    #[arg(long)]
    pub overwrite: bool,

    /// In a folder or on a server, drop the timelines, tags and snapshots that are not here any more
    #[arg(long, conflicts_with_all = ["timelines", "encrypt"])]
    pub prune: bool,

    /// Only tell when the last backups were taken, all or the one at DEST, and what came since
    #[arg(long, conflicts_with_all = ["timelines", "encrypt", "overwrite", "prune"])]
    pub last: bool,
}

const BACKUP_HELP: &str = "A file is written whole each time; it is read back and every object in it hashed before it gets its name. On standard output it cannot be, so check it where it went: \
                           `stvc check FILE`. A folder is a store of its own (`stvc --store FOLDER log`) to which only what is new is copied, and a git server, such as ssh://host/chats.git or \
                           me@host:chats.git, gets it through your git; what you delete here stays there without --prune. \
                           A backup holds all timelines and tags and what they lead to, not what only `undo` needs. \
                           Everything comes back with `stvc import DEST && stvc restore --all`, also into an empty folder (--data).";

#[derive(Debug, clap::Args)]
pub struct Import {
    /// A backup: a file, a folder or a git server; or a folder of SillyTavern's backups. SillyTavern's own backups/ if not given
    #[arg(value_name = "SRC")]
    pub source: Option<PathBuf>,

    /// Only show what would be done
    #[arg(long, short = 'n')]
    pub dry_run: bool,

    /// SillyTavern is running, and the chats that are replaced are closed there (menu ☰, "Close chat"): it has nothing to write back
    #[arg(long)]
    pub chat_closed: bool,
}

#[derive(Debug, clap::Args)]
#[command(after_help = SYNC_HELP)]
pub struct Sync {
    /// A folder, or a git server such as ssh://host/chats.git or me@host:chats.git
    #[arg(value_name = "REMOTE")]
    pub remote: String,

    /// Only show what would be done
    #[arg(long, short = 'n')]
    pub dry_run: bool,

    /// SillyTavern is running, and the chats that are replaced are closed there (menu ☰, "Close chat"): it has nothing to write back
    #[arg(long)]
    pub chat_closed: bool,
}

const SYNC_HELP: &str = "First a snapshot of every chat that changed is taken. A chat that went on elsewhere is brought up to date here. One that went on on both sides stays as two: what came to REMOTE \
                         first keeps its name, the other is called `… (other version DAY)`. A lorebook that both changed is merged, entry by entry and field by field; where both changed one value, both \
                         lorebooks stay and the command that settles it is shown. What changed since its snapshot is left alone. `stvc undo` takes back what came; what was deleted here and is \
                         still there comes back.";

/// A stretch of time as it is typed.
fn span(text: &str) -> Result<Span, String> {
    stvc::history::retention::parse_span(text).map(Span)
}
