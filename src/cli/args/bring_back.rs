//! Bringing states back, and together.

use clap_complete::engine::ArgValueCompleter;

use crate::cli::complete::{snapshots, timelines};
use std::path::PathBuf;

use super::take::seconds;
use super::values::{Only, SNAPSHOT_HELP};
use stvc::engine::gate::Wait;

#[derive(Debug, clap::Args)]
#[command(after_help = SNAPSHOT_HELP)]
pub struct Restore {
    /// The snapshot
    #[arg(add = ArgValueCompleter::new(snapshots), value_name = "SNAPSHOT", required_unless_present = "all")]
    pub snapshot: Option<String>,

    /// Every timeline, its newest snapshot: what is missing in the library comes back
    #[arg(long, conflicts_with_all = ["snapshot", "name", "at", "to", "only", "clear_queue", "trim_queue"])]
    pub all: bool,

    /// With --all: also timelines that had been deleted when the last snapshots were taken
    #[arg(long, requires = "all")]
    pub deleted: bool,

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

    /// With --as: refuse where the message ends no scene, the scene's lorebook entry is not finished or the running recap does not have it, instead of warning
    #[arg(long, requires = "name")]
    pub strict: bool,

    /// With --as: wait for the queue of the chat's lorebook to finish, at most so many seconds
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, default_missing_value = "", value_parser = seconds, requires = "name")]
    pub wait: Option<Wait>,

    /// With --overwrite: also while ST-Auto-Recap is at work in the lorebook that is replaced; with --as: also while it is at work in the chat's lorebook
    #[arg(long)]
    pub allow_active_queue: bool,

    /// Also write attachments that came from a backup or another device and that may run code: web pages, scripts, programs
    #[arg(long)]
    pub any_attachments: bool,

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
#[command(after_help = FORK_HELP)]
pub struct Fork {
    /// The chat: a file, `Character/Chat name`, or any part of that which fits only one
    #[arg(add = ArgValueCompleter::new(timelines), value_name = "TIMELINE")]
    pub timeline: String,

    /// The last message that both have; the whole chat if not given
    #[arg(long, value_name = "N")]
    pub at: Option<usize>,

    /// What the new chat is called; `… - Branch #1` and so on if not given
    #[arg(long = "as", value_name = "NAME")]
    pub name: Option<String>,

    /// Refuse where the message ends no scene, the scene's lorebook entry is not finished or the running recap does not have it, instead of warning
    #[arg(long)]
    pub strict: bool,

    /// Wait for the lorebook's queue to finish, at most so many seconds
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, default_missing_value = "", value_parser = seconds)]
    pub wait: Option<Wait>,

    /// Fork it though work is pending in the lorebook's queue; the snapshot says so
    #[arg(long)]
    pub allow_active_queue: bool,

    /// Drop all work that waits in the new lorebook's queue (ST-Auto-Recap)
    #[arg(long)]
    pub clear_queue: bool,

    /// Drop the work in the new lorebook's queue that is about messages which the new chat does not have
    #[arg(long, conflicts_with = "clear_queue")]
    pub trim_queue: bool,

    /// Only show what would be done
    #[arg(long, short = 'n')]
    pub dry_run: bool,
}

const FORK_HELP: &str = "First a snapshot of the chat is taken. The new chat has messages 0 to N and a lorebook of its own, a copy of the one of now, so that neither story writes into the other's. \
                         No other chat is touched, and `stvc undo` takes it back. For the lorebook of then, where it is known: `stvc restore TIMELINE --at N --as NAME`.";

#[derive(Debug, clap::Args)]
#[command(after_help = RECONSTRUCT_HELP)]
pub struct Reconstruct {
    /// The chat: a file, `Character/Chat name`, or any part of that which fits only one
    #[arg(add = ArgValueCompleter::new(timelines), value_name = "TIMELINE")]
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

#[derive(Debug, clap::Args)]
#[command(after_help = MERGE_HELP)]
pub struct Merge {
    /// The timeline whose lorebook is changed
    #[arg(add = ArgValueCompleter::new(snapshots), value_name = "A")]
    pub into: String,

    /// The timeline or snapshot whose lorebook is merged into it; its own file stays as it is
    #[arg(add = ArgValueCompleter::new(snapshots), value_name = "B")]
    pub from: String,

    /// Where both changed one value differently, keep the value of A, of B, of this device, or of another device. The last two are for lorebooks that a sync set aside
    #[arg(long, value_name = "SIDE")]
    pub keep: Option<KeptSide>,

    /// Do it without asking
    #[arg(long, short)]
    pub yes: bool,

    /// SillyTavern is running, and the chats that are replaced are closed there (menu ☰, "Close chat"): it has nothing to write back
    #[arg(long)]
    pub chat_closed: bool,

    /// Also while ST-Auto-Recap is at work in the lorebook that is replaced
    #[arg(long)]
    pub allow_active_queue: bool,

    /// Only show what would be done
    #[arg(long, short = 'n')]
    pub dry_run: bool,
}

/// Whose value is kept in a conflict.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub enum KeptSide {
    A,
    B,
    Local,
    Remote,
}

const MERGE_HELP: &str = "What would change is always shown first. Entries are the same by what they say, not by their UID alone; a new one whose UID is taken gets the \
                          lowest free one. Both lorebooks are held against the snapshot from which both timelines come: what only one side changed is taken, also that an \
                          entry was removed. An entry that one side removed and the other edited stays. Without --keep, conflicts are listed and nothing is changed.";

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
