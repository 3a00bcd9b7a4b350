//! `import SRC`: a backup's timelines into the store. Nothing is overwritten: what moved on both sides stands side by side. Of a timeline that
//! only goes on in the backup, the files follow: were they left as they are, the next snapshot would take them for something newer.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::archive::backup::{Header, Passphrase};
use crate::archive::message_identity::Chain;
use crate::archive::{
    self, Kind, Snapshot, SnapshotId, State, Tree, branch, erasure_marks, read_manifest,
};
use crate::durable;
use crate::engine::copies::CopyPlace;
use crate::engine::copies::incoming::{Incoming, Source, nearest_folder, receive_what_is_fit};
use crate::engine::files::{self, Closed, FileAction, FilePlan, Leave};
use crate::engine::free_names::free_timeline;
use crate::engine::operation::{Ending, Follows, Held, Operation};
use crate::engine::{Workspace, changed_timelines};
use crate::history::origin::without_blank_end;
use crate::history::owner_of_snapshot::Owners;
use crate::history::{History, name_lookup};
use crate::progress::Monitor;
use crate::rules::Finding;
use crate::st::{self, Disk, Library, LibraryPath, TimelineName};
use crate::store::{self, Loss, ObjectId, RefName, Store};
use crate::verbs::Result;

/// What to take in.
#[derive(Clone, Debug)]
pub struct Options {
    /// The backup.
    pub source: CopyPlace,
    /// What opens it, if it is encrypted.
    pub passphrase: Option<Passphrase>,
    /// Whether git may ask on the terminal.
    pub asks: bool,
    /// Whether SillyTavern has the chats closed.
    pub closed: Closed,
    /// Only say what would be done.
    pub dry_run: bool,
}

/// What became of a timeline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ImportOutcome {
    /// It was not here.
    New,
    /// It went on from where it was here.
    Forward,
    /// It is here, as far or further.
    Known,
    /// It has moved on here and there; the backup's is under this name now.
    Beside(TimelineName),
    /// The same, but this program does not know the format of the backup's, and cannot write it under another name: it has this tag now.
    Tagged(String),
}

/// One timeline of the backup.
pub struct ImportedTimeline {
    /// Its name there.
    pub timeline: TimelineName,
    /// Its newest snapshot there.
    pub head: Snapshot,
    /// What became of it.
    pub outcome: ImportOutcome,
    /// How many snapshots the store did not have.
    pub snapshots: usize,
}

/// One tag of the backup.
pub struct ImportedTag {
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
    pub entries: Vec<ImportedTimeline>,
    /// Its tags.
    pub tags: Vec<ImportedTag>,
    /// Whether the store was made now.
    pub created_store: bool,
    /// Files of timelines that go on, and that followed.
    pub files: Vec<FileAction>,
    /// How many snapshots of it were left out, because something is wrong with them.
    pub left_out: usize,
    /// What is told of those, and of others.
    pub findings: Vec<Finding>,
    /// How many objects were written.
    pub objects: usize,
    /// What they take.
    pub bytes: u64,
    /// Whether it was only a plan.
    pub dry_run: bool,
}

impl Report {
    pub fn count(&self, wanted: impl Fn(&ImportOutcome) -> bool) -> usize {
        self.entries.iter().filter(|entry| wanted(&entry.outcome)).count()
    }
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
    let mut incoming = receive_what_is_fit(workspace, &source, monitor)?;
    let created_store = found.is_none();
    let store = match found {
        Some(store) => Some(store),
        None if options.dry_run => None,
        None => Some(Store::create(&path)?),
    };
    let (store, held) = match store {
        Some(store) if !options.dry_run => {
            let (store, held) = workspace.hold(&store)?;
            if !incoming.fits(&History::load(&store)?) {
                let source = self::source(options, &beside, Some(&store));
                incoming = receive_what_is_fit(workspace, &source, monitor)?;
            }
            (Some(store), Some(held))
        }
        store => (store, None),
    };
    let library = workspace.library().ok();
    let (entries, tags) = plan(&incoming, store.as_ref(), library.as_ref())?;
    let files = match &library {
        Some(library) => following_files(&incoming, store.as_ref(), library, &entries)?,
        None => Vec::new(),
    };
    let mut report = Report {
        header: incoming.header.clone(),
        entries,
        tags,
        files: Vec::new(),
        created_store,
        left_out: incoming.left_out,
        findings: incoming.findings.clone(),
        objects: 0,
        bytes: 0,
        dry_run: options.dry_run,
    };
    if let (Some(store), Some(held)) = (&store, &held) {
        let mut pack = store.pack_writer();
        match &options.source {
            // What was unpacked here stands in one pack, and can be copied as it is.
            CopyPlace::File(_) if incoming.left_out == 0 => pack.adopt(&incoming.store)?,
            _ => pack.adopt_some(&incoming.store, &incoming.objects)?,
        }
        for commit in &incoming.anew {
            pack.add(store::Kind::Commit, &commit.bytes)?;
        }
        (report.objects, report.bytes) = (pack.objects(), pack.bytes());
        pack.finish()?;
        let words = format!("From a backup of {}", incoming.header.day());
        let mut operation = Operation::new(workspace, store, Some(&words));
        let anew: Vec<_> = incoming.anew.iter().map(|anew| (anew.former, anew.id)).collect();
        operation.rename(&anew);
        for entry in &report.entries {
            match &entry.outcome {
                ImportOutcome::Known => {}
                ImportOutcome::New | ImportOutcome::Forward => {
                    operation.move_ref(branch(&entry.timeline), entry.head.id)?
                }
                ImportOutcome::Beside(name) => {
                    set_beside(store, &entry.head, name, &mut operation)?
                }
                ImportOutcome::Tagged(tag) => {
                    if let Some(tag) = RefName::tag(tag) {
                        operation.move_ref(tag, entry.head.id)?;
                    }
                }
            }
        }
        for tag in report.tags.iter().filter(|tag| !tag.known) {
            if let Some(name) = RefName::tag(&tag.here) {
                operation.move_ref(name, tag.snapshot)?;
            }
        }
        match &library {
            Some(library) if !files.is_empty() => {
                let mut had = Vec::new();
                for (_, id) in store.refs("refs/heads/")?.refs {
                    let head = name_lookup::read(store, SnapshotId(id))?;
                    had.push((head.id, read_manifest(&store.reader(), head.tree)?));
                }
                let had: Vec<_> = had.iter().map(|(id, manifest)| (*id, manifest)).collect();
                let why =
                    format!("Files as they were before a backup of {}", incoming.header.day());
                let root = library.root();
                let leave = Leave { closed: options.closed, active_queue: false };
                let planned = operation.write_files(root, files, &had, leave, &why)?;
                report.files = planned.actions;
                let ending = Ending { message: &words, ..Ending::default() };
                for entry in &report.entries {
                    if let ImportOutcome::New | ImportOutcome::Forward = entry.outcome {
                        operation.end_with(library, &entry.timeline, &ending)?;
                    }
                }
                operation.end_others(library, &ending)?;
            }
            _ => {}
        }
        want_again(store, held, &incoming, &report.entries)?;
        let done = operation.finish(held)?;
        report.objects += done.objects;
        report.bytes += done.bytes;
        if let Some(root) = begun {
            // Now it is a user's folder, and `restore --all` finds it.
            let chats = root.join("chats");
            durable::create_dir_all(&chats)
                .map_err(|source| store::Error::Io { path: chats, source })?;
        }
    }
    Ok(report)
}

/// Withdraws the record that timelines were removed for good: whoever imports them wants them again.
fn want_again(
    store: &Store,
    held: &Held,
    incoming: &Incoming,
    entries: &[ImportedTimeline],
) -> Result<()> {
    let before = store.erasures()?;
    if before.is_empty() {
        return Ok(());
    }
    let (mut erasures, reader) = (before.clone(), incoming.store.reader());
    for snapshot in incoming.history.walk_from(entries.iter().map(|entry| entry.head.id)) {
        erasures.withdraw(&snapshot.id.to_string());
        for mark in erasure_marks(&reader, snapshot)? {
            erasures.withdraw(&mark);
        }
    }
    if erasures != before {
        store.set_erasures(&held.lock, &erasures)?;
    }
    Ok(())
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
) -> Result<(Vec<ImportedTimeline>, Vec<ImportedTag>)> {
    let theirs = &incoming.history;
    let ours = match store {
        Some(store) => History::load(store)?,
        None => History::default(),
    };
    let owners = Owners::of(&ours);
    let here = |name: &TimelineName| match store {
        Some(store) => store.ref_target(&branch(name)),
        None => Ok(None),
    };
    let is_former = |id: SnapshotId| match store {
        Some(store) => store.find_former(&id.to_string()).map(|found| !found.is_empty()),
        None => Ok(false),
    };
    // A timeline is what its newest snapshot says, whatever the branch is called: so does the history read it.
    let heads = theirs.without_renamed(&incoming.heads);
    let mut names: BTreeSet<String> =
        ours.heads().chain(theirs.heads()).map(|(name, _)| name.as_str().to_lowercase()).collect();
    let mut moved: BTreeMap<TimelineName, ObjectId> = BTreeMap::new();
    let mut taken: BTreeMap<String, SnapshotId> =
        ours.tags().chain(theirs.tags()).map(|(name, id)| (name.to_owned(), id)).collect();
    let mut entries = Vec::new();
    for head in heads {
        let timeline = head.timeline.clone();
        let past = theirs.past([head.id]);
        let current = match moved.get(&timeline) {
            Some(id) => Some(*id),
            None => here(&timeline)?,
        };
        let outcome = match (ours.get(head.id), current) {
            // Also one that goes on here under another name.
            (Some(known), _) if ours.head(owners.of_snapshot(known)).is_some() => {
                ImportOutcome::Known
            }
            (_, Some(current)) if current == head.id.0 => ImportOutcome::Known,
            // Written anew here: snapshots were forgotten, or put into its past.
            (_, Some(_)) if is_former(head.id)? => ImportOutcome::Known,
            (_, None) if on_disk(&head, incoming, store, library)? == OnDisk::Free => {
                ImportOutcome::New
            }
            (_, Some(current))
                if past.contains(&SnapshotId(current))
                    && on_disk(&head, incoming, store, library)? != OnDisk::Other =>
            {
                ImportOutcome::Forward
            }
            _ if is_newer(incoming, &head)? => {
                let name = tag_beside(&timeline, incoming.header.day());
                match free_tag(&name, head.id, &taken) {
                    Some(tag) if ours.tags().any(|known| known == (tag.as_str(), head.id)) => {
                        ImportOutcome::Known
                    }
                    Some(tag) => {
                        taken.insert(tag.clone(), head.id);
                        ImportOutcome::Tagged(tag)
                    }
                    None => ImportOutcome::Known,
                }
            }
            _ => ImportOutcome::Beside(free_timeline(
                &timeline,
                "from backup",
                incoming.header.day(),
                library,
                &mut names,
            )?),
        };
        if matches!(outcome, ImportOutcome::New | ImportOutcome::Forward) {
            moved.insert(timeline.clone(), head.id.0);
        }
        let snapshots = past.iter().filter(|id| ours.get(**id).is_none()).count();
        entries.push(ImportedTimeline { timeline, head, outcome, snapshots });
    }
    entries.sort_by(|a, b| a.timeline.cmp(&b.timeline));
    Ok((entries, plan_tags(theirs, &ours)))
}

/// What is on the disk for a timeline that would come. A branch may not go where its file would then look like something newer.
#[derive(Clone, Copy, PartialEq, Eq)]
enum OnDisk {
    /// Nothing, or a chat that goes on from what comes.
    Free,
    /// What the timeline's newest snapshot here has: it can follow.
    Stored,
    /// Something else.
    Other,
}

fn on_disk(
    head: &Snapshot,
    incoming: &Incoming,
    store: Option<&Store>,
    library: Option<&Library>,
) -> Result<OnDisk> {
    let name = &head.timeline;
    let Some(library) = library.filter(|library| name.file().under(library.root()).exists()) else {
        return Ok(OnDisk::Free);
    };
    let groups = library.scan()?.groups;
    let captured = st::capture(library, &groups, name, &Disk)?;
    if !name.is_chat() {
        // Where it has no history here, what is there goes on from what comes. A person decides whether it gives way.
        let Some(store) = store.filter(|store| {
            changed_timelines::head(store, name).is_ok_and(|head| head.0.is_some())
        }) else {
            return Ok(OnDisk::Free);
        };
        let look = changed_timelines::look(Some(store), library, &groups, name, &mut None)?;
        return Ok(if look.is_new() { OnDisk::Other } else { OnDisk::Stored });
    }
    let here = captured.files.split();
    // Without a header a chat's metadata stands in the group's file, which does not follow.
    if let (Some(store), Some(_)) = (store, here.header)
        && !changed_timelines::look(Some(store), library, &groups, name, &mut None)?.is_new()
    {
        return Ok(OnDisk::Stored);
    }
    let reader = incoming.store.reader();
    let contents = Tree::open(&reader, head.tree)?.materialise(&reader)?;
    let comes = Chain::of(without_blank_end(&contents.files.split().messages));
    let here = Chain::of(without_blank_end(&here.messages));
    let same_book = captured.files.book_bytes() == contents.files.book_bytes();
    let goes_on = comes.shared_with(&here) == comes.len();
    // With as many messages, only the lorebook can tell which is newer, and it does not.
    let is_newer = here.len() > comes.len() || same_book;
    Ok(if goes_on && is_newer { OnDisk::Free } else { OnDisk::Other })
}

/// The files of timelines that go on. Of a lorebook that several have, the newest state is written.
fn following_files(
    incoming: &Incoming,
    store: Option<&Store>,
    library: &Library,
    entries: &[ImportedTimeline],
) -> Result<Vec<FilePlan<'static>>> {
    let reader = incoming.store.reader();
    let mut forward = Vec::new();
    for entry in entries.iter().filter(|entry| entry.outcome == ImportOutcome::Forward) {
        if on_disk(&entry.head, incoming, store, Some(library))? == OnDisk::Stored {
            forward.push(entry);
        }
    }
    forward.sort_by_key(|entry| std::cmp::Reverse(entry.head.time.seconds));
    let mut books: BTreeMap<LibraryPath, FilePlan<'_>> = BTreeMap::new();
    let mut chats = Vec::new();
    for entry in forward {
        let files = Tree::open(&reader, entry.head.tree)?.materialise(&reader)?.files;
        let plan = |path: &LibraryPath, bytes: &[u8]| -> Result<FilePlan<'_>> {
            let now = files::read(library.root(), path)?;
            let new = Some(Cow::Owned(bytes.to_vec()));
            Ok(FilePlan::new(path.clone(), now, new).stored_in(Some(entry.head.id)))
        };
        chats.push(plan(&files.main.path, &files.main.bytes)?);
        // One with a history of its own comes with that.
        let is_own = |path: &LibraryPath| {
            let name = TimelineName::of_file(path);
            name.is_some_and(|name| incoming.history.head(&name).is_some())
        };
        let book = files.book().filter(|book| !books.contains_key(book.path));
        if let Some(book) = book.filter(|book| !is_own(book.path)) {
            books.insert(book.path.clone(), plan(book.path, book.bytes)?);
        }
    }
    // The books first: a chat that is there names a book that is there.
    Ok(books.into_values().chain(chats).collect())
}

fn plan_tags(theirs: &History, ours: &History) -> Vec<ImportedTag> {
    let mut taken: BTreeMap<String, SnapshotId> =
        ours.tags().map(|(name, id)| (name.to_owned(), id)).collect();
    let mut tags = Vec::new();
    for (name, snapshot) in theirs.tags() {
        let Some(here) = free_tag(name, snapshot, &taken) else { continue };
        let known = taken.insert(here.clone(), snapshot).is_some();
        tags.push(ImportedTag { name: name.to_owned(), snapshot, here, known });
    }
    tags
}

/// A tag that nothing else has: this one, or with a number.
fn free_tag(
    name: &str,
    snapshot: SnapshotId,
    taken: &BTreeMap<String, SnapshotId>,
) -> Option<String> {
    let numbered = (2..).map(|n| format!("{name} ({n})"));
    let mut names = std::iter::once(name.to_owned()).chain(numbered);
    names.find(|name| taken.get(name).is_none_or(|id| *id == snapshot))
}

/// `<chat> (from backup 2026-11-15)`, short enough to be a tag with a number behind it.
fn tag_beside(timeline: &TimelineName, day: &str) -> String {
    let mut chat = timeline.chat().to_owned();
    loop {
        let name = format!("{} (from backup {day})", chat.trim_end());
        if RefName::tag(&format!("{name} (1000)")).is_some() || chat.pop().is_none() {
            return name;
        }
    }
}

/// Whether this program does not know the format of a snapshot.
fn is_newer(incoming: &Incoming, head: &Snapshot) -> Result<bool> {
    match read_manifest(&incoming.store.reader(), head.tree) {
        Err(archive::Error::NewerFormat { .. }) => Ok(true),
        Err(error) if !error.is_loss() => Err(error.into()),
        _ => Ok(false),
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
    let mut files = Tree::open(&reader, head.tree)?.materialise(&reader)?.files;
    // Its bytes stay as they are: nobody but this program reads the name that it has here.
    files.main.path = name.file();
    files.timeline = name.clone();
    let state = State::made(&files, None);
    let follows = Follows::copy(head, &state);
    operation.take(&state, Kind::SNAPSHOT, follows)?;
    Ok(())
}
