//! Names, order, and what stays.

use clap_complete::engine::ArgValueCompleter;

use crate::cli::complete::{snapshots, tags, timelines};
use clap::ValueEnum;

use super::values::{SNAPSHOT_HELP, Span, span};

#[derive(Debug, clap::Args)]
#[command(after_help = SNAPSHOT_HELP)]
pub struct Tag {
    /// The name; alone, it is shown what it names, and without it all names are listed
    #[arg(add = ArgValueCompleter::new(tags), value_name = "NAME", required_if_eq("delete", "true"))]
    pub name: Option<String>,

    /// The snapshot it names
    #[arg(add = ArgValueCompleter::new(snapshots), value_name = "SNAPSHOT", requires = "name", conflicts_with = "delete")]
    pub snapshot: Option<String>,

    /// Take the name away
    #[arg(long, short)]
    pub delete: bool,

    /// Also if another snapshot has the name: it gets it from that one
    #[arg(long = "move", requires = "snapshot")]
    pub lead: bool,
}

#[derive(Debug, clap::Args)]
#[command(after_help = CONFIG_HELP)]
pub struct Config {
    /// What; everything is shown if it is not given
    #[arg(value_name = "KEY", required_if_eq("unset", "true"))]
    pub key: Option<String>,

    /// What it shall be
    #[arg(value_name = "VALUE", conflicts_with = "unset", allow_negative_numbers = true)]
    pub value: Option<String>,

    /// Let it be as if it had never been set
    #[arg(long)]
    pub unset: bool,
}

const CONFIG_HELP: &str = "What is set holds where the command line says nothing. It stands in stvc/config.toml in the store, which can be edited by hand as well; comments stay. \
                           Where it cannot be understood, the line is named and it is not used.";

#[derive(Debug, clap::Args)]
#[command(after_help = ERASE_HELP)]
pub struct Erase {
    /// The timelines: chats that are deleted in SillyTavern already; with --copies none, to remove the copies of what was erased before
    #[arg(add = ArgValueCompleter::new(timelines), value_name = "TIMELINE", required_unless_present = "copies")]
    pub timelines: Vec<String>,

    /// Also remove it from SillyTavern's own backups and from folder backups, and its lorebook, pictures and files if nothing else uses them
    #[arg(long)]
    pub copies: bool,

    /// Do it without asking
    #[arg(long, short)]
    pub yes: bool,

    /// Only show what would be done
    #[arg(long, short = 'n')]
    pub dry_run: bool,
}

const ERASE_HELP: &str = "For what nobody shall read again. The snapshots go with their tags, out of the history and the operation log, and what only they had is off the disk when the command ends. \
                          Chats that were forked from it stay, with the messages that they share with it. Nothing that was done before can be undone afterwards. Backups are named that \
                          still have it; `sync` does not bring it back. Without a name, `stvc erase --copies` removes the copies in reach of what was erased before.";

#[derive(Debug, clap::Args)]
#[command(after_help = DOCTOR_HELP)]
pub struct Doctor {
    /// Only these chats; the whole library if not given
    #[arg(add = ArgValueCompleter::new(timelines), value_name = "TIMELINE")]
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

    /// Make missing lorebooks copies of this one
    #[arg(long, value_name = "LOREBOOK", conflicts_with = "repair")]
    pub clone_of: Option<String>,

    /// Also remove lorebooks that nothing uses and that no chat left behind: you may keep them for later
    #[arg(long)]
    pub orphans: bool,

    /// The group, by its name or its file's, in which group chats are listed that can belong to several groups, or of which nothing tells the group
    #[arg(long, value_name = "GROUP")]
    pub group: Option<String>,
}

const DOCTOR_HELP: &str = "Repairs: a fork that shares its lorebook with the chat it comes from gets a copy of its own; a missing lorebook is brought back; a lorebook \
                           that a deleted chat left behind is removed; the running recap of a renamed chat is told the chat's new name; a group chat that no group lists is listed in its group again. \
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

#[derive(Debug, clap::Args)]
#[command(after_help = FORGET_HELP)]
pub struct Forget {
    /// Only these timelines; all if none is named
    #[arg(add = ArgValueCompleter::new(timelines), value_name = "TIMELINE")]
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
