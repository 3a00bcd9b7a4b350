//! Watches libraries and creates a snapshot after every save.
//!
//! A file event only triggers a scan, which detects changes in the same way as `stvc snapshot`. Each
//! library is also scanned at intervals, so that lost or unsupported events delay a snapshot but
//! never prevent it.
//!
//! The watch of one library is a state machine ([`library_watch`]). A fixed number of threads
//! ([`pool`]) runs those of all users, so that a host with thousands of users needs as many threads
//! as one user.

mod bell;
mod companion;
mod context;
mod error;
mod file_events;
mod library_watch;
mod look;
mod metrics;
mod new_users;
mod pool;
mod save_finished;
mod scheduled_job;
mod service_manager;
mod single_watcher;
mod task_scheduler;
mod user_task;

pub mod install;

use std::path::Path;
use std::sync::PoisonError;
use std::time::Duration;

use chrono::{DateTime, FixedOffset};

pub use bell::{Listener, Waker, waker};
pub use companion::Companion;
pub use error::{Error, Result};
pub use metrics::Metrics;
pub use service_manager::{Host, ServiceManager};
pub use single_watcher::{is_running, started};

use crate::engine::Workspace;
use crate::engine::copies::last_backups::LastBackup;
use crate::rules::Finding;
use crate::st::TimelineName;
use crate::verbs::snapshot::Report;
use crate::verbs::{forget, sync};
use context::Context;
use new_users::NewUsers;
use pool::NewTask;

const MAX_WAIT: Duration = Duration::from_secs(366 * 24 * 60 * 60);
const SHORTEST_POLL: Duration = Duration::from_millis(100);

/// The settings of the watch.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// The time without changes after which a snapshot is created.
    pub settle: Duration,
    /// The longest wait for ST-Auto-Recap's queue. A timeline that waits longer is stored as an
    /// autosave.
    pub patience: Duration,
    /// The interval of scans, if scans are used instead of file events.
    pub poll: Option<Duration>,
}

impl Options {
    /// Limits the settings, to prevent a busy loop and an overflow of the clock.
    fn within_reason(self) -> Self {
        let longest = |span: Duration| span.min(MAX_WAIT);
        Self {
            settle: longest(self.settle),
            patience: longest(self.patience),
            poll: self.poll.map(|poll| longest(poll).max(SHORTEST_POLL)),
        }
    }
}

/// An event that the watch reports.
pub enum Event<'a> {
    /// The watch started.
    Started {
        /// The user's folder that is watched.
        root: &'a Path,
        /// The interval of scans and the reason, if there are no file events.
        polling: Option<(Duration, String)>,
    },
    /// A scan created snapshots, found deleted timelines, or could not read a timeline.
    Looked(&'a Report),
    /// These timelines wait for the queue of their lorebooks.
    Waiting(&'a [TimelineName]),
    /// The library or its store cannot be reached.
    Gone(String),
    /// The library and its store are reachable again.
    Back,
    /// A scan, or the start of one user's watch, failed for this reason. The watch retries.
    Failed(String),
    /// The store is larger than its limit, so the watch creates no snapshots.
    OverLimit(&'a Finding),
    /// The retention policy removed snapshots.
    Tidied(&'a forget::Report),
    /// The scheduled backup was created.
    BackedUp(&'a LastBackup),
    /// The scheduled backup failed. The watch retries.
    BackupFailed(&'a str),
    /// The scheduled sync succeeded.
    Synced(&'a sync::Report),
    /// The scheduled sync failed. The watch retries.
    SyncFailed(&'a str),
    /// Other findings, for example that an interrupted command was finished.
    Noticed(&'a [Finding]),
}

/// The results of a watch.
#[derive(Clone, Copy, Debug, Default)]
pub struct Summary {
    /// Number of snapshots.
    pub taken: usize,
    /// The number of snapshots that were created while work was pending in ST-Auto-Recap's queue.
    pub autosaves: usize,
    /// Number of users.
    pub users: usize,
    /// Number of users who were not watched when the watch ended.
    pub failed: usize,
}

/// A user whose library is watched.
#[derive(Clone, Debug)]
pub struct WatchedUser {
    /// The name in events. Empty if only one user is watched.
    pub name: String,
    /// The library and the store.
    pub workspace: Workspace,
}

/// The users of a watch.
pub enum Users {
    /// One user. If the library cannot be watched, the watch ends with the error.
    One(Workspace),
    /// The users of an installation. If a library cannot be watched, the watch tries again, and
    /// watches the other users. Users who are created later are watched, too.
    All(Vec<WatchedUser>),
}

/// A front end of the watch. Its functions are called from several threads.
pub trait FrontEnd: Sync {
    /// Returns the time, which new snapshots record.
    fn now(&self) -> DateTime<FixedOffset>;
    /// Receives an event of a user.
    fn tell(&self, user: &str, event: Event<'_>);
    /// Returns the companion of a user, if there is one.
    fn companion(&self, workspace: &Workspace) -> Option<Box<dyn Companion>>;
    /// Returns the users of the installation. It is called regularly to find new users.
    fn users(&self) -> Vec<WatchedUser>;
}

/// Watches until [`Waker::stop`] is called. `metrics` receives the numbers of the watch.
pub fn watch(
    users: Users,
    options: &Options,
    (waker, listener): (&Waker, &Listener),
    metrics: &Metrics,
    front: &dyn FrontEnd,
) -> Result<Summary> {
    let (users, is_host) = match users {
        Users::One(workspace) => (vec![WatchedUser { name: String::new(), workspace }], false),
        Users::All(users) => (users, true),
    };
    allow_open_files();
    let options = options.within_reason();
    let context = Context::new(front, options, waker.clone(), metrics, is_host);
    let mut known = std::collections::HashSet::new();
    let mut enrol = |users: Vec<WatchedUser>| -> Vec<NewTask<'_>> {
        let new = users.into_iter().filter(|user| known.insert(user.name.clone()));
        new.flat_map(|user| user_task::tasks(&context, user)).collect()
    };
    let mut tasks = enrol(users);
    if is_host {
        tasks.push((context.new_bell(), Box::new(NewUsers::new(&context))));
    }
    pool::run(tasks, &mut enrol, (waker, listener), &metrics.queue);
    let failure = context.failure.lock().unwrap_or_else(PoisonError::into_inner).take();
    let summary = *context.summary.lock().unwrap_or_else(PoisonError::into_inner);
    failure.map_or(Ok(summary), Err)
}

/// Raises the limit of open files as far as the system allows: the lock of each user is an open
/// file.
#[cfg(unix)]
fn allow_open_files() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // If it fails, users beyond the limit cannot be watched, which is reported.
    let _ = setrlimit(Resource::Nofile, limit);
}

#[cfg(not(unix))]
fn allow_open_files() {}
