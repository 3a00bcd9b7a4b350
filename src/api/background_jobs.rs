//! Backups and syncs that a front end started. Each runs in a thread of its own, because it may
//! take longer than a front end waits for an answer.

use std::panic::resume_unwind;
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::engine::copies::last_backups::LastBackup;
use crate::json_output::answers::InBackground;
use crate::rules::Finding;
use crate::verbs::{Result, sync};

/// The time that a request waits for a job.
const WAIT: Duration = Duration::from_secs(2);
const INTERVAL: Duration = Duration::from_millis(20);

/// At most one backup and one sync. If the program ends before such a job, the destination keeps
/// its previous state.
#[derive(Default)]
pub struct BackgroundJobs {
    pub(super) backup: Job<(LastBackup, Vec<Finding>)>,
    pub(super) sync: Job<sync::Report>,
}

/// At most one job, which runs or whose outcome was not returned yet.
pub(super) struct Job<T>(Mutex<Option<JoinHandle<Result<T>>>>);

impl<T> Default for Job<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T: Send + 'static> Job<T> {
    /// Waits a short time for the job. Starts it with `start` unless it is running.
    pub(super) fn wait(
        &self,
        mut start: Option<impl FnOnce() -> Result<T> + Send + 'static>,
    ) -> Result<InBackground<T>> {
        let begin = Instant::now();
        loop {
            let (finished, is_running) = {
                let mut running = self.0.lock().unwrap_or_else(PoisonError::into_inner);
                if let Some(start) = start.take().filter(|_| running.is_none()) {
                    *running = Some(std::thread::spawn(start));
                }
                (running.take_if(|thread| thread.is_finished()), running.is_some())
            };
            if let Some(thread) = finished {
                let outcome = thread.join().unwrap_or_else(|panic| resume_unwind(panic));
                return outcome.map(InBackground::Finished);
            }
            if !is_running {
                return Ok(InBackground::NotStarted);
            }
            if begin.elapsed() >= WAIT {
                return Ok(InBackground::Running);
            }
            std::thread::sleep(INTERVAL);
        }
    }
}
