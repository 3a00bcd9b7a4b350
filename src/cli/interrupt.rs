//! Ctrl-C, and other requests to end the process.

use std::io::{self, IsTerminal, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::wording::size;
use stvc::{Workspace, exit, has_unfinished};

type Action = Box<dyn FnMut() + Send>;

static ACTION: Mutex<Option<Action>> = Mutex::new(None);
static PHASE: Mutex<Option<Phase>> = Mutex::new(None);

/// A phase of a command and its progress.
#[derive(Clone, Default)]
pub struct Phase {
    pub what: String,
    pub steps: Option<u64>,
    pub unit: Unit,
    pub done: u64,
}

/// The unit of the steps of a phase.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub enum Unit {
    #[default]
    Steps,
    Bytes,
}

/// Whether a command can change the store or the library.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Access {
    Read,
    Write,
}

/// At an interruption, prints one line about what was left undone, and exits. Without a terminal,
/// signals keep their effect, because nobody would read the line and `nohup` ignores a signal.
pub fn report_on_terminal(workspace: &Workspace, access: Access) {
    if !io::stderr().is_terminal() {
        return;
    }
    let workspace = workspace.clone();
    let report = move || {
        // Clears the line of the progress bar.
        let _ = writeln!(io::stderr(), "\r\x1b[K{}", line(&workspace, access));
        std::process::exit(exit::INTERRUPTED.into());
    };
    // If the handler cannot be installed, a signal ends the process without the line.
    let _ = on_interrupt(report);
}

/// Runs `action` at each interruption, and no action that was set before.
pub fn on_interrupt(action: impl FnMut() + Send + 'static) -> Result<(), ctrlc::Error> {
    if lock(&ACTION).replace(Box::new(action)).is_some() {
        return Ok(());
    }
    ctrlc::set_handler(|| lock(&ACTION).iter_mut().for_each(|action| action()))
}

/// Records the progress of the command for the line that is printed at an interruption.
pub fn set_phase(phase: &Phase) {
    lock(&PHASE).clone_from(&Some(phase.clone()));
}

fn line(workspace: &Workspace, access: Access) -> String {
    let phase = lock(&PHASE).take();
    let during = match &phase {
        Some(Phase { what, steps: Some(steps), unit, done }) => {
            let amount = |n: u64| match unit {
                Unit::Steps => n.to_string(),
                Unit::Bytes => size(n),
            };
            format!(" while {what} ({} of {})", amount(*done), amount(*steps))
        }
        Some(Phase { what, .. }) => format!(" while {what}"),
        None => String::new(),
    };
    let consequence = match access {
        Access::Read => "Nothing was changed",
        Access::Write if has_unfinished(workspace) => {
            "The next command that writes finishes or reverts this one; nothing is lost"
        }
        Access::Write => "Nothing is lost; run the command again to do the rest",
    };
    format!("Interrupted{during}. {consequence}.")
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
