//! The outcome of a merge, as values.

/// One of the two lorebooks that are merged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Side {
    /// The book that is merged into.
    #[default]
    Ours,
    Theirs,
}

impl Side {
    /// Returns the opposite side.
    pub fn other(self) -> Self {
        if self == Self::Ours { Self::Theirs } else { Self::Ours }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unmergeable {
    pub side: Side,
    pub why: &'static str,
}

/// The merged book, and what was done.
#[derive(Clone, Debug, Default)]
pub struct Merged {
    pub bytes: Vec<u8>,
    /// Entries that only theirs had, by their UIDs in the merged book.
    pub added: Vec<Named>,
    /// Entries that theirs removed, by their UIDs in ours.
    pub removed: Vec<Named>,
    pub edited: Vec<Edited>,
    pub renumbered: Vec<Renumbered>,
    pub conflicts: Vec<Conflict>,
    /// Values beside the entries that theirs changed.
    pub book: Vec<FieldChange>,
    /// Work that waits in the queue of theirs, which is never taken over.
    pub queue_left: usize,
    /// Registries in a notation in which UIDs that are others now could not be changed.
    pub not_renumbered: Vec<Named>,
    /// Whether there was a base that could be read.
    pub with_base: bool,
}

/// An entry by its key and title.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// Its key.
    pub uid: String,
    pub title: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edited {
    /// By its UID in the merged book.
    pub entry: Named,
    /// The fields that are not as in ours any more; none: only written differently.
    pub fields: Vec<FieldChange>,
}

/// An entry that has another UID in the merged book.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Renumbered {
    /// Its UID before: in ours if it moved there, else in theirs.
    pub old: String,
    pub new: String,
    pub title: String,
    /// Whether ours had it, and theirs moved it; otherwise its UID was taken.
    pub moved: bool,
}

/// A field in all three books, as JSON; none where it is not there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldChange {
    /// Its name; empty for the whole.
    pub field: String,
    /// Before both.
    pub base: Option<Vec<u8>>,
    pub ours: Option<Vec<u8>>,
    pub theirs: Option<Vec<u8>>,
    pub merged: Option<Vec<u8>>,
}

/// A value that both sides changed differently.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// The entry, by its UID in the merged book; none: the book itself.
    pub entry: Option<Named>,
    pub kind: ConflictKind,
    /// The values; of an entry that one side removed the whole.
    pub value: FieldChange,
}

/// How the two sides conflict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConflictKind {
    Values,
    /// Ours removed the entry and theirs edited it: it is in the merged book, as in theirs.
    RemovedHere,
    /// Theirs removed the entry and ours edited it: it stays.
    RemovedThere,
}

impl Merged {
    pub(super) fn conflict(&mut self, entry: Option<&Named>, values: Vec<FieldChange>) {
        let kind = ConflictKind::Values;
        let conflict = |value| Conflict { entry: entry.cloned(), kind, value };
        self.conflicts.extend(values.into_iter().map(conflict));
    }
}
