//! What becomes of each timeline of the other side. Nothing is written here.
//!
//! What came to the remote first keeps its name; what is here besides goes on under another. A chat is taken from the side that changed it; where both did, both stay, as two timelines. Lorebooks are
//! decided on once, by their own histories (`others`), and not with each chat that has them.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::future_library::{FutureLibrary, StoredFile};
use super::joined_book::JoinedBook;
use super::outcome::{Conflict, SyncOutcome, SyncedTimeline};
use crate::archive::{Blake3, Snapshot, SnapshotId, Tree, read_manifest};
use crate::engine::free_chat_name::free_name;
use crate::engine::{self, changed_timelines, group_list};
use crate::history::History;
use crate::history::owner_of_snapshot::Owners;
use crate::rules::Finding;
use crate::st::auto_recap::queue_activity;
use crate::st::{self, FileAt, Groups, Library, LibraryPath, TimelineFiles, TimelineName};
use crate::store::{Reader, Store};
use crate::verbs::Result;

/// Where a branch goes.
pub(super) enum BranchMove {
    /// It stays.
    Stay,
    /// Where the other side has it.
    There,
    /// To a new snapshot after that; with this one of ours joined to it.
    Made(Box<TimelineFiles>, Option<SnapshotId>),
}

/// What is done for one timeline.
pub(super) struct TimelinePlan {
    pub entry: SyncedTimeline,
    pub branch: BranchMove,
    /// What is here goes on under another name, after this snapshot.
    pub aside: Option<(Snapshot, TimelineFiles)>,
    /// The branch that it continues, which goes.
    pub drops: Option<TimelineName>,
}

/// What of a timeline is in the library.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Here {
    /// Nothing.
    Absent,
    /// What its newest snapshot has.
    Same,
    /// Something else.
    Changed,
    /// Something that cannot be read just now.
    Unreadable,
    /// What its newest snapshot has, and ST-Auto-Recap is about to write more.
    AtWork,
}

/// What is looked at.
pub(super) struct Planner<'a> {
    pub ours: &'a History,
    pub theirs: &'a History,
    pub store: &'a Store,
    /// Reads what is here.
    pub here: Reader,
    /// Reads what is there.
    pub there: Reader,
    pub library: Option<&'a Library>,
    pub groups: Groups,
    pub files: FutureLibrary,
    pub findings: Vec<Finding>,
    /// Names of timelines, in lower case.
    pub names: BTreeSet<String>,
    /// Names of lorebooks that are as good as taken, in lower case.
    pub books: BTreeSet<String>,
    /// Lorebooks of the other side that got another name here: path and content, and the name.
    pub moved: HashMap<(LibraryPath, Blake3), String>,
    /// Lorebooks here that have nothing but their name in common with one there, and what they are called now.
    pub namesakes: HashMap<LibraryPath, TimelineName>,
    pub day: String,
}

impl Planner<'_> {
    /// Decide for one timeline whose newest snapshot there is `head`.
    pub(super) fn step(&mut self, head: &Snapshot, owners: &Owners) -> Result<TimelinePlan> {
        let all = self.theirs.past([head.id]);
        let snapshots = all.iter().filter(|id| self.ours.get(**id).is_none()).count();
        let entry = SyncedTimeline {
            timeline: head.timeline.clone(),
            head: head.clone(),
            outcome: SyncOutcome::Known,
            snapshots,
            conflict: None,
        };
        let mut step = TimelinePlan { entry, branch: BranchMove::Stay, aside: None, drops: None };
        if let Some(known) = self.ours.get(head.id)
            && self.ours.head(owners.of_snapshot(known)).is_some()
        {
            return Ok(step);
        }
        let ours = self.ours;
        match ours.head(&head.timeline) {
            None => self.new_one(&mut step, &all)?,
            Some(local) if all.contains(&local.id) => self.forward(&mut step, local)?,
            // It was written anew here: snapshots were forgotten, or put into its past.
            Some(_) if !self.store.find_former(&head.id.to_string())?.is_empty() => {}
            Some(local) => {
                let here = self.look(&local.timeline)?;
                match here.hinders() {
                    Some(why) => step.entry.outcome = SyncOutcome::Left(why),
                    None if head.timeline.is_chat() => {
                        self.diverged(&mut step, local, &all, here)?;
                    }
                    None => self.diverged_other(&mut step, local, &all, here)?,
                }
            }
        }
        Ok(step)
    }

    fn new_one(&mut self, step: &mut TimelinePlan, all: &HashSet<SnapshotId>) -> Result<()> {
        let head = step.entry.head.clone();
        if self.look(&head.timeline)? != Here::Absent {
            step.entry.outcome =
                SyncOutcome::Left("something of that name is here and has no snapshot");
            return Ok(());
        }
        step.entry.outcome = SyncOutcome::New;
        if let Some(former) = self.former(&head, all) {
            match self.look(&former)? {
                Here::Changed => {}
                Here::Unreadable => {
                    step.entry.outcome = SyncOutcome::Left(UNREADABLE);
                    return Ok(());
                }
                Here::AtWork => {
                    step.entry.outcome = SyncOutcome::Left(AT_WORK);
                    return Ok(());
                }
                here => {
                    if here == Here::Same {
                        self.files.put(&former.file(), None)?;
                    }
                    step.entry.outcome = SyncOutcome::Renamed(former.clone());
                    step.drops = Some(former);
                }
            }
        }
        let theirs = read(&self.there, &head)?;
        self.lay(step, theirs, None, self.library.is_some())
    }

    fn forward(&mut self, step: &mut TimelinePlan, local: &Snapshot) -> Result<()> {
        let here = self.look(&local.timeline)?;
        if let Some(why) = here.hinders() {
            step.entry.outcome = SyncOutcome::Left(why);
            return Ok(());
        }
        step.entry.outcome = SyncOutcome::Forward;
        let theirs = read(&self.there, &step.entry.head)?;
        let base = read(&self.here, local)?;
        self.lay(step, theirs, Some(&base), here == Here::Same)
    }

    /// The other side's state comes here. A chat brings its lorebook where there is none of that name. One that has a history there comes with that, and else they become one, or its gets a name of its own.
    fn lay(
        &mut self,
        step: &mut TimelinePlan,
        mut theirs: TimelineFiles,
        base: Option<&TimelineFiles>,
        files: bool,
    ) -> Result<()> {
        step.branch = BranchMove::There;
        if !files {
            return Ok(());
        }
        let mut made = false;
        if let Some(book) = theirs.book().filter(|_| theirs.timeline.is_chat()) {
            let (path, bytes) = (book.path.clone(), book.bytes.to_vec());
            let before = base.and_then(|base| base.book_at(&path));
            let is_decided = self.is_decided(&path);
            let joined = match self.files.get(&path)? {
                Some(_) if is_decided => JoinedBook::Ours,
                now => JoinedBook::of(now, before, &bytes),
            };
            match joined {
                JoinedBook::Theirs => self.files.put(&path, Some(bytes))?,
                JoinedBook::Ours => {}
                JoinedBook::Both(both) => {
                    self.files.put(&path, Some(both.clone()))?;
                    theirs.set_book(both);
                    made = true;
                }
                JoinedBook::Conflicts(places) => {
                    let into = self.user_of(&path, &theirs.timeline);
                    theirs = self.apart_book(theirs)?;
                    // A chat whose metadata cannot be changed keeps the name, and the book here stays.
                    if let Some(own) = theirs.book().filter(|own| *own.path != path) {
                        self.files.put(own.path, Some(own.bytes.to_vec()))?;
                        made = true;
                    }
                    step.entry.conflict = Some(Conflict { book: path, places, into });
                }
            }
        }
        let stored = stored_file(&self.there, &step.entry.head, &theirs)?.filter(|_| !made);
        let is_laid = match stored {
            Some(stored) => self.files.put_stored(&theirs.main.path, &stored)?,
            None => false,
        };
        if !is_laid {
            self.files.put(&theirs.main.path, Some(theirs.main.bytes.to_vec()))?;
        }
        self.list_in_group(&theirs)?;
        if made {
            step.branch = BranchMove::Made(Box::new(theirs), None);
        }
        Ok(())
    }

    fn diverged(
        &mut self,
        step: &mut TimelinePlan,
        local: &Snapshot,
        all: &HashSet<SnapshotId>,
        here: Here,
    ) -> Result<()> {
        let ours = read(&self.here, local)?;
        let theirs = read(&self.there, &step.entry.head)?;
        let base = match self.ours.merge_base(local.id, all) {
            Some(base) => Some(read(&self.here, base)?),
            None => None,
        };
        let of_base = base.as_ref().map(|base| &base.main.bytes);
        let chat = match () {
            () if ours.main.bytes == theirs.main.bytes => Some(&theirs),
            () if of_base == Some(&ours.main.bytes) => Some(&theirs),
            () if of_base == Some(&theirs.main.bytes) => Some(&ours),
            // What only goes on has all that the other has.
            () if goes_on(&ours.main.bytes, &theirs.main.bytes) => Some(&theirs),
            () if goes_on(&theirs.main.bytes, &ours.main.bytes) => Some(&ours),
            () => None,
        };
        if chat.is_none() && self.lives_on(local) {
            step.entry.outcome = SyncOutcome::New;
            return self.lay(step, theirs, Some(&ours), here == Here::Same);
        }
        let Some(chat) = chat else { return self.apart(step, local, ours, theirs, base, here) };
        let of_ours = std::ptr::eq(chat, &ours);
        let other = if of_ours { &theirs } else { &ours };
        // Without a header the chat's metadata stands in the group's file, which goes with the chat.
        let metadata = |whole: &TimelineFiles| whole.own_group_metadata();
        let was = base.as_ref().and_then(metadata);
        let mut whole = chat.clone();
        let changed = metadata(other) != metadata(chat) && metadata(other) != was;
        if changed && (metadata(chat) != was || !whole.take_group_metadata(other)) {
            return self.apart(step, local, ours, theirs, base, here);
        }
        if here == Here::Same {
            self.files.put(&whole.main.path, Some(whole.main.bytes.to_vec()))?;
            self.bring_book(&mut whole)?;
            self.list_in_group(&whole)?;
        }
        step.entry.outcome = SyncOutcome::Merged;
        step.branch = BranchMove::Made(Box::new(whole), Some(local.id));
        Ok(())
    }

    /// Both stay: the other side's under the name, what is here under another.
    fn apart(
        &mut self,
        step: &mut TimelinePlan,
        local: &Snapshot,
        ours: TimelineFiles,
        theirs: TimelineFiles,
        base: Option<TimelineFiles>,
        here: Here,
    ) -> Result<()> {
        let files = here == Here::Same;
        let name =
            free_name(&local.timeline, "other version", &self.day, self.library, &mut self.names)?;
        self.lay(step, theirs, base.as_ref(), files)?;
        let mut aside = ours.called(name.clone());
        if files {
            self.bring_book(&mut aside)?;
            self.files.put(&aside.main.path, Some(aside.main.bytes.to_vec()))?;
            self.list_in_group(&aside)?;
        }
        if let Some(conflict) = &mut step.entry.conflict {
            conflict.into = Some(name.clone());
        }
        step.entry.outcome = SyncOutcome::Apart(name);
        step.aside = Some((local.clone(), aside));
        Ok(())
    }

    /// Whether what is here goes on there under another name, because this one was used again.
    fn lives_on(&self, local: &Snapshot) -> bool {
        let mut others = self.theirs.heads().filter(|(name, _)| **name != local.timeline);
        others.any(|(_, head)| self.theirs.past([head.id]).contains(&local.id))
    }

    /// The timeline here that this one continues under a new name. Groups keep a list of names, and are left as they are.
    fn former(&self, head: &Snapshot, all: &HashSet<SnapshotId>) -> Option<TimelineName> {
        let own = self.theirs.own(head).0;
        let names = own.iter().flat_map(|own| own.renamed_from.iter().chain([&own.timeline]));
        // A name that was used again is another chat's there. One that only was left behind leads to this chat's past.
        let left = |name: &TimelineName| {
            self.theirs.head(name).is_none_or(|there| all.contains(&there.id))
        };
        let mut names =
            names.filter(|name| **name != head.timeline && !name.is_group() && left(name));
        let goes_on = |name: &&TimelineName| {
            self.ours.head(name).is_some_and(|local| all.contains(&local.id))
        };
        names.find(goes_on).cloned()
    }

    pub(super) fn look(&self, timeline: &TimelineName) -> Result<Here> {
        let Some(library) = self.library else { return Ok(Here::Absent) };
        match st::is_absent(&timeline.file().under(library.root())) {
            Ok(false) => {}
            Ok(true) => return Ok(Here::Absent),
            Err(_) => return Ok(Here::Unreadable),
        }
        match changed_timelines::look(Some(self.store), library, &self.groups, timeline, &mut None)
        {
            Ok(look) if !look.is_new() => {
                let book = look.captured.as_ref().and_then(|captured| captured.files.book_bytes());
                let is_busy = book.is_some_and(|book| queue_activity(book).total() > 0);
                Ok(if is_busy { Here::AtWork } else { Here::Same })
            }
            Ok(_) => Ok(Here::Changed),
            Err(engine::Error::St(_)) => Ok(Here::Unreadable),
            Err(error) => Err(error.into()),
        }
    }

    /// A chat of a group that does not list it would not be shown.
    pub(super) fn list_in_group(&mut self, whole: &TimelineFiles) -> Result<()> {
        let Some(FileAt { path, bytes: stored }) = &whole.group else { return Ok(()) };
        let Some(live) = self.files.get(path)? else {
            return self.files.put(path, Some(stored.to_vec()));
        };
        let mut new = st::list_in_group(live, &whole.timeline);
        if let Some(own) = whole.own_group_metadata() {
            new = new.and_then(|group| st::set_group_metadata(&group, &whole.timeline, &own));
        }
        match new {
            Some(new) => self.files.put(path, Some(new)),
            None => {
                self.findings.push(group_list::not_edited(path));
                Ok(())
            }
        }
    }
}

/// Whether `longer` is `chat` and more lines.
fn goes_on(chat: &[u8], longer: &[u8]) -> bool {
    let chat = chat.strip_suffix(b"\n").unwrap_or(chat);
    !chat.is_empty() && longer.strip_prefix(chat).is_some_and(|more| more.starts_with(b"\n"))
}

const CHANGED: &str = "it changed here since its newest snapshot";
const UNREADABLE: &str = "it cannot be read here just now";
const AT_WORK: &str = "ST-Auto-Recap is at work in its lorebook";

impl Here {
    /// Why nothing may be put in its place.
    fn hinders(self) -> Option<&'static str> {
        match self {
            Here::Absent | Here::Same => None,
            Here::Changed => Some(CHANGED),
            Here::Unreadable => Some(UNREADABLE),
            Here::AtWork => Some(AT_WORK),
        }
    }
}

/// The files of a snapshot.
/// Where a timeline's own file is stored, if it is just what a snapshot has. Lorebooks are not asked for: others look at them.
fn stored_file(
    reader: &Reader,
    snapshot: &Snapshot,
    files: &TimelineFiles,
) -> Result<Option<StoredFile>> {
    let manifest = read_manifest(reader, snapshot.tree)?;
    let path = &files.main.path;
    let record = manifest.file(manifest.main_role()).filter(|record| {
        record.path == path.as_str() && !path.is_lorebook() && record.is_of(&files.main.bytes)
    });
    Ok(record.map(|record| StoredFile {
        snapshot: snapshot.id,
        bytes: record.bytes,
        blake3: record.blake3,
    }))
}

pub(super) fn read(reader: &Reader, snapshot: &Snapshot) -> Result<TimelineFiles> {
    let contents = Tree::open(reader, snapshot.tree)?.materialise(reader)?;
    let mut files = contents.files;
    files.main.path = snapshot.timeline.file();
    files.timeline = snapshot.timeline.clone();
    Ok(files)
}
