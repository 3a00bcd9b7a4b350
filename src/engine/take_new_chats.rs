//! Chats that were never seen, all of a library at first: read, hashed and compressed on all cores. Any may come from any other, so all are stored before the first becomes a snapshot.

use std::collections::{BTreeMap, HashMap};
use std::fs;

use super::Result;
use super::operation::{AboutState, Follows, StoredState};
use super::take_snapshots::{Replaced, Taken, Taking};
use crate::archive::{Kind, Snapshot, State};
use crate::history::origin::{Lineage, Newcomer, Origin, order};
use crate::history::rewrite_history::begin_elsewhere;
use crate::parallel;
use crate::progress::Monitor;
use crate::rules::{self, ALL, Finding};
use crate::st::{self, Captured, Disk, TimelineName};
use crate::store::ObjectId;

/// So much is read before it is stored; a longer chat alone.
const AT_ONCE: u64 = 16 << 20;

/// A chat that is stored, and no snapshot yet.
struct NewChat {
    stored: StoredState,
    /// What was read, but for the bytes.
    captured: Captured,
    findings: Vec<Finding>,
}

impl Taking<'_> {
    /// Takes chats that have no branch, and those whose file holds another chat than their branch.
    pub(super) fn take_new(
        &mut self,
        names: &[&TimelineName],
        monitor: &mut dyn Monitor,
    ) -> Result<()> {
        let replaced = std::mem::take(&mut self.replaced);
        let (replaced, books): (BTreeMap<_, _>, _) =
            replaced.into_iter().partition(|(name, _)| name.is_chat());
        self.replaced = books;
        if names.is_empty() && replaced.is_empty() {
            return Ok(());
        }
        let mut lineage = Lineage::load(self.store, self.scan)?;
        for (grown, snapshot) in self.grown.take().into_iter().flatten() {
            lineage.add(grown, &snapshot);
        }
        // A branch under another name may be theirs: what its commit says counts.
        let mut unknown = Vec::new();
        for name in names {
            match lineage.history().head(name).cloned() {
                Some(head) => {
                    if let Some(result) = self.take_known(name, (Some(head), true)).transpose() {
                        self.record(name, result)?;
                        monitor.advance(1);
                    }
                }
                None => unknown.push(*name),
            }
        }
        unknown.extend(replaced.keys());
        let (mut newcomers, mut chats) = (Vec::new(), Vec::new());
        let mut waiting = unknown.as_slice();
        while !waiting.is_empty() {
            let read = self.read_some(waiting);
            let (names, rest) = waiting.split_at(read.len());
            waiting = rest;
            for (newcomer, chat) in self.store_new(names, read)? {
                newcomers.push(newcomer);
                chats.push(Some(chat));
            }
            monitor.advance(names.len() as u64);
        }
        let order = order(&newcomers);
        let renamed = lineage.renamed(&newcomers, &order, replaced.values().map(|it| &it.head))?;
        let mut renamed: HashMap<_, _> = renamed.into_iter().collect();
        let continued = self.continued(replaced, &newcomers, &renamed)?;
        let mut newcomers: Vec<_> = newcomers.into_iter().map(Some).collect();
        for position in order {
            if let (Some(newcomer), Some(chat)) =
                (newcomers[position].take(), chats[position].take())
            {
                let name = newcomer.name.clone();
                let follows = match (renamed.remove(&position), continued.get(&name)) {
                    (Some(from), _) => Ok(Follows::renamed(from)),
                    (None, Some(head)) => Ok(Follows::previous(head.clone())),
                    (None, None) => self.origin_of(&newcomer, &mut lineage),
                };
                let result = follows
                    .and_then(|follows| self.take_newcomer(newcomer, chat, follows, &mut lineage));
                self.record(&name, result)?;
            }
        }
        self.lineage = Some(lineage);
        Ok(())
    }

    /// Returns the latest snapshots that chats whose file holds another chat continue all the same, because the file was overwritten. Other chats that lost their file to another, by a rename or
    /// after they were deleted, get a name of their own.
    fn continued(
        &mut self,
        replaced: BTreeMap<TimelineName, Replaced>,
        newcomers: &[Newcomer],
        renamed: &HashMap<usize, Snapshot>,
    ) -> Result<HashMap<TimelineName, Snapshot>> {
        let mut continued = HashMap::new();
        for (name, Replaced { head, alarm }) in replaced {
            let Some(n) = newcomers.iter().position(|newcomer| newcomer.name == name) else {
                continue;
            };
            let has_moved = renamed.values().any(|from| from.id == head.id);
            if has_moved {
                continue;
            }
            if renamed.contains_key(&n) || head.kind == Kind::DELETED {
                self.rename_deleted(head)?;
            } else {
                self.done.findings.extend(alarm);
                continued.insert(name, head);
            }
        }
        Ok(continued)
    }

    fn origin_of(&mut self, newcomer: &Newcomer, lineage: &mut Lineage) -> Result<Follows> {
        let origin = lineage.fork(newcomer)?;
        let from = match &origin {
            Origin::Fork { id, .. } => Some(*id),
            Origin::None => None,
        };
        self.came.insert(newcomer.name.clone(), from);
        Ok(Follows::origin(origin))
    }

    /// Read as many of these as are not too much at once, but one at least.
    fn read_some(&self, names: &[&TimelineName]) -> Vec<Result<Captured>> {
        let (library, groups) = (self.library, &self.scan.groups);
        let (mut room, mut is_first) = (AT_ONCE, true);
        let fits = |name: &&TimelineName| {
            let file = name.file().under(library.root());
            let bytes = fs::metadata(file).map_or(0, |found| found.len());
            let fits = is_first || bytes <= room;
            (room, is_first) = (room.saturating_sub(bytes), false);
            fits
        };
        parallel::as_many_as(names, fits, |name| {
            Ok(st::capture_readable(library, groups, name, &Disk)?)
        })
    }

    /// Store what was read. What could not be read, or may not be taken, is noted.
    fn store_new(
        &mut self,
        names: &[&TimelineName],
        read: Vec<Result<Captured>>,
    ) -> Result<Vec<(Newcomer, NewChat)>> {
        let mut allowed = Vec::new();
        for (name, captured) in names.iter().zip(read) {
            let refused = match &captured {
                Ok(captured) => self.refused(captured),
                Err(_) => None,
            };
            match (captured, refused) {
                (Ok(captured), None) => allowed.push(captured),
                (Ok(_), Some(refused)) => self.record(name, Ok(refused))?,
                (Err(error), _) => self.record(name, Err(error))?,
            }
        }
        let (template, time) = (self.library.book_template(), self.operation.time());
        let kinds: Vec<_> =
            allowed.iter().map(|captured| self.how.kind_of(&captured.files).clone()).collect();
        let allowed_as: Vec<_> = allowed.iter().zip(kinds).collect();
        let read = parallel::map(&allowed_as, |(captured, kind)| {
            let state = State::of(&captured.files);
            let findings = rules::of_files(&captured.files, &state.chat, ALL, template);
            let about = AboutState::read(&state, kind.clone(), time);
            ((Newcomer::of_state(&state), findings), (state, about))
        });
        let (newcomers, states): (Vec<_>, Vec<_>) = read.into_iter().unzip();
        let (states, about): (Vec<_>, Vec<_>) = states.into_iter().unzip();
        let stored = self.operation.store_states(&states, about)?;
        drop(states);
        let chats = allowed.into_iter().zip(stored).zip(newcomers);
        let chats = chats.map(|((mut captured, stored), (newcomer, findings))| {
            captured.files.let_go_of_bytes();
            (newcomer, NewChat { stored, captured, findings })
        });
        Ok(chats.collect())
    }

    fn take_newcomer(
        &mut self,
        newcomer: Newcomer,
        chat: NewChat,
        follows: Follows,
        lineage: &mut Lineage,
    ) -> Result<Taken> {
        let NewChat { stored, captured, findings } = chat;
        let noted = stored.checkpoint().cloned();
        let snapshot = self.operation.lead_to(stored, follows)?;
        self.note(&captured, noted.as_ref(), findings, &snapshot);
        lineage.add(newcomer, &snapshot);
        Ok(Taken::New(Box::new(snapshot), Vec::new()))
    }

    /// Who comes from whom does not depend on who was stored first. What got another id.
    pub(super) fn settle_families(&mut self) -> Result<Vec<(ObjectId, ObjectId)>> {
        let Some(lineage) = self.lineage.as_mut().filter(|_| !self.came.is_empty()) else {
            return Ok(Vec::new());
        };
        let beginnings = lineage.late_parents(&self.came)?;
        if beginnings.is_empty() {
            return Ok(Vec::new());
        }
        let pack = &mut self.operation.pack;
        let rewritten = begin_elsewhere(pack, self.store, lineage.history(), &beginnings)?;
        self.operation.follow(&rewritten)
    }
}
