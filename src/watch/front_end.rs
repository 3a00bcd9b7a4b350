//! The types that the watch and its front end share: settings, users and events.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use chrono::{DateTime, FixedOffset};

use crate::engine::Workspace;
use crate::engine::copies::last_backups::LastBackup;
use crate::rules::Finding;
use crate::st::TimelineName;
use crate::verbs::snapshot::Report;
use crate::verbs::{forget, sync};

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
    pub(super) fn within_reason(self) -> Self {
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

/// Work beside the watch of one library.
pub trait Companion: Send {
    /// Returns the folder, relative to the library, whose files wake the companion.
    fn folder(&self) -> PathBuf;
    /// Returns a function that decides by the name whether a file wakes the companion.
    fn is_mail(&self) -> fn(&OsStr) -> bool;
    /// Does what is to be done. `news` has the findings of new snapshots, if any were created.
    /// Returns the time until the next step, which is at most `interval`.
    fn step(&mut self, news: Option<Vec<Finding>>, interval: Duration) -> Duration;
    /// Ends the companion, after the watch of the library has ended.
    fn end(&mut self);
}
