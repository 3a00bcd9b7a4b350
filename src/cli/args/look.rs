//! Looking at what is there.

use clap_complete::engine::ArgValueCompleter;

use crate::cli::complete::{snapshots, timelines};
use crate::cli::story::Format;
use std::ops::RangeInclusive;
use std::path::PathBuf;

use clap::{ValueEnum, ValueHint};

use super::values::SNAPSHOT_HELP;
use stvc::history::dates;

#[derive(Debug, clap::Args)]
pub struct Timelines {
    /// As a tree: each fork below the timeline it forked from, with the message after which it did
    #[arg(long)]
    pub tree: bool,

    /// Only timelines with this in their name
    #[arg(add = ArgValueCompleter::new(timelines), value_name = "NAME")]
    pub name: Option<String>,

    /// In which order; most recent first if not given, in JSON by name
    #[arg(long, value_name = "ORDER", conflicts_with = "tree")]
    pub sort: Option<Order>,

    /// Say that timeline NAME was forked from PARENT, where that was not found out rightly
    #[arg(add = ArgValueCompleter::new(timelines), long, value_name = "PARENT", requires = "name", conflicts_with = "tree")]
    pub parent: Option<String>,

    /// Say that timeline NAME was forked from none
    #[arg(long, requires = "name", conflicts_with_all = ["tree", "parent"])]
    pub no_parent: bool,
}

/// In which order timelines are listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Order {
    /// What was saved or taken last comes first
    Recent,
    /// By name; numbers count as numbers
    Name,
    /// The longest first
    Messages,
}

#[derive(Debug, clap::Args)]
pub struct Status {
    /// Only timelines with this in their name
    #[arg(add = ArgValueCompleter::new(timelines), value_name = "NAME")]
    pub name: Option<String>,

    /// In which order; most recent first if not given, in JSON by name
    #[arg(long, value_name = "ORDER")]
    pub sort: Option<Order>,
}

#[derive(Debug, clap::Args)]
pub struct Log {
    /// Only this timeline
    #[arg(add = ArgValueCompleter::new(timelines), value_name = "TIMELINE")]
    pub timeline: Option<String>,

    /// Every version of this message of the timeline: edits, swipes, hiding, and what it is in other forks
    #[arg(long, value_name = "N", requires = "timeline", conflicts_with_all = ["graph", "since", "until", "all"])]
    pub message: Option<usize>,

    /// Draw the timelines with their fork points
    #[arg(long)]
    pub graph: bool,

    /// Only snapshots taken from then on: 2026-11-01, yesterday, "2 weeks ago"
    #[arg(long, value_name = "DATE", value_parser = date)]
    pub since: Option<i64>,

    /// Only snapshots taken until then; a day counts whole
    #[arg(long, value_name = "DATE", value_parser = last_date)]
    pub until: Option<i64>,

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
    #[arg(add = ArgValueCompleter::new(snapshots), value_name = "SNAPSHOT")]
    pub snapshot: String,

    /// These messages, whole: N, or N..M
    #[arg(long, value_name = "N[..M]", value_parser = messages)]
    pub message: Option<Messages>,

    /// The lorebook of the snapshot, whole
    #[arg(long, conflicts_with = "message")]
    pub book: bool,

    /// One entry of the lorebook of the snapshot, whole
    #[arg(long, value_name = "NAME", conflicts_with_all = ["message", "book"])]
    pub entry: Option<String>,

    /// As a story to read
    #[arg(long, conflicts_with_all = ["book", "entry"])]
    pub text: bool,

    /// The story as text, Markdown or a page for the browser
    #[arg(long, value_name = "FORMAT")]
    pub format: Option<Format>,

    /// In the story: also messages that are hidden from the prompt
    #[arg(long)]
    pub hidden: bool,

    /// In the story: when each message was said
    #[arg(long)]
    pub dates: bool,

    /// In the story: not who says it
    #[arg(long)]
    pub no_names: bool,

    /// With all swipes
    #[arg(long)]
    pub swipes: bool,

    /// With what the model thought before it spoke
    #[arg(long)]
    pub reasoning: bool,

    /// Write the story into this file, which must not be there yet
    #[arg(short = 'o', long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

impl Show {
    /// Whether messages are to be read, and not what the snapshot is.
    pub fn is_to_read(&self) -> bool {
        let told = [self.text, self.hidden, self.dates, self.no_names, self.swipes, self.reasoning];
        let is_told = told.contains(&true) || self.format.is_some() || self.output.is_some();
        self.message.is_some() || is_told
    }
}

/// Some messages, by their numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Messages(pub RangeInclusive<usize>);

fn messages(text: &str) -> Result<Messages, String> {
    let number = |text: &str| {
        let text = text.trim().trim_start_matches('#');
        text.parse::<usize>()
            .map_err(|_| format!("{text:?} is no message's number; write 12, or 12..20"))
    };
    let (first, last) = text.split_once("..").unwrap_or((text, text));
    let range = number(first)?..=number(last.trim_start_matches('='))?;
    if range.is_empty() {
        Err(format!("{text:?} ends before it begins"))
    } else {
        Ok(Messages(range))
    }
}

#[derive(Debug, clap::Args)]
#[command(after_help = SNAPSHOT_HELP)]
pub struct Diff {
    /// The snapshot before; or A...B: what two timelines have each for itself since they parted
    #[arg(add = ArgValueCompleter::new(snapshots), value_name = "A")]
    pub before: String,

    /// The snapshot after; the files as they are now if not given
    #[arg(add = ArgValueCompleter::new(snapshots), value_name = "B")]
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
    Card,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SearchPart {
    Chat,
    Lorebook,
    Character,
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

    /// TEXT is a regular expression
    #[arg(long, conflicts_with = "phrase")]
    pub regex: bool,

    /// Only what this one says: a part of the speaker's name, or of an entry's title
    #[arg(long, value_name = "NAME", value_parser = not_blank)]
    pub who: Option<String>,

    /// Only what was said from then on: 2026-11-01, yesterday, "2 weeks ago"
    #[arg(long, value_name = "DATE", value_parser = date)]
    pub since: Option<i64>,

    /// Only what was said until then; a day counts whole
    #[arg(long, value_name = "DATE", value_parser = last_date)]
    pub until: Option<i64>,

    /// Only in this timeline's snapshots
    #[arg(add = ArgValueCompleter::new(timelines), long = "in", value_name = "TIMELINE")]
    pub timeline: Option<String>,

    /// Only in chats, only in lorebooks, or only in characters' cards
    #[arg(long, value_name = "PART")]
    pub only: Option<SearchPart>,

    /// At most this many
    #[arg(short = 'n', long = "limit", value_name = "N")]
    pub limit: Option<usize>,
}

const SEARCH_HELP: &str = "Messages with all their swipes and lorebook entries (title, keys, content) are searched, also hidden and deleted ones. \
                           Each text is listed once: in the newest state of a timeline that still has it, else in the last snapshot that did. \
                           It is named where it was first said, with how many others have it. Nothing found: exit code 1, as grep does.";

#[derive(Debug, clap::Args)]
#[command(after_help = LORE_HELP, group = clap::ArgGroup::new("when").args(["at", "active"]))]
pub struct Lore {
    /// A lorebook, an entry, or a lorebook and one of its entries; all of them if nothing is said
    #[arg(value_name = "NAME", num_args = 0..=2)]
    pub named: Vec<String>,

    /// The text of now, and for each sentence the snapshot and message it came with
    #[arg(long, conflicts_with = "at")]
    pub blame: bool,

    /// What was known then: a message's number, a date, ~N (states ago), or a snapshot
    #[arg(long, value_name = "WHEN")]
    pub at: Option<String>,

    /// Which entries the model was told at message N, where ST-Auto-Recap noted it there
    #[arg(long, value_name = "N", conflicts_with_all = ["at", "blame"])]
    pub active: Option<usize>,

    /// The chat whose messages --at and --active count; if not given, the last one with the lorebook
    #[arg(add = ArgValueCompleter::new(timelines), long = "in", value_name = "TIMELINE", requires = "when")]
    pub chat: Option<String>,

    /// At most this many changes
    #[arg(short = 'n', long = "limit", value_name = "N")]
    pub limit: Option<usize>,

    /// Also changes of formatting alone
    #[arg(long, conflicts_with = "when")]
    pub all: bool,
}

const LORE_HELP: &str = "An entry is named by its title, one of its keywords, or any part of a title that no other has, also by a title it once had; with its lorebook also by its UID. \
                         SillyTavern gives the UID of a deleted entry to the next one: 5 is the entry that has UID 5 or had it last, 5~1 the one that had it before. An exact title comes before a part of one, also if that entry was deleted. \
                         Its history is told across renames and forks, newest first: the snapshot, the message that the story had come to, and what changed. \
                         A scene is named if it ended after the state before and ST-Auto-Recap recorded the new text at its end; otherwise only the time between the two states is certain. \
                         An entry that was deleted and made again is the same one if it says the same, or if under the same UID it has the same title or much of what it said.";

#[derive(Debug, clap::Args)]
#[command(after_help = VIEW_HELP)]
pub struct View {
    /// Begin with the map of this timeline's story; with `--out`, write these (none: all chats)
    #[arg(add = ArgValueCompleter::new(timelines), value_name = "TIMELINE")]
    pub timelines: Vec<String>,

    /// Write the page with these timelines into this file instead: it opens in any browser, without this program
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with_all = ["write", "no_open", "port"])]
    pub out: Option<PathBuf>,

    /// Let the page bring states back, fork, name and undo; without it, it only looks
    #[arg(long)]
    pub write: bool,

    /// Only print the address
    #[arg(long)]
    pub no_open: bool,

    /// On this port; if not given, on one that is free
    #[arg(long, value_name = "PORT")]
    pub port: Option<u16>,
}

const VIEW_HELP: &str = "The page is served to this computer only. The address opens it once; after that the page itself holds the secret, also when it is loaded again. It ends a minute after the last page was closed, or with Ctrl-C. \
                         `stvc --store BACKUP view` shows a backup.";

fn date(text: &str) -> Result<i64, String> {
    dates::parse(text, crate::cli::now()).map(|moment| moment.timestamp())
}

fn last_date(text: &str) -> Result<i64, String> {
    dates::parse_end(text, crate::cli::now()).map(|moment| moment.timestamp())
}

fn not_blank(text: &str) -> Result<String, &'static str> {
    if text.trim().is_empty() { Err("there is nothing to search for") } else { Ok(text.into()) }
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
