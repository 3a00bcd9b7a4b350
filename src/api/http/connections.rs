//! The open connections. A connection that has not shown the secret has a deadline, and cannot keep out one that has.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::task::AbortHandle;

/// So many visitors are served that have shown the secret; a browser opens a handful.
const KNOWN: usize = 64;
/// So many that have not. One more takes the place of the one that has been there longest.
const UNKNOWN: usize = 32;
/// A visitor has so long to ask, and to read an answer.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);

#[derive(Default)]
pub(super) struct Connections(Mutex<Vec<Connection>>);

struct Connection {
    number: u64,
    task: AbortHandle,
    /// Until then it must have asked, or have read the answer. `None` while the answer is made.
    due: Option<Instant>,
    /// It has shown the secret.
    is_known: bool,
}

impl Connections {
    /// Adds a visitor who has not said anything yet.
    pub(super) fn add(&self, number: u64, task: AbortHandle) {
        let due = Some(Instant::now() + PATIENCE);
        let mut all = self.lock();
        let unknown = all.iter().filter(|connection| !connection.is_known).count();
        if unknown >= UNKNOWN
            && let Some(oldest) = all.iter().position(|connection| !connection.is_known)
        {
            all.remove(oldest).task.abort();
        }
        all.push(Connection { number, task, due, is_known: false });
    }

    /// Notes that a visitor has asked, and whether with the secret.
    pub(super) fn asked(&self, number: u64, is_known: bool) {
        let mut all = self.lock();
        let known = all.iter().filter(|connection| connection.is_known).count();
        if let Some(connection) = all.iter_mut().find(|connection| connection.number == number) {
            connection.due = None;
            connection.is_known |= is_known && known < KNOWN;
        }
    }

    /// Notes that the answer is on its way.
    pub(super) fn answered(&self, number: u64) {
        let mut all = self.lock();
        if let Some(connection) = all.iter_mut().find(|connection| connection.number == number) {
            connection.due = Some(Instant::now() + PATIENCE);
        }
    }

    pub(super) fn remove(&self, number: u64) {
        self.lock().retain(|connection| connection.number != number);
    }

    /// Ends those that let others wait.
    pub(super) fn end_overdue(&self) {
        let now = Instant::now();
        self.lock().retain(|connection| {
            let is_overdue = connection.due.is_some_and(|due| due <= now);
            if is_overdue {
                connection.task.abort();
            }
            !is_overdue
        });
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Connection>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
