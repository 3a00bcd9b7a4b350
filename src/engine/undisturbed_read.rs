//! A look at the whole store that nobody disturbed.
//!
//! Readers take no lock, so `gc` may take packs away while they are read, and what was in them
//! looks damaged or missing though it stands in the new one. So whoever finds something wrong sees
//! whether the store is still the one that was looked at, and looks again if it is not.

use super::{Error, Result, Workspace};
use crate::store::{self, Store};

/// Attempts on a store that keeps changing, before others are locked out.
const ATTEMPTS: usize = 4;

/// Returns the result of `look` once it is fine or the store did not change meanwhile.
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
        // A store that cannot be written to can still be looked at.
        Err(Error::Store(store::Error::Io { .. })) => look(&workspace.open_store()?),
        Err(error) => Err(error),
    }
}
