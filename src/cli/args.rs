//! Arguments of all commands, and values that several commands take.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

use super::clock;
use stvc::configuration::{Dates, When};
use stvc::files::Closed;
use stvc::moments::dates;
use stvc::readiness::Wait;
use stvc::verbs::restore::QueueChange;
use stvc::{CommandRun, LibraryPlace, Workspace, stores};

pub const FOR_ALL: &str = "Options for all commands";

pub const SNAPSHOT_HELP: &str = "A snapshot is named by the beginning of its id (4 or more digits), by a tag, by b3: and the beginning of its \
                             content id, or by a timeline (its newest snapshot); ~N behind any of these goes N snapshots back, @DATE to what it was then, :N to when message N was the last: \"Tide Office@2 weeks ago\", @2026-11-01 (the end of that day), @{2026-11-01 18:30}, \"Tide Office:12\". docs/moments.md tells all of it.";

/// Where the library and the store are, and how answers are printed.
#[derive(Debug, clap::Args)]
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
    #[arg(long, global = true, hide_short_help = true, help_heading = FOR_ALL, value_name = "WHEN", value_parser = one_of(colors()))]
    pub color: Option<When>,

    /// How moments are told: relative (3 minutes ago), local (2026-11-01 18:30) or iso
    #[arg(long, global = true, hide_short_help = true, help_heading = FOR_ALL, value_name = "STYLE", hide_possible_values = true, value_parser = one_of(date_styles()))]
    pub date: Option<Dates>,

    /// Print long answers at once, not in a pager
    #[arg(long, global = true, hide_short_help = true, help_heading = FOR_ALL)]
    pub no_pager: bool,

    #[command(flatten)]
    pub secret: Secret,
}

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

impl GlobalArgs {
    pub fn workspace(&self, arguments: &[OsString]) -> Workspace {
        let here = || std::env::current_dir().unwrap_or_else(|_| PathBuf::from("."));
        let absolute = |path: &PathBuf| std::path::absolute(path).unwrap_or_else(|_| path.clone());
        Workspace {
            automatic: false,
            library: match &self.data {
                Some(dir) => LibraryPlace::At(absolute(dir)),
                None => LibraryPlace::Above(here()),
            },
            user: self.user.clone(),
            store: self.store.as_ref().map(absolute),
            command: CommandRun::new(without_secrets(arguments)),
            now: clock::now(),
            patience: PATIENCE,
            notices: Default::default(),
            finished: Default::default(),
            loaded: Default::default(),
        }
    }
}

/// How long to wait for another stvc to finish.
const PATIENCE: Duration = Duration::from_secs(10);

/// Returns the command line for the log and the lock, which others read: without passwords in
/// addresses, and without the command that prints a passphrase, which may contain it.
fn without_secrets(arguments: &[OsString]) -> Vec<String> {
    const SECRET: &str = "--passphrase-command";
    let mut is_secret = false;
    let hide = |word: &OsString| {
        let word = word.to_string_lossy();
        let hidden = std::mem::replace(&mut is_secret, word == SECRET);
        match word.split_once('=') {
            _ if hidden => "***".to_owned(),
            Some((SECRET, _)) => format!("{SECRET}=***"),
            _ => stores::Url::without_password(&word),
        }
    };
    // Whatever the file is called: `stvc.exe`, or a path.
    std::iter::once("stvc".to_owned()).chain(arguments.iter().skip(1).map(hide)).collect()
}

#[derive(Debug, clap::Args)]
pub struct ClosedArgs {
    /// SillyTavern is running, and the chats that are replaced are closed there (menu ☰, "Close chat"): it has nothing to write back
    #[arg(long)]
    pub chat_closed: bool,
}

impl ClosedArgs {
    pub fn state(&self) -> Closed {
        if self.chat_closed { Closed::Said } else { Closed::Unknown }
    }
}

#[derive(Debug, clap::Args)]
pub struct QueueArgs {
    /// Drop all work that waits in the lorebook's queue (ST-Auto-Recap)
    #[arg(long)]
    pub clear_queue: bool,

    /// Drop the work in the queue that is about messages which this state does not have
    #[arg(long, conflicts_with = "clear_queue")]
    pub trim_queue: bool,
}

impl QueueArgs {
    pub fn change(&self) -> QueueChange {
        match (self.clear_queue, self.trim_queue) {
            (true, _) => QueueChange::Clear,
            (_, true) => QueueChange::Trim,
            _ => QueueChange::Keep,
        }
    }
}

fn colors() -> [(PossibleValue, When); 3] {
    [
        (PossibleValue::new("auto").help("On a terminal, unless NO_COLOR is set"), When::Auto),
        (PossibleValue::new("always"), When::Always),
        (PossibleValue::new("never"), When::Never),
    ]
}

fn date_styles() -> [(PossibleValue, Dates); 3] {
    let local = "2026-11-01 18:30, in local time";
    [
        (PossibleValue::new("relative").help("3 minutes ago"), Dates::Relative),
        (PossibleValue::new("local").help(local), Dates::Local),
        (PossibleValue::new("iso").help("2026-11-01T18:30:05+01:00"), Dates::Iso),
    ]
}

/// Returns a parser for words that each mean a value.
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
    dates::parse(text, clock::now()).map(|moment| moment.timestamp())
}

pub fn last_date(text: &str) -> Result<i64, String> {
    dates::parse_end(text, clock::now()).map(|moment| moment.timestamp())
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
