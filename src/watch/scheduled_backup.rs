//! Creates scheduled backups. Each runs in a thread of its own, because a slow drive or network
//! must not delay snapshots. If the watch ends during a backup, the backup is interrupted like a
//! killed `stvc backup`: the destination keeps its previous state.

use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::engine::Workspace;
use crate::engine::copies::CopyPlace;
use crate::engine::copies::last_backups::{self, LastBackup};
use crate::progress::NoProgress;
use crate::rules::Finding;
use crate::verbs::{self, backup};
use crate::watch::wake::Waker;

/// The time after which a failed backup is tried again.
const RETRY_AFTER: Duration = Duration::from_secs(15 * 60);

type Outcome = verbs::Result<(LastBackup, Vec<Finding>)>;

#[derive(Default)]
pub(super) struct ScheduledBackup {
    running: Option<JoinHandle<Outcome>>,
    not_before: Option<Instant>,
    reported: Option<String>,
}

impl ScheduledBackup {
    /// Starts a backup if one is due. Returns the outcome of a finished backup, or the reason why
    /// none can be created. A repeated reason is returned only once.
    pub(super) fn step(
        &mut self,
        workspace: &Workspace,
        waker: &Waker,
    ) -> Option<Result<(LastBackup, Vec<Finding>), String>> {
        if let Some(thread) = self.running.take_if(|thread| thread.is_finished()) {
            let outcome = thread.join().map_err(|_| "the backup ended unexpectedly".to_owned());
            return match outcome.and_then(|outcome| outcome.map_err(|error| error.to_string())) {
                Ok(backed_up) => {
                    self.reported = None;
                    Some(Ok(backed_up))
                }
                Err(why) => {
                    self.not_before = Some(Instant::now() + RETRY_AFTER);
                    self.news(why)
                }
            };
        }
        let is_too_early = self.not_before.is_some_and(|when| Instant::now() < when);
        if self.running.is_some() || is_too_early {
            return None;
        }
        match last_backups::due(workspace) {
            Ok(None) => None,
            Ok(Some(place)) => {
                self.running = Some(start(workspace.clone(), place, waker.clone()));
                None
            }
            // A drive may be connected at any time, so the next scan tries again.
            Err(error) => self.news(error.to_string()),
        }
    }

    fn news(&mut self, why: String) -> Option<Result<(LastBackup, Vec<Finding>), String>> {
        let is_known = self.reported.as_ref() == Some(&why);
        self.reported = Some(why.clone());
        (!is_known).then_some(Err(why))
    }
}

fn start(workspace: Workspace, place: CopyPlace, waker: Waker) -> JoinHandle<Outcome> {
    std::thread::spawn(move || {
        let outcome = backup::to_place(&workspace, &place, &mut NoProgress);
        waker.ring();
        outcome
    })
}
