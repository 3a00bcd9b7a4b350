//! Wakes tasks of the watch, and stops it. Several rings of a task that waits or runs count as one,
//! so that many events of one user cannot fill the memory.

use std::ops::BitOr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};

use super::front_end::WatchedUser;

/// The reasons for which a task was woken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Reasons(u8);

impl Reasons {
    /// A file of the library changed.
    pub(super) const CHANGE: Self = Self(1);
    /// A watched folder was created or deleted, or events were lost.
    pub(super) const FOLDERS: Self = Self(2);
    /// Another task of the user has news: a job ended, or the watch of the library began.
    pub(super) const NEWS: Self = Self(4);
    /// A file in the folder of the companion was written.
    pub(super) const MAIL: Self = Self(8);

    pub(super) fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

impl BitOr for Reasons {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

pub(super) type TaskId = usize;

/// A message to the scheduler.
pub(super) enum Message {
    Rung(TaskId),
    Done { task: TaskId, panicked: bool },
    Found(Vec<WatchedUser>),
    Stop,
}

/// A handle that wakes one task.
#[derive(Clone)]
pub(super) struct Bell {
    pub(super) task: TaskId,
    reasons: Arc<AtomicU8>,
    sender: Sender<Message>,
}

impl Bell {
    pub(super) fn new(task: TaskId, waker: &Waker) -> Self {
        Self { task, reasons: Arc::default(), sender: waker.0.clone() }
    }

    pub(super) fn ring(&self, why: Reasons) {
        // If there are reasons already, the scheduler has a message that it did not read yet.
        if self.reasons.fetch_or(why.0, Ordering::SeqCst) == 0 {
            let _ = self.sender.send(Message::Rung(self.task));
        }
    }

    /// Returns the reasons since the last call.
    pub(super) fn take(&self) -> Reasons {
        Reasons(self.reasons.swap(0, Ordering::SeqCst))
    }
}

/// A handle that stops the watch.
#[derive(Clone)]
pub struct Waker(Sender<Message>);

/// The receiving end of a [`Waker`].
pub struct Listener(pub(super) Receiver<Message>);

/// Returns a connected waker and listener.
pub fn waker() -> (Waker, Listener) {
    let (sender, receiver) = channel();
    (Waker(sender), Listener(receiver))
}

impl Waker {
    /// Stops the watch.
    pub fn stop(&self) {
        self.send(Message::Stop);
    }

    pub(super) fn send(&self, message: Message) {
        // Without a listener, the watch has ended.
        let _ = self.0.send(message);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_rings_are_one_message() {
        let (waker, Listener(receiver)) = waker();
        let bell = Bell::new(7, &waker);
        (0..5).for_each(|_| bell.ring(Reasons::CHANGE));
        bell.ring(Reasons::FOLDERS);
        assert_eq!(receiver.try_iter().count(), 1);
        assert_eq!(bell.take(), Reasons::CHANGE | Reasons::FOLDERS);
        bell.ring(Reasons::NEWS);
        assert!(matches!(receiver.try_recv(), Ok(Message::Rung(7))));
        assert!(bell.take().has(Reasons::NEWS));
        assert_eq!(bell.take(), Reasons::default());
    }
}
