//! Plans a sync: what happens to each timeline of the remote. Nothing is written here.
//!
//! The timeline that reached the remote first keeps its name; a different local one gets another. A chat is taken from the side that changed it; if both did, both are kept, as two timelines. Lorebooks are
//! merged once, by their own histories (`others`), and not with each chat that uses them.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap, HashSet};

use super::counterparts::{self, Counterpart, Counterparts};
use super::future_library::FutureLibrary;
use super::incoming::Incoming;
use super::joined_book::JoinedBook;
use super::outcome::{Conflict, Outcome};
use super::plan::{Aside, BranchMove, Plan, Policy, TimelinePlan};
use super::sides::{Here, Sides, read};
use super::tags::plan_tags;
use crate::archive::merge::merge_chats;
use crate::archive::{Blake3, FileRecord, Snapshot, SnapshotId, read_manifest};
use crate::engine::copies::chosen_refs;
use crate::engine::copies::erased::erased_refs;
use crate::engine::device::Device;
use crate::engine::files::FilePlan;
use crate::engine::free_names::free_timeline;
use crate::engine::{Result, Workspace, group_list};
use crate::progress::Monitor;
use crate::rules::Finding;
use crate::st::{self, Category, FileAt, LibraryPath, TimelineFiles, TimelineName};
use crate::store::Reader;

/// Plans what happens to all that the remote has.
pub(super) fn plan(
    workspace: &Workspace,
    sides: &Sides<'_>,
    incoming: &Incoming,
    monitor: &mut dyn Monitor,
) -> Result<Plan> {
    let device = &Device::of(sides.store)?;
    let mut planner = Planner {
        sides,
        device,
        day: workspace.day(),
        files: FutureLibrary::new(sides.library, incoming.store.reader()),
        findings: Vec::new(),
        names: sides.names(),
        books: BTreeSet::new(),
        moved: HashMap::new(),
        namesakes: HashMap::new(),
        vacated: BTreeSet::new(),
    };
    let refs = chosen_refs::ours(sides.store)?;
    let erased = erased_refs(sides.store, sides.ours, &refs, &incoming.withheld.erasures)?;
    let erased = erased.into_iter().filter(|erased| !erased.is_fork);
    let erased = erased.map(|erased| erased.head.timeline).collect();
    let heads = sides.theirs.without_renamed(&incoming.heads);
    let free_name = |name: &TimelineName| planner.free_name(name);
    let Counterparts { mut pairs, displaced } =
        counterparts::pair(sides, device, erased, heads, free_name)?;
    monitor.begin("comparing timelines", Some(pairs.len() as u64));
    planner.vacate(&pairs, &displaced)?;
    // The timelines that exist locally, then the latest.
    pairs.sort_by_key(|Counterpart { remote, local, name, .. }| {
        (local.is_none(), Reverse(remote.time.seconds), name.clone())
    });
    // Lorebooks first: chats find them as they will be, and one that makes room may use one that gets another name.
    let mut steps = Vec::new();
    for is_chat in [false, true] {
        for local in displaced.iter().filter(|local| local.timeline.is_chat() == is_chat) {
            steps.push(planner.displace(local)?);
        }
        for pair in pairs.iter().filter(|pair| pair.name.is_chat() == is_chat) {
            steps.push(planner.step(pair)?);
            monitor.advance(1);
        }
    }
    planner.follow_namesakes(&mut steps)?;
    planner.add_unsettled(&mut steps)?;
    Ok(Plan {
        timelines: steps,
        tags: plan_tags(sides.ours, sides.theirs, Policy::Join),
        files: planner.files,
        findings: planner.findings,
        erasures: incoming.withheld.erasures.clone(),
    })
}

pub(super) struct Planner<'a> {
    pub sides: &'a Sides<'a>,
    pub device: &'a Device,
    pub day: String,
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
}

/// Whether the files of a timeline that comes are written, or only its branch moves.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Files {
    Written,
    Untouched,
}

impl Files {
    /// They are written where the library has what the latest snapshot has.
    fn over(here: Here) -> Self {
        if here == Here::Same { Self::Written } else { Self::Untouched }
    }
}

impl Planner<'_> {
    /// Removes the files of timelines that get another name, before any file is written: one may take the name of another.
    fn vacate(&mut self, pairs: &[Counterpart<'_>], displaced: &[&Snapshot]) -> Result<()> {
        let renamed = pairs.iter().filter_map(|pair| Some((pair.renamed_from()?, &pair.name)));
        let renamed: Vec<_> = renamed.collect();
        let displaced = displaced.iter().map(|local| &local.timeline);
        for former in renamed.iter().map(|(former, _)| *former).chain(displaced) {
            if self.sides.look(former)? == Here::Same {
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
    fn step(&mut self, pair: &Counterpart<'_>) -> Result<TimelinePlan> {
        let all = self.sides.theirs.past([pair.remote.id]);
        let snapshots = all.iter().filter(|id| self.sides.ours.get(**id).is_none()).count();
        let mut step = TimelinePlan::new(pair.name.clone(), pair.remote.clone(), pair.local);
        step.entry.snapshots = snapshots;
        let Some(local) = pair.local else {
            self.new_one(&mut step)?;
            return Ok(step);
        };
        let is_known = self.sides.ours.leads_to(local.id, pair.remote.id)
            // It was rewritten locally: snapshots were forgotten, or added to its past.
            || !self.sides.store.find_former(&pair.remote.id.to_string())?.is_empty();
        if is_known && pair.renamed_from().is_none() {
            return Ok(step);
        }
        let here = self.sides.look(&local.timeline)?;
        let is_free = self.is_free(&pair.name)? || pair.renamed_from().is_none();
        if let Some(why) = here.hinders().or((!is_free).then_some(NAME_IN_USE)) {
            step.entry.outcome = Outcome::Left(why);
            return Ok(step);
        }
        if is_known {
            self.rename(&mut step, local, here)?;
        } else if pair.is_stored_there {
            self.forward(&mut step, local, here)?;
        } else if local.timeline.is_chat() {
            self.diverged(&mut step, local, &all, here)?;
        } else {
            self.diverged_other(&mut step, local, &all, here)?;
        }
        Ok(step)
    }

    /// Gives a local timeline another name because a timeline of the remote has its name.
    fn displace(&mut self, local: &Snapshot) -> Result<TimelinePlan> {
        let here = self.sides.look(&local.timeline)?;
        if let Some(why) = here.hinders() {
            let mut step = TimelinePlan::new(local.timeline.clone(), local.clone(), Some(local));
            step.entry.outcome = Outcome::Left(why);
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
        let mut renamed = read(&self.sides.here, local)?.called(name);
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
        step.entry.outcome = Outcome::Renamed;
        step.branch = BranchMove::Renamed(Box::new(renamed));
        Ok(())
    }

    /// Returns an unused name for a timeline that has to make room for another.
    pub(super) fn free_name(&mut self, name: &TimelineName) -> Result<TimelineName> {
        free_timeline(name, "other version", &self.day, self.sides.library, &mut self.names)
    }

    /// Returns whether no file has this name, or only one that gets another.
    fn is_free(&self, name: &TimelineName) -> Result<bool> {
        Ok(self.vacated.contains(name) || self.sides.look(name)? == Here::Absent)
    }

    fn new_one(&mut self, step: &mut TimelinePlan) -> Result<()> {
        let head = step.entry.head.clone();
        if !self.is_free(&head.timeline)? {
            step.entry.outcome = Outcome::Left(NAME_IN_USE);
            return Ok(());
        }
        step.entry.outcome = Outcome::New;
        let theirs = read(&self.sides.there, &head)?;
        let is_kept = self.sides.include.has(head.timeline.category());
        let is_written = self.sides.library.is_some() && is_kept;
        let files = if is_written { Files::Written } else { Files::Untouched };
        self.lay(step, theirs, None, files)
    }

    fn forward(&mut self, step: &mut TimelinePlan, local: &Snapshot, here: Here) -> Result<()> {
        step.entry.outcome = match step.entry.former {
            Some(_) => Outcome::Renamed,
            None => Outcome::Forward,
        };
        let theirs = read(&self.sides.there, &step.entry.head)?;
        let base = read(&self.sides.here, local)?;
        self.lay(step, theirs, Some(&base), Files::over(here))
    }

    /// The other side's state comes here. A chat brings its lorebook where there is none of that name. One that has a history there comes with that, and else they become one, or its gets a name of its own.
    fn lay(
        &mut self,
        step: &mut TimelinePlan,
        mut theirs: TimelineFiles,
        base: Option<&TimelineFiles>,
        files: Files,
    ) -> Result<()> {
        let name = step.entry.timeline.clone();
        let mut made = theirs.timeline != name;
        if made {
            theirs = theirs.called(name);
        }
        if files == Files::Untouched {
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
        let stored = stored_file(&self.sides.there, &step.entry.head, &theirs)?.filter(|_| !made);
        let is_laid = match stored {
            Some(stored) => self.files.put_stored(stored)?,
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
        let ours = read(&self.sides.here, local)?;
        let theirs = read(&self.sides.there, &step.entry.head)?;
        let base = match self.sides.ours.merge_base(local.id, all) {
            Some(base) => Some(read(&self.sides.here, base)?),
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
        step.entry.outcome = Outcome::Merged;
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
        let files = Files::over(here);
        let name = self.free_name(&step.entry.timeline.clone())?;
        self.lay(step, theirs, base.as_ref(), files)?;
        let mut aside = ours.called(name.clone());
        if files == Files::Written {
            self.bring_book(&mut aside)?;
            self.files.put(&aside.main.path, Some(aside.main.bytes.to_vec()))?;
            self.list_in_group(&aside, None)?;
        }
        if let Some(conflict) = &mut step.entry.conflict {
            conflict.other = Some(name.clone());
        }
        step.entry.outcome = Outcome::Apart(name);
        let source = self.device.sets_aside();
        step.aside = Some(Aside { from: local.clone(), files: aside, source });
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

/// Plans to write a timeline's own file from the store, if it is what a snapshot has. Lorebooks are left out because others look at them, and groups because they keep their chats.
fn stored_file(
    reader: &Reader,
    snapshot: &Snapshot,
    files: &TimelineFiles,
) -> Result<Option<FilePlan<'static>>> {
    let manifest = read_manifest(reader, snapshot.tree)?;
    let path = &files.main.path;
    let record = manifest.file(manifest.main_role()).filter(|record| {
        record.path == path.as_str()
            && !path.is_lorebook()
            && !path.is_group()
            && record.is_of(&files.main.bytes)
    });
    let stored =
        |record: &FileRecord| FilePlan::stored(path, snapshot.id, record.bytes, record.blake3);
    Ok(record.map(stored))
}
