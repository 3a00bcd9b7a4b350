//! Cache of the history of a store, for programs that need the history repeatedly.

use std::sync::{Arc, Mutex, PoisonError};

use super::{History, Result};
use crate::store::{ObjectId, RefName, Store};

/// A cached history. All clones share one cache.
#[derive(Clone, Default)]
pub struct LoadedHistory(Arc<Mutex<Option<CachedHistory>>>);

type CachedHistory = (Tips, Arc<History>);

type Tips = Vec<(RefName, ObjectId)>;

impl std::fmt::Debug for LoadedHistory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LoadedHistory").finish_non_exhaustive()
    }
}

impl LoadedHistory {
    /// Returns the history of a store. Reloads the history only if a branch or a tag changed.
    pub fn of(&self, store: &Store) -> Result<Arc<History>> {
        let (heads, tags) = (store.refs("refs/heads/")?, store.refs("refs/tags/")?);
        let is_readable = heads.broken.is_empty() && tags.broken.is_empty();
        let tips: Tips = heads.refs.into_iter().chain(tags.refs).collect();
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, history)) = known.as_ref().filter(|(then, _)| is_readable && *then == tips)
        {
            return Ok(Arc::clone(history));
        }
        let history = Arc::new(History::load(store)?);
        *known = Some((tips, Arc::clone(&history)));
        Ok(history)
    }

    /// Frees the memory of the history. The next use loads it again.
    pub fn forget(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}
