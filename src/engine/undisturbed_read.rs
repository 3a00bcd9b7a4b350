//! Reads the store without interference by concurrent commands.
//!
//! Readers take no lock, so `gc` may delete packs during a read. Objects of deleted packs then look
//! damaged or missing, although a new pack contains them. A reader that finds a problem therefore
//! reads again if the store has changed since the read began.

use super::{Error, Result, Workspace};
use crate::store::{self, Store};

/// The number of attempts to read a changing store before its lock is taken.
const ATTEMPTS: usize = 4;

/// Calls `look` until `is_fine` accepts the result or the store did not change during the call. If
/// the store changes during every attempt, calls `look` while holding the store's lock.
pub(crate) fn undisturbed<T>(
    workspace: &Workspace,
    is_fine: impl Fn(&T) -> bool,
    mut look: impl FnMut(&Store) -> Result<T>,
) -> Result<T> {
    for _ in 0..ATTEMPTS {
        let store = workspace.open_store()?;
        let before = store.fingerprint()?;
        let found = look(&store);
        if found.as_ref().is_ok_and(&is_fine) || store.fingerprint()? == before {
            return found;
        }
    }
    match workspace.hold(&workspace.open_store()?) {
        Ok((store, _held)) => look(&store),
        // A read-only store cannot be locked, but can be read.
        Err(Error::Store(store::Error::Io { .. })) => look(&workspace.open_store()?),
        Err(error) => Err(error),
    }
}
