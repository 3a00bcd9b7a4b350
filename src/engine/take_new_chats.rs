//! Stores new chats. For the first snapshot of a library, all chats are new, so the chats are read,
//! hashed and compressed on all cores. A new chat may be a fork of any other new chat, so the files
//! of all new chats are stored before the first commit is created.

use std::collections::{BTreeMap, HashMap};
use std::fs;

use super::Result;
use super::operation::{SnapshotDraft, SnapshotParents, StoredState};
use super::take_snapshots::{Replaced, SnapshotResult, SnapshotSession};
use crate::archive::{Kind, Snapshot, State};
use crate::history::origin::{Lineage, NewTimeline, Origin, order};
use crate::history::rewrite_history::begin_elsewhere;
use crate::parallel;
use crate::progress::Monitor;
use crate::rules::{self, ALL, Finding};
use crate::st::{self, Captured, Disk, TimelineName};
use crate::store::ObjectId;

/// The maximum number of bytes that are read into memory before they are stored. A longer chat is
/// read alone.
const MAX_BATCH_BYTES: u64 = 16 << 20;

struct NewChat {
    newcomer: NewTimeline,
    stored: StoredState,
    /// The captured files, without their bytes.
    captured: Captured,
    findings: Vec<Finding>,
}

impl SnapshotSession<'_> {
    /// Stores the chats in `names`, which have no branch, and the chats whose file contains a
    /// different chat than their latest snapshot.
    pub(super) fn take_new(
        &mut self,
        names: &[&TimelineName],
        monitor: &mut dyn Monitor,
    ) -> Result<()> {
        let replaced = std::mem::take(&mut self.origins.replaced);
        let (replaced, books): (BTreeMap<_, _>, _) =
            replaced.into_iter().partition(|(name, _)| name.is_chat());
        self.origins.replaced = books;
        if names.is_empty() && replaced.is_empty() {
            return Ok(());
        }
        let mut lineage = Lineage::load(self.store, self.scan)?;
        for (grown, snapshot) in self.origins.grown.take().into_iter().flatten() {
            lineage.add(grown, &snapshot);
        }
        // The branch of a chat may have another name: the name in the commit counts.
        let mut unknown = Vec::new();
        for name in names {
            let Some(head) = lineage.history().head(name).cloned() else {
                unknown.push(*name);
                continue;
            };
            if let Some(result) = self.reuse_known(name, (Some(head), true)).transpose() {
                self.record(name, result)?;
                monitor.advance(1);
            }
        }
        unknown.extend(replaced.keys());
        let mut chats = Vec::new();
        let mut waiting = unknown.as_slice();
        while !waiting.is_empty() {
            let read = self.read_some(waiting);
            let (names, rest) = waiting.split_at(read.len());
            waiting = rest;
            chats.extend(self.store_new(names, read)?);
            monitor.advance(names.len() as u64);
        }
        let newcomers: Vec<_> = chats.iter().map(|chat| &chat.newcomer).collect();
        let order = order(&newcomers);
        let replaced_heads = replaced.values().map(|it| &it.head);
        let mut renamed = lineage.renamed(&newcomers, &order, replaced_heads)?;
        let continued = self.continued(replaced, &newcomers, &renamed)?;
        let mut chats: Vec<_> = chats.into_iter().map(Some).collect();
        for position in order {
            let Some(chat) = chats[position].take() else { continue };
            let name = chat.newcomer.name.clone();
            let follows = match (renamed.remove(&position), continued.get(&name)) {
                (Some(from), _) => Ok(SnapshotParents::renamed(from)),
                (None, Some(head)) => Ok(SnapshotParents::previous(head.clone())),
                (None, None) => self.origin_of(&chat.newcomer, &mut lineage),
            };
            let result =
                follows.and_then(|follows| self.take_newcomer(chat, follows, &mut lineage));
            self.record(&name, result)?;
        }
        self.origins.lineage = Some(lineage);
        Ok(())
    }

    /// Decides about chats whose file now contains a different chat. If the file was overwritten,
    /// the new content continues the timeline: its latest snapshot is returned. If another chat was
    /// renamed to this name, or the former chat had been deleted before, the timeline of the former
    /// chat is renamed.
    fn continued(
        &mut self,
        replaced: BTreeMap<TimelineName, Replaced>,
        newcomers: &[&NewTimeline],
        renamed: &HashMap<usize, Snapshot>,
    ) -> Result<HashMap<TimelineName, Snapshot>> {
        let mut continued = HashMap::new();
        for (name, Replaced { head, alarm }) in replaced {
            let position = newcomers.iter().position(|newcomer| newcomer.name == name);
            let has_moved = renamed.values().any(|from| from.id == head.id);
            let Some(n) = position.filter(|_| !has_moved) else { continue };
            if renamed.contains_key(&n) || head.kind == Kind::DELETED {
                self.rename_deleted(head)?;
            } else {
                self.done.findings.extend(alarm);
                continued.insert(name, head);
            }
        }
        Ok(continued)
    }

    fn origin_of(
        &mut self,
        newcomer: &NewTimeline,
        lineage: &mut Lineage,
    ) -> Result<SnapshotParents> {
        let origin = lineage.fork(newcomer)?;
        let from = match &origin {
            Origin::Fork { id, .. } => Some(*id),
            Origin::None => None,
        };
        self.origins.came.insert(newcomer.name.clone(), from);
        Ok(SnapshotParents::origin(origin))
    }

    fn read_some(&self, names: &[&TimelineName]) -> Vec<Result<Captured>> {
        let (library, groups) = (self.library, &self.scan.groups);
        let (mut room, mut is_first) = (MAX_BATCH_BYTES, true);
        let fits = |name: &&&TimelineName| {
            let file = name.file().under(library.root());
            let bytes = fs::metadata(file).map_or(0, |found| found.len());
            let fits = is_first || bytes <= room;
            (room, is_first) = (room.saturating_sub(bytes), false);
            fits
        };
        parallel::each(names.iter().take_while(fits), |name| {
            Ok(st::capture_readable(library, groups, name, &Disk)?)
        })
    }

    fn store_new(
        &mut self,
        names: &[&TimelineName],
        read: Vec<Result<Captured>>,
    ) -> Result<Vec<NewChat>> {
        let mut allowed = Vec::new();
        for (name, captured) in names.iter().zip(read) {
            match captured {
                Ok(captured) => match self.refused(&captured) {
                    Some(refused) => self.record(name, Ok(refused))?,
                    None => allowed.push((self.policy.kind_of(&captured.files), captured)),
                },
                Err(error) => self.record(name, Err(error))?,
            }
        }
        let (template, time) = (self.library.book_template(), self.operation.workspace.time());
        let read = parallel::each(&allowed, |(kind, captured)| {
            let state = State::of(&captured.files);
            let findings = rules::of_files(&captured.files, &state.chat, ALL, template);
            let about = SnapshotDraft::read(&state, kind.clone(), time);
            ((NewTimeline::of_state(&state), findings), (state, about))
        });
        let (read, states): (Vec<_>, Vec<_>) = read.into_iter().unzip();
        let (states, about): (Vec<_>, Vec<_>) = states.into_iter().unzip();
        let stored = self.operation.store_states(&states, about)?;
        drop(states);
        let chats = allowed.into_iter().zip(stored).zip(read);
        let chats = chats.map(|(((_, mut captured), stored), (newcomer, findings))| {
            captured.files.drop_bytes();
            NewChat { newcomer, stored, captured, findings }
        });
        Ok(chats.collect())
    }

    fn take_newcomer(
        &mut self,
        chat: NewChat,
        follows: SnapshotParents,
        lineage: &mut Lineage,
    ) -> Result<SnapshotResult> {
        let NewChat { newcomer, stored, captured, findings } = chat;
        let noted = stored.checkpoint().cloned();
        let snapshot = self.operation.add_snapshot(stored, follows)?;
        self.note(&captured, noted.as_ref(), findings, &snapshot);
        lineage.add(newcomer, &snapshot);
        Ok(SnapshotResult::New(Box::new(snapshot), Vec::new()))
    }

    /// Corrects the parents of new chats, so that the parents do not depend on the order in which
    /// chats were stored. Returns the former and new ids of rewritten snapshots.
    pub(super) fn settle_families(&mut self) -> Result<Vec<(ObjectId, ObjectId)>> {
        let Some(lineage) = self.origins.lineage.as_mut().filter(|_| !self.origins.came.is_empty())
        else {
            return Ok(Vec::new());
        };
        let beginnings = lineage.late_parents(&self.origins.came)?;
        if beginnings.is_empty() {
            return Ok(Vec::new());
        }
        let pack = &mut self.operation.pack;
        let rewritten = begin_elsewhere(pack, self.store, lineage.history(), &beginnings)?;
        self.operation.follow(&rewritten)
    }
}
