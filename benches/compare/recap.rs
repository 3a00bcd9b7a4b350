//! A chat with ST-Auto-Recap 2.0.0, which copies the whole lorebook into messages and rewrites old
//! messages and all entries at the end of each scene.

use crate::chat::{by_character, by_user, chat_path, joined, lorebook_path};
use crate::library::{Library, date, quoted};
use crate::lorebook::{self, Entry};
use crate::prose::{Random, story};

/// Messages per scene.
const SCENE: usize = 24;
const CHARACTER: &str = "Ilse Corvin";
const QUEUE: &str = "__operation_queue";
const TYPES: [&str; 9] =
    ["recap", "character", "location", "item", "faction", "lore", "event", "document", "rule"];

/// A chat and its own lorebook.
pub struct RecapChat {
    pub name: String,
    main_chat: Option<String>,
    messages: Vec<String>,
    /// Registries, entries, and the queue last, because its key is a timestamp.
    entries: Vec<Entry>,
    /// Number of messages and lorebook at the end of each scene.
    scenes: Vec<(usize, Vec<Entry>)>,
    /// Versions of the running recap, as JSON.
    recaps: Vec<String>,
    random: Random,
}

impl RecapChat {
    pub fn new(seed: u64, name: &str, entries: u64) -> Self {
        let mut random = Random::new(seed);
        let queue = r#"{
  "queue": [],
  "current_operation_id": null,
  "paused": false,
  "version": 1,
  "queueVersion": 1
}"#;
        let fixed = |uid, comment: String, content: &str| Entry {
            uid,
            comment,
            content: content.into(),
            order: 100,
            disable: true,
        };
        let registries = TYPES.len() as u64;
        let mut all: Vec<_> = (0..)
            .zip(TYPES)
            .map(|(uid, name)| fixed(uid, format!("_registry_{name}"), ""))
            .collect();
        all.extend((registries..entries).map(|uid| new_entry(&mut random, uid)));
        all.push(fixed(1_763_000_000_000, QUEUE.into(), queue));
        let mut chat = Self {
            name: name.into(),
            main_chat: None,
            messages: Vec::new(),
            entries: all,
            scenes: Vec::new(),
            recaps: Vec::new(),
            random,
        };
        chat.rewrite_registries();
        chat
    }

    /// Forks at the last scene break of the first half, with the lorebook of that time and all
    /// recaps.
    pub fn fork(&self, seed: u64, name: &str) -> Self {
        let scenes = self.scenes.len().div_ceil(2);
        let (at, entries) = &self.scenes[scenes - 1];
        Self {
            name: name.into(),
            main_chat: Some(self.name.clone()),
            messages: self.messages[..*at].to_vec(),
            entries: entries.clone(),
            scenes: self.scenes[..scenes].to_vec(),
            recaps: self.recaps.clone(),
            random: Random::new(seed),
        }
    }

    /// Adds messages, and ends scenes when they are long enough.
    pub fn grow(&mut self, messages: usize) {
        for _ in 0..messages {
            let index = self.messages.len();
            let line = if index % 2 == 1 {
                let copies = self.lorebook_copies();
                by_user(&mut self.random, index, &copies)
            } else {
                by_character(&mut self.random, index, CHARACTER)
            };
            self.messages.push(line);
            if self.messages.len().is_multiple_of(SCENE) {
                self.end_scene();
            }
        }
    }

    /// Formats every entry as active or inactive, including the outdated queue. The active ones
    /// vary with the message.
    fn lorebook_copies(&mut self) -> String {
        let world = self.lorebook();
        let mut active = Vec::new();
        let mut inactive = Vec::new();
        for entry in &self.entries {
            let list = if !entry.disable && (entry.uid % 8 == 0 || self.random.once_in(40)) {
                &mut active
            } else {
                &mut inactive
            };
            list.push(entry.in_message(&world));
        }
        format!(
            r#","activeLorebookEntries":[{}],"inactiveLorebookEntries":[{}]"#,
            active.join(","),
            inactive.join(",")
        )
    }

    /// Ends a scene: rewrites some entries, adds one or two, reorders all, records them in the
    /// break, adds a recap, and hides the earlier messages.
    fn end_scene(&mut self) {
        for _ in 0..3 + self.random.below(3) {
            let at = TYPES.len() + self.random.below(self.entries.len() - TYPES.len() - 1);
            self.entries[at].content = Entry::text(&mut self.random);
        }
        for _ in 0..1 + self.random.below(2) {
            let queue = self.entries.len() - 1;
            self.entries.insert(queue, new_entry(&mut self.random, queue as u64));
        }
        self.rewrite_registries();
        // Orders count down from 1000; inserted entries shift all that follow.
        let (count, shift) = (self.entries.len(), self.random.below(20));
        for (n, entry) in self.entries.iter_mut().enumerate() {
            entry.order = 1000 - (n + shift) % count;
        }
        self.mark_break();
        let end = self.messages.len();
        for line in &mut self.messages[end - SCENE..] {
            *line = line.replacen(r#""is_system":false"#, r#""is_system":true"#, 1);
        }
        let (version, begin) = (self.recaps.len(), end - SCENE);
        let length = 800 + self.random.below(1200);
        self.recaps.push(format!(
            r#"{{"version":{version},"timestamp":{},"content":{},"scene_count":{},"excluded_count":1,"prev_scene_index":{begin},"new_scene_index":{},"event_keys":["{version}:Scene:{}"]}}"#,
            time(end),
            quoted(&story(&mut self.random, length)),
            version + 1,
            end - 1,
            self.random.below(99_999),
        ));
        self.scenes.push((end, self.entries.clone()));
    }

    /// Writes the extension's data of the scene into its last message.
    fn mark_break(&mut self) {
        let world = self.lorebook();
        let live = self.entries.iter().filter(|entry| entry.comment != QUEUE);
        let all: Vec<_> = live.map(|entry| entry.in_scene_break(&world)).collect();
        let active = self.entries.iter().filter(|entry| !entry.disable && entry.uid % 8 == 0);
        let active: Vec<_> = active.map(|entry| entry.in_message(&world)).collect();
        let recap = format!(r#"{{"stage1":{}}}"#, quoted(&story(&mut self.random, 1200)));
        let end = self.messages.len() - 1;
        let memory = format!(
            r#","auto_recap_memory":{{"scene_break":true,"scene_break_visible":true,"auto_scene_break_checked":true,"scene_recap_memory":{recap},"scene_recap_versions":["",{recap}],"scene_recap_current_index":1,"scene_recap_metadata":{{"1":{{"timestamp":{},"startIdx":{},"endIdx":{end},"sceneMessageCount":{SCENE},"totalActivatedEntries":{},"totalBeforeFiltering":{},"chatLorebookName":{},"suppressOtherLorebooks":true,"allEntries":[{}],"entries":[{}],"created_entry_uids":["{}"]}}}}}}"#,
            time(end),
            end + 1 - SCENE,
            active.len(),
            all.len(),
            quoted(&world),
            all.join(","),
            active.join(","),
            self.entries.len() - 2,
            recap = quoted(&recap),
        );
        let line = &mut self.messages[end];
        // The message's own `extra` precedes those of its swipes.
        let at = line.find(r#""extra":{"#).expect("a message has extra") + r#""extra":{"#.len();
        line.insert_str(at, &format!("{},", &memory[1..]));
    }

    /// Rewrites the registries, which list the entries by type.
    fn rewrite_registries(&mut self) {
        for (n, name) in TYPES.iter().enumerate() {
            let mut text = format!("[Registry: {name}]");
            for entry in self.listed().filter(|entry| entry.uid as usize % TYPES.len() == n) {
                let (uid, title) = (entry.uid, &entry.comment);
                text += &format!("\n- UID={uid} | name: {title} | aliases: — | synopsis: —");
            }
            self.entries[n].content = text;
        }
    }

    /// Iterates over the entries other than registries and queue.
    fn listed(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter().filter(|entry| !entry.disable)
    }

    fn header(&self) -> String {
        let parent = self.main_chat.as_ref();
        let parent =
            parent.map_or(String::new(), |name| format!(r#""main_chat":{},"#, quoted(name)));
        let item = |entry: &Entry| {
            let kind = TYPES[entry.uid as usize % TYPES.len()];
            let comment = quoted(&entry.comment);
            format!(
                r#""{uid}":{{"uid":{uid},"id":"{uid}","type":"{kind}","name":{comment},"comment":{comment},"synopsis":"","aliases":[]}}"#,
                uid = entry.uid
            )
        };
        let index: Vec<_> = self.listed().map(item).collect();
        format!(
            r#"{{"chat_metadata":{{"integrity":"66adfc4f-2db0-4526-bd6a-{:012x}",{parent}"tainted":true,"world_info":{world},"auto_lorebooks":{{"lorebookName":{world},"attachedAt":1763000000000,"registry":{{"index":{{{}}}}}}},"auto_recap_running_scene_recaps":{{"chat_id":{},"current_version":{},"versions":[{}]}}}},"user_name":"unused","character_name":"unused"}}"#,
            self.name.len(),
            index.join(","),
            quoted(&self.name),
            self.recaps.len().saturating_sub(1),
            self.recaps.join(","),
            world = quoted(&self.lorebook()),
        )
    }

    fn lorebook(&self) -> String {
        format!("z-AutoLB-{CHARACTER}-{}", self.name)
    }

    pub fn path(&self) -> std::path::PathBuf {
        chat_path(CHARACTER, &self.name)
    }

    /// Name of the timeline in stvc.
    pub fn timeline(&self) -> String {
        format!("{CHARACTER}/{}", self.name)
    }

    pub fn save(&self, library: &Library) {
        library.write(&self.path(), &joined(&self.header(), &self.messages));
        let book = lorebook::file(&self.entries);
        library.write(&lorebook_path(&self.lorebook()), book.as_bytes());
    }
}

fn new_entry(random: &mut Random, uid: u64) -> Entry {
    let mut entry = Entry::new(random, uid);
    entry.comment = format!("{}-{}", TYPES[uid as usize % TYPES.len()], entry.comment);
    entry
}

fn time(index: usize) -> String {
    quoted(&date(index))
}
