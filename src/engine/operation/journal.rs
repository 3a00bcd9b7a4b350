//! The changes that an operation plans, found by the ref or file that each is about.
//!
//! Something may be planned twice: two chats that are restored together are listed in one group. The later change replaces the earlier one. A file's
//! later step keeps what was there before both, so that every file is written once, and can be written or put back after an interruption.

use std::collections::HashMap;
use std::hash::Hash;

use super::apply::FileStep;
use crate::st::LibraryPath;
use crate::store::{RefChange, RefName};

/// A change of one ref or one file.
pub(super) trait Change {
    type Subject: Clone + Eq + Hash;
    fn subject(&self) -> &Self::Subject;
}

impl Change for FileStep<'_> {
    type Subject = LibraryPath;
    fn subject(&self) -> &LibraryPath {
        &self.path
    }
}

impl Change for RefChange {
    type Subject = RefName;
    fn subject(&self) -> &RefName {
        &self.name
    }
}

pub(super) struct Journal<C: Change> {
    list: Vec<C>,
    /// For each change, the one of that subject that it replaces.
    replaced: Vec<Option<usize>>,
    last: HashMap<C::Subject, usize>,
}

impl<C: Change> Default for Journal<C> {
    fn default() -> Self {
        Self { list: Vec::new(), replaced: Vec::new(), last: HashMap::new() }
    }
}

impl<C: Change> Journal<C> {
    pub(super) fn push(&mut self, change: C) {
        self.replaced.push(self.last.insert(change.subject().clone(), self.list.len()));
        self.list.push(change);
    }

    /// Returns the last change that is planned for a ref or file.
    pub(super) fn of(&self, subject: &C::Subject) -> Option<&C> {
        self.list.get(*self.last.get(subject)?)
    }

    /// Returns how many were pushed, for [`truncate`](Self::truncate).
    pub(super) fn len(&self) -> usize {
        self.list.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Drops all changes but the first `len`.
    pub(super) fn truncate(&mut self, len: usize) {
        while self.list.len() > len {
            let (Some(change), Some(replaced)) = (self.list.pop(), self.replaced.pop()) else {
                break;
            };
            match replaced {
                Some(earlier) => self.last.insert(change.subject().clone(), earlier),
                None => self.last.remove(change.subject()),
            };
        }
    }

    /// Returns the changes from number `from` on that stand, in order.
    pub(super) fn since(&self, from: usize) -> impl Iterator<Item = &C> {
        let stands = |(n, change): &(usize, &C)| self.last.get(change.subject()) == Some(n);
        self.list.iter().enumerate().skip(from).filter(stands).map(|(_, change)| change)
    }

    /// Returns the changes from number `from` on, also those that later ones replace. Their subjects must stay.
    pub(super) fn since_mut(&mut self, from: usize) -> impl Iterator<Item = &mut C> {
        self.list.iter_mut().skip(from)
    }

    /// Returns whether a ref or file was planned before change number `from`.
    pub(super) fn has_before(&self, from: usize, subject: &C::Subject) -> bool {
        let mut at = self.last.get(subject).copied();
        while let Some(n) = at.filter(|n| *n >= from) {
            at = self.replaced.get(n).copied().flatten();
        }
        at.is_some()
    }

    /// Drops the changes that later ones replace.
    pub(super) fn drop_replaced(&mut self) {
        self.sort_by_key(|_| ());
    }

    /// Drops the changes that later ones replace, and sorts the others.
    pub(super) fn sort_by_key<K: Ord>(&mut self, order: impl Fn(&C::Subject) -> K) {
        let mut list = std::mem::take(self).into_list();
        list.sort_by_key(|change| order(change.subject()));
        list.into_iter().for_each(|change| self.push(change));
    }

    /// Returns the changes that stand, in order.
    pub(super) fn into_list(self) -> Vec<C> {
        let Self { list, last, .. } = self;
        let stands = |(n, change): &(usize, C)| last.get(change.subject()) == Some(n);
        list.into_iter().enumerate().filter(stands).map(|(_, change)| change).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::ObjectId;

    #[test]
    fn truncate_brings_back_the_replaced_changes() {
        let [a, b] = ["a", "b"].map(|name| RefName::branch([name]));
        let id = |byte: u8| Some(ObjectId::from([byte; 20]));
        let change =
            |name: &RefName, to: u8| RefChange { name: name.clone(), before: None, after: id(to) };
        let mut journal = Journal::default();
        journal.push(change(&a, 1));
        journal.push(change(&a, 2));
        journal.push(change(&b, 3));
        journal.push(change(&b, 4));
        for _ in 0..2 {
            journal.truncate(1);
            assert_eq!(journal.of(&a).map(|change| change.after), Some(id(1)));
            assert!(journal.of(&b).is_none());
        }
    }
}
