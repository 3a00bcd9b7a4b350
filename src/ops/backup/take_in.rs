//! `import SRC`: a backup's timelines into the store. Nothing is overwritten: what moved on both sides stands side by side.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::{Path, PathBuf};

use super::Place;
use super::incoming::{Incoming, Source, receive};
use crate::archive::backup::{Header, Passphrase};
use crate::archive::{
    BookState, FileState, History, Kind, Parts, Role, Snapshot, SnapshotId, State, Tree, branch,
};
use crate::durable;
use crate::ops::operation::{Follows, Operation};
use crate::ops::owners::Owners;
use crate::ops::{Result, Workspace};
use crate::progress::Monitor;
use crate::st::{Library, TimelineName};
use crate::store::{self, ObjectId, RefName, Store};

/// What to take in.
#[derive(Clone, Debug)]
pub struct Options {
    /// The backup.
    pub source: Place,
    /// What opens it, if it is encrypted.
    pub passphrase: Option<Passphrase>,
    /// Whether git may ask on the terminal.
    pub asks: bool,
    /// Only say what would be done.
    pub dry_run: bool,
}

/// What became of a timeline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was not here.
    New,
    /// It went on from where it was here.
    Forward,
    /// It is here, as far or further.
    Known,
    /// It has moved on here and there; the backup's is under this name now.
    Beside(TimelineName),
}

/// One timeline of the backup.
pub struct Entry {
    /// Its name there.
    pub timeline: TimelineName,
    /// Its newest snapshot there.
    pub head: Snapshot,
    /// What became of it.
    pub outcome: Outcome,
    /// How many snapshots the store did not have.
    pub snapshots: usize,
}

/// One tag of the backup.
pub struct TagEntry {
    /// What it is called there.
    pub name: String,
    /// What it names.
    pub snapshot: SnapshotId,
    /// What it is called here.
    pub here: String,
    /// Whether it was here.
    pub known: bool,
}

/// What was taken in.
pub struct Report {
    /// What it says of itself.
    pub header: Header,
    /// Its timelines.
    pub entries: Vec<Entry>,
    /// Its tags.
    pub tags: Vec<TagEntry>,
    /// Whether the store was made now.
    pub created_store: bool,
    /// How many objects were written.
    pub objects: usize,
    /// What they take.
    pub bytes: u64,
    /// Whether it was only a plan.
    pub dry_run: bool,
}

/// Take a backup in: verify all of it, write the objects that are missing, then move the refs in one operation.
pub fn take_in(
    workspace: &Workspace,
    options: &Options,
    monitor: &mut dyn Monitor,
) -> Result<Report> {
    let (workspace, begun) = workspace.for_recovery();
    let workspace = &workspace;
    let path = workspace.store_path()?;
    let found = workspace.find_store()?;
    let beside = match &found {
        Some(store) => store.path().to_owned(),
        None => nearest_folder(&path),
    };
    let source = source(options, &beside, found.as_ref());
    let mut incoming = receive(workspace, &source, monitor)?;
    let created_store = found.is_none();
    let store = match found {
        Some(store) => Some(store),
        None if options.dry_run => None,
        None => Some(Store::create(&path)?),
    };
    let (store, held) = match store {
        Some(store) if !options.dry_run => {
            let (store, held) = workspace.hold(store)?;
            if !incoming.fits(&History::load(&store)?) {
                let source = self::source(options, &beside, Some(&store));
                incoming = receive(workspace, &source, monitor)?;
            }
            (Some(store), Some(held))
        }
        store => (store, None),
    };
    let library = workspace.library().ok();
    let (entries, tags) = plan(&incoming, store.as_ref(), library.as_ref())?;
    let mut report = Report {
        header: incoming.header.clone(),
        entries,
        tags,
        created_store,
        objects: 0,
        bytes: 0,
        dry_run: options.dry_run,
    };
    if let (Some(store), Some(held)) = (&store, &held) {
        let mut pack = store.pack_writer();
        match &options.source {
            // What was unpacked here stands in one pack, and can be copied as it is.
            Place::File(_) => pack.adopt(&incoming.store)?,
            _ => pack.adopt_some(&incoming.store, &incoming.objects)?,
        }
        (report.objects, report.bytes) = (pack.len(), pack.bytes());
        pack.finish()?;
        // A handle does not see a pack that came after it.
        let store = store.reopened()?;
        let words = format!("From a backup of {}", incoming.header.day());
        let mut operation = Operation::new(workspace, &store, Some(&words));
        for entry in &report.entries {
            match &entry.outcome {
                Outcome::Known => {}
                Outcome::New | Outcome::Forward => {
                    operation.move_ref(branch(&entry.timeline), entry.head.id)?
                }
                Outcome::Beside(name) => set_beside(&store, &entry.head, name, &mut operation)?,
            }
        }
        for tag in report.tags.iter().filter(|tag| !tag.known) {
            if let Some(name) = RefName::tag(&tag.here) {
                operation.move_ref(name, tag.snapshot)?;
            }
        }
        let (objects, bytes) = operation.finish(held)?;
        report.objects += objects;
        report.bytes += bytes;
        if let Some(root) = begun {
            // Now it is a user's folder, and `restore --all` finds it.
            let chats = root.join("chats");
            durable::create_dir_all(&chats)
                .map_err(|source| store::Error::Io { path: chats, source })?;
        }
    }
    Ok(report)
}

fn source<'s>(options: &'s Options, beside: &'s Path, store: Option<&'s Store>) -> Source<'s> {
    Source {
        place: &options.source,
        passphrase: options.passphrase.as_ref(),
        asks: options.asks,
        beside,
        store,
    }
}

/// What becomes of each branch and tag.
fn plan(
    incoming: &Incoming,
    store: Option<&Store>,
    library: Option<&Library>,
) -> Result<(Vec<Entry>, Vec<TagEntry>)> {
    let theirs = History::load(&incoming.store)?;
    let ours = match store {
        Some(store) => History::load(store)?,
        None => History::default(),
    };
    let owners = Owners::of(&ours);
    let here = |name: &TimelineName| match store {
        Some(store) => store.ref_target(&branch(name)),
        None => Ok(None),
    };
    let is_former = |id: SnapshotId| {
        store.is_some_and(|store| !store.with_former_prefix(&id.to_string()).is_empty())
    };
    // A timeline is what its newest snapshot says, whatever the branch is called: so does the history read it.
    let heads = incoming.store.refs("refs/heads/")?.refs;
    let heads: Vec<_> =
        heads.iter().filter_map(|(_, id)| theirs.get(SnapshotId(*id)).cloned()).collect();
    let heads = without_renamed(heads, &theirs);
    let mut names: BTreeSet<String> =
        ours.heads().chain(theirs.heads()).map(|(name, _)| name.as_str().to_lowercase()).collect();
    let mut moved: BTreeMap<TimelineName, ObjectId> = BTreeMap::new();
    let mut entries = Vec::new();
    for head in heads {
        let timeline = head.timeline.clone();
        let past = past(&theirs, &head);
        let current = match moved.get(&timeline) {
            Some(id) => Some(*id),
            None => here(&timeline)?,
        };
        let outcome = match (ours.get(head.id), current) {
            // Also one that goes on here under another name.
            (Some(known), _) if ours.head(owners.of_snapshot(known)).is_some() => Outcome::Known,
            (_, Some(current)) if current == head.id.0 => Outcome::Known,
            // Written anew here: snapshots were forgotten, or put into its past.
            (_, Some(_)) if is_former(head.id) => Outcome::Known,
            (_, None) => Outcome::New,
            (_, Some(current)) if past.contains(&SnapshotId(current)) => Outcome::Forward,
            _ => Outcome::Beside(free_name(
                &timeline,
                "from backup",
                incoming.header.day(),
                library,
                &mut names,
            )?),
        };
        if matches!(outcome, Outcome::New | Outcome::Forward) {
            moved.insert(timeline.clone(), head.id.0);
        }
        let snapshots = past.iter().filter(|id| ours.get(**id).is_none()).count();
        entries.push(Entry { timeline, head, outcome, snapshots });
    }
    entries.sort_by(|a, b| a.timeline.cmp(&b.timeline));
    Ok((entries, plan_tags(&theirs, &ours)))
}

/// Without branches that were left behind when their timeline was renamed: it goes on under its new name. A copy elsewhere keeps them.
pub(in crate::ops) fn without_renamed(heads: Vec<Snapshot>, theirs: &History) -> Vec<Snapshot> {
    let own = heads.iter().flat_map(|head| {
        let own = theirs.own(head).0.into_iter().filter(|own| own.id != head.id);
        own.map(|own| (own.id, head.timeline.clone()))
    });
    let owned: std::collections::HashMap<_, _> = own.collect();
    let mut kept = heads;
    kept.retain(|head| owned.get(&head.id).is_none_or(|owner| *owner == head.timeline));
    kept
}

fn plan_tags(theirs: &History, ours: &History) -> Vec<TagEntry> {
    let mut taken: BTreeMap<String, SnapshotId> =
        ours.tags().map(|(name, id)| (name.to_owned(), id)).collect();
    let mut tags = Vec::new();
    for (name, snapshot) in theirs.tags() {
        let numbered = (2..).map(|n| format!("{name} ({n})"));
        let mut names = std::iter::once(name.to_owned()).chain(numbered);
        let free = |name: &String| taken.get(name).is_none_or(|id| *id == snapshot);
        let Some(here) = names.find(free) else { continue };
        let known = taken.insert(here.clone(), snapshot).is_some();
        tags.push(TagEntry { name: name.to_owned(), snapshot, here, known });
    }
    tags
}

/// A snapshot and all before it.
pub(in crate::ops) fn past(history: &History, head: &Snapshot) -> HashSet<SnapshotId> {
    let mut seen = HashSet::new();
    let mut open = vec![head.id];
    while let Some(id) = open.pop() {
        if let Some(snapshot) = history.get(id)
            && seen.insert(id)
        {
            open.extend(&snapshot.parents);
        }
    }
    seen
}

/// The longest that a chat's name may be with what is put behind it: file systems stop at 255 bytes.
const LONGEST: usize = 200;

/// `<chat> (from backup 2026-11-15)`, or with a number if there is such a chat already.
pub(in crate::ops) fn free_name(
    timeline: &TimelineName,
    what: &str,
    day: &str,
    library: Option<&Library>,
    taken: &mut BTreeSet<String>,
) -> Result<TimelineName> {
    let mut chat = timeline.chat().to_owned();
    while chat.len() > LONGEST {
        chat.pop();
    }
    let mut number = 1;
    loop {
        let more = if number == 1 { String::new() } else { format!(" {number}") };
        let chat = format!("{} ({what} {day}{more})", chat.trim_end());
        let name = match timeline.folder() {
            Some(folder) => TimelineName::solo(folder, &chat)?,
            None => TimelineName::group(&chat)?,
        };
        let file = library.map(|library| name.file().under(library.root()));
        let is_there = file.is_some_and(|file| file.exists());
        if !is_there && taken.insert(name.as_str().to_lowercase()) {
            return Ok(name);
        }
        number += 1;
    }
}

/// The backup's newest state once more, under a name of its own: a fork of it that has said nothing yet. Its history stays as it was.
fn set_beside(
    store: &Store,
    head: &Snapshot,
    name: &TimelineName,
    operation: &mut Operation<'_>,
) -> Result<()> {
    let reader = store.reader();
    let contents = Tree::open(&reader, head.tree)?.materialise(&reader)?;
    let file = |role| contents.files.iter().find(|file| file.role == role);
    let path = name.file();
    let book_name = contents.manifest.file(Role::Lorebook).and_then(|book| book.name.as_deref());
    let part = |role| file(role).map(|file| FileState { path: &file.path, bytes: &file.bytes });
    let parts = Parts {
        timeline: name,
        chat: FileState { path: &path, bytes: contents.bytes(Role::Chat).unwrap_or_default() },
        book: part(Role::Lorebook)
            .map(|file| BookState { name: book_name.unwrap_or_default(), file }),
        group: part(Role::Group),
    };
    let state = State::made(parts, None);
    let follows = Follows::fork(head, state.manifest.messages);
    operation.take(&state, Kind::SNAPSHOT, follows)?;
    Ok(())
}

/// The folder that will hold the store, or the first above it that is there.
pub(in crate::ops) fn nearest_folder(path: &Path) -> PathBuf {
    let above = path.ancestors().skip(1).find(|dir| dir.is_dir());
    above.unwrap_or(Path::new(".")).to_owned()
}
