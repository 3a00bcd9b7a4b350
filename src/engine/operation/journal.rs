//! The changes that an operation plans, indexed by their subject, which is a ref or a file.
//!
//! A subject may be changed twice, for example the group's file when two restored chats belong to
//! one group. The later change replaces the earlier one, but its former content is the content
//! before both changes. Every file is therefore written once, and an interrupted write can be
//! finished or reverted.

use std::collections::HashMap;
use std::hash::Hash;

use super::apply::FileStep;
use crate::st::LibraryPath;
use crate::store::{RefChange, RefName};

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
    /// For each subject, the positions of its changes in `list`, in order.
    positions: HashMap<C::Subject, Vec<usize>>,
}

impl<C: Change> Default for Journal<C> {
    fn default() -> Self {
        Self { list: Vec::new(), positions: HashMap::new() }
    }
}

impl<C: Change> Journal<C> {
    pub(super) fn push(&mut self, change: C) {
        self.positions.entry(change.subject().clone()).or_default().push(self.list.len());
        self.list.push(change);
    }

    fn last(&self, subject: &C::Subject) -> Option<usize> {
        self.positions.get(subject)?.last().copied()
    }

    pub(super) fn of(&self, subject: &C::Subject) -> Option<&C> {
        self.list.get(self.last(subject)?)
    }

    pub(super) fn len(&self) -> usize {
        self.list.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    pub(super) fn truncate(&mut self, len: usize) {
        for change in self.list.drain(len.min(self.list.len())..) {
            if let Some(all) = self.positions.get_mut(change.subject()) {
                all.pop();
            }
        }
    }

    /// Returns the changes from position `from` on, in order, without changes that a later one
    /// replaces.
    pub(super) fn since(&self, from: usize) -> impl Iterator<Item = &C> {
        let counts = |(n, change): &(usize, &C)| self.last(change.subject()) == Some(*n);
        self.list.iter().enumerate().skip(from).filter(counts).map(|(_, change)| change)
    }

    /// Returns the changes from position `from` on, including changes that a later one replaces.
    /// The caller must not modify the subject of a change.
    pub(super) fn since_mut(&mut self, from: usize) -> impl Iterator<Item = &mut C> {
        self.list.iter_mut().skip(from)
    }

    /// Returns whether a change of `subject` was planned before position `from`.
    pub(super) fn has_before(&self, from: usize, subject: &C::Subject) -> bool {
        self.positions.get(subject).and_then(|all| all.first()).is_some_and(|first| *first < from)
    }

    /// Drops the changes that later changes replace, and sorts the remaining changes.
    pub(super) fn sort_by_key<K: Ord>(&mut self, order: impl Fn(&C::Subject) -> K) {
        let mut list = std::mem::take(self).into_list();
        list.sort_by_key(|change| order(change.subject()));
        list.into_iter().for_each(|change| self.push(change));
    }

    /// Returns the changes in order, without changes that a later one replaces.
    pub(super) fn into_list(self) -> Vec<C> {
        let Self { list, positions } = self;
        let last = |change: &C| positions.get(change.subject())?.last().copied();
        let counts = |(n, change): &(usize, C)| last(change) == Some(*n);
        list.into_iter().enumerate().filter(counts).map(|(_, change)| change).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::ObjectId;

    #[test]
    fn journal_truncate_restores_earlier_changes_of_a_ref() {
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
