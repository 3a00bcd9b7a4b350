//! What several commands take.

use std::path::PathBuf;
use std::time::Duration;

use clap::ValueEnum;

/// The heading over the options that every command has.
pub const FOR_ALL: &str = "Options for all commands";

pub const SNAPSHOT_HELP: &str = "A snapshot is named by the beginning of its id (4 or more digits), by a tag, by b3: and the beginning of its \
                             content id, or by a timeline (its newest snapshot); ~N behind any of these goes N snapshots back, @DATE to what it was then, :N to when message N was the last: \"Tide Office@2 weeks ago\", @2026-11-01 (the end of that day), @{2026-11-01 18:30}, \"Tide Office:12\". docs/moments.md tells all of it.";

/// Where the passphrase of an encrypted backup comes from. Never from the command line itself, which others can see.
#[derive(Debug, clap::Args)]
pub struct Secret {
    /// For encrypted backups: the passphrase is the first line of this file
    #[arg(long, global = true, hide_short_help = true, help_heading = FOR_ALL, value_name = "FILE")]
    pub passphrase_file: Option<PathBuf>,

    /// For encrypted backups: the passphrase is the first line that this command prints
    #[arg(long, global = true, hide_short_help = true, help_heading = FOR_ALL, value_name = "COMMAND", conflicts_with = "passphrase_file")]
    pub passphrase_command: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Only {
    Chat,
    Lorebook,
}

/// A stretch of time.
#[derive(Clone, Copy, Debug)]
pub struct Span(pub Duration);

/// A stretch of time as it is typed.
pub fn span(text: &str) -> Result<Span, String> {
    stvc::history::retention::parse_span(text).map(Span)
}
