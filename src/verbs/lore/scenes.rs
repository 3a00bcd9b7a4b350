//! Finds the scene whose recap changed an entry. ST-Auto-Recap records the complete lorebook in the
//! message that ends a scene.
//!
//! Such a record alone is not proof, because it also contains older texts and manual edits. A scene
//! counts only if it ended after the previous snapshot and its record contains the new text.

use std::collections::HashMap;
use std::rc::Rc;

use serde::Serialize;

use crate::archive::message_lives::{MessageLists, counterpart};
use crate::archive::{Blake3, Snapshot, read_manifest};
use crate::auto_recap::{self, Scene};
use crate::st::{self, Key, Raw};
use crate::store::{ObjectId, Reader, Store, unless_lost};
use crate::verbs::Result;

/// A scene, identified by the message that ends it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SceneName {
    /// Number of the message that ends the scene.
    #[serde(rename = "index")]
    pub message: usize,
    /// Name that the user gave to the scene.
    pub name: Option<String>,
}

/// A change of an entry, with the chat's snapshots before and after the change.
pub(super) struct Interval<'a> {
    pub before: &'a Snapshot,
    pub after: &'a Snapshot,
    pub old: Option<&'a str>,
    pub new: (&'a Key, &'a str),
}

/// Finds scenes. Each message is read once, and only in chats that use ST-Auto-Recap.
pub(super) struct Scenes {
    reader: Reader,
    lists: MessageLists,
    read: HashMap<ObjectId, Option<Rc<Record>>>,
}

struct Record {
    name: Option<String>,
    lorebook: Option<String>,
    contents: HashMap<String, Blake3>,
}

impl Scenes {
    pub fn new(store: &Store) -> Self {
        let lists = MessageLists::new(store.reader());
        Self { reader: store.reader(), lists, read: HashMap::new() }
    }

    /// Returns the first scene that ended between the two snapshots and whose record contains the
    /// new text. `books` are all names of the lorebook.
    pub fn of_change(
        &mut self,
        change: &Interval<'_>,
        books: &[&str],
    ) -> Result<Option<SceneName>> {
        let (key, entry) = change.new;
        let Some(content) = content(entry) else { return Ok(None) };
        if change.before.id == change.after.id
            || change.old.and_then(self::content) == Some(content)
        {
            return Ok(None);
        }
        let uid = key.to_string_lossy();
        let list = self.messages(change.after)?.unwrap_or_default();
        let mut list_before = None;
        for (message, id) in list.iter().enumerate() {
            let Some(record) = self.record(*id)? else { continue };
            let is_of_book = record.lorebook.as_deref().is_none_or(|name| books.contains(&name));
            if !is_of_book || record.contents.get(&uid) != Some(&content) {
                continue;
            }
            if list_before.is_none() {
                list_before = self.messages(change.before)?;
            }
            // Without the earlier messages, the time at which the scene ended is unknown.
            let Some(before) = &list_before else { return Ok(None) };
            let place = unless_lost(counterpart(&self.reader, &list, before, message))?;
            let Some(place) = place else { return Ok(None) };
            let has_ended = match place.and_then(|place| before.get(place)) {
                Some(id) => self.may_end_scene(*id)?,
                None => false,
            };
            if !has_ended {
                return Ok(Some(SceneName { message, name: record.name.clone() }));
            }
        }
        Ok(None)
    }

    /// Returns the messages of a chat. The list is empty if the chat does not use ST-Auto-Recap.
    /// Returns `None` if the messages are lost.
    fn messages(&mut self, chat: &Snapshot) -> Result<Option<Vec<ObjectId>>> {
        let Some(manifest) = unless_lost(read_manifest(&self.reader, chat.tree))? else {
            return Ok(None);
        };
        match manifest.checkpoint {
            Some(_) => Ok(unless_lost(self.lists.of(chat.tree))?),
            None => Ok(Some(Vec::new())),
        }
    }

    fn may_end_scene(&mut self, message: ObjectId) -> Result<bool> {
        if self.record(message)?.is_some() {
            return Ok(true);
        }
        Ok(unless_lost(self.reader.blob(message))?.is_none())
    }

    fn record(&mut self, message: ObjectId) -> Result<Option<Rc<Record>>> {
        if let Some(record) = self.read.get(&message) {
            return Ok(record.clone());
        }
        let line = unless_lost(self.reader.blob(message))?;
        let scene = line.as_deref().and_then(auto_recap::scene).filter(Scene::is_break);
        let record = scene.map(|scene| Rc::new(Record::of(&scene)));
        self.read.insert(message, record.clone());
        Ok(record)
    }
}

impl Record {
    fn of(scene: &Scene<'_>) -> Self {
        let content = |entry: Raw<'_>| {
            Some((st::entry_uid(entry)?.to_string(), hash(&st::entry_content(entry)?)))
        };
        Self {
            name: scene.name(),
            lorebook: scene.lorebook(),
            contents: scene.all_entries().into_iter().filter_map(content).collect(),
        }
    }
}

fn content(entry: &str) -> Option<Blake3> {
    Raw::parse_str(entry).and_then(st::entry_content).map(|text| hash(&text))
}

fn hash(text: &str) -> Blake3 {
    Blake3::of(text.as_bytes())
}
