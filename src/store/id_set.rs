//! A set of object ids that takes 20 bytes for each of them. A hash set takes up to three times as
//! much, and some commands need several sets of all objects in the store.

use super::ObjectId;

/// Ids in ascending order, each once.
#[derive(Clone, Debug, Default)]
pub(super) struct IdSet(Vec<ObjectId>);

impl IdSet {
    pub(super) fn new(mut ids: Vec<ObjectId>) -> Self {
        ids.sort_unstable();
        ids.dedup();
        ids.shrink_to_fit();
        Self(ids)
    }

    pub(super) fn contains(&self, id: &ObjectId) -> bool {
        self.0.binary_search(id).is_ok()
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &ObjectId> {
        self.0.iter()
    }
}

impl FromIterator<ObjectId> for IdSet {
    fn from_iter<I: IntoIterator<Item = ObjectId>>(ids: I) -> Self {
        Self::new(ids.into_iter().collect())
    }
}
