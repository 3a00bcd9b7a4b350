//! Global options, and arguments that several commands have.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

use super::clock;
use stvc::configuration::{Dates, When};
use stvc::copies::LoginPrompt;
use stvc::files::ChatOpenState;
use stvc::moments::dates;
use stvc::readiness::WaitLimit;
use stvc::verbs::restore::QueueChange;
use stvc::{CommandRun, LibraryPlace, Workspace, stores};

pub const FOR_ALL: &str = "Options for all commands";

pub const SNAPSHOT_HELP: &str = "Name a snapshot by the beginning of its id (at least 4 digits), \
    by a tag, by b3: and the beginning of its content id, or by a timeline, which means its \
    latest snapshot. Append ~N for the Nth snapshot before it, @DATE for the latest one not after that \
    date, or :N for the moment when message N was the last: \"Tide Office@2 weeks ago\", \
    @2026-11-01 (the end of that day), @{2026-11-01 18:30}, \"Tide Office:12\". \
    docs/moments.md describes all forms.";

/// Options that all commands accept.
#[derive(Debug, clap::Args)]
pub struct GlobalArgs {
    /// SillyTavern's folder, or a user's folder in its data/ (default: found by searching upwards
    /// from the current folder)
    #[arg(long, global = true, hide_short_help = true, help_heading = FOR_ALL, value_name = "DIR", env = "STVC_DATA", hide_env_values = true)]
    pub data: Option<PathBuf>,

    /// Use the chats of this user
    #[arg(long, global = true, hide_short_help = true, help_heading = FOR_ALL, value_name = "NAME")]
    pub user: Option<String>,

    /// Run the command for all users, each with their own store
    ///
    /// Supported by snapshot, watch, backup, check, config, doctor, extension and stats.
    #[arg(long, global = true, hide_short_help = true, help_heading = FOR_ALL, conflicts_with_all = ["user", "store"])]
    pub all_users: bool,

    /// Store of the snapshots (default: <user's folder>/.stvc)
    ///
    /// Commands that only read also accept a backup.
    #[arg(long, global = true, hide_short_help = true, help_heading = FOR_ALL, value_name = "DIR", env = "STVC_STORE", hide_env_values = true)]
    pub store: Option<PathBuf>,

    /// Print JSON, one object per line
    #[arg(long, global = true, hide_short_help = true, help_heading = FOR_ALL)]
    pub json: bool,

    /// Print only the requested data and errors
    #[arg(long, short, global = true, hide_short_help = true, help_heading = FOR_ALL)]
    pub quiet: bool,

    /// Print notes, and lists in full
    #[arg(long, short, global = true, hide_short_help = true, help_heading = FOR_ALL, conflicts_with = "quiet")]
    pub verbose: bool,

    /// When to use colours (default: auto)
    #[arg(long, global = true, hide_short_help = true, help_heading = FOR_ALL, value_name = "WHEN", value_parser = one_of(colors()))]
    pub color: Option<When>,

    /// Date format: relative (3 minutes ago), local (2026-11-01 18:30) or iso
    #[arg(long, global = true, hide_short_help = true, help_heading = FOR_ALL, value_name = "STYLE", hide_possible_values = true, value_parser = one_of(date_styles()))]
    pub date: Option<Dates>,

    /// Do not use a pager
    #[arg(long, global = true, hide_short_help = true, help_heading = FOR_ALL)]
    pub no_pager: bool,

    #[command(flatten)]
    pub secret: Secret,
}

/// Sources of the passphrase of an encrypted backup. It is never an argument itself, because other
/// users can see command lines.
#[derive(Debug, clap::Args)]
pub struct Secret {
    /// Read the passphrase of an encrypted backup from the first line of this file
    #[arg(long, global = true, hide_short_help = true, help_heading = FOR_ALL, value_name = "FILE")]
    pub passphrase_file: Option<PathBuf>,

    /// Read the passphrase of an encrypted backup from the first line that this command prints
    #[arg(long, global = true, hide_short_help = true, help_heading = FOR_ALL, value_name = "COMMAND", conflicts_with = "passphrase_file")]
    pub passphrase_command: Option<String>,
}

impl GlobalArgs {
    pub fn workspace(&self, arguments: &[OsString]) -> Workspace {
        let here = || std::env::current_dir().unwrap_or_else(|_| PathBuf::from("."));
        let absolute = |path: &PathBuf| std::path::absolute(path).unwrap_or_else(|_| path.clone());
        Workspace {
            automatic: false,
            login_prompt: LoginPrompt::Forbidden,
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

/// The maximum time to wait for another stvc process to finish.
const PATIENCE: Duration = Duration::from_secs(10);

/// Returns the command line as the operation log and the lock file record it, where other users may
/// read it. Passwords in addresses are removed. The value of `--passphrase-command` is removed too,
/// because that command may contain the passphrase.
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
    // The first argument is replaced by `stvc`, because it may be `stvc.exe` or a path.
    std::iter::once("stvc".to_owned()).chain(arguments.iter().skip(1).map(hide)).collect()
}

#[derive(Debug, clap::Args)]
pub struct ClosedArgs {
    /// Confirm that the replaced chats are closed in SillyTavern (menu ☰, "Close chat")
    ///
    /// SillyTavern may keep running, because it has nothing to write back.
    #[arg(long)]
    pub chat_closed: bool,
}

impl ClosedArgs {
    pub fn state(&self) -> ChatOpenState {
        if self.chat_closed { ChatOpenState::Closed } else { ChatOpenState::Unknown }
    }
}

#[derive(Debug, clap::Args)]
pub struct QueueArgs {
    /// Remove all pending work from the lorebook's queue (ST-Auto-Recap)
    #[arg(long)]
    pub clear_queue: bool,

    /// Remove pending work on messages that the resulting chat does not have
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

/// Returns a value parser that accepts these words and maps each word to its value.
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

pub fn seconds(text: &str) -> Result<WaitLimit, String> {
    if text.is_empty() {
        return Ok(WaitLimit::Forever);
    }
    let seconds = text.parse::<f64>().ok().and_then(|n| Duration::try_from_secs_f64(n).ok());
    seconds.map(WaitLimit::AtMost).ok_or_else(|| {
        "expected a number of seconds; put the name of the chat before --wait".to_owned()
    })
}
