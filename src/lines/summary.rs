//! The last line: how it went, in numbers.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::archive::SnapshotId;

/// The last line.
#[derive(Serialize)]
pub struct Summary {
    pub command: &'static str,
    pub ok: bool,
    #[serde(flatten)]
    pub counts: Counts,
}

macro_rules! counts {
    ($($(#[$why:meta])* $command:ident { $($(#[$how:meta])* $field:ident: $type:ty),* })*) => {
        /// What each command counts.
        #[derive(Serialize)]
        #[serde(untagged)]
        pub enum Counts {
            $($(#[$why])* $command { $($(#[$how])* $field: $type),* },)*
        }
    };
}

counts! {
    /// Nothing was done.
    None {}
    BackupFile {
        snapshots: u64, timelines: usize, objects: u64, bytes: u64, encrypted: bool, odd: usize,
        attachments_lost: usize, taken_first: usize, not_taken: usize
    }
    BackupPlace {
        snapshots: usize, new_snapshots: usize, timelines: usize, objects: Option<u64>,
        bytes: Option<u64>, moved: usize, ahead: usize, created: bool, odd: usize,
        attachments_lost: usize, taken_first: usize, not_taken: usize
    }
    Backups { backups: usize }
    Check { objects: u64, snapshots: usize, damaged: usize, newer: usize }
    Config { settings: usize }
    Demo { steps: usize, failed: usize }
    Diff { comparisons: usize, changes: usize, #[serde(flatten)] kinds: BTreeMap<&'static str, usize> }
    Doctor {
        timelines: usize, lorebooks: usize, errors: u64, warnings: u64, infos: u64, repairs: usize,
        fixed: usize
    }
    Erase {
        timelines: usize, snapshots: usize, forks: usize, backups: usize, bytes: u64, dry_run: bool
    }
    Fork { written: usize, messages: u64, attachments_lost: usize, dry_run: bool }
    Forget { forgotten: usize, kept: usize, rewritten: usize, bytes: u64, dry_run: bool }
    Gc {
        objects: usize, deltas: usize, packs_before: usize, loose_before: usize, bytes_before: u64,
        bytes_after: u64, dropped: usize, spared: usize, expired: usize, changed: bool, dry_run: bool
    }
    ImportChats {
        imported: usize, known: usize, empty: usize, failed: usize, new_timelines: usize,
        taken_first: usize, rewritten: usize, bytes_there: u64, bytes_written: u64, dry_run: bool
    }
    ImportStore {
        new: usize, forward: usize, known: usize, beside: usize, tags: usize, left_out: usize,
        attachments_lost: usize, objects: usize, bytes_written: u64, created_store: bool, dry_run: bool
    }
    Graph { lanes: usize, columns: usize }
    Init { created: bool }
    Installed { installed: bool }
    Uninstalled { uninstalled: bool }
    Log { snapshots: usize, total: usize }
    Lore { lorebooks: usize, entries: usize, changes: usize }
    Man { pages: u64 }
    MessageVersions { versions: usize, elsewhere: usize }
    Merge {
        added: usize, removed: usize, edited: usize, renumbered: usize, conflicts: usize,
        written: bool, base: Option<SnapshotId>
    }
    Page { timelines: usize, snapshots: usize }
    Operations { operations: usize, unreadable: usize }
    Parent { rewritten: usize }
    Read { messages: usize, hidden: usize }
    Reconstruct {
        reconstructed: u64, known: u64, lost: u64, of_parent: u64, taken_first: bool,
        rewritten: usize, dry_run: bool
    }
    Restore {
        written: usize, kept: usize, attachments_lost: usize, dropped_operations: usize,
        dry_run: bool
    }
    RestoreAll {
        restored: u64, failed: u64, left_out: Vec<String>, written: usize, kept: usize,
        attachments_lost: usize, dropped_operations: usize,
        dry_run: bool
    }
    Search { matches: usize, more: bool, snapshots: usize, texts: usize }
    Show { findings: usize }
    Snapshot {
        taken: usize, unchanged: usize, failed: usize, refused: usize, dry_run: bool,
        objects: usize, bytes: u64, created_store: bool, deleted: usize
    }
    Stats {
        snapshots: usize, timelines: u64, tags: usize, bytes_as_copies: u64, bytes_stored: u64,
        bytes_shared: u64, damaged: usize
    }
    Sync {
        taken_first: usize, known: usize, new: usize, renamed: usize, forward: usize,
        merged: usize, apart: usize, erased: usize, left: usize, left_there: usize, failed: usize,
        conflicts: usize, tags: usize, files: usize, attachments_lost: usize,
        sent: Option<usize>, dry_run: bool
    }
    Tag { tags: usize }
    Timelines { timelines: usize, new: usize, changed: usize, unchanged: usize, deleted: usize }
    Undo {
        operation: Option<u64>, redo: Option<u64>, refs: usize, files: usize, attachments_lost: usize,
        dry_run: bool
    }
    Users { users: usize, failed: usize }
    Watch { taken: usize, autosaves: usize }
}
