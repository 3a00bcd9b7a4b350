//! Wakes the watch after a change, or to stop. Several rings while the watch is busy count as one.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Instant;

/// A handle that wakes the watch.
#[derive(Clone)]
pub struct Waker {
    sender: SyncSender<()>,
    stop: Arc<AtomicBool>,
}

/// The receiving end of a [`Waker`].
pub struct Listener {
    receiver: Receiver<()>,
    stop: Arc<AtomicBool>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Signal {
    Change,
    Stop,
    Nothing,
}

/// Returns a connected waker and listener.
pub fn waker() -> (Waker, Listener) {
    let (sender, receiver) = sync_channel(1);
    let stop = Arc::new(AtomicBool::new(false));
    (Waker { sender, stop: stop.clone() }, Listener { receiver, stop })
}

impl Waker {
    /// Reports a change of the library.
    pub fn ring(&self) {
        // If the channel is full, an earlier ring is pending.
        let _ = self.sender.try_send(());
    }

    /// Stops the watch.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::SeqCst);
        self.ring();
    }
}

impl Listener {
    pub(super) fn wait(&self, until: Instant) -> Signal {
        let rung = self.receiver.recv_timeout(until.saturating_duration_since(Instant::now()));
        match rung {
            _ if self.stop.load(Ordering::SeqCst) => Signal::Stop,
            Ok(()) => Signal::Change,
            Err(RecvTimeoutError::Timeout) => Signal::Nothing,
            // All wakers were dropped.
            Err(RecvTimeoutError::Disconnected) => Signal::Stop,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn repeated_signals_wake_the_watch_once_and_stop_is_permanent() {
        let (waker, listener) = waker();
        let soon = || Instant::now() + Duration::from_millis(1);
        assert_eq!(listener.wait(soon()), Signal::Nothing);
        (0..5).for_each(|_| waker.ring());
        assert_eq!(listener.wait(soon()), Signal::Change);
        assert_eq!(listener.wait(soon()), Signal::Nothing);
        waker.ring();
        waker.stop();
        assert_eq!(listener.wait(soon()), Signal::Stop);
        assert_eq!(listener.wait(soon()), Signal::Stop);
    }
}
