//! Detects messages and lorebook entries that were lost since the latest snapshot.

use std::collections::{HashMap, HashSet};

use super::{Operation, bytes_of};
use crate::archive::message_identity::Identity;
use crate::archive::{self, Kind, Snapshot, SnapshotId, State, Tree};
use crate::engine::Result;
use crate::history::name_lookup;
use crate::history::origin::Identities;
use crate::rules::{self, Finding, Passage};
use crate::st::{self, Key};
use crate::store::{ObjectId, StoredAs, unless_lost};

impl Operation<'_> {
    /// Returns the finding about a state that lost messages or entries of the latest snapshot
    /// `head`, if it did.
    pub(crate) fn alarm(&self, state: &State<'_>, head: &Snapshot) -> Result<Option<Finding>> {
        self.raise(Passage { foreign: false, ..self.passage(state, head)? }, head)
    }

    /// Returns the finding about a state for which [`is_foreign`](Self::is_foreign) returned
    /// `true`.
    pub(crate) fn foreign_alarm(
        &self,
        state: &State<'_>,
        head: &Snapshot,
    ) -> Result<Option<Finding>> {
        self.raise(self.passage(state, head)?, head)
    }

    fn passage<'s>(&self, state: &'s State<'_>, head: &Snapshot) -> Result<Passage<'s>> {
        Ok(Passage {
            timeline: state.timeline().as_str(),
            before: head.messages,
            after: state.manifest.messages,
            foreign: state.timeline().is_chat(),
            written_back: self.is_written_back(state, head)?,
            last_good: head.id,
        })
    }

    fn raise(&self, passage: Passage<'_>, head: &Snapshot) -> Result<Option<Finding>> {
        let Some(alarm) = rules::alarm(&passage) else { return Ok(None) };
        // The lorebook may have changed after `head`, so recommend the latest state of both chat
        // and lorebook before the loss.
        let before = self.workspace.names(self.store, None).latest(head.clone())?;
        Ok(Some(alarm.restorable_from(before.id())))
    }

    /// Returns whether the file of a timeline contains a different chat or lorebook than before:
    /// `state` shares no message or entry with `head`. An empty chat counts as different only if
    /// `head` records a deletion. An empty lorebook never counts as different.
    pub(crate) fn is_foreign(&self, state: &State<'_>, head: &Snapshot) -> Result<bool> {
        let reader = self.store.reader();
        if !state.timeline().is_chat() {
            return Ok(!self.shares_entries(state, head.id)?);
        }
        let Some(first) = state.chat.messages.first() else {
            return Ok(head.kind == Kind::DELETED && head.messages > 0);
        };
        let mut identities = Identities::new(self.store.reader());
        // Nearly every save has the same first message as `head`, and then no other message need be
        // read.
        let begin = unless_lost(archive::first_message(&reader, head.tree))?.flatten();
        let Some(begin) = begin else { return Ok(false) };
        if identities.find(begin)? == Some(Identity::of(first)) {
            return Ok(false);
        }
        let Some(tree) = unless_lost(Tree::open(&reader, head.tree))? else { return Ok(false) };
        let now: HashSet<_> = state.chat.messages.iter().map(|line| Identity::of(line)).collect();
        for id in tree.messages() {
            if identities.find(*id)?.is_some_and(|id| now.contains(&id)) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Returns whether `head` is a restored snapshot, and SillyTavern's page has overwritten the
    /// restored file with the replaced content, which the page still had in memory.
    fn is_written_back(&self, state: &State<'_>, head: &Snapshot) -> Result<bool> {
        let Some(replaced) = head.parents.first().filter(|_| head.kind == Kind::RESTORED) else {
            return Ok(false);
        };
        let Some(replaced) = name_lookup::find(self.store, *replaced)? else { return Ok(false) };
        let found = if state.timeline().is_chat() {
            self.has_messages_of(state, &replaced, head)
        } else {
            self.has_entries_of(state, replaced.id, head.id)
        };
        // Do not report a loss if a snapshot is damaged and cannot be compared.
        Ok(found.unwrap_or(false))
    }

    /// Returns whether the first message that differs between `replaced` and `head` is now the
    /// message of `replaced` again.
    fn has_messages_of(
        &self,
        state: &State<'_>,
        replaced: &Snapshot,
        head: &Snapshot,
    ) -> Result<bool> {
        let reader = self.store.reader();
        let [then, now] = [replaced, head].map(|snapshot| Tree::open(&reader, snapshot.tree));
        let (then, now) = (then?, now?);
        let mut identities = Identities::new(self.store.reader());
        let mut identity = |id: Option<&ObjectId>| match id {
            Some(id) => identities.find(*id),
            None => Ok(None),
        };
        for (n, id) in then.messages().iter().enumerate() {
            if now.messages().get(n) == Some(id) {
                continue;
            }
            let (was, became) = (identity(Some(id))?, identity(now.messages().get(n))?);
            // A message with another chosen swipe is still the same message.
            if was != became {
                let there = state.chat.messages.get(n).map(|line| Identity::of(line));
                return Ok(there.is_some() && there == was);
            }
        }
        Ok(false)
    }

    /// Returns whether a file that is not a chat can be a later version of the snapshot `before`. A
    /// lorebook must share an entry with `before`, unless one of the two has no entries. For any
    /// other file, the same name is sufficient.
    fn shares_entries(&self, state: &State<'_>, before: SnapshotId) -> Result<bool> {
        let path = state.timeline().file();
        if !path.is_lorebook() {
            return Ok(true);
        }
        // If the snapshot is lost, nothing can be compared. Assume a later version.
        let before = bytes_of(&self.store.reader(), &StoredAs::Commit(before.0), &path);
        let Some(before) = unless_lost(before)? else { return Ok(true) };
        let (before, now) = (entries(&before), entries(&state.files.main.bytes));
        let is_empty = before.is_empty() || now.is_empty();
        Ok(is_empty || before.iter().any(|(key, entry)| now.get(key) == Some(entry)))
    }

    /// Returns whether the restore of the lorebook was overwritten: of the entries that differ
    /// between `replaced` and `head`, none has the content of `head`, and at least one has the
    /// content of `replaced` again.
    fn has_entries_of(
        &self,
        state: &State<'_>,
        replaced: SnapshotId,
        head: SnapshotId,
    ) -> Result<bool> {
        let path = state.timeline().file();
        if !path.is_lorebook() {
            return Ok(false);
        }
        let reader = self.store.reader();
        let read = |id: SnapshotId| bytes_of(&reader, &StoredAs::Commit(id.0), &path);
        let (then, brought) = (read(replaced)?, read(head)?);
        let [then, brought, now] =
            [&then[..], &brought[..], &state.files.main.bytes[..]].map(entries);
        let keys: HashSet<_> = then.keys().chain(brought.keys()).collect();
        let mut came_back = false;
        for key in keys.into_iter().filter(|key| then.get(*key) != brought.get(*key)) {
            if now.get(key) == brought.get(key) {
                return Ok(false);
            }
            came_back |= now.get(key) == then.get(key);
        }
        Ok(came_back)
    }
}

fn entries(book: &[u8]) -> HashMap<Key, &[u8]> {
    st::entries(book).into_iter().map(|(key, entry)| (key, entry.as_bytes())).collect()
}
