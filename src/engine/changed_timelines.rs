//! Has a timeline changed since its newest snapshot? The question that `snapshot`, `status` and `timelines` share.

use super::Result;
use super::cache::Cache;
use crate::archive::{self, Role, Snapshot, SnapshotId, Tree, branch, former_branch};
use crate::history::{History, name_lookup};
use crate::st::{
    self, Captured, Chat, Disk, Groups, Library, LibraryPath, TimelineFiles, TimelineName,
};
use crate::store::{Reader, Store, unless_lost};
use std::collections::HashSet;

/// A timeline whose file is there, held against the store.
pub(crate) struct Look {
    /// Its newest snapshot.
    pub head: Option<Snapshot>,
    /// Its files, if they had to be read.
    pub captured: Option<Captured>,
    /// Whether they are what the newest snapshot has.
    pub unchanged: bool,
    /// What of them is not.
    pub changed: ChangedParts,
    /// Its branch does not lead to `head`, and should.
    pub astray: bool,
}

/// A timeline's newest snapshot, and whether its branch has to be led there.
pub(crate) type Head = (Option<Snapshot>, bool);

/// The newest snapshot of a timeline that can be read, and whether its branch has to be led there.
///
/// Where the branch is damaged, or gone though the operation log does not say so, or leads to a commit that is lost, the log knows
/// where it was: what came before must not be out of reach because the newest is. A commit that could not be read just now is not lost: that is an
/// error. A branch that leads to another timeline's snapshot is not this one's.
pub(crate) fn head(store: &Store, name: &TimelineName) -> Result<Head> {
    let branch = branch(name);
    if let Some(id) = store.ref_target(&branch)?
        && let Some(head) = name_lookup::find(store, SnapshotId(id))?
        && head.is_of(name)
    {
        return Ok((Some(head), false));
    }
    if let Some(former) = former_branch(name)
        && let Some(id) = store.ref_target(&former)?
        && let Some(head) = name_lookup::find(store, SnapshotId(id))?
        && head.is_of(name)
    {
        return Ok((Some(head), true));
    }
    // Back to where it was not there: what had the name before that was another timeline, or was taken back.
    for id in store.last_known(&branch)?.iter().map_while(|id| *id) {
        if let Some(known) = name_lookup::find(store, SnapshotId(id))?
            && known.is_of(name)
        {
            return Ok((Some(known), true));
        }
    }
    Ok((None, false))
}

/// Look at one timeline. Reads its files only if their stamps are not known.
pub(crate) fn look(
    store: Option<&Store>,
    library: &Library,
    groups: &Groups,
    name: &TimelineName,
    cache: &mut Option<Cache>,
) -> Result<Look> {
    let head = match store {
        Some(store) => head(store, name)?,
        None => (None, false),
    };
    look_from(store, library, groups, name, head, cache)
}

/// The same for one whose newest snapshot is known, as [`head`] tells it.
pub(crate) fn look_from(
    store: Option<&Store>,
    library: &Library,
    groups: &Groups,
    name: &TimelineName,
    (head, astray): Head,
    cache: &mut Option<Cache>,
) -> Result<Look> {
    if let (Some(cache), Some(head)) = (&cache, &head)
        && !astray
        && cache.is_unchanged(library.root(), name, groups, head.id)
    {
        let (head, changed) = (Some(head.clone()), ChangedParts::default());
        return Ok(Look { head, captured: None, unchanged: true, changed, astray });
    }
    let captured = st::capture(library, groups, name, &Disk)?;
    let changed = match (store, &head) {
        (Some(store), Some(head)) => changed_parts(&captured, &store.reader(), head)?,
        _ => ChangedParts::ALL,
    };
    let unchanged = changed == ChangedParts::default();
    if let (true, Some(cache), Some(head)) = (unchanged, cache, &head) {
        cache.remember(&captured, head.id);
    }
    Ok(Look { head, captured: Some(captured), unchanged, changed, astray })
}

/// Whether `head` holds what was captured.
///
/// The group's file changes with every message in any chat of the group. For a chat with a header it is only evidence, and for one
/// without only this chat's metadata in it counts.
pub(crate) fn is_stored(captured: &Captured, reader: &Reader, head: &Snapshot) -> Result<bool> {
    Ok(changed_parts(captured, reader, head)? == ChangedParts::default())
}

/// What of a timeline is another than in a snapshot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChangedParts {
    /// The chat: its messages, or what its header or its group's file says of it.
    pub chat: bool,
    /// The lorebook: its content, or which one it is.
    pub lorebook: bool,
}

impl ChangedParts {
    const ALL: Self = Self { chat: true, lorebook: true };
}

/// What `head` does not hold of what was captured.
fn changed_parts(captured: &Captured, reader: &Reader, head: &Snapshot) -> Result<ChangedParts> {
    let Some(manifest) = unless_lost(archive::read_manifest(reader, head.tree))? else {
        return Ok(ChangedParts::ALL);
    };
    let files = &captured.files;
    let headed = Chat::header_of(&files.chat.bytes, files.timeline.is_group()).header.is_some();
    let chat = Some((&files.chat.path, files.chat.bytes.as_slice()));
    let book = files.book().map(|book| (book.path, book.bytes));
    let same = |role, now: Option<(&LibraryPath, &[u8])>| match (manifest.file(role), now) {
        (None, None) => true,
        // Lengths first: most saves change them, and then nothing need be hashed.
        (Some(then), Some((path, now))) => {
            then.path == path.as_str() && then.bytes == now.len() as u64 && then.is_of(now)
        }
        _ => false,
    };
    let lorebook = !same(Role::Lorebook, book);
    let chat = !same(Role::Chat, chat) || !headed && !same_group_metadata(files, reader, head)?;
    Ok(ChangedParts { chat, lorebook })
}

fn same_group_metadata(files: &TimelineFiles, reader: &Reader, head: &Snapshot) -> Result<bool> {
    let headless = Chat { header: None, messages: Vec::new() };
    let Some(tree) = unless_lost(Tree::open(reader, head.tree))? else { return Ok(false) };
    let before = match tree.group() {
        Some(id) => unless_lost(reader.blob(id))?,
        None => None,
    };
    let (before, after) = match (before, files.group_bytes()) {
        (Some(before), Some(after)) => (before, after),
        (None, after) => return Ok(after.is_none()),
        (Some(_), None) => return Ok(false),
    };
    let own = |group: &[u8]| {
        let metadata = st::metadata(&headless, &files.timeline, Some(group));
        metadata.map(|raw| raw.as_bytes().to_vec())
    };
    Ok(own(&before) == own(after))
}

/// The newest snapshots of timelines whose files are gone. Looks for nothing but their names: what cannot be looked at, an
/// unplugged disk above all, does not count as gone.
pub(crate) fn deleted(library: Option<&Library>, history: &History) -> HashSet<SnapshotId> {
    let Some(root) = library.map(Library::root).filter(|root| root.join("chats").is_dir()) else {
        return HashSet::new();
    };
    let is_gone = |name: &TimelineName| {
        let found = std::fs::symlink_metadata(name.file().under(root));
        found.is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound)
    };
    history.heads().filter(|(name, _)| is_gone(name)).map(|(_, head)| head.id).collect()
}
