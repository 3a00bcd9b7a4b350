//! Locks that the operating system holds on a file, and lets go with the process.
//!
//! The standard library refuses them on Android before Rust 1.98 though the system has them
//! (rust-lang/rust 148325); hence `flock` by the crate that the standard library's own call is
//! equal to on Linux and macOS, so that programs built either way respect each other.

use std::fs::File;
use std::io;

/// Takes it, if nobody has it. `false`: somebody has.
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

/// Releases it now: a process that is being started has the file open, too, and would hold it
/// longer.
pub fn unlock(file: &File) {
    // It goes with the file in any case.
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
    fn one_at_a_time_and_the_standard_library_agrees() {
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
