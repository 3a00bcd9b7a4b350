//! What becomes of lorebooks, cards and other files that both sides changed: decided once each, by their own histories. Nothing is written here.

use std::collections::HashSet;

use super::joined_book::JoinedBook;
use super::outcome::{Conflict, Outcome};
use super::plan::{Aside, BranchMove, TimelinePlan};
use super::sides::{Here, read};
use super::sync_plan::Planner;
use crate::archive::merge::{Side, merge_books};
use crate::archive::{Kind, Snapshot, SnapshotId};
use crate::engine::Result;
use crate::engine::device::Device;
use crate::history::History;
use crate::st::{
    Category, FileBytes, LibraryPath, TimelineFiles, TimelineName, differ_by_use, lorebook_path,
};

impl Planner<'_> {
    /// Both sides went on with something that is no chat.
    pub(super) fn diverged_other(
        &mut self,
        step: &mut TimelinePlan,
        local: &Snapshot,
        all: &HashSet<SnapshotId>,
        here: Here,
    ) -> Result<()> {
        let mut ours = read(&self.sides.here, local)?;
        let mut theirs = read(&self.sides.there, &step.entry.head)?;
        // A file that changed only by use may differ from the snapshot. Another timeline may have been given its name already.
        if let (Here::Same, Some(now)) = (here, self.files.now(&ours.main.path)?) {
            ours.main.bytes = now.to_vec().into();
        }
        let base = self.base_of(local, all, &ours.main.path)?;
        let was = base.as_deref();
        let (mine, other) = (ours.main.bytes.as_slice(), theirs.main.bytes.as_slice());
        let category = local.timeline.category();
        let whole = if mine == other || was == Some(mine) {
            theirs
        } else if was == Some(other) {
            ours
        } else if differ_by_use(category, mine, other) {
            theirs
        } else if category == Category::Lorebook {
            match JoinedBook::of(Some(mine), was, other) {
                JoinedBook::Theirs => theirs,
                JoinedBook::Ours => ours,
                JoinedBook::Both(both) => {
                    theirs.main.bytes = both.into();
                    theirs
                }
                // They have nothing but the name in common, and are two books.
                JoinedBook::Conflicts(_) if was.is_none() => {
                    let path = ours.main.path.clone();
                    let name = self.set_aside(step, local, ours, here)?;
                    self.namesakes.insert(path, name.clone());
                    if here == Here::Same {
                        self.files.put(&theirs.main.path, Some(theirs.main.bytes.to_vec()))?;
                    }
                    step.branch = BranchMove::There;
                    step.entry.outcome = Outcome::Apart(name);
                    return Ok(());
                }
                JoinedBook::Conflicts(places) => {
                    // All that does not stand against anything is in the book; where something does, it is as it came to the remote first.
                    if let Ok(merged) = merge_books(was, mine, other, Side::Theirs) {
                        theirs.main.bytes = merged.bytes.into();
                    }
                    let name = self.set_aside(step, local, ours, here)?;
                    let book = theirs.main.path.clone();
                    step.entry.conflict =
                        Some(Conflict { book, places, other: Some(name), set_aside_by: None });
                    // What stands against something is not merged: whoever settles it begins where both parted.
                    return self.settle(step, None, theirs, here);
                }
            }
        } else if category == Category::Card {
            // Two characters can stand beside each other; of a group or the settings there is one, and the newer is it. The other stays in the history.
            let name = self.set_aside(step, local, ours, here)?;
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

    /// Lets both sides go on with this, after the remote's snapshot and the local one that it is merged with.
    fn settle(
        &mut self,
        step: &mut TimelinePlan,
        merged: Option<SnapshotId>,
        whole: TimelineFiles,
        here: Here,
    ) -> Result<()> {
        let whole = if whole.timeline == step.entry.timeline {
            whole
        } else {
            whole.called(step.entry.timeline.clone())
        };
        if here == Here::Same {
            self.put_main(&whole)?;
        }
        step.branch = BranchMove::Made(Box::new(whole), merged);
        step.entry.outcome = Outcome::Merged;
        Ok(())
    }

    /// What is here goes on under another name, and nothing refers to it.
    fn set_aside(
        &mut self,
        step: &mut TimelinePlan,
        local: &Snapshot,
        ours: TimelineFiles,
        here: Here,
    ) -> Result<TimelineName> {
        let name = self.free_name(&step.entry.timeline.clone())?;
        let aside = ours.called(name.clone());
        if here == Here::Same {
            self.files.put(&aside.main.path, Some(aside.main.bytes.to_vec()))?;
        }
        let source = self.device.sets_aside();
        step.aside = Some(Aside { from: local.clone(), files: aside, source });
        Ok(name)
    }

    /// Adds the conflicts of earlier syncs that are not settled yet, on whichever device they arose.
    pub(super) fn add_unsettled(&mut self, steps: &mut Vec<TimelinePlan>) -> Result<()> {
        let local = self.sides.ours.heads().map(|(_, head)| (head, true));
        let is_new = |head: &Snapshot| self.sides.ours.head(&head.timeline).is_none();
        let remote = self.sides.theirs.heads().map(|(_, head)| (head, false));
        let remote = remote.filter(|(head, _)| is_new(head));
        let lorebooks: Vec<_> = local
            .chain(remote)
            .filter(|(head, _)| head.timeline.category() == Category::Lorebook)
            .collect();
        for (aside, is_local) in lorebooks {
            let history = if is_local { self.sides.ours } else { self.sides.theirs };
            let Some(device) = Device::that_set_aside(history, aside) else { continue };
            let (own, Some(from)) = history.own(aside) else { continue };
            // Whoever deleted it has settled the conflict.
            if own.iter().any(|own| own.kind == Kind::DELETED) {
                continue;
            }
            let own: HashSet<_> = history.own(from).0.iter().map(|own| own.id).collect();
            let is_of = |history: &History, head: &Snapshot| {
                history.own(head).0.iter().any(|snapshot| own.contains(&snapshot.id))
            };
            let at = steps.iter().position(|step| {
                is_of(self.sides.theirs, &step.entry.head)
                    || step.local.as_ref().is_some_and(|local| is_of(self.sides.ours, local))
            });
            let Some(step) = at.map(|at| &steps[at]) else { continue };
            let tips = [Some(step.entry.head.id), step.local.as_ref().map(|local| local.id)];
            let mut past = self.sides.ours.past(tips.into_iter().flatten());
            past.extend(self.sides.theirs.past(tips.into_iter().flatten()));
            let is_told = |step: &TimelinePlan| {
                let other = step.entry.conflict.as_ref().and_then(|it| it.other.as_ref());
                other == Some(&aside.timeline)
            };
            if steps.iter().any(is_told)
                || past.contains(&aside.id)
                || self.files.get(&aside.timeline.file())?.is_none()
            {
                continue;
            }
            let reader = if is_local { &self.sides.here } else { &self.sides.there };
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
            let Some(step) = at.and_then(|at| steps.get_mut(at)) else { continue };
            if step.entry.conflict.is_none() {
                step.entry.conflict = conflict;
            } else {
                let entry = &step.entry;
                let mut more = TimelinePlan::new(entry.timeline.clone(), entry.head.clone(), None);
                more.entry.conflict = conflict;
                steps.push(more);
            }
        }
        Ok(())
    }

    /// The chats here that have a lorebook which got another name go on having it.
    pub(super) fn follow_namesakes(&mut self, steps: &mut Vec<TimelinePlan>) -> Result<()> {
        if self.namesakes.is_empty() {
            return Ok(());
        }
        let ours = self.sides.ours;
        for (name, head) in ours.heads().filter(|(name, _)| name.is_chat()) {
            let book = head.lorebook.as_deref().and_then(lorebook_path);
            let Some(now) = book.and_then(|book| self.namesakes.get(&book)).cloned() else {
                continue;
            };
            // One that is there, too, has the book of there; one that gets another name was bound with that.
            let is_renamed = steps.iter().any(|step| step.entry.former.as_ref() == Some(name));
            if is_renamed
                || self.sides.theirs.head(name).is_some()
                || self.sides.look(name)? != Here::Same
            {
                continue;
            }
            let whole = self.bound_to_namesake(read(&self.sides.here, head)?, &now)?;
            self.files.put(&whole.main.path, Some(whole.main.bytes.to_vec()))?;
            self.list_in_group(&whole, None)?;
            let mut step = TimelinePlan::new(name.clone(), head.clone(), Some(head));
            step.branch = BranchMove::Made(Box::new(whole), None);
            steps.push(step);
        }
        Ok(())
    }

    /// Binds a chat to its lorebook under the name that it has now.
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

    /// The state from which both come. Lorebooks had no history of their own once: then what a chat had that both have.
    fn base_of(
        &self,
        local: &Snapshot,
        all: &HashSet<SnapshotId>,
        path: &LibraryPath,
    ) -> Result<Option<FileBytes>> {
        if let Some(base) = self.sides.ours.merge_base(local.id, all) {
            return Ok(Some(read(&self.sides.here, base)?.main.bytes));
        }
        let mut newest: Option<&Snapshot> = None;
        for (name, head) in self.sides.theirs.heads().filter(|(name, _)| name.is_chat()) {
            let Some(mine) = self.sides.ours.head(name) else { continue };
            let past = self.sides.theirs.past([head.id]);
            if let Some(base) = self.sides.ours.merge_base(mine.id, &past)
                && newest.is_none_or(|newest| newest.time.seconds < base.time.seconds)
                && read(&self.sides.here, base)?.book_at(path).is_some()
            {
                newest = Some(base);
            }
        }
        let Some(newest) = newest else { return Ok(None) };
        Ok(read(&self.sides.here, newest)?.book_at(path).map(|book| book.to_vec().into()))
    }
}
