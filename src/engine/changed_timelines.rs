//! Compares timelines with their latest snapshots, for `snapshot`, `status` and `timelines`.

use std::collections::HashSet;
use std::fs;

use super::cache::{Cache, CacheMatch};
use super::configuration::Configuration;
use super::{Include, Result, Workspace};
use crate::archive::{self, Kind, Manifest, Role, Snapshot, SnapshotId, Tree, branch};
use crate::history::{History, name_lookup};
use crate::parallel;
use crate::st::{
    self, Captured, Category, Chat, Disk, Groups, Library, LibraryPath, Presence, Scan,
    TimelineFiles, TimelineName,
};
use crate::store::{ObjectId, Reader, RefName, Store, unless_lost};
use crate::words::format_size;

pub(crate) struct TimelineState {
    pub head: Option<Snapshot>,
    /// The files of the timeline; `None` if the cache shows that the files need not be read.
    pub captured: Option<Captured>,
    pub changed: ChangedParts,
    /// Whether the timeline's branch does not point to `head` and must be moved.
    pub astray: bool,
}

impl TimelineState {
    /// Returns whether the timeline needs a new snapshot. A chat does not need one if only its
    /// lorebook changed and the lorebook has its own timeline: that timeline stores the change once
    /// for all chats that use the lorebook.
    pub(crate) fn is_new(&self) -> bool {
        self.head.is_none() || !self.changed.is_stored()
    }

    pub(crate) fn is_unchanged(&self) -> bool {
        self.changed == ChangedParts::default()
    }
}

/// The latest snapshot of a timeline, and whether the timeline's branch must be moved to that
/// snapshot.
pub(crate) type Head = (Option<Snapshot>, bool);

pub(crate) struct Branches(Vec<(RefName, ObjectId)>);

impl Branches {
    pub(crate) fn read(store: &Store) -> Result<Self> {
        Ok(Self(store.refs("refs/heads/")?.refs))
    }

    fn target(&self, name: &TimelineName) -> Option<ObjectId> {
        let branch = branch(name);
        let found = self.0.binary_search_by(|(known, _)| known.cmp(&branch));
        found.ok().map(|at| self.0[at].1)
    }

    pub(crate) fn head(&self, store: &Store, name: &TimelineName) -> Result<Head> {
        newest(store, name, self.target(name), |id| Ok(name_lookup::find(store, id)?))
    }

    /// Finds the latest snapshot like [`head`], but looks in a loaded history before it reads the
    /// store.
    pub(crate) fn head_in(
        &self,
        history: &History,
        store: &Store,
        name: &TimelineName,
    ) -> Result<Head> {
        newest(store, name, self.target(name), |id| match history.get(id) {
            Some(known) => Ok(Some(known.clone())),
            None => Ok(name_lookup::find(store, id)?),
        })
    }

    /// Returns the number of branches that do not belong to the timelines in `names`. Compares only
    /// names, because reading every commit would be slow.
    pub(crate) fn count_other_branches<'n>(
        &self,
        names: impl Iterator<Item = &'n TimelineName>,
    ) -> usize {
        self.0.len() - names.filter(|name| self.target(name).is_some()).count()
    }
}

/// Returns the latest readable snapshot of a timeline, and whether the timeline's branch must be
/// moved to that snapshot.
///
/// If the branch is damaged, points to a lost commit, or is missing although no deletion was
/// logged, the former target of the branch is read from the operation log, so that earlier
/// snapshots stay reachable. Temporary read errors are returned. A branch that points to a snapshot
/// of another timeline is ignored.
pub(crate) fn head(store: &Store, name: &TimelineName) -> Result<Head> {
    let target = store.ref_target(&branch(name))?;
    newest(store, name, target, |id| Ok(name_lookup::find(store, id)?))
}

fn newest(
    store: &Store,
    name: &TimelineName,
    target: Option<ObjectId>,
    find: impl Fn(SnapshotId) -> Result<Option<Snapshot>>,
) -> Result<Head> {
    let is_it = |found: &Snapshot| found.timeline == *name;
    let find = |id| find(SnapshotId(id)).map(|found| found.filter(is_it));
    if let Some(head) = target.map(find).transpose()?.flatten() {
        return Ok((Some(head), false));
    }
    // Stop at the time at which the branch did not exist: before that, the name belonged to another
    // timeline.
    for id in store.last_known(&branch(name))?.iter().map_while(|id| *id) {
        if let Some(known) = find(id)? {
            return Ok((Some(known), true));
        }
    }
    Ok((None, false))
}

/// Returns the timelines that must be examined. The cache shows that all files of the other
/// timelines are unchanged, except perhaps lorebooks that have their own timelines.
pub(crate) fn touched<'n>(
    store: &Store,
    library: &Library,
    groups: &Groups,
    names: &'n [TimelineName],
    branches: &Branches,
    cache: &Cache,
) -> Result<Vec<&'n TimelineName>> {
    /// The number of timelines below which one thread examines all of them.
    const MIN_FOR_THREADS: usize = 100;
    let readers = store.reader().shared();
    let of_part = |part: &'n [TimelineName]| -> Result<Vec<&'n TimelineName>> {
        let reader = readers.reader();
        let mut touched = Vec::new();
        for name in part {
            let is_known = |head: &ObjectId| {
                cache.known(library.root(), name, groups, SnapshotId(*head)) != CacheMatch::Nothing
            };
            match branches.target(name).filter(is_known) {
                Some(head) if reader.has(head)? => {}
                _ => touched.push(name),
            }
        }
        Ok(touched)
    };
    let parts = parallel::in_parts(names, MIN_FOR_THREADS, of_part)
        .into_iter()
        .collect::<Result<Vec<_>>>()?;
    Ok(parts.concat())
}

pub(crate) fn look(
    store: &Store,
    library: &Library,
    groups: &Groups,
    name: &TimelineName,
) -> Result<TimelineState> {
    look_from(Some(store), library, groups, name, head(store, name)?, None)
}

/// Compares the files of a timeline with the snapshot `head`. Does not read the files if their
/// stamps equal those in the cache.
pub(crate) fn look_from(
    store: Option<&Store>,
    library: &Library,
    groups: &Groups,
    name: &TimelineName,
    (head, astray): Head,
    cache: Option<&mut Cache>,
) -> Result<TimelineState> {
    if let (Some(cache), Some(head), false) = (&cache, &head, astray) {
        let changed = match cache.known(library.root(), name, groups, head.id) {
            CacheMatch::Unchanged => Some(ChangedParts::default()),
            // The lorebook has its own timeline, which detects and stores the change.
            CacheMatch::AllButBook => {
                Some(ChangedParts { main: false, lorebook: true, apart: true })
            }
            CacheMatch::Nothing => None,
        };
        if let Some(changed) = changed {
            return Ok(TimelineState { head: Some(head.clone()), captured: None, changed, astray });
        }
    }
    let captured = st::capture_readable(library, groups, name, &Disk)?;
    let changed = match (store, &head) {
        (Some(store), Some(head)) => changed_parts(&captured, &store.reader(), head)?,
        _ => ChangedParts::ALL,
    };
    // If `head` records a deletion, the existing files differ from `head` even if the content is
    // equal, so they are not cached as unchanged.
    if let (Some(cache), Some(head)) = (cache, &head)
        && head.kind != Kind::DELETED
        && changed.is_stored()
    {
        let is_equal = changed == ChangedParts::default();
        let equal = if is_equal { CacheMatch::Unchanged } else { CacheMatch::AllButBook };
        cache.remember(&captured, head.id, equal);
    }
    Ok(TimelineState { head, captured: Some(captured), changed, astray })
}

/// The parts of a timeline that differ from a snapshot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChangedParts {
    /// Whether the timeline's own file changed, or the metadata in the group's file for a chat
    /// without a header.
    pub main: bool,
    /// Whether the content or the name of the chat's lorebook changed.
    pub lorebook: bool,
    /// Whether the changed lorebook is stored in its own timeline.
    pub apart: bool,
}

impl ChangedParts {
    const ALL: Self = Self { main: true, lorebook: true, apart: false };

    /// Returns whether the timeline needs no new snapshot: nothing changed, or only a lorebook that
    /// is stored in its own timeline.
    pub(crate) fn is_stored(self) -> bool {
        !self.main && (!self.lorebook || self.apart)
    }
}

/// Compares captured files with the snapshot `head`.
///
/// The group's file changes with every message in any chat of the group. For a chat with a header,
/// the group's file is therefore ignored. A chat without a header has its metadata in the group's
/// file, and only this metadata is compared.
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
    let same = |role, now: Option<(&LibraryPath, &[u8])>| match (manifest.file(role), now) {
        (None, None) => true,
        // Compare the lengths first: most saves change the length, so that no hash is needed.
        (Some(then), Some((path, now))) => {
            then.path == path.as_str() && then.bytes == now.len() as u64 && then.is_of(now)
        }
        _ => false,
    };
    let book = files.book().map(|book| (book.path, book.bytes));
    // An unreadable lorebook does not count as changed.
    let lorebook = files.unread_book().is_none() && !same(Role::Lorebook, book);
    let main = !same(Role::Chat, Some((&files.main.path, &files.main.bytes)))
        || files.header().is_none() && !same_group_metadata(files, reader, head)?;
    let path = files.lorebook.as_ref().and_then(|book| book.path.as_ref());
    // If `head` was created without its lorebook because the lorebook was unreadable, the next
    // snapshot of the chat must contain the lorebook.
    let apart = lorebook && head.unread.is_none() && path.and_then(TimelineName::of_file).is_some();
    Ok(ChangedParts { main, lorebook, apart })
}

/// Returns whether a file that is not a chat equals the file in the snapshot `head`. Ignores
/// volatile fields, which SillyTavern changes whenever a group or character is used.
fn is_same_other(
    manifest: &Manifest,
    files: &TimelineFiles,
    reader: &Reader,
    head: &Snapshot,
) -> Result<bool> {
    let then = manifest.file(manifest.main_role());
    let Some(then) = then.filter(|then| then.path == files.main.path.as_str()) else {
        return Ok(false);
    };
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
    let Some(tree) = unless_lost(Tree::open(reader, head.tree))? else { return Ok(false) };
    let before = match tree.group {
        Some(id) => unless_lost(reader.blob(id))?,
        None => None,
    };
    let headless = Chat { header: None, messages: Vec::new() };
    let own = |group: &[u8]| {
        let metadata = st::metadata(&headless, &files.timeline, Some(group));
        metadata.map(|raw| raw.as_bytes().to_vec())
    };
    Ok(match (before, files.group_bytes()) {
        (Some(before), Some(after)) => own(&before) == own(after),
        (before, after) => before.is_none() && after.is_none(),
    })
}

/// Returns the latest snapshots of timelines whose files are missing. A file that cannot be
/// examined, for example on an unplugged disk, does not count as missing.
pub(crate) fn deleted(library: Option<&Library>, history: &History) -> HashSet<SnapshotId> {
    let Some(root) = library.map(Library::root).filter(|root| root.join("chats").is_dir()) else {
        return HashSet::new();
    };
    let is_gone =
        |name: &TimelineName| st::is_absent(&name.file().under(root)).is_ok_and(|gone| gone);
    history.heads().filter(|(name, _)| is_gone(name)).map(|(_, head)| head.id).collect()
}

/// Returns the timelines whose files existed at the last scan and have certainly been deleted
/// since. A missing file does not count as deleted if a folder cannot be listed, if a link is
/// dangling, or if no other file of its category is left: a missing drive is then more likely.
pub(crate) fn deleted_since(cache: &Cache, library: &Library, scan: &Scan) -> Vec<TimelineName> {
    if !scan.unreadable.is_empty() {
        return Vec::new();
    }
    let mut gone = cache.missing_since_last_scan(library.root(), scan);
    gone.retain(|name| {
        scan.all().any(|other| other.category() == name.category())
            && library.presence(scan, name) == Presence::Gone
    });
    gone
}

/// Returns the reason if the file of a timeline is longer than the limit.
pub(crate) fn too_long(
    library: &Library,
    name: &TimelineName,
    limit: Option<u64>,
) -> Option<String> {
    let limit = limit?;
    let found = fs::metadata(name.file().under(library.root())).ok()?;
    let [length, most] = [found.len(), limit].map(format_size);
    (found.len() > limit)
        .then(|| format!("the file has {length}, and `limits.memory` allows at most {most}"))
}

/// Returns whether `stvc snapshot` would store anything. Takes no lock. Saves the updated cache if
/// nothing changed.
pub(crate) fn has_changed(workspace: &Workspace) -> Result<bool> {
    let library = workspace.library()?;
    let scan = library.scan()?;
    let store = workspace.open_store()?;
    let mut cache = Cache::load(&store);
    if !store.unfinished()?.is_empty() || !deleted_since(&cache, &library, &scan).is_empty() {
        return Ok(true);
    }
    let branches = Branches::read(&store)?;
    let (names, groups) = (Include::of(Some(&store)).timelines(&scan), &scan.groups);
    let limit = Configuration::or_defaults(&store).limits.longest_file();
    for name in touched(&store, &library, groups, &names, &branches, &cache)? {
        if too_long(&library, name, limit).is_some() {
            continue;
        }
        let head = branches.head(&store, name)?;
        let look = look_from(Some(&store), &library, groups, name, head, Some(&mut cache))?;
        let is_back = look.head.as_ref().is_some_and(|head| head.kind == Kind::DELETED);
        if look.is_new() || look.astray || is_back {
            return Ok(true);
        }
    }
    cache.save(&store);
    Ok(false)
}
