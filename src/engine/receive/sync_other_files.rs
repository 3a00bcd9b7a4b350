//! Plans the merge of lorebooks, cards and other files that both sides changed. Each file is merged
//! once, based on its own history. Writes nothing.

use std::collections::HashSet;

use super::plan::{BranchMove, Conflict, JoinedBook, Outcome, SetAsideTimeline, TimelinePlan};
use super::sides::{LocalState, read};
use super::sync_plan::{Diverged, Planner, named};
use crate::archive::merge::{Side, merge_books};
use crate::archive::{Kind, Snapshot, SnapshotId};
use crate::engine::Result;
use crate::engine::device::Device;
use crate::history::History;
use crate::st::{Category, LibraryPath, TimelineFiles, TimelineName, differ_by_use, lorebook_path};

impl<'s> Planner<'s> {
    pub(super) fn merge_other_file(
        &mut self,
        step: &mut TimelinePlan<'_>,
        diverged: Diverged<'_>,
    ) -> Result<()> {
        let Diverged { local, here, mut ours, mut theirs, base } = diverged;
        // Use the present file, which may differ from the snapshot in volatile fields. Do not use
        // the planned content, which may belong to another timeline of that name.
        if let (LocalState::Same, Some(now)) = (here, self.files.now(&ours.main.path)?) {
            ours.main.bytes = now.to_vec().into();
        }
        let base = match base {
            Some(base) => Some(base.main.bytes.to_vec()),
            None => self.book_in_common(&ours.main.path)?,
        };
        let was = base.as_deref();
        let (mine, other) = (ours.main.bytes.as_slice(), theirs.main.bytes.as_slice());
        let category = local.timeline.category();
        let is_theirs = mine == other || was == Some(mine);
        let is_ours = was == Some(other);
        let is_by_use = || differ_by_use(category, mine, other);
        let whole = if is_theirs || !is_ours && is_by_use() {
            theirs
        } else if is_ours {
            ours
        } else if category == Category::Lorebook {
            match JoinedBook::of(Some(mine), was, other) {
                JoinedBook::Theirs => theirs,
                JoinedBook::Ours => ours,
                JoinedBook::Both(both) => {
                    theirs.main.bytes = both.into();
                    theirs
                }
                // Without a common ancestor, these are two different lorebooks of one name.
                JoinedBook::Conflicts(_) if was.is_none() => {
                    let path = ours.main.path.clone();
                    let name = self.set_aside(step, ours, here)?;
                    self.namesakes.insert(path, name.clone());
                    if here == LocalState::Same {
                        self.files.put(&theirs.main.path, Some(theirs.main.bytes.to_vec()))?;
                    }
                    step.branch = BranchMove::There;
                    step.entry.outcome = Outcome::Apart(name);
                    return Ok(());
                }
                JoinedBook::Conflicts(places) => {
                    // Merge the changes that do not conflict. For a conflict, use the remote value.
                    if let Ok(merged) = merge_books(was, mine, other, Side::Theirs) {
                        theirs.main.bytes = merged.bytes.into();
                    }
                    let other = Some(self.set_aside(step, ours, here)?);
                    let book = theirs.main.path.clone();
                    step.entry.conflict =
                        Some(Conflict { book, places, other, set_aside_by: None });
                    // Do not record the local snapshot as a parent, so that the common ancestor
                    // stays the merge base when the user resolves the conflict.
                    return self.settle(step, None, theirs, here);
                }
            }
        } else if category == Category::Card {
            // Keep both versions of a character card as two characters. Of a group or of the
            // settings, only one version can exist: the newer version is used below, and the other
            // version stays in the history.
            let name = self.set_aside(step, ours, here)?;
            self.settle(step, Some(local.id), theirs, here)?;
            step.entry.outcome = Outcome::Apart(name);
            return Ok(());
        } else if local.time.seconds > step.entry.head.time.seconds {
            ours
        } else {
            theirs
        };
        self.settle(step, Some(local.id), whole, here)
    }

    /// Plans a snapshot of the files `whole`. Its parents are the remote snapshot and the local
    /// snapshot `merged`, if any.
    fn settle(
        &mut self,
        step: &mut TimelinePlan<'_>,
        merged: Option<SnapshotId>,
        whole: TimelineFiles,
        here: LocalState,
    ) -> Result<()> {
        let whole = named(whole, &step.entry.timeline);
        if here == LocalState::Same {
            self.plan_own_file(&whole)?;
        }
        step.branch = BranchMove::Made(Box::new(whole), merged);
        step.entry.outcome = Outcome::Merged;
        Ok(())
    }

    fn set_aside(
        &mut self,
        step: &mut TimelinePlan<'_>,
        ours: TimelineFiles,
        here: LocalState,
    ) -> Result<TimelineName> {
        let name = self.free_name(&step.entry.timeline)?;
        let from = step.local.cloned();
        let files = ours.called(name.clone());
        if here == LocalState::Same {
            self.files.put(&files.main.path, Some(files.main.bytes.to_vec()))?;
        }
        let source = self.device.sets_aside();
        step.aside = from.map(|from| SetAsideTimeline { files, from, source });
        Ok(name)
    }

    /// Adds the unresolved conflicts of earlier syncs on any device to `steps`. A conflict is
    /// unresolved while the lorebook that was set aside still exists and conflicts.
    pub(super) fn add_unsettled(&mut self, steps: &mut Vec<TimelinePlan<'s>>) -> Result<()> {
        let sides = self.sides;
        let local = sides.ours.heads().map(|(_, head)| (head, sides.ours, &sides.here));
        let is_new = |head: &Snapshot| sides.ours.head(&head.timeline).is_none();
        let remote = sides.theirs.heads().map(|(_, head)| (head, sides.theirs, &sides.there));
        let all = local.chain(remote.filter(|(head, ..)| is_new(head)));
        for (aside, history, reader) in all {
            if aside.timeline.category() != Category::Lorebook {
                continue;
            }
            let Some(device) = Device::of_set_aside_timeline(history, aside) else { continue };
            let (own, Some(from)) = history.own(aside) else { continue };
            // The user resolved the conflict by deleting the lorebook that was set aside.
            if own.iter().any(|own| own.kind == Kind::DELETED) {
                continue;
            }
            let own: HashSet<_> = history.own(from).0.iter().map(|own| own.id).collect();
            let is_of = |history: &History, head: &Snapshot| {
                history.own(head).0.iter().any(|snapshot| own.contains(&snapshot.id))
            };
            let at = steps.iter().position(|step| {
                is_of(sides.theirs, &step.entry.head)
                    || step.local.is_some_and(|local| is_of(sides.ours, local))
            });
            let Some(at) = at else { continue };
            let step = &steps[at];
            let tips = [Some(step.entry.head.id), step.local.map(|local| local.id)];
            let mut past = sides.ours.past(tips.into_iter().flatten());
            past.extend(sides.theirs.past(tips.into_iter().flatten()));
            let is_told = |step: &TimelinePlan<'_>| step.entry.set_aside() == Some(&aside.timeline);
            if steps.iter().any(is_told)
                || past.contains(&aside.id)
                || self.files.get(&aside.timeline.file())?.is_none()
            {
                continue;
            }
            let base = history.merge_base(from.id, &past);
            let base = base.map(|base| read(reader, base)).transpose()?;
            let other = read(reader, aside)?;
            let book = step.entry.timeline.file();
            let Some(now) = self.files.get(&book)? else { continue };
            let was = base.as_ref().map(|base| base.main.bytes.as_slice());
            let joined = JoinedBook::of(Some(&other.main.bytes), was, now);
            let JoinedBook::Conflicts(places) = joined else { continue };
            let set_aside_by = Some(device).filter(|device| device.id != self.device.id);
            let other = Some(aside.timeline.clone());
            let conflict = Some(Conflict { book, places, other, set_aside_by });
            let entry = &mut steps[at].entry;
            if entry.conflict.is_none() {
                entry.conflict = conflict;
            } else {
                let mut more = TimelinePlan::new(entry.head.clone(), None);
                (more.entry.timeline, more.entry.conflict) = (entry.timeline.clone(), conflict);
                steps.push(more);
            }
        }
        Ok(())
    }

    /// Binds local chats to the new names of their renamed lorebooks.
    pub(super) fn follow_namesakes(&mut self, steps: &mut Vec<TimelinePlan<'s>>) -> Result<()> {
        for (name, head) in self.sides.ours.heads().filter(|(name, _)| name.is_chat()) {
            let book = head.lorebook.as_deref().and_then(lorebook_path);
            let Some(now) = book.and_then(|book| self.namesakes.get(&book)).cloned() else {
                continue;
            };
            // A chat that the remote also has uses the remote's lorebook. A renamed chat was bound
            // when it was renamed.
            let is_renamed = steps.iter().any(|step| step.entry.former.as_ref() == Some(name));
            if is_renamed
                || self.sides.theirs.head(name).is_some()
                || self.sides.look(name)? != LocalState::Same
            {
                continue;
            }
            let whole = self.bound_to_namesake(read(&self.sides.here, head)?, &now)?;
            self.put_chat(&whole, None)?;
            let mut step = TimelinePlan::new(head.clone(), Some(head));
            step.branch = BranchMove::Made(Box::new(whole), None);
            steps.push(step);
        }
        Ok(())
    }

    pub(super) fn bound_to_namesake(
        &mut self,
        mut whole: TimelineFiles,
        now: &TimelineName,
    ) -> Result<TimelineFiles> {
        if let Some(bytes) = self.files.get(&now.file())? {
            whole.set_book(bytes.to_vec());
        }
        Ok(whole.bound_to(now.chat(), now.file()))
    }

    /// Returns the content of a lorebook in the latest chat snapshot that both sides have. It
    /// serves as the common ancestor if the timelines of the lorebook have no common snapshot.
    fn book_in_common(&self, path: &LibraryPath) -> Result<Option<Vec<u8>>> {
        let mut newest: Option<&Snapshot> = None;
        let mut found = None;
        for (name, head) in self.sides.theirs.heads().filter(|(name, _)| name.is_chat()) {
            let Some(mine) = self.sides.ours.head(name) else { continue };
            let past = self.sides.theirs.past([head.id]);
            if let Some(base) = self.sides.ours.merge_base(mine.id, &past)
                && newest.is_none_or(|newest| newest.time.seconds < base.time.seconds)
                && let Some(book) = read(&self.sides.here, base)?.book_at(path)
            {
                (newest, found) = (Some(base), Some(book.to_vec()));
            }
        }
        Ok(found)
    }
}
