//! Runs a scheduled backup or sync. The jobs of all users share a few threads of their own, because
//! a slow drive or network must not delay snapshots. If the watch ends meanwhile, the job is
//! interrupted like a killed command: the destination keeps its previous state.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::Builder;
use std::time::{Duration, Instant};

use crate::engine;
use crate::engine::Workspace;
use crate::engine::copies::CopyPlace;
use crate::verbs;
use crate::watch::bell::{Bell, Reasons};

/// The number of backups and syncs that run at once. They wait for drives and networks most of the
/// time.
const THREADS: usize = 4;

type Copy = Box<dyn FnOnce() + Send>;

/// The threads that run the jobs. They do not keep the process alive.
pub(super) struct CopyThreads(Sender<Copy>);

impl CopyThreads {
    pub(super) fn start() -> Self {
        let (sender, receiver) = channel::<Copy>();
        let receiver = Arc::new(Mutex::new(receiver));
        for _ in 0..THREADS {
            let receiver = Arc::clone(&receiver);
            let next = move || receiver.lock().unwrap_or_else(PoisonError::into_inner).recv().ok();
            let work = move || {
                while let Some(copy) = next() {
                    // After a panic, the job's result is missing, which counts as a failure.
                    let _ = catch_unwind(AssertUnwindSafe(copy));
                }
            };
            let _ = Builder::new().name("stvc copies".into()).spawn(work);
        }
        Self(sender)
    }
}

/// A job to which a place belongs, and when it is due.
pub(super) struct ScheduledJob<T> {
    /// Returns the place if the job is due. Fails if the place cannot be reached now.
    due: fn(&Workspace) -> engine::Result<Option<CopyPlace>>,
    run: fn(&Workspace, &CopyPlace) -> verbs::Result<T>,
    /// The time after which a failed job is tried again.
    retry_after: Duration,
    running: Option<Receiver<verbs::Result<T>>>,
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
        threads: &CopyThreads,
        bell: &Bell,
    ) -> Option<Result<T, String>> {
        if let Some(running) = &self.running {
            let outcome = match running.try_recv() {
                Err(TryRecvError::Empty) => return None,
                Err(TryRecvError::Disconnected) => Err("it ended unexpectedly".to_owned()),
                Ok(outcome) => outcome.map_err(|error| error.to_string()),
            };
            self.running = None;
            return match outcome {
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
        if self.not_before.is_some_and(|when| Instant::now() < when) {
            return None;
        }
        match (self.due)(workspace) {
            Ok(None) => None,
            Ok(Some(place)) => {
                let (run, workspace, bell) = (self.run, workspace.clone(), bell.clone());
                let (sender, receiver) = channel();
                let copy = move || {
                    // The bell rings even after a panic. It is dropped last, when the outcome or
                    // its absence can be received.
                    let _bell = RingAtEnd(bell);
                    let sender = sender;
                    let _ = sender.send(run(&workspace, &place));
                };
                self.running = threads.0.send(Box::new(copy)).is_ok().then_some(receiver);
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

struct RingAtEnd(Bell);

impl Drop for RingAtEnd {
    fn drop(&mut self) {
        self.0.ring(Reasons::NEWS);
    }
}
