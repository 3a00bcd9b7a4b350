//! The files that an operation writes, found by their path.
//!
//! A file may be planned twice: two chats that are restored together are listed in one group. The later step replaces the earlier one and
//! keeps what was there before both, so that every file is written once, and can be written or put back after an interruption.

use std::collections::HashMap;

use super::apply::FileStep;
use crate::st::LibraryPath;

#[derive(Default)]
pub(super) struct Steps<'a> {
    list: Vec<FileStep<'a>>,
    /// For each step, the one of that path that it replaces.
    replaced: Vec<Option<usize>>,
    last: HashMap<LibraryPath, usize>,
}

impl<'a> Steps<'a> {
    pub(super) fn push(&mut self, step: FileStep<'a>) {
        self.replaced.push(self.last.insert(step.path.clone(), self.list.len()));
        self.list.push(step);
    }

    /// Returns the last step that is planned for a file.
    pub(super) fn of(&self, path: &LibraryPath) -> Option<&FileStep<'a>> {
        self.list.get(*self.last.get(path)?)
    }

    /// Returns how many were pushed, for [`truncate`](Self::truncate).
    pub(super) fn len(&self) -> usize {
        self.list.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Drops all steps but the first `len`.
    pub(super) fn truncate(&mut self, len: usize) {
        while self.list.len() > len {
            let (Some(step), Some(replaced)) = (self.list.pop(), self.replaced.pop()) else {
                break;
            };
            match replaced {
                Some(earlier) => self.last.insert(step.path, earlier),
                None => self.last.remove(&step.path),
            };
        }
    }

    /// Returns the steps that stand, in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = &FileStep<'a>> {
        self.since(0)
    }

    /// Returns the steps from number `from` on that stand, in order.
    pub(super) fn since(&self, from: usize) -> impl Iterator<Item = &FileStep<'a>> {
        let stands = |(n, step): &(usize, &FileStep<'a>)| self.last.get(&step.path) == Some(n);
        self.list.iter().enumerate().skip(from).filter(stands).map(|(_, step)| step)
    }

    /// Returns the steps from number `from` on, also those that later ones replace. Their paths must stay.
    pub(super) fn since_mut(&mut self, from: usize) -> impl Iterator<Item = &mut FileStep<'a>> {
        self.list.iter_mut().skip(from)
    }

    /// Whether a file was planned before step number `from`.
    pub(super) fn has_before(&self, from: usize, path: &LibraryPath) -> bool {
        let mut at = self.last.get(path).copied();
        while let Some(n) = at {
            if n < from {
                return true;
            }
            at = self.replaced.get(n).copied().flatten();
        }
        false
    }

    /// Drops the steps that later ones replace.
    pub(super) fn drop_replaced(&mut self) {
        std::mem::take(self).into_list().into_iter().for_each(|step| self.push(step));
    }

    /// Drops the steps that later ones replace, and sorts the others.
    pub(super) fn sort_by_key<K: Ord>(&mut self, order: impl Fn(&LibraryPath) -> K) {
        let mut list = std::mem::take(self).into_list();
        list.sort_by_key(|step| order(&step.path));
        list.into_iter().for_each(|step| self.push(step));
    }

    /// Returns the steps that stand, in order.
    pub(super) fn into_list(self) -> Vec<FileStep<'a>> {
        let Self { list, last, .. } = self;
        let stands = |(n, step): &(usize, FileStep<'a>)| last.get(&step.path) == Some(n);
        list.into_iter().enumerate().filter(stands).map(|(_, step)| step).collect()
    }
}
