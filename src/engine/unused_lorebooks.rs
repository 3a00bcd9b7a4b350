//! Finds lorebooks that nothing uses, and the chats or checkpoints that used them.

use std::collections::{BTreeMap, BTreeSet};

use crate::archive::Snapshot;
use crate::auto_recap::is_fork_book;
use crate::history::History;
use crate::history::owner_of_snapshot::Owners;
use crate::rules::UnusedBook;
use crate::st::{LibraryPath, MapEntry, References, TimelineName, lorebook_path};

/// Returns the lorebooks among `books` that nothing in `references` uses. `here` contains the
/// existing chats.
pub(crate) fn unused_lorebooks(
    references: &References,
    books: &[String],
    here: &BTreeSet<TimelineName>,
    history: &History,
    owners: Owners<'_>,
) -> Vec<UnusedBook> {
    let unused = references.unused(books);
    // Most libraries have no unused lorebooks, and then no snapshot need be examined.
    let by_book = if unused.is_empty() { BTreeMap::new() } else { by_book(history) };
    let is_gone = |snapshot: &Snapshot| !here.contains(owners.of_snapshot(snapshot));
    let look = |name: &str| {
        let path = LibraryPath::parse(&format!("worlds/{name}.json")).ok()?;
        let snapshots = by_book.get(&path).map(Vec::as_slice).unwrap_or_default();
        let is_of_it = |entry: &&MapEntry| lorebook_path(&entry.book).as_ref() == Some(&path);
        let maps: Vec<_> = references.maps.iter().filter(is_of_it).collect();
        let newest = snapshots.first();
        let newest = newest.map(|it| (owners.of_snapshot(it).to_string(), is_gone(it)));
        let mapped = maps.first().map(|it| (format!("the checkpoint {:?}", it.checkpoint), false));
        let is_left = !snapshots.is_empty() && snapshots.iter().all(|it| is_gone(it));
        let leftover = is_left || !maps.is_empty() || is_fork_book(name);
        let mut mapped_in: Vec<_> = maps.iter().map(|entry| entry.owner.clone()).collect();
        mapped_in.dedup();
        Some(UnusedBook { path, once: newest.or(mapped), leftover, mapped_in })
    };
    unused.into_iter().filter_map(look).collect()
}

/// Returns the snapshots of chats by the path of their lorebook, newest first.
pub(crate) fn by_book(history: &History) -> BTreeMap<LibraryPath, Vec<&Snapshot>> {
    let mut found: BTreeMap<_, Vec<_>> = BTreeMap::new();
    let of_chats = history.newest_first().into_iter().filter(|found| found.timeline.is_chat());
    for snapshot in of_chats {
        if let Some(path) = snapshot.lorebook.as_deref().and_then(lorebook_path) {
            found.entry(path).or_default().push(snapshot);
        }
    }
    found
}
