use clap::ValueEnum;

use super::error::Result;
use super::output::Output;
use super::wording::{clean, shell};
use stvc::api::extension::{self, State};
use stvc::json_output::answers::{Answer, Emit};
use stvc::json_output::{Counts, Line};
use stvc::{Workspace, watch};

#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// Install, update or remove it, or show its status
    #[arg(value_enum, default_value = "status")]
    pub action: Action,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Action {
    /// Install the extension
    Install,
    /// Replace the installed version with this program's version
    Update,
    /// Remove the extension
    Remove,
    /// Show the installed version
    Status,
}

const HELP: &str = "The extension is part of this program, so nothing is downloaded and the versions \
    match. It is installed in the user's extensions/stvc. It talks to `stvc watch` through files in \
    SillyTavern's data (docs/mailbox.md), without a port or a server plugin, so the watch must run \
    where that data is. `stvc config extension.write false` makes the extension read-only.";

pub fn run(args: &Args, workspace: &Workspace, out: &mut Output) -> Result<u8> {
    let folder = shell(&extension::folder(workspace)?.display().to_string());
    let state = match args.action {
        Action::Install | Action::Update => extension::install(workspace)?,
        Action::Remove => {
            extension::remove(workspace)?;
            extension::state(workspace)?
        }
        Action::Status => extension::state(workspace)?,
    };
    let found = ExtensionStatus { folder, state, watch: watch::is_running(workspace) };
    Ok(out.answer(&found, |out| print(args.action, &found, out)))
}

struct ExtensionStatus {
    folder: String,
    state: State,
    /// Whether `stvc watch`, which answers the extension, is running.
    watch: bool,
}

impl ExtensionStatus {
    fn installed(&self) -> (Option<&str>, &[String]) {
        match &self.state {
            State::Installed(installed) => (Some(installed.version()), &installed.edited),
            State::Absent | State::Foreign => (None, &[]),
        }
    }
}

impl Answer for ExtensionStatus {
    fn lines<'a>(&'a self, tell: Emit<'_, 'a>) {
        let (installed, edited) = self.installed();
        let (path, program) = (&self.folder, env!("CARGO_PKG_VERSION"));
        tell(Line::Extension { path, installed, program, edited, watch: self.watch });
    }

    fn counts(&self) -> (&'static str, Counts) {
        ("extension", Counts::default())
    }
}

fn print(action: Action, found: &ExtensionStatus, out: &mut Output) {
    let folder = &found.folder;
    match (&found.state, action) {
        (State::Installed(_), Action::Install | Action::Update) => {
            out.line(format!("Installed: {folder}"));
            out.say("Reload SillyTavern's page (F5). The extension is listed under Extensions.");
        }
        (State::Installed(installed), _) => {
            out.line(format!("Installed, version {}: {folder}", clean(installed.version())));
            if installed.version() != env!("CARGO_PKG_VERSION") {
                out.say("Run `stvc extension update` to install this program's version.");
            }
        }
        (State::Absent, Action::Remove) => out.line(format!("No longer installed: {folder}")),
        (State::Absent, _) => {
            out.line("Not installed.");
            out.say("Run `stvc extension install` to install it.");
        }
        (State::Foreign, _) => out.line(format!("Not installed by stvc: {folder}")),
    }
    let (version, edited) = found.installed();
    if !edited.is_empty() {
        out.line(format!("Changed since installation: {}", edited.join(", ")));
    }
    if version.is_some() && !found.watch {
        out.say(
            "The watch is not running. Run `stvc watch` to start it, or `stvc watch --install` to set up its start at login.",
        );
    }
}
