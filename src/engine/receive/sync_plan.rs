//! Plans a sync: the result for each timeline of the remote. Writes nothing.
//!
//! The timeline that reached the remote first keeps its name; a different local one gets another. A
//! chat is taken from the side that changed it; if both did, both are kept, as two timelines.
//! Lorebooks are merged once, by their own histories (`sync_other_files`), and not with each chat
//! that uses them.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};

use super::counterparts;
use super::future_library::FutureLibrary;
use super::incoming::Incoming;
use super::plan::{
    Aside, BranchMove, Conflict, JoinedBook, Outcome, Plan, Policy, TimelinePlan, plan_tags,
};
use super::sides::{Here, Sides, read};
use crate::archive::merge::merge_chats;
use crate::archive::{Blake3, FileRecord, Snapshot, read_manifest};
use crate::engine::copies::chosen_refs;
use crate::engine::copies::erased::erased_refs;
use crate::engine::device::Device;
use crate::engine::files::FilePlan;
use crate::engine::free_names::{free_lorebook, free_timeline};
use crate::engine::{Result, Workspace, group_list};
use crate::progress::Monitor;
use crate::rules::Finding;
use crate::st::{self, Category, FileAt, LibraryPath, TimelineFiles, TimelineName};
use crate::store::Reader;

pub(super) fn plan<'s>(
    workspace: &Workspace,
    sides: &'s Sides<'s>,
    incoming: &Incoming,
    monitor: &mut dyn Monitor,
) -> Result<Plan<'s>> {
    let device = Device::of(sides.store)?;
    let mut planner = Planner {
        sides,
        device: device.clone(),
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
    let (mut pairs, displaced) = counterparts::pair(sides, &device, erased, heads, free_name)?;
    monitor.begin("comparing timelines", Some(pairs.len() as u64));
    planner.vacate(&pairs, &displaced)?;
    // The timelines that exist locally, then the latest.
    pairs.sort_by_key(|TimelinePlan { entry, local, .. }| {
        (local.is_none(), Reverse(entry.head.time.seconds), entry.timeline.clone())
    });
    // Lorebooks first: chats find them as they will be, and one that makes room may use one that gets
    // another name.
    let (chats, others): (Vec<_>, Vec<_>) =
        pairs.into_iter().partition(|pair| pair.entry.timeline.is_chat());
    let mut steps = Vec::new();
    for (is_chat, pairs) in [(false, others), (true, chats)] {
        for local in displaced.iter().filter(|local| local.timeline.is_chat() == is_chat) {
            steps.push(planner.displace(local)?);
        }
        for mut step in pairs {
            planner.decide(&mut step)?;
            steps.push(step);
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

pub(super) struct Planner<'s> {
    pub sides: &'s Sides<'s>,
    pub device: Device,
    day: String,
    pub files: FutureLibrary,
    findings: Vec<Finding>,
    /// Used names of timelines, in lower case.
    names: BTreeSet<String>,
    /// Planned names of lorebooks, in lower case.
    books: BTreeSet<String>,
    /// Remote lorebooks, by path and content, that got another name here.
    moved: HashMap<(LibraryPath, Blake3), String>,
    /// Local lorebooks that got another name because the remote uses theirs.
    pub namesakes: HashMap<LibraryPath, TimelineName>,
    /// Local names whose files move to another.
    vacated: BTreeSet<TimelineName>,
}

/// Both versions of a timeline that both sides changed.
pub(super) struct Diverged<'s> {
    pub local: &'s Snapshot,
    pub here: Here,
    pub ours: TimelineFiles,
    pub theirs: TimelineFiles,
    pub base: Option<TimelineFiles>,
}

/// Whether the remote state is written to the library, or only its branch moves.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Files {
    Written,
    Untouched,
}

impl<'s> Planner<'s> {
    /// Removes the files of timelines that get another name, before any file is written: one may
    /// take the name of another.
    fn vacate(&mut self, pairs: &[TimelinePlan<'_>], displaced: &[&Snapshot]) -> Result<()> {
        let renamed = pairs.iter().map(|pair| &pair.entry);
        let renamed = renamed.filter_map(|entry| Some((entry.former.as_ref()?, &entry.timeline)));
        let renamed: Vec<_> = renamed.collect();
        let displaced = displaced.iter().map(|local| &local.timeline);
        for former in renamed.iter().map(|(former, _)| *former).chain(displaced) {
            if self.sides.look(former)? == Here::Same {
                self.vacated.insert(former.clone());
            }
        }
        // One that cannot have its new name keeps its file, and with it the name that another may
        // want.
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

    fn decide(&mut self, step: &mut TimelinePlan<'s>) -> Result<()> {
        let Sides { ours, theirs, store, .. } = *self.sides;
        let remote = step.entry.head.id;
        let past = theirs.past([remote]);
        step.entry.snapshots = past.iter().filter(|id| ours.get(**id).is_none()).count();
        let Some(local) = step.local else { return self.add(step) };
        // Also if it was rewritten locally: snapshots were forgotten, or added to its past.
        let is_known =
            ours.leads_to(local.id, remote) || !store.find_former(&remote.to_string())?.is_empty();
        let is_renamed = step.entry.former.is_some();
        if is_known && !is_renamed {
            return Ok(());
        }
        let here = self.sides.look(&local.timeline)?;
        let is_blocked = is_renamed && !self.is_free(&step.entry.timeline)?;
        if let Some(why) = here.hinders().or(is_blocked.then_some(NAME_IN_USE)) {
            step.entry.outcome = Outcome::Left(why);
            return Ok(());
        }
        if is_known {
            return self.rename(step, local, here);
        }
        let reader = &self.sides.here;
        let mine = read(reader, local)?;
        let theirs = read(&self.sides.there, &step.entry.head)?;
        if step.is_stored_there {
            step.entry.outcome = if is_renamed { Outcome::Renamed } else { Outcome::Forward };
            return self.take_theirs(step, theirs, Some(&mine), here.files());
        }
        let base = ours.merge_base(local.id, &past).map(|base| read(reader, base)).transpose()?;
        let diverged = Diverged { local, here, ours: mine, theirs, base };
        if local.timeline.is_chat() {
            self.merge_chat(step, diverged)
        } else {
            self.merge_other_file(step, diverged)
        }
    }

    /// Gives a local timeline another name because a timeline of the remote has its name.
    fn displace(&mut self, local: &'s Snapshot) -> Result<TimelinePlan<'s>> {
        let mut step = TimelinePlan::new(local.clone(), Some(local));
        let here = self.sides.look(&local.timeline)?;
        if let Some(why) = here.hinders() {
            step.entry.outcome = Outcome::Left(why);
            return Ok(step);
        }
        step = step.called(self.free_name(&local.timeline)?);
        self.rename(&mut step, local, here)?;
        Ok(step)
    }

    fn rename(&mut self, step: &mut TimelinePlan<'_>, local: &Snapshot, here: Here) -> Result<()> {
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
            self.put_chat(&renamed, Some(&local.timeline))?;
        }
        step.entry.outcome = Outcome::Renamed;
        step.branch = BranchMove::Renamed(Box::new(renamed));
        Ok(())
    }

    pub(super) fn free_name(&mut self, name: &TimelineName) -> Result<TimelineName> {
        free_timeline(name, "other version", &self.day, self.sides.library, &mut self.names)
    }

    /// Returns whether no file has this name, or only one that gets another.
    fn is_free(&self, name: &TimelineName) -> Result<bool> {
        Ok(self.vacated.contains(name) || self.sides.look(name)? == Here::Absent)
    }

    fn add(&mut self, step: &mut TimelinePlan<'_>) -> Result<()> {
        let head = &step.entry.head;
        if !self.is_free(&head.timeline)? {
            step.entry.outcome = Outcome::Left(NAME_IN_USE);
            return Ok(());
        }
        step.entry.outcome = Outcome::New;
        let theirs = read(&self.sides.there, head)?;
        let is_kept = self.sides.include.has(head.timeline.category());
        let is_written = self.sides.library.is_some() && is_kept;
        let files = if is_written { Files::Written } else { Files::Untouched };
        self.take_theirs(step, theirs, None, files)
    }

    /// Takes the remote state. A chat brings its lorebook if none of that name is here. A lorebook
    /// with a timeline there comes with that; otherwise both are merged, or its own gets another
    /// name.
    fn take_theirs(
        &mut self,
        step: &mut TimelinePlan<'_>,
        theirs: TimelineFiles,
        base: Option<&TimelineFiles>,
        files: Files,
    ) -> Result<()> {
        let mut made = theirs.timeline != step.entry.timeline;
        let mut theirs = named(theirs, &step.entry.timeline);
        if files == Files::Written {
            if let Some(book) = theirs.book().filter(|_| theirs.timeline.is_chat()) {
                let (path, bytes) = (book.path.clone(), book.bytes.to_vec());
                let before = base.and_then(|base| base.book_at(&path));
                let own = TimelineName::of_file(&path);
                let is_decided = own.is_some_and(|own| self.sides.theirs.head(&own).is_some());
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
                        let other = self.user_of(&path, &theirs.timeline);
                        theirs = self.with_own_book(theirs)?;
                        // A chat whose metadata cannot be changed keeps the name, and the book here
                        // stays.
                        if let Some(own) = theirs.book().filter(|own| *own.path != path) {
                            self.files.put(own.path, Some(own.bytes.to_vec()))?;
                            made = true;
                        }
                        step.entry.conflict =
                            Some(Conflict { book: path, places, other, set_aside_by: None });
                    }
                }
            }
            let stored = stored_file(&self.sides.there, &step.entry.head, &theirs)?;
            let is_put = match stored.filter(|_| !made) {
                Some(stored) => self.files.put_stored(stored)?,
                None => false,
            };
            if !is_put {
                self.put_main(&theirs)?;
            }
            self.list_in_group(&theirs, step.entry.former.as_ref())?;
        }
        step.branch =
            if made { BranchMove::Made(Box::new(theirs), None) } else { BranchMove::There };
        Ok(())
    }

    fn merge_chat(&mut self, step: &mut TimelinePlan<'_>, diverged: Diverged<'_>) -> Result<()> {
        let Diverged { local, here, ours, theirs, base } = &diverged;
        let was = base.as_ref().map(TimelineFiles::split);
        let Some(merged) = merge_chats(was.as_ref(), &ours.split(), &theirs.split()) else {
            return self.keep_both(step, diverged);
        };
        // The remote's side is kept where nothing speaks for the local one: its snapshot need not be
        // written again.
        let is_ours = *ours.main.bytes == *merged && *theirs.main.bytes != *merged;
        let (chat, other) = if is_ours { (ours, theirs) } else { (theirs, ours) };
        // Without a header, the metadata of a chat is in the group's file, which goes with it.
        let metadata = |whole: &TimelineFiles| whole.own_group_metadata();
        let was = base.as_ref().and_then(metadata);
        let mut whole = chat.clone();
        let changed = metadata(other) != metadata(chat) && metadata(other) != was;
        if changed && (metadata(chat) != was || !whole.take_group_metadata(other)) {
            return self.keep_both(step, diverged);
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
        let mut whole = named(whole, &step.entry.timeline);
        if *here == Here::Same {
            self.bring_book(&mut whole)?;
            self.put_chat(&whole, step.entry.former.as_ref())?;
        }
        step.entry.outcome = Outcome::Merged;
        step.branch = BranchMove::Made(Box::new(whole), Some(local.id));
        Ok(())
    }

    /// Keeps both: the remote state under the name, the local one under another.
    fn keep_both(&mut self, step: &mut TimelinePlan<'_>, diverged: Diverged<'_>) -> Result<()> {
        let Diverged { local, here, ours, theirs, base } = diverged;
        let name = self.free_name(&step.entry.timeline)?;
        self.take_theirs(step, theirs, base.as_ref(), here.files())?;
        let mut aside = ours.called(name.clone());
        if here == Here::Same {
            self.bring_book(&mut aside)?;
            self.put_chat(&aside, None)?;
        }
        if let Some(conflict) = &mut step.entry.conflict {
            conflict.other = Some(name.clone());
        }
        step.entry.outcome = Outcome::Apart(name);
        let source = self.device.sets_aside();
        step.aside = Some(Aside { from: local.clone(), files: aside, source });
        Ok(())
    }

    /// Gives a state the lorebook that will be in its file, or adds its own if there is none.
    fn bring_book(&mut self, whole: &mut TimelineFiles) -> Result<()> {
        let Some(book) = whole.book() else { return Ok(()) };
        let (path, own) = (book.path.clone(), book.bytes.to_vec());
        match self.files.get(&path)?.map(<[u8]>::to_vec) {
            Some(now) if now != own => whole.set_book(now),
            Some(_) => {}
            None => self.files.put(&path, Some(own))?,
        }
        Ok(())
    }

    /// Gives a chat a lorebook under another name. Chats that shared one go on sharing it.
    fn with_own_book(&mut self, whole: TimelineFiles) -> Result<TimelineFiles> {
        let (Some(library), Some(book), true) =
            (self.sides.library, whole.book(), whole.can_be_bound())
        else {
            return Ok(whole);
        };
        let chat = whole.timeline.chat();
        let key = (book.path.clone(), Blake3::of(book.bytes));
        let name = match self.moved.get(&key) {
            Some(name) => name.clone(),
            None => free_lorebook(library, book.name, &[chat], chat, &self.books)?,
        };
        let Some(path) = st::lorebook_path(&name) else { return Ok(whole) };
        self.books.insert(name.to_lowercase());
        self.moved.insert(key, name.clone());
        Ok(whole.bound_to(&name, path))
    }

    fn user_of(&self, book: &LibraryPath, except: &TimelineName) -> Option<TimelineName> {
        let users = st::users_of_lorebook(self.sides.library?, book).unwrap_or_default();
        users.into_iter().find(|user| user != except)
    }

    pub(super) fn put_chat(
        &mut self,
        files: &TimelineFiles,
        former: Option<&TimelineName>,
    ) -> Result<()> {
        self.files.put(&files.main.path, Some(files.main.bytes.to_vec()))?;
        self.list_in_group(files, former)
    }

    /// Plans a timeline's own file. A group keeps the chats that it has locally.
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

    /// Lists a chat in its group's file, in place of its former name. SillyTavern does not show a
    /// chat that its group does not list.
    fn list_in_group(
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

impl Here {
    /// Files are written only over the content of the latest snapshot.
    fn files(self) -> Files {
        if self == Self::Same { Files::Written } else { Files::Untouched }
    }
}

const NAME_IN_USE: &str = "a file of that name is here and has no snapshot";

pub(super) fn named(files: TimelineFiles, name: &TimelineName) -> TimelineFiles {
    if files.timeline == *name { files } else { files.called(name.clone()) }
}

/// Plans to write a timeline's own file from the store, if the snapshot has it. Not lorebooks, which
/// others look at, nor groups, which keep their chats.
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
