//! Runs a scheduled backup or sync. Each runs in a thread of its own, because a slow drive or
//! network must not delay snapshots. If the watch ends meanwhile, the job is interrupted like a
//! killed command: the destination keeps its previous state.

use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::engine;
use crate::engine::Workspace;
use crate::engine::copies::CopyPlace;
use crate::verbs;
use crate::watch::wake::Waker;

/// A job to which a place belongs, and when it is due.
pub(super) struct ScheduledJob<T> {
    /// Returns the place if the job is due. Fails if the place cannot be reached now.
    due: fn(&Workspace) -> engine::Result<Option<CopyPlace>>,
    run: fn(&Workspace, &CopyPlace) -> verbs::Result<T>,
    /// The time after which a failed job is tried again.
    retry_after: Duration,
    running: Option<JoinHandle<verbs::Result<T>>>,
    not_before: Option<Instant>,
    reported: Option<String>,
}

impl<T: Send + 'static> ScheduledJob<T> {
    pub(super) fn new(
        due: fn(&Workspace) -> engine::Result<Option<CopyPlace>>,
        run: fn(&Workspace, &CopyPlace) -> verbs::Result<T>,
        retry_after: Duration,
    ) -> Self {
        Self { due, run, retry_after, running: None, not_before: None, reported: None }
    }

    /// Starts the job if it is due. Returns the outcome of a finished job, or the reason why it
    /// cannot run. A repeated reason is returned only once.
    pub(super) fn step(
        &mut self,
        workspace: &Workspace,
        waker: &Waker,
    ) -> Option<Result<T, String>> {
        if let Some(thread) = self.running.take_if(|thread| thread.is_finished()) {
            let outcome = thread.join().map_err(|_| "it ended unexpectedly".to_owned());
            return match outcome.and_then(|outcome| outcome.map_err(|error| error.to_string())) {
                Ok(done) => {
                    self.reported = None;
                    Some(Ok(done))
                }
                Err(why) => {
                    self.not_before = Some(Instant::now() + self.retry_after);
                    self.news(why)
                }
            };
        }
        let is_too_early = self.not_before.is_some_and(|when| Instant::now() < when);
        if self.running.is_some() || is_too_early {
            return None;
        }
        match (self.due)(workspace) {
            Ok(None) => None,
            Ok(Some(place)) => {
                let (run, workspace, waker) = (self.run, workspace.clone(), waker.clone());
                self.running = Some(std::thread::spawn(move || {
                    let outcome = run(&workspace, &place);
                    waker.ring();
                    outcome
                }));
                None
            }
            // A drive may be connected at any time, so the next scan tries again.
            Err(error) => self.news(error.to_string()),
        }
    }

    fn news(&mut self, why: String) -> Option<Result<T, String>> {
        let is_known = self.reported.as_ref() == Some(&why);
        self.reported = Some(why.clone());
        (!is_known).then_some(Err(why))
    }
}
