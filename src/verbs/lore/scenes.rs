//! Which scene's recap brought a change, where ST-Auto-Recap left its marks: on the message that ends a scene it notes the entries that it made and what the lorebook said then.

use std::collections::{HashMap, HashSet};

use crate::archive::message_lives::MessageLists;
use crate::archive::{Blake3, Snapshot, read_manifest};
use crate::history::History;
use crate::st::auto_recap::{self, Scene};
use crate::st::{self, Key, Raw, TimelineName};
use crate::store::{Store, unless_lost};
use crate::verbs::Result;

/// A scene, by the message that ends it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SceneName {
    pub message: usize,
    pub name: Option<String>,
}

/// What the scenes of chats noted. A chat is read once, and only if the extension is in use there.
pub(super) struct Scenes<'a> {
    store: &'a Store,
    history: &'a History,
    chats: HashMap<TimelineName, Vec<Noted>>,
}

/// What one scene noted.
struct Noted {
    scene: SceneName,
    made: HashSet<String>,
    /// By its UID, what an entry said at the end of the scene.
    said: HashMap<String, Blake3>,
}

impl<'a> Scenes<'a> {
    pub fn new(store: &'a Store, history: &'a History) -> Self {
        Self { store, history, chats: HashMap::new() }
    }

    /// The scene that brought what an entry says from then on, as the chat had come to `story`: the first that noted it so, or the one that made it.
    pub fn of_change(
        &mut self,
        story: &Snapshot,
        (key, entry): (&Key, &str),
        is_new: bool,
    ) -> Result<Option<SceneName>> {
        let uid = key.to_string_lossy();
        let said = Raw::parse_str(entry).and_then(st::entry_content).map(|text| of(&text));
        let noted = self.noted(&story.timeline)?;
        let until_then =
            || noted.iter().filter(|noted| (noted.scene.message as u64) < story.messages);
        let made = until_then().find(|noted| is_new && noted.made.contains(&uid));
        let first =
            || until_then().find(|noted| said.is_some() && noted.said.get(&uid) == said.as_ref());
        Ok(made.or_else(first).map(|noted| noted.scene.clone()))
    }

    fn noted(&mut self, chat: &TimelineName) -> Result<&[Noted]> {
        if !self.chats.contains_key(chat) {
            let noted = self.read(chat)?;
            self.chats.insert(chat.clone(), noted);
        }
        Ok(&self.chats[chat])
    }

    fn read(&self, chat: &TimelineName) -> Result<Vec<Noted>> {
        let Some(head) = self.history.head(chat) else { return Ok(Vec::new()) };
        let reader = self.store.reader();
        let manifest = unless_lost(read_manifest(&reader, head.tree))?;
        if manifest.is_none_or(|manifest| manifest.checkpoint.is_none()) {
            return Ok(Vec::new());
        }
        let list = unless_lost(MessageLists::new(self.store.reader()).of(head.tree))?;
        let mut noted = Vec::new();
        for (message, id) in list.unwrap_or_default().into_iter().enumerate() {
            let Some(line) = unless_lost(reader.blob(id))? else { continue };
            let scene = auto_recap::scene(&line).filter(Scene::is_break);
            noted.extend(scene.map(|scene| Noted::of(message, &scene)));
        }
        Ok(noted)
    }
}

impl Noted {
    fn of(message: usize, scene: &Scene<'_>) -> Self {
        let said = |entry: Raw<'_>| {
            Some((st::entry_uid(entry)?.to_string(), of(&st::entry_content(entry)?)))
        };
        Self {
            scene: SceneName { message, name: scene.name() },
            made: scene.created_entries().into_iter().collect(),
            said: scene.all_entries().into_iter().filter_map(said).collect(),
        }
    }
}

fn of(text: &str) -> Blake3 {
    Blake3::of(text.as_bytes())
}
