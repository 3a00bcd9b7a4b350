//! How the watch is woken: by a change, or to stop. Any number of rings while nobody listens are
//! one.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Instant;

/// Wakes the watch.
#[derive(Clone)]
pub struct Waker {
    sender: SyncSender<()>,
    stop: Arc<AtomicBool>,
}

/// Waits for the waker.
pub struct Listener {
    receiver: Receiver<()>,
    stop: Arc<AtomicBool>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Heard {
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
    /// Reports a change.
    pub fn ring(&self) {
        // Full: it rings already.
        let _ = self.sender.try_send(());
    }

    /// Stops the watch.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::SeqCst);
        self.ring();
    }
}

impl Listener {
    pub(super) fn wait(&self, until: Instant) -> Heard {
        let rung = self.receiver.recv_timeout(until.saturating_duration_since(Instant::now()));
        match rung {
            _ if self.stop.load(Ordering::SeqCst) => Heard::Stop,
            Ok(()) => Heard::Change,
            Err(RecvTimeoutError::Timeout) => Heard::Nothing,
            // Nobody is left who could ring.
            Err(RecvTimeoutError::Disconnected) => Heard::Stop,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn rings_are_heard_once_and_a_stop_always() {
        let (waker, listener) = waker();
        let soon = || Instant::now() + Duration::from_millis(1);
        assert_eq!(listener.wait(soon()), Heard::Nothing);
        (0..5).for_each(|_| waker.ring());
        assert_eq!(listener.wait(soon()), Heard::Change);
        assert_eq!(listener.wait(soon()), Heard::Nothing);
        waker.ring();
        waker.stop();
        assert_eq!(listener.wait(soon()), Heard::Stop);
        assert_eq!(listener.wait(soon()), Heard::Stop);
    }
}
