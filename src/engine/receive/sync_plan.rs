//! Plans a sync: the result for each timeline of the remote. Writes nothing.
//!
//! With a folder or git server, the timeline that reached the remote first keeps its name, and a
//! different local timeline of that name is renamed. With a remote on plain storage, the timeline
//! that changed first keeps its name, because several devices may decide at the same time. If only
//! one side changed a chat, the changed version is used. If both sides changed a chat and the
//! changes cannot be merged, both versions are kept as two timelines.
//! Lorebooks are merged once, based on their own histories (`sync_other_files`), and not with each
//! chat that uses them.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};

use super::counterparts::{self, Pairs};
use super::future_library::FutureLibrary;
use super::incoming::Incoming;
use super::plan::{
    BranchMove, Conflict, JoinedBook, Outcome, Plan, Policy, SetAsideTimeline, TimelinePlan,
    plan_tags,
};
use super::sides::{ChangedFirst, LocalState, Sides, changed_first, read};
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
    policy: Policy,
    monitor: &mut dyn Monitor,
) -> Result<Plan<'s>> {
    let device = Device::of(sides.store)?;
    let mut planner = Planner {
        sides,
        policy,
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
    let Pairs { timelines: mut pairs, displaced, postponed } =
        counterparts::pair(sides, policy, &device, erased, heads, free_name)?;
    monitor.begin("comparing timelines", Some(pairs.len() as u64));
    planner.vacate(&pairs, &displaced)?;
    // First the timelines that exist locally, then the others; each from the latest to the oldest.
    pairs.sort_by_key(|TimelinePlan { entry, local, .. }| {
        (local.is_none(), Reverse(entry.head.time.seconds), entry.timeline.clone())
    });
    // Lorebooks first, because the plans of chats depend on the content and names of lorebooks.
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
        tags: plan_tags(sides.ours, sides.theirs, policy),
        files: planner.files,
        findings: planner.findings,
        postponed,
        erasures: incoming.withheld.erasures.clone(),
    })
}

pub(super) struct Planner<'s> {
    pub sides: &'s Sides<'s>,
    policy: Policy,
    pub device: Device,
    day: String,
    pub files: FutureLibrary,
    findings: Vec<Finding>,
    /// Used names of timelines, in lower case.
    names: BTreeSet<String>,
    /// Planned names of lorebooks, in lower case.
    books: BTreeSet<String>,
    /// The new names of remote lorebooks that are renamed in this library, by their path and
    /// content on the remote.
    moved: HashMap<(LibraryPath, Blake3), String>,
    /// The new names of local lorebooks that this sync renames, by their former path.
    pub namesakes: HashMap<LibraryPath, TimelineName>,
    /// The former names of local timelines whose files are renamed. These names become free.
    vacated: BTreeSet<TimelineName>,
}

/// Both versions of a timeline that both sides changed.
pub(super) struct Diverged<'s> {
    pub local: &'s Snapshot,
    pub here: LocalState,
    pub ours: TimelineFiles,
    pub theirs: TimelineFiles,
    pub base: Option<TimelineFiles>,
}

/// Tells whether the remote state is written to the library, or only the timeline's branch moves.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Files {
    Written,
    Untouched,
}

impl<'s> Planner<'s> {
    /// Plans the removal of the files of renamed timelines under their former names. This comes
    /// before all other file plans, because a timeline may get the former name of another.
    fn vacate(&mut self, pairs: &[TimelinePlan<'_>], displaced: &[&Snapshot]) -> Result<()> {
        let renamed = pairs.iter().map(|pair| &pair.entry);
        let renamed = renamed.filter_map(|entry| Some((entry.former.as_ref()?, &entry.timeline)));
        let renamed: Vec<_> = renamed.collect();
        let displaced = displaced.iter().map(|local| &local.timeline);
        for former in renamed.iter().map(|(former, _)| *former).chain(displaced) {
            if self.sides.look(former)? == LocalState::Same {
                self.vacated.insert(former.clone());
            }
        }
        // A timeline whose new name is in use keeps its file, which may block another rename.
        // Repeat until nothing changes.
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
        // The remote snapshot is also known if this store has rewritten it under another id.
        let is_known =
            ours.reaches(local.id, remote) || !store.find_former(&remote.to_string())?.is_empty();
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

    /// Renames a local timeline because a different timeline of the remote has its name.
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

    fn rename(
        &mut self,
        step: &mut TimelinePlan<'_>,
        local: &Snapshot,
        here: LocalState,
    ) -> Result<()> {
        let name = step.entry.timeline.clone();
        if local.timeline.category() == Category::Lorebook {
            self.namesakes.insert(local.timeline.file(), name.clone());
        }
        let mut renamed = read(&self.sides.here, local)?.called(name);
        // The lorebook of the chat may have been renamed, too.
        let book =
            renamed.book().filter(|_| local.timeline.is_chat()).map(|book| book.path.clone());
        if let Some(now) = book.and_then(|book| self.namesakes.get(&book)).cloned() {
            renamed = self.bound_to_namesake(renamed, &now)?;
        }
        if here == LocalState::Same {
            self.put_chat(&renamed, Some(&local.timeline))?;
        }
        step.entry.outcome = Outcome::Renamed;
        step.branch = BranchMove::Renamed(Box::new(renamed));
        Ok(())
    }

    pub(super) fn free_name(&mut self, name: &TimelineName) -> Result<TimelineName> {
        free_timeline(name, "other version", &self.day, self.sides.library, &mut self.names)
    }

    /// Returns whether the library has no file of this name, or a file that this sync renames.
    fn is_free(&self, name: &TimelineName) -> Result<bool> {
        Ok(self.vacated.contains(name) || self.sides.look(name)? == LocalState::Absent)
    }

    fn add(&mut self, step: &mut TimelinePlan<'_>) -> Result<()> {
        let head = &step.entry.head;
        if !self.is_free(&step.entry.timeline)? {
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

    /// Plans to use the remote version of a timeline. The lorebook of a chat is added if the
    /// library has no lorebook of that name. If the lorebook has its own timeline on the remote, it
    /// is planned with that timeline. Otherwise the local and the remote lorebook are merged; if
    /// they conflict, the remote lorebook gets another name.
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
                        // A chat whose metadata cannot be changed stays bound to the local
                        // lorebook.
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
                self.plan_own_file(&theirs)?;
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
        // Start from the side that equals the merged chat. If both or neither do, start from the
        // remote side, whose snapshot already exists.
        let is_ours = *ours.main.bytes == *merged && *theirs.main.bytes != *merged;
        let (chat, other) = if is_ours { (ours, theirs) } else { (theirs, ours) };
        // A chat without a header has its metadata in the group's file, so this metadata is merged,
        // too.
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
        if *here == LocalState::Same {
            self.plan_book(&mut whole)?;
            self.put_chat(&whole, step.entry.former.as_ref())?;
        }
        step.entry.outcome = Outcome::Merged;
        step.branch = BranchMove::Made(Box::new(whole), Some(local.id));
        Ok(())
    }

    /// Keeps both versions of a timeline: the remote version under the timeline's name, and the
    /// local version under a new name.
    fn keep_both(&mut self, step: &mut TimelinePlan<'_>, diverged: Diverged<'_>) -> Result<()> {
        let Diverged { local, here, ours, theirs, base } = diverged;
        let remote = &step.entry.head;
        if self.policy == Policy::JoinByTime
            && changed_first(self.sides, local, remote) == ChangedFirst::Local
        {
            return self.keep_both_under_local_name(step, local, here, theirs);
        }
        let name = self.free_name(&step.entry.timeline)?;
        self.take_theirs(step, theirs, base.as_ref(), here.files())?;
        let mut aside = ours.called(name.clone());
        if here == LocalState::Same {
            self.plan_book(&mut aside)?;
            self.put_chat(&aside, None)?;
        }
        if let Some(conflict) = &mut step.entry.conflict {
            conflict.other = Some(name.clone());
        }
        step.entry.outcome = Outcome::Apart(name);
        let source = self.device.sets_aside();
        step.aside = Some(SetAsideTimeline { files: aside, from: local.clone(), source });
        Ok(())
    }

    /// Keeps both versions of a timeline: the local version under the timeline's name, and the
    /// remote version under a new name.
    fn keep_both_under_local_name(
        &mut self,
        step: &mut TimelinePlan<'_>,
        local: &Snapshot,
        here: LocalState,
        theirs: TimelineFiles,
    ) -> Result<()> {
        let name = self.free_name(&step.entry.timeline)?;
        if step.entry.former.is_some() {
            self.rename(step, local, here)?;
        }
        let mut aside = theirs.called(name.clone());
        if here == LocalState::Same {
            self.plan_book(&mut aside)?;
            self.put_chat(&aside, None)?;
        }
        let source = self.device.sets_aside();
        step.aside = Some(SetAsideTimeline { files: aside, from: step.entry.head.clone(), source });
        step.entry.outcome = Outcome::Beside(name);
        Ok(())
    }

    /// Sets the lorebook in `whole` to its planned content. If no lorebook is planned under this
    /// name, plans to write the one in `whole`.
    fn plan_book(&mut self, whole: &mut TimelineFiles) -> Result<()> {
        let Some(book) = whole.book() else { return Ok(()) };
        let (path, own) = (book.path.clone(), book.bytes.to_vec());
        match self.files.get(&path)?.map(<[u8]>::to_vec) {
            Some(now) if now != own => whole.set_book(now),
            Some(_) => {}
            None => self.files.put(&path, Some(own))?,
        }
        Ok(())
    }

    /// Binds a chat to a copy of its lorebook under an unused name. Chats that shared the lorebook
    /// share the copy. A chat whose metadata cannot be changed is returned unchanged.
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

    /// Plans to write a timeline's own file. The file of a group keeps its local list of chats.
    pub(super) fn plan_own_file(&mut self, files: &TimelineFiles) -> Result<()> {
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

    /// Plans to list a chat in its group's file, in place of the chat's former name. SillyTavern
    /// does not show a chat that its group does not list.
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

impl LocalState {
    /// Returns whether the files may be written: only if the present files equal the latest
    /// snapshot.
    fn files(self) -> Files {
        if self == Self::Same { Files::Written } else { Files::Untouched }
    }
}

const NAME_IN_USE: &str = "a file of that name exists on this device and has no snapshot";

pub(super) fn named(files: TimelineFiles, name: &TimelineName) -> TimelineFiles {
    if files.timeline == *name { files } else { files.called(name.clone()) }
}

/// Returns the plan to write a timeline's own file from the store; `None` if the snapshot does not
/// contain these bytes. Also returns `None` for lorebooks, because other plans read their content,
/// and for groups, because they keep their local list of chats.
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
