//! Creates snapshots of lorebooks, character cards and other files that are not chats. Detects
//! whether a new file was renamed or copied.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::Result;
use super::operation::SnapshotParents;
use super::take_snapshots::{Replaced, SnapshotResult, SnapshotSession, TimelineResult};
use crate::archive::entry_lives::{BookStates, Version};
use crate::archive::{Kind, Snapshot, State};
use crate::history::{self, History};
use crate::progress::{Monitor, NoProgress};
use crate::st::{self, Category, Key, TimelineName};
use crate::store::{self, Store, unless_lost};

impl SnapshotSession<'_> {
    /// Stores the files in `new`, which are not chats and have no branch, and the lorebooks whose
    /// file contains a different lorebook than their latest snapshot.
    pub(super) fn take_others(
        &mut self,
        new: &[&TimelineName],
        monitor: &mut dyn Monitor,
    ) -> Result<()> {
        // Find all renames before the first file is stored, because two files may have exchanged
        // names.
        let mut renamed = HashMap::new();
        let replaced: Vec<_> = self.origins.replaced.keys().cloned().collect();
        for name in new.iter().copied().chain(&replaced).filter(|_| !replaced.is_empty()) {
            if let Ok(captured) = self.capture(name)
                && let Some(gone) = self.renamed_other(&State::of(&captured.files))?
            {
                renamed.insert(name.clone(), gone);
            }
        }
        let moved: HashSet<_> = renamed.values().map(|from| from.id).collect();
        for (name, Replaced { head, alarm }) in std::mem::take(&mut self.origins.replaced) {
            let has_moved = moved.contains(&head.id);
            let is_new = renamed.contains_key(&name) || has_moved || head.kind == Kind::DELETED;
            if is_new && !has_moved {
                self.rename_deleted(head.clone())?;
            }
            let follows = match renamed.remove(&name) {
                Some(from) => Some(SnapshotParents::renamed(from)),
                None if is_new => None,
                None => {
                    self.done.findings.extend(alarm);
                    Some(SnapshotParents::previous(head))
                }
            };
            let result = self.take_other(&name, follows);
            self.record(&name, result)?;
            monitor.advance(1);
        }
        for name in new {
            let result = self.take_other(name, renamed.remove(*name).map(SnapshotParents::renamed));
            self.record(name, result)?;
            monitor.advance(1);
        }
        Ok(())
    }

    fn take_other(
        &mut self,
        name: &TimelineName,
        follows: Option<SnapshotParents>,
    ) -> Result<SnapshotResult> {
        let captured = self.capture(name)?;
        if let Some(refused) = self.refused(&captured) {
            return Ok(refused);
        }
        let state = State::of(&captured.files);
        let follows = match follows {
            Some(follows) => follows,
            None => self.origin_of_other(&state)?,
        };
        self.store_state(&captured, &state, follows)
    }

    /// Stores the lorebooks of the chats in `names`, so that the timelines of the lorebooks are as
    /// recent as those of the chats.
    pub(super) fn take_books_of(&mut self, names: &[TimelineName]) -> Result<()> {
        let mut books = BTreeSet::new();
        for name in names.iter().filter(|name| name.is_chat()) {
            let path = st::lorebook_of(self.library, &self.scan.groups, name);
            books.extend(path.and_then(|path| TimelineName::of_file(&path)));
        }
        books.retain(|name| self.scan.others.contains(name) && !names.contains(name));
        let mut new = Vec::new();
        for name in &books {
            let head = self.branches.head(self.store, name)?;
            if head.0.is_none() {
                new.push(name);
                continue;
            }
            let result = self.reuse_known(name, head).transpose();
            if let Some(result) =
                result.filter(|it| !matches!(it, Ok(SnapshotResult::Unchanged(..))))
            {
                self.record(name, result)?;
            }
        }
        self.take_others(&new, &mut NoProgress)
    }

    /// Removes the refusal of a lorebook from the results if a chat that uses the lorebook was
    /// refused, too, so that pending work is reported once.
    pub(super) fn report_refusals_once(&mut self) {
        let waits = |outcome: &&TimelineResult| {
            outcome.timeline.is_chat() && matches!(outcome.result, SnapshotResult::Refused(_))
        };
        let chats = self.done.outcomes.iter().filter(waits);
        let books = chats
            .filter_map(|chat| st::lorebook_of(self.library, &self.scan.groups, &chat.timeline));
        let books: BTreeSet<_> = books.collect();
        self.done.outcomes.retain(|outcome| {
            !matches!(outcome.result, SnapshotResult::Refused(_))
                || outcome.timeline.is_chat()
                || !books.contains(&outcome.timeline.file())
        });
    }

    /// Returns the parent of the first snapshot of a new file that is not a chat. If the file is
    /// identical to the latest snapshot of another timeline, it was renamed if the file of that
    /// timeline is missing, and copied otherwise.
    fn origin_of_other(&mut self, state: &State<'_>) -> Result<SnapshotParents> {
        if let Some(gone) = self.renamed_other(state)? {
            return Ok(SnapshotParents::renamed(gone));
        }
        let copied = alike(state, self.origins.other_heads.iter().flatten()).next();
        Ok(copied.map(|head| SnapshotParents::copy(head, state)).unwrap_or_default())
    }

    /// Returns the latest snapshot of the timeline that was renamed to this file; `None` if the
    /// file was not renamed. The file under the former name must be missing or contain a different
    /// lorebook. The snapshot must be identical to the new file. For a lorebook, half of the
    /// entries are sufficient, because a lorebook may be renamed and edited in one save.
    fn renamed_other(&mut self, state: &State<'_>) -> Result<Option<Snapshot>> {
        if self.origins.other_heads.is_none() {
            self.origins.other_heads = Some(heads_of_others(self.store)?);
        }
        let heads = self.origins.other_heads.iter().flatten();
        let alike: Vec<_> = alike(state, heads.clone()).cloned().collect();
        let is_here = |head: &Snapshot| {
            let name = &head.timeline;
            self.scan.may_have(name) && !self.origins.replaced.contains_key(name)
        };
        let gone = match alike.iter().find(|head| !is_here(head)) {
            None if alike.is_empty() => {
                mostly_alike(self.store, state, heads.filter(|head| !is_here(head)))?
            }
            gone => gone.cloned(),
        };
        // A timeline can be renamed to only one file.
        if let (Some(gone), Some(heads)) = (&gone, &mut self.origins.other_heads) {
            heads.retain(|head| head.timeline != gone.timeline);
        }
        Ok(gone)
    }
}

/// Returns the parent of the first snapshot of a file that a command creates and that is not a
/// chat: the snapshot that the file is a copy of, if any. The lorebook of a fork may be a copy of
/// an earlier snapshot, so all snapshots of lorebooks are compared.
pub(super) fn copied_from(store: &Store, state: &State<'_>) -> Result<SnapshotParents> {
    let heads = heads_of_others(store)?;
    let mut copied = alike(state, heads.iter()).next().cloned();
    if copied.is_none() && state.timeline().category() == Category::Lorebook {
        let history = History::load(store)?;
        copied = alike(state, history.iter()).max_by_key(|it| (it.sequence, it.id)).cloned();
    }
    Ok(copied.map(|from| SnapshotParents::copy(&from, state)).unwrap_or_default())
}

fn heads_of_others(store: &Store) -> Result<Vec<Snapshot>> {
    let mut heads = history::heads(store)?;
    heads.retain(|head| !head.timeline.is_chat());
    Ok(heads)
}

/// Returns the latest snapshot that shares the most entries with the lorebook in `state`. At least
/// half of the entries of both lorebooks must be shared. Two entries are equal if UID and content
/// are equal.
fn mostly_alike<'h>(
    store: &Store,
    state: &State<'_>,
    heads: impl Iterator<Item = &'h Snapshot>,
) -> Result<Option<Snapshot>> {
    if state.timeline().category() != Category::Lorebook {
        return Ok(None);
    }
    let mut entries = HashMap::new();
    for (key, entry) in st::entries(&state.files.main.bytes) {
        entries.insert(key, store::hash(store::Kind::Blob, entry.as_bytes())?);
    }
    let mut states = BookStates::new(store.reader());
    let mut best: Option<(usize, &Snapshot)> = None;
    for head in heads.filter(|head| head.timeline.category() == Category::Lorebook) {
        let Some(before) = unless_lost(states.of(head.tree))?.flatten() else { continue };
        let before = before.entries();
        let agrees = |(key, version): &&(Key, Version)| matches!(version, Version::Object(id) if entries.get(key) == Some(id));
        let agreeing = before.iter().filter(agrees).count();
        let is_most = agreeing > 0 && agreeing * 2 >= before.len().max(entries.len());
        if is_most && best.is_none_or(|(most, _)| agreeing > most) {
            best = Some((agreeing, head));
        }
    }
    Ok(best.map(|(_, head)| head.clone()))
}

fn alike<'h>(
    state: &State<'_>,
    heads: impl Iterator<Item = &'h Snapshot>,
) -> impl Iterator<Item = &'h Snapshot> {
    let category = state.timeline().category();
    let can_be = matches!(category, Category::Lorebook | Category::Card | Category::Persona);
    heads.filter(move |head| {
        can_be
            && head.timeline.category() == category
            && state.manifest.content_at(&head.timeline.file()) == head.content
    })
}
