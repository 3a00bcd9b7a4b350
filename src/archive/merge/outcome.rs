//! Outcome of a merge.

/// One of the two lorebooks that are merged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Side {
    /// The lorebook into which the other one is merged.
    #[default]
    Ours,
    /// The lorebook that is merged into `Ours`.
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

/// The merged book, and its changes relative to `ours`.
#[derive(Clone, Debug, Default)]
pub struct Merged {
    pub bytes: Vec<u8>,
    /// Entries that only `theirs` has, with their UIDs in the merged book.
    pub added: Vec<EntryName>,
    /// Entries that `theirs` removed, with their UIDs in `ours`.
    pub removed: Vec<EntryName>,
    pub edited: Vec<EditedEntry>,
    pub renumbered: Vec<RenumberedEntry>,
    pub conflicts: Vec<Conflict>,
    /// Values outside the entries that changed because of `theirs`.
    pub book: Vec<FieldChange>,
    /// Number of pending operations in the queue of ST-Auto-Recap in `theirs`. The queue is never
    /// merged.
    pub queue_left: usize,
    /// Registries that still list old UIDs, because stvc cannot update their format.
    pub not_renumbered: Vec<EntryName>,
    /// Whether the merge had a base that could be read.
    pub with_base: bool,
}

/// UID and title of a lorebook entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryName {
    /// The entry's UID, as written in the file.
    pub uid: String,
    /// The entry's comment, which SillyTavern shows as its title.
    pub title: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EditedEntry {
    /// Name of the entry, with its UID in the merged book.
    pub entry: EntryName,
    /// Fields that differ from `ours`; empty if only the bytes differ.
    pub fields: Vec<FieldChange>,
}

/// Entry whose UID changed in the merge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RenumberedEntry {
    /// Former UID of the entry: in `ours` if `moved` is true, otherwise in `theirs`.
    pub old: String,
    pub new: String,
    pub title: String,
    /// True if `ours` has the entry and `theirs` changed its UID. False if only `theirs` has the
    /// entry and another entry uses its UID.
    pub moved: bool,
}

/// Value of a field in each book, as JSON; `None` if the book does not have the field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldChange {
    /// Name of the field; empty if the value is the complete entry.
    pub field: String,
    /// Value in the state from which both books are derived.
    pub base: Option<Vec<u8>>,
    /// Value in the lorebook that is changed; `None` if it is absent there.
    pub ours: Option<Vec<u8>>,
    /// Value in the other lorebook; `None` if it is absent there.
    pub theirs: Option<Vec<u8>>,
    /// Value in the merged lorebook; `None` if it is absent there.
    pub merged: Option<Vec<u8>>,
}

/// A value that both sides changed differently.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// Entry that contains the value, with its UID in the merged book; `None` for a value outside
    /// the entries.
    pub entry: Option<EntryName>,
    /// The way in which the two lorebooks disagree.
    pub kind: ConflictKind,
    /// Values of the field in each book; values of the complete entry if one side removed the
    /// entry.
    pub value: FieldChange,
}

/// The way in which two lorebooks disagree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConflictKind {
    /// Both lorebooks changed one value differently.
    Values,
    /// `ours` removed the entry and `theirs` edited it. The merged book has the entry as in
    /// `theirs`.
    RemovedHere,
    /// `theirs` removed the entry and `ours` edited it. The merged book has the entry as in `ours`.
    RemovedThere,
}

impl Merged {
    pub(super) fn conflict(&mut self, entry: Option<&EntryName>, values: Vec<FieldChange>) {
        let kind = ConflictKind::Values;
        let conflict = |value| Conflict { entry: entry.cloned(), kind, value };
        self.conflicts.extend(values.into_iter().map(conflict));
    }
}
