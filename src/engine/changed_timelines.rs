//! Has a timeline changed since its newest snapshot? The question that `snapshot`, `status` and `timelines` share.

use super::Result;
use super::cache::{Cache, Known};
use crate::archive::{self, Kind, Manifest, Role, Snapshot, SnapshotId, Tree, branch};
use crate::history::{History, name_lookup};
use crate::parallel;
use crate::st::{
    self, Captured, Category, Chat, Disk, Groups, Library, LibraryPath, TimelineFiles, TimelineName,
};
use crate::store::{ObjectId, Reader, RefName, Store, unless_lost};
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

impl Look {
    /// Whether a snapshot has to be taken. That a lorebook changed which has a history of its own is told there, once, and not by each chat that it is bound to.
    pub(crate) fn is_new(&self) -> bool {
        let ChangedParts { main, lorebook, apart } = self.changed;
        self.head.is_none() || main || lorebook && !apart
    }
}

/// A timeline's newest snapshot, and whether its branch has to be led there.
pub(crate) type Head = (Option<Snapshot>, bool);

/// Where the branches of all timelines lead, read at once.
pub(crate) struct Branches(Vec<(RefName, ObjectId)>);

impl Branches {
    pub(crate) fn read(store: &Store) -> Result<Self> {
        Ok(Self(store.refs("refs/heads/")?.refs))
    }

    /// Where a timeline's branch leads.
    pub(crate) fn target(&self, name: &TimelineName) -> Option<SnapshotId> {
        self.get(&branch(name)).map(SnapshotId)
    }

    fn get(&self, branch: &RefName) -> Option<ObjectId> {
        let found = self.0.binary_search_by(|(known, _)| known.cmp(branch));
        found.ok().map(|at| self.0[at].1)
    }

    /// The same as [`head`].
    pub(crate) fn head(&self, store: &Store, name: &TimelineName) -> Result<Head> {
        newest(store, name, |branch| Ok(self.get(branch)), |id| Ok(name_lookup::find(store, id)?))
    }

    /// The same for who has read the history: nothing of it is read again.
    pub(crate) fn head_in(
        &self,
        history: &History,
        store: &Store,
        name: &TimelineName,
    ) -> Result<Head> {
        let find = |id| match history.get(id) {
            Some(known) => Ok(Some(known.clone())),
            None => Ok(name_lookup::find(store, id)?),
        };
        newest(store, name, |branch| Ok(self.get(branch)), find)
    }

    /// How many there are beside those of these timelines. By their names: to read every commit would cost more than a save.
    pub(crate) fn besides<'n>(&self, names: impl Iterator<Item = &'n TimelineName>) -> usize {
        self.0.len() - names.filter(|name| self.target(name).is_some()).count()
    }
}

/// The newest snapshot of a timeline that can be read, and whether its branch has to be led there.
///
/// Where the branch is damaged, or gone though the operation log does not say so, or leads to a commit that is lost, the log knows
/// where it was: what came before must not be out of reach because the newest is. A commit that could not be read just now is not lost: that is an
/// error. A branch that leads to another timeline's snapshot is not this one's.
pub(crate) fn head(store: &Store, name: &TimelineName) -> Result<Head> {
    let find = |id| Ok(name_lookup::find(store, id)?);
    newest(store, name, |branch| Ok(store.ref_target(branch)?), find)
}

fn newest(
    store: &Store,
    name: &TimelineName,
    target: impl Fn(&RefName) -> Result<Option<ObjectId>>,
    find: impl Fn(SnapshotId) -> Result<Option<Snapshot>>,
) -> Result<Head> {
    let branch = branch(name);
    if let Some(id) = target(&branch)?
        && let Some(head) = find(SnapshotId(id))?
        && head.timeline == *name
    {
        return Ok((Some(head), false));
    }
    // Back to where it was not there: what had the name before that was another timeline, or was taken back.
    for id in store.last_known(&branch)?.iter().map_while(|id| *id) {
        if let Some(known) = find(SnapshotId(id))?
            && known.timeline == *name
        {
            return Ok((Some(known), true));
        }
    }
    Ok((None, false))
}

/// Those of the timelines that have to be looked at. Of the others the branch leads where it did when their files were seen to be what is stored there, and these have not
/// been touched since.
pub(crate) fn touched<'n>(
    store: &Store,
    library: &Library,
    groups: &Groups,
    names: &'n [TimelineName],
    branches: &Branches,
    cache: &Cache,
) -> Result<Vec<&'n TimelineName>> {
    let readers = store.reader().shared();
    let is_untouched = |name: &TimelineName, reader: &Reader| -> Result<bool> {
        let Some(head) = branches.target(name) else { return Ok(false) };
        Ok(cache.known(library.root(), name, groups, head) != Known::Nothing
            && reader.has(head.0)?)
    };
    let of_part = |part: &'n [TimelineName]| -> Result<Vec<&'n TimelineName>> {
        let reader = readers.reader();
        let mut touched = Vec::new();
        for name in part {
            if !is_untouched(name, &reader)? {
                touched.push(name);
            }
        }
        Ok(touched)
    };
    let parts = parallel::in_parts(names, MANY, of_part).into_iter().collect::<Result<Vec<_>>>()?;
    Ok(parts.concat())
}

/// So many timelines are looked at by more than one thread.
const MANY: usize = 100;

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
    {
        let known = cache.known(library.root(), name, groups, head.id);
        let changed = match known {
            Known::Unchanged => Some(ChangedParts::default()),
            // Whether it is another, nobody need know here: its own history tells.
            Known::AllButBook => Some(ChangedParts { main: false, lorebook: true, apart: true }),
            Known::Nothing => None,
        };
        if let Some(changed) = changed {
            let head = Some(head.clone());
            let unchanged = known == Known::Unchanged;
            return Ok(Look { head, captured: None, unchanged, changed, astray });
        }
    }
    let captured = st::capture_readable(library, groups, name, &Disk)?;
    let changed = match (store, &head) {
        (Some(store), Some(head)) => changed_parts(&captured, &store.reader(), head)?,
        _ => ChangedParts::ALL,
    };
    let unchanged = changed == ChangedParts::default();
    let all_but_book = !changed.main && changed.apart;
    // One that was deleted and is there again is not what was stored last.
    if let (true, Some(cache), Some(head)) = (unchanged || all_but_book, cache, &head)
        && head.kind != Kind::DELETED
    {
        cache.remember(&captured, head.id, !unchanged);
    }
    Ok(Look { head, captured: Some(captured), unchanged, changed, astray })
}

/// What of a timeline is another than in a snapshot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChangedParts {
    /// Its own file: of a chat its messages, or what its header or its group's file says of it.
    pub main: bool,
    /// The lorebook: its content, or which one it is.
    pub lorebook: bool,
    /// Whether that has, or can have, a history of its own.
    pub apart: bool,
}

impl ChangedParts {
    const ALL: Self = Self { main: true, lorebook: true, apart: false };
}

/// What `head` does not hold of what was captured.
///
/// The group's file changes with every message in any chat of the group. For a chat with a header it is only evidence, and for one
/// without only this chat's metadata in it counts.
pub(crate) fn changed_parts(
    captured: &Captured,
    reader: &Reader,
    head: &Snapshot,
) -> Result<ChangedParts> {
    let Some(manifest) = unless_lost(archive::read_manifest(reader, head.tree))? else {
        return Ok(ChangedParts::ALL);
    };
    let files = &captured.files;
    if !files.timeline.is_chat() {
        let main = !is_same_other(&manifest, files, reader, head)?;
        return Ok(ChangedParts { main, ..ChangedParts::default() });
    }
    let headed = files.header().is_some();
    let chat = Some((&files.main.path, files.main.bytes.as_slice()));
    let book = files.book().map(|book| (book.path, book.bytes));
    let same = |role, now: Option<(&LibraryPath, &[u8])>| match (manifest.file(role), now) {
        (None, None) => true,
        // Lengths first: most saves change them, and then nothing need be hashed.
        (Some(then), Some((path, now))) => {
            then.path == path.as_str() && then.bytes == now.len() as u64 && then.is_of(now)
        }
        _ => false,
    };
    // One that cannot be read is not known to have changed.
    let lorebook = files.unread_book().is_none() && !same(Role::Lorebook, book);
    let main = !same(Role::Chat, chat) || !headed && !same_group_metadata(files, reader, head)?;
    // Which one it is, the chat itself says.
    let path = files.lorebook.as_ref().and_then(|book| book.path.as_ref());
    // Where it could not be read, the next snapshot has both.
    let apart = lorebook && head.unread.is_none() && path.and_then(TimelineName::of_file).is_some();
    Ok(ChangedParts { main, lorebook, apart })
}

/// Whether what is no chat is as a snapshot has it, apart from what changes when it is used.
fn is_same_other(
    manifest: &Manifest,
    files: &TimelineFiles,
    reader: &Reader,
    head: &Snapshot,
) -> Result<bool> {
    let Some(then) = manifest.file(manifest.main_role()) else { return Ok(false) };
    if then.path != files.main.path.as_str() {
        return Ok(false);
    }
    if then.is_of(&files.main.bytes) {
        return Ok(true);
    }
    let category = files.timeline.category();
    if !matches!(category, Category::Group | Category::Card) {
        return Ok(false);
    }
    let stored = Tree::open(reader, head.tree).and_then(|tree| tree.rebuild(reader, then));
    let stored = unless_lost(stored)?;
    Ok(stored.is_some_and(|stored| st::differ_by_use(category, &stored, &files.main.bytes)))
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

/// The newest snapshots of timelines whose files are gone. What cannot be looked at, an unplugged disk above all, does not count
/// as gone.
pub(crate) fn deleted(library: Option<&Library>, history: &History) -> HashSet<SnapshotId> {
    let Some(root) = library.map(Library::root).filter(|root| root.join("chats").is_dir()) else {
        return HashSet::new();
    };
    let is_gone =
        |name: &TimelineName| st::is_absent(&name.file().under(root)).is_ok_and(|gone| gone);
    history.heads().filter(|(name, _)| is_gone(name)).map(|(_, head)| head.id).collect()
}
