//! File locks, which the operating system releases when the process ends.
//!
//! Before Rust 1.98, the standard library refuses to lock files on Android, although Android
//! supports file locks (rust-lang/rust 148325). Therefore Unix builds call `flock` through
//! `rustix`. On Linux and macOS the standard library calls `flock` as well, so both kinds of locks
//! exclude each other.

use std::fs::File;
use std::io;
use std::time::{Duration, Instant};

/// Time between two attempts to acquire a lock.
const INTERVAL: Duration = Duration::from_millis(20);

/// Acquires the exclusive lock, waiting up to `patience`. Returns `false` if another process still
/// holds the lock.
pub fn lock_within(file: &File, patience: Duration) -> io::Result<bool> {
    let deadline = Instant::now() + patience;
    loop {
        let is_acquired = try_lock(file)?;
        if is_acquired || Instant::now() >= deadline {
            return Ok(is_acquired);
        }
        std::thread::sleep(INTERVAL);
    }
}

/// Acquires the exclusive lock. Returns `false` if another process holds the lock.
pub fn try_lock(file: &File) -> io::Result<bool> {
    system::take_alone(file)
}

pub fn is_held(file: &File) -> io::Result<bool> {
    let is_free = system::take_shared(file)?;
    if is_free {
        unlock(file);
    }
    Ok(!is_free)
}

/// Releases the lock without waiting for the file to be closed. A child process that is being
/// started has the file open too, and would otherwise hold the lock until it closes the file.
pub fn unlock(file: &File) {
    // A failure is ignored: closing the file releases the lock as well.
    let _ = system::release(file);
}

#[cfg(unix)]
mod system {
    use std::fs::File;
    use std::io;

    use rustix::fs::{FlockOperation, flock};

    pub fn take_alone(file: &File) -> io::Result<bool> {
        take(file, FlockOperation::NonBlockingLockExclusive)
    }

    pub fn take_shared(file: &File) -> io::Result<bool> {
        take(file, FlockOperation::NonBlockingLockShared)
    }

    fn take(file: &File, operation: FlockOperation) -> io::Result<bool> {
        loop {
            match flock(file, operation) {
                Ok(()) => return Ok(true),
                Err(rustix::io::Errno::WOULDBLOCK) => return Ok(false),
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    pub fn release(file: &File) -> io::Result<()> {
        Ok(flock(file, FlockOperation::Unlock)?)
    }
}

#[cfg(not(unix))]
mod system {
    use std::fs::{File, TryLockError};
    use std::io;

    pub fn take_alone(file: &File) -> io::Result<bool> {
        is_taken(file.try_lock())
    }

    pub fn take_shared(file: &File) -> io::Result<bool> {
        is_taken(file.try_lock_shared())
    }

    fn is_taken(tried: Result<(), TryLockError>) -> io::Result<bool> {
        match tried {
            Ok(()) => Ok(true),
            Err(TryLockError::WouldBlock) => Ok(false),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    pub fn release(file: &File) -> io::Result<()> {
        file.unlock()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lock_is_exclusive_and_compatible_with_the_standard_library() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let [one, two] = [(), ()].map(|()| File::create(&path).unwrap());
        assert!(try_lock(&one).unwrap());
        assert!(!try_lock(&two).unwrap());
        assert!(is_held(&two).unwrap());
        assert!(two.try_lock().is_err());
        unlock(&one);
        assert!(!is_held(&two).unwrap());
        two.try_lock().unwrap();
        assert!(!try_lock(&one).unwrap());
        drop(two);
        assert!(try_lock(&one).unwrap());
    }
}
