use clap::ValueEnum;

use super::error::Result;
use super::output::Out;
use super::wording::{clean, shell};
use stvc::api::extension::{self, State};
use stvc::lines::answers::{Answer, Tell};
use stvc::lines::{Counts, Line};
use stvc::{Workspace, watch};

#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// What to do with it
    #[arg(value_enum, default_value = "status")]
    pub deed: Deed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Deed {
    /// Put it there
    Install,
    /// Put this program's version in the place of another
    Update,
    /// Take it away
    Remove,
    /// Say what is there
    Status,
}

const HELP: &str = "It goes into the user's extensions/stvc, out of this program: no download, always the same version. It asks `stvc watch` through SillyTavern's own files (docs/mailbox.md), with no port and \
                    no server plugin, so the watch must run beside SillyTavern's data. `stvc config extension.write false` lets it look and change nothing.";

pub fn run(args: &Args, workspace: &Workspace, out: &mut Out) -> Result<u8> {
    let folder = shell(&extension::folder(workspace)?.display().to_string());
    let state = match args.deed {
        Deed::Install | Deed::Update => extension::install(workspace)?,
        Deed::Remove => {
            extension::remove(workspace)?;
            extension::state(workspace)?
        }
        Deed::Status => extension::state(workspace)?,
    };
    let found = Found { folder, state, watch: watch::is_running(workspace) };
    Ok(out.answer(&found, |out| tell(args.deed, &found, out)))
}

struct Found {
    folder: String,
    state: State,
    /// Whether the watch runs, which answers the extension.
    watch: bool,
}

impl Found {
    fn installed(&self) -> (Option<&str>, &[String]) {
        match &self.state {
            State::Installed(installed) => (Some(installed.version()), &installed.edited),
            State::Absent | State::Foreign => (None, &[]),
        }
    }
}

impl Answer for Found {
    fn lines<'a>(&'a self, tell: Tell<'_, 'a>) {
        let (installed, edited) = self.installed();
        let (path, program) = (&self.folder, env!("CARGO_PKG_VERSION"));
        tell(Line::Extension { path, installed, program, edited, watch: self.watch });
    }

    fn counts(&self) -> (&'static str, Counts) {
        ("extension", Counts::default())
    }
}

fn tell(deed: Deed, found: &Found, out: &mut Out) {
    let folder = &found.folder;
    match (&found.state, deed) {
        (State::Installed(_), Deed::Install | Deed::Update) => {
            out.line(format!("Written: {folder}"));
            out.say("Reload SillyTavern's page (F5); it is listed under Extensions.");
        }
        (State::Installed(installed), _) => {
            out.line(format!("Installed, version {}: {folder}", clean(installed.version())));
            if installed.version() != env!("CARGO_PKG_VERSION") {
                out.say("`stvc extension update` puts this program's version there.");
            }
        }
        (State::Absent, Deed::Remove) => out.line(format!("Not there any more: {folder}")),
        (State::Absent, _) => {
            out.line("Not installed.");
            out.say("`stvc extension install` puts it there.");
        }
        (State::Foreign, _) => out.line(format!("Not ours: {folder}")),
    }
    let (version, edited) = found.installed();
    if !edited.is_empty() {
        out.line(format!("Changed since: {}", edited.join(", ")));
    }
    if version.is_some() && !found.watch {
        out.say(
            "The watch is not running: `stvc watch`, or `stvc watch --install` for every login.",
        );
    }
}
