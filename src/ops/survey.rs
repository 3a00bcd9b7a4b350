//! Has a timeline changed since its newest snapshot? The question that `snapshot`, `status` and `timelines` share.

use super::Result;
use super::cache::Cache;
use super::resolve;
use crate::archive::{Manifest, Role, Snapshot, SnapshotId, State, Tree, branch};
use crate::st::{self, Captured, Chat, Disk, Groups, Library, TimelineName};
use crate::store::{Reader, Store};

/// A timeline whose file is there, held against the store.
pub(super) struct Look {
    /// Its newest snapshot.
    pub head: Option<Snapshot>,
    /// Its files, if they had to be read.
    pub captured: Option<Captured>,
    /// Whether they are what the newest snapshot has.
    pub unchanged: bool,
}

/// Look at one timeline. Reads its files only if their stamps are not known.
pub(super) fn look(
    store: Option<&Store>,
    library: &Library,
    groups: &Groups,
    name: &TimelineName,
    cache: &mut Option<Cache>,
) -> Result<Look> {
    let head_id = match store {
        Some(store) => store.ref_target(&branch(name))?.map(SnapshotId),
        None => None,
    };
    let head = match (store, head_id) {
        // A head that cannot be read is as good as none: the state is stored anew.
        (Some(store), Some(id)) => resolve::read(store, id).ok(),
        _ => None,
    };
    if let (Some(cache), Some(head)) = (&cache, &head)
        && cache.is_unchanged(library.root(), name, groups, head.id)
    {
        return Ok(Look { head: Some(head.clone()), captured: None, unchanged: true });
    }
    let captured = st::capture(library, groups, name, &Disk)?;
    let unchanged = match (store, &head) {
        (Some(store), Some(head)) => is_stored(&captured, &store.reader(), head),
        _ => false,
    };
    if let (true, Some(cache), Some(head)) = (unchanged, cache, &head) {
        cache.remember(&captured, head.id);
    }
    Ok(Look { head, captured: Some(captured), unchanged })
}

/// Whether `head` holds what was captured.
///
/// The group's file changes with every message in any chat of the group. For a chat with a header it is only evidence, and for one
/// without only this chat's metadata in it counts.
fn is_stored(captured: &Captured, reader: &Reader, head: &Snapshot) -> bool {
    let Ok(tree) = Tree::open(reader, head.tree) else {
        return false;
    };
    let state = State::of(captured);
    let same = |role| content(&tree.manifest, role) == content(&state.manifest, role);
    same(Role::Chat)
        && same(Role::Lorebook)
        && (same(Role::Group)
            || state.chat.header.is_some()
            || same_group_metadata(captured, reader, &tree))
}

fn content(manifest: &Manifest, role: Role) -> Option<(&str, u64, crate::archive::Blake3)> {
    manifest.file(role).map(|file| (file.path.as_str(), file.bytes, file.blake3))
}

fn same_group_metadata(captured: &Captured, reader: &Reader, stored: &Tree) -> bool {
    let headless = Chat { header: None, messages: Vec::new() };
    let Some(Ok(before)) = stored.group().map(|id| reader.blob(id)) else {
        return captured.group.is_none();
    };
    let Some(after) = &captured.group else {
        return false;
    };
    let before =
        st::metadata(&headless, &captured.name, Some(&before)).map(|raw| raw.as_bytes().to_vec());
    let after = st::metadata(&headless, &captured.name, Some(&after.bytes))
        .map(|raw| raw.as_bytes().to_vec());
    before == after
}
