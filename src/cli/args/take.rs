//! Taking snapshots.

use clap::ValueEnum;
use clap_complete::engine::ArgValueCompleter;

use crate::cli::complete::timelines;
use std::time::Duration;

use super::values::{Span, span};
use stvc::engine::gate::Wait;

/// A kind of files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Kind {
    Chats,
    Lorebooks,
    Characters,
    Personas,
    Groups,
    Settings,
}

#[derive(Debug, clap::Args)]
pub struct Snapshot {
    /// Chats: a file, `Character/Chat name`, or any part of that which fits only one
    #[arg(add = ArgValueCompleter::new(timelines), value_name = "TIMELINE")]
    pub timelines: Vec<String>,

    /// Only these, and not all that changed
    #[arg(long, value_name = "KIND", conflicts_with_all = ["timelines", "at", "scenes", "tag"])]
    pub only: Vec<Kind>,

    /// A checkpoint at message N: messages 0 to N, kept under a tag; the timeline itself stays as it is
    #[arg(long, value_name = "N")]
    pub at: Option<usize>,

    /// A checkpoint at every message that ends a scene (ST-Auto-Recap) and has none yet, each under a name
    #[arg(long, conflicts_with_all = ["at", "tag"])]
    pub scenes: bool,

    /// With --scenes or --at: what checkpoints are called; {scene_number}, {scene_name}, {chat}, {character} and {message} are filled in. Scenes are called `Scene {scene_number} - {scene_name}` if not given
    #[arg(long = "name", value_name = "TEMPLATE", conflicts_with = "tag")]
    pub template: Option<String>,

    /// Say what it is, in your own words
    #[arg(long, short, value_name = "TEXT")]
    pub message: Option<String>,

    /// Give it a name
    #[arg(long, value_name = "NAME")]
    pub tag: Option<String>,

    /// Refuse where the message ends no scene, the scene's lorebook entry is not finished or the running recap does not have it, instead of warning
    #[arg(long)]
    pub strict: bool,

    /// Refuse where the message ends no scene, and only warn of the rest
    #[arg(long)]
    pub require_scene_break: bool,

    /// Do not say what of the scene is not finished; the snapshot records it all the same
    #[arg(long)]
    pub no_scene_warnings: bool,

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

pub(super) fn seconds(text: &str) -> Result<Wait, String> {
    if text.is_empty() {
        return Ok(Wait::Forever);
    }
    let seconds = text.parse::<f64>().ok().and_then(|n| Duration::try_from_secs_f64(n).ok());
    seconds
        .map(Wait::AtMost)
        .ok_or_else(|| "a number of seconds is expected; name the chat before --wait".to_owned())
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

    /// Have it started no more: remove that unit, or say what to do on other systems
    #[arg(long, conflicts_with = "install")]
    pub uninstall: bool,
}
