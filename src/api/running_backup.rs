//! A backup that a front end started. It runs in a thread of its own, because it may take longer
//! than a front end waits for an answer.

use std::panic::resume_unwind;
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::engine::Workspace;
use crate::engine::copies::last_backups::LastBackup;
use crate::json_output::answers::BackgroundBackup;
use crate::progress::NoProgress;
use crate::rules::Finding;
use crate::verbs::{Result, backup};

/// The time that a request waits for the backup.
const WAIT: Duration = Duration::from_secs(2);
const INTERVAL: Duration = Duration::from_millis(20);

type Outcome = Result<(LastBackup, Vec<Finding>)>;

/// At most one backup, which runs or whose outcome was not returned yet. If the program ends
/// before the backup, the destination keeps its previous state.
#[derive(Default)]
pub struct RunningBackup(Mutex<Option<JoinHandle<Outcome>>>);

impl RunningBackup {
    /// Starts a backup unless one is running or `only_running` is set, and waits for a short time.
    pub(super) fn wait(
        &self,
        workspace: &Workspace,
        only_running: bool,
    ) -> Result<BackgroundBackup> {
        let begin = Instant::now();
        let mut may_start = !only_running;
        loop {
            let (finished, is_running) = {
                let mut running = self.0.lock().unwrap_or_else(PoisonError::into_inner);
                if running.is_none() && may_start {
                    let workspace = workspace.clone();
                    let backup = move || backup::again(&workspace, &mut NoProgress);
                    *running = Some(std::thread::spawn(backup));
                }
                may_start = false;
                (running.take_if(|thread| thread.is_finished()), running.is_some())
            };
            if let Some(thread) = finished {
                let outcome = thread.join().unwrap_or_else(|panic| resume_unwind(panic));
                return outcome.map(|finished| BackgroundBackup {
                    finished: Some(finished),
                    is_running: false,
                });
            }
            if !is_running || begin.elapsed() >= WAIT {
                return Ok(BackgroundBackup { finished: None, is_running });
            }
            std::thread::sleep(INTERVAL);
        }
    }
}
