//! Plans what happens to each timeline of the remote. Nothing is written here.
//!
//! The timeline that reached the remote first keeps its name; a different local one gets another. A chat is taken from the side that changed it; if both did, both are kept, as two timelines. Lorebooks are
//! merged once, by their own histories (`others`), and not with each chat that uses them.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::counterparts::Counterpart;
use super::future_library::{FutureLibrary, StoredFile};
use super::joined_book::JoinedBook;
use super::outcome::{Conflict, SyncOutcome, SyncedTimeline};
use crate::archive::merge::merge_chats;
use crate::archive::{Blake3, Snapshot, SnapshotId, Tree, read_manifest};
use crate::auto_recap::queue_activity;
use crate::engine::device::Device;
use crate::engine::free_names::free_timeline;
use crate::engine::include::Include;
use crate::engine::{self, changed_timelines, group_list};
use crate::history::History;
use crate::rules::Finding;
use crate::st::{
    self, Category, FileAt, Groups, Library, LibraryPath, TimelineFiles, TimelineName,
};
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
    /// To a new snapshot of this local state, under another name.
    Renamed(Box<TimelineFiles>),
}

/// What is done for one timeline.
pub(super) struct TimelinePlan {
    pub entry: SyncedTimeline,
    pub branch: BranchMove,
    /// What is here goes on under another name, after this snapshot.
    pub aside: Option<(Snapshot, TimelineFiles)>,
    /// Its latest local snapshot before the sync.
    pub local: Option<Snapshot>,
}

impl TimelinePlan {
    pub(super) fn new(name: TimelineName, head: Snapshot, local: Option<&Snapshot>) -> Self {
        let former = local.map(|local| local.timeline.clone()).filter(|local| *local != name);
        let entry = SyncedTimeline {
            timeline: name,
            head,
            outcome: SyncOutcome::Known,
            former,
            snapshots: 0,
            conflict: None,
        };
        Self { entry, branch: BranchMove::Stay, aside: None, local: local.cloned() }
    }
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
    /// Local names whose files move to another.
    pub vacated: BTreeSet<TimelineName>,
    pub day: String,
    pub include: Include,
    pub device: Device,
}

impl Planner<'_> {
    /// Removes the files of timelines that get another name, before any file is written: one may take the name of another.
    pub(super) fn vacate(
        &mut self,
        pairs: &[Counterpart<'_>],
        displaced: &[&Snapshot],
    ) -> Result<()> {
        let renamed = pairs.iter().filter_map(|pair| Some((pair.renamed_from()?, &pair.name)));
        let renamed: Vec<_> = renamed.collect();
        let displaced = displaced.iter().map(|local| &local.timeline);
        for former in renamed.iter().map(|(former, _)| *former).chain(displaced) {
            if self.look(former)? == Here::Same {
                self.vacated.insert(former.clone());
            }
        }
        // One that cannot have its new name keeps its file, and with it the name that another may want.
        loop {
            let before = self.vacated.len();
            for (former, name) in &renamed {
                if !self.is_free(name)? {
                    self.vacated.remove(*former);
                }
            }
            if self.vacated.len() == before {
                break;
            }
        }
        for former in &self.vacated {
            self.files.put(&former.file(), None)?;
        }
        Ok(())
    }

    /// Decides what happens to one timeline of the remote.
    pub(super) fn step(&mut self, pair: &Counterpart<'_>) -> Result<TimelinePlan> {
        let all = self.theirs.past([pair.remote.id]);
        let snapshots = all.iter().filter(|id| self.ours.get(**id).is_none()).count();
        let mut step = TimelinePlan::new(pair.name.clone(), pair.remote.clone(), pair.local);
        step.entry.snapshots = snapshots;
        let Some(local) = pair.local else {
            self.new_one(&mut step)?;
            return Ok(step);
        };
        let is_known = self.ours.leads_to(local.id, pair.remote.id)
            // It was rewritten locally: snapshots were forgotten, or added to its past.
            || !self.store.find_former(&pair.remote.id.to_string())?.is_empty();
        if is_known && pair.renamed_from().is_none() {
            return Ok(step);
        }
        let here = self.look(&local.timeline)?;
        let is_free = self.is_free(&pair.name)? || pair.renamed_from().is_none();
        if let Some(why) = here.hinders().or((!is_free).then_some(NAME_IN_USE)) {
            step.entry.outcome = SyncOutcome::Left(why);
            return Ok(step);
        }
        match () {
            () if is_known => self.rename(&mut step, local, here)?,
            () if pair.is_stored_there => self.forward(&mut step, local, here)?,
            () if local.timeline.is_chat() => self.diverged(&mut step, local, &all, here)?,
            () => self.diverged_other(&mut step, local, &all, here)?,
        }
        Ok(step)
    }

    /// Gives a local timeline another name because a timeline of the remote has its name.
    pub(super) fn displace(&mut self, local: &Snapshot) -> Result<TimelinePlan> {
        let here = self.look(&local.timeline)?;
        if let Some(why) = here.hinders() {
            let mut step = TimelinePlan::new(local.timeline.clone(), local.clone(), Some(local));
            step.entry.outcome = SyncOutcome::Left(why);
            return Ok(step);
        }
        let name = self.free_name(&local.timeline)?;
        let mut step = TimelinePlan::new(name, local.clone(), Some(local));
        self.rename(&mut step, local, here)?;
        Ok(step)
    }

    fn rename(&mut self, step: &mut TimelinePlan, local: &Snapshot, here: Here) -> Result<()> {
        let name = step.entry.timeline.clone();
        if local.timeline.category() == Category::Lorebook {
            self.namesakes.insert(local.timeline.file(), name.clone());
        }
        let mut renamed = read(&self.here, local)?.called(name);
        // Its lorebook may have got another name as well.
        let book =
            renamed.book().filter(|_| local.timeline.is_chat()).map(|book| book.path.clone());
        if let Some(now) = book.and_then(|book| self.namesakes.get(&book)).cloned() {
            renamed = self.bound_to_namesake(renamed, &now)?;
        }
        if here == Here::Same {
            self.files.put(&renamed.main.path, Some(renamed.main.bytes.to_vec()))?;
            self.list_in_group(&renamed, Some(&local.timeline))?;
        }
        step.entry.outcome = SyncOutcome::Renamed;
        step.branch = BranchMove::Renamed(Box::new(renamed));
        Ok(())
    }

    /// Returns an unused name for a timeline that has to make room for another.
    pub(super) fn free_name(&mut self, name: &TimelineName) -> Result<TimelineName> {
        Ok(free_timeline(name, "other version", &self.day, self.library, &mut self.names)?)
    }

    /// Returns whether no file has this name, or only one that gets another.
    fn is_free(&self, name: &TimelineName) -> Result<bool> {
        Ok(self.vacated.contains(name) || self.look(name)? == Here::Absent)
    }

    fn new_one(&mut self, step: &mut TimelinePlan) -> Result<()> {
        let head = step.entry.head.clone();
        if !self.is_free(&head.timeline)? {
            step.entry.outcome = SyncOutcome::Left(NAME_IN_USE);
            return Ok(());
        }
        step.entry.outcome = SyncOutcome::New;
        let theirs = read(&self.there, &head)?;
        let files = self.library.is_some() && self.include.has(head.timeline.category());
        self.lay(step, theirs, None, files)
    }

    fn forward(&mut self, step: &mut TimelinePlan, local: &Snapshot, here: Here) -> Result<()> {
        step.entry.outcome = match step.entry.former {
            Some(_) => SyncOutcome::Renamed,
            None => SyncOutcome::Forward,
        };
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
        let name = step.entry.timeline.clone();
        let mut made = theirs.timeline != name;
        if made {
            theirs = theirs.called(name);
        }
        if !files {
            step.branch =
                if made { BranchMove::Made(Box::new(theirs), None) } else { BranchMove::There };
            return Ok(());
        }
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
                    step.entry.conflict =
                        Some(Conflict { book: path, places, other: into, set_aside_by: None });
                }
            }
        }
        let stored = stored_file(&self.there, &step.entry.head, &theirs)?.filter(|_| !made);
        let is_laid = match stored {
            Some(stored) => self.files.put_stored(&theirs.main.path, &stored)?,
            None => false,
        };
        if !is_laid {
            self.put_main(&theirs)?;
        }
        self.list_in_group(&theirs, step.entry.former.as_ref())?;
        step.branch =
            if made { BranchMove::Made(Box::new(theirs), None) } else { BranchMove::There };
        Ok(())
    }

    fn diverged(
        &mut self,
        step: &mut TimelinePlan,
        local: &Snapshot,
        all: &HashSet<SnapshotId>,
        here: Here,
    ) -> Result<()> {
        let name = step.entry.timeline.clone();
        let ours = read(&self.here, local)?;
        let theirs = read(&self.there, &step.entry.head)?;
        let base = match self.ours.merge_base(local.id, all) {
            Some(base) => Some(read(&self.here, base)?),
            None => None,
        };
        let merged = merge_chats(
            base.as_ref().map(TimelineFiles::split).as_ref(),
            &ours.split(),
            &theirs.split(),
        );
        let Some(merged) = merged else {
            return self.apart(step, local, ours, theirs, base, here);
        };
        // The remote's side is kept where nothing speaks for the local one: its snapshot need not be written again.
        let is_ours = *ours.main.bytes == *merged && *theirs.main.bytes != *merged;
        let (chat, other) = if is_ours { (&ours, &theirs) } else { (&theirs, &ours) };
        // Without a header the chat's metadata stands in the group's file, which goes with the chat.
        let metadata = |whole: &TimelineFiles| whole.own_group_metadata();
        let was = base.as_ref().and_then(metadata);
        let mut whole = chat.clone();
        let changed = metadata(other) != metadata(chat) && metadata(other) != was;
        if changed && (metadata(chat) != was || !whole.take_group_metadata(other)) {
            return self.apart(step, local, ours, theirs, base, here);
        }
        if *whole.main.bytes != *merged {
            whole.main.bytes = merged.into();
            let bound = st::bound_lorebook(&whole.split(), &whole.timeline, whole.group_bytes());
            let is_of =
                |side: &TimelineFiles| side.lorebook.as_ref().map(|it| &it.name) == bound.as_ref();
            if !is_of(&whole) && is_of(other) {
                whole.lorebook = other.lorebook.clone();
            }
        }
        if whole.timeline != name {
            whole = whole.called(name);
        }
        if here == Here::Same {
            self.files.put(&whole.main.path, Some(whole.main.bytes.to_vec()))?;
            self.bring_book(&mut whole)?;
            self.list_in_group(&whole, step.entry.former.as_ref())?;
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
        let name = self.free_name(&step.entry.timeline.clone())?;
        self.lay(step, theirs, base.as_ref(), files)?;
        let mut aside = ours.called(name.clone());
        if files {
            self.bring_book(&mut aside)?;
            self.files.put(&aside.main.path, Some(aside.main.bytes.to_vec()))?;
            self.list_in_group(&aside, None)?;
        }
        if let Some(conflict) = &mut step.entry.conflict {
            conflict.other = Some(name.clone());
        }
        step.entry.outcome = SyncOutcome::Apart(name);
        step.aside = Some((local.clone(), aside));
        Ok(())
    }

    /// Puts a timeline's own file in its place. A group keeps the chats that it has locally.
    pub(super) fn put_main(&mut self, files: &TimelineFiles) -> Result<()> {
        let (path, bytes) = (&files.main.path, &files.main.bytes);
        let live = match files.timeline.category() {
            Category::Group => self.files.get(path)?,
            _ => None,
        };
        let bytes = match live {
            Some(live) => st::with_chats_of_group(live, bytes),
            None => bytes.to_vec(),
        };
        self.files.put(path, Some(bytes))
    }

    pub(super) fn look(&self, timeline: &TimelineName) -> Result<Here> {
        // A file that this device does not keep is none of its business.
        let library = self.library.filter(|_| self.include.has(timeline.category()));
        let Some(library) = library else { return Ok(Here::Absent) };
        match st::is_absent(&timeline.file().under(library.root())) {
            Ok(false) => {}
            Ok(true) => return Ok(Here::Absent),
            Err(_) => return Ok(Here::Unreadable),
        }
        match changed_timelines::look(Some(self.store), library, &self.groups, timeline, &mut None)
        {
            Ok(look)
                if look.captured.as_ref().is_some_and(|it| it.files.unread_book().is_some()) =>
            {
                Ok(Here::Unreadable)
            }
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

    /// Lists a chat in its group's file, in place of its former name. SillyTavern does not show a chat that its group does not list.
    pub(super) fn list_in_group(
        &mut self,
        whole: &TimelineFiles,
        former: Option<&TimelineName>,
    ) -> Result<()> {
        let Some(FileAt { path, bytes: stored }) = &whole.group else { return Ok(()) };
        let Some(live) = self.files.get(path)? else {
            return self.files.put(path, Some(stored.to_vec()));
        };
        let renamed = former.and_then(|former| st::rename_in_group(live, former, &whole.timeline));
        let live = renamed.as_deref().unwrap_or(live);
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

const NAME_IN_USE: &str = "a file of that name is here and has no snapshot";
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

/// Returns where a timeline's own file is stored, if it is what a snapshot has. Lorebooks are left out because others look at them, and groups because they keep their chats.
fn stored_file(
    reader: &Reader,
    snapshot: &Snapshot,
    files: &TimelineFiles,
) -> Result<Option<StoredFile>> {
    let manifest = read_manifest(reader, snapshot.tree)?;
    let path = &files.main.path;
    let record = manifest.file(manifest.main_role()).filter(|record| {
        record.path == path.as_str()
            && !path.is_lorebook()
            && !path.is_group()
            && record.is_of(&files.main.bytes)
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
