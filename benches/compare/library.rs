//! A made-up library in the form SillyTavern 1.19 writes: chats of JSON lines and their lorebooks.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::prose::{Random, story};

/// Bytes that a message takes on average, as it turns out.
pub const PER_MESSAGE: usize = 2400;

/// One chat, as its lines.
pub struct Chat {
    character: String,
    name: String,
    lorebook: String,
    main_chat: Option<String>,
    saves: usize,
    messages: Vec<String>,
    random: Random,
}

impl Chat {
    pub fn new(seed: u64, character: &str, name: &str, messages: usize) -> Self {
        let mut chat = Self {
            character: character.into(),
            name: name.into(),
            lorebook: format!("{character} Lore"),
            main_chat: None,
            saves: 0,
            messages: Vec::new(),
            random: Random::new(seed),
        };
        chat.grow(messages);
        chat
    }

    /// What SillyTavern's "branch" makes: the first messages, all metadata, and the parent's name.
    pub fn fork(&self, seed: u64, at: usize, name: &str) -> Self {
        Self {
            character: self.character.clone(),
            name: name.into(),
            lorebook: self.lorebook.clone(),
            main_chat: Some(self.name.clone()),
            saves: self.saves,
            messages: self.messages[..at].to_vec(),
            random: Random::new(seed),
        }
    }

    pub fn len(&self) -> usize {
        self.messages.len()
    }

    /// Add messages, by the user and the character in turn.
    pub fn grow(&mut self, messages: usize) {
        for _ in 0..messages {
            let index = self.messages.len();
            let line = if index % 2 == 1 {
                self.said_by_user(index)
            } else {
                self.said_by_character(index)
            };
            self.messages.push(line);
        }
        self.saves += 1;
    }

    fn said_by_user(&mut self, index: usize) -> String {
        let length = 100 + self.random.below(1100);
        format!(
            r#"{{"name":"Wren","is_user":true,"is_system":false,"send_date":"{}","mes":{},"extra":{{"isSmallSys":false}},"force_avatar":"/thumbnail?type=persona&file=user-default.png"}}"#,
            date(index),
            quoted(&story(&mut self.random, length))
        )
    }

    /// A reply carries its swipes, the chosen one a second time.
    fn said_by_character(&mut self, index: usize) -> String {
        let count = if self.random.once_in(6) { 2 } else { 1 };
        let mut swipes = Vec::new();
        let mut infos = Vec::new();
        for _ in 0..count {
            let length = 500 + self.random.below(1950);
            swipes.push(quoted(&story(&mut self.random, length)));
            infos.push(format!(
                r#"{{"send_date":"{0}","gen_started":"{0}","gen_finished":"{0}","extra":{{"api":"openai","model":"a-model","gen_id":{1},"token_count":{2}}}}}"#,
                date(index),
                self.random.next(),
                self.random.below(900)
            ));
        }
        format!(
            r#"{{"name":"{}","is_user":false,"is_system":false,"send_date":"{date}","mes":{},"extra":{{"api":"openai","model":"a-model","token_count":{}}},"swipe_id":{},"swipes":[{}],"swipe_info":[{}],"gen_started":"{date}","gen_finished":"{date}"}}"#,
            self.character,
            swipes[count - 1],
            self.random.below(900),
            count - 1,
            swipes.join(","),
            infos.join(","),
            date = date(index)
        )
    }

    fn header(&self) -> String {
        let parent = self.main_chat.as_ref();
        let parent =
            parent.map_or(String::new(), |name| format!(r#""main_chat":{},"#, quoted(name)));
        format!(
            r#"{{"chat_metadata":{{"integrity":"66adfc4f-2db0-4526-bd6a-{:012x}",{parent}"note_prompt":"","note_interval":1,"note_position":1,"note_depth":4,"tainted":true,"variables":{{"saves":"{}"}},"world_info":{}}},"user_name":"unused","character_name":"unused"}}"#,
            self.name.len(),
            self.saves,
            quoted(&self.lorebook)
        )
    }

    /// The file's bytes: lines joined, nothing behind the last.
    fn bytes(&self) -> Vec<u8> {
        let mut bytes = self.header().into_bytes();
        for message in &self.messages {
            bytes.push(b'\n');
            bytes.extend_from_slice(message.as_bytes());
        }
        bytes
    }

    /// Its file below the library.
    pub fn path(&self) -> PathBuf {
        let file = format!("{}.jsonl", self.name);
        Path::new("chats").join(&self.character).join(file)
    }

    /// The name it has for stvc.
    pub fn timeline(&self) -> String {
        format!("{}/{}", self.character, self.name)
    }

    /// Save it as SillyTavern does.
    pub fn save(&self, root: &Path) {
        save(&root.join(self.path()), &self.bytes());
    }

    /// Write the lorebook that it is bound to.
    pub fn save_lorebook(&mut self, root: &Path, entries: usize) {
        let file = format!("{}.json", self.lorebook);
        let text = lorebook(&mut self.random, entries);
        save(&root.join("worlds").join(file), text.as_bytes());
    }
}

/// The library of the first benchmarks: one long chat among ten, each with a lorebook.
pub fn write_ten_chats(root: &Path, long: usize) -> Chat {
    let mut main = Chat::new(1, "Mira Voss", "The Tide Office", long);
    main.save(root);
    main.save_lorebook(root, 60);
    for n in 2..=10 {
        let messages = long / 12 + (n as usize * 331 % 9) * long / 48;
        let mut chat = Chat::new(n, &format!("Character {n}"), "A long evening", messages);
        chat.save(root);
        chat.save_lorebook(root, 40);
    }
    fs::write(root.join("settings.json"), "{}").expect("write settings.json");
    age(root);
    main
}

/// Make all files look as if they had been left alone for an hour.
pub fn age(dir: &Path) {
    let hour_ago = SystemTime::now() - Duration::from_secs(3600);
    for entry in fs::read_dir(dir).expect("list a folder").flatten() {
        let path = entry.path();
        if path.is_dir() {
            age(&path);
        } else {
            let file = File::options().append(true).open(&path);
            let file = file.expect("open a file of the library");
            file.set_modified(hour_ago).expect("set a file's time");
        }
    }
}

fn save(path: &Path, bytes: &[u8]) {
    let folder = path.parent().expect("a file in a folder");
    fs::create_dir_all(folder).expect("make a folder");
    let temp = path.with_extension("tmp");
    let mut file = File::create(&temp).expect("make a file");
    file.write_all(bytes).expect("write a file");
    file.sync_all().expect("sync a file");
    fs::rename(&temp, path).expect("rename a file");
}

fn lorebook(random: &mut Random, entries: usize) -> String {
    let entry = |uid: usize| {
        let title = story(random, 8);
        let length = 150 + random.below(700);
        let text = story(random, length);
        format!(
            r#"        "{uid}": {{
            "uid": {uid},
            "key": [
                {title}
            ],
            "keysecondary": [],
            "comment": {title},
            "content": {content},
            "constant": false,
            "vectorized": false,
            "selective": true,
            "selectiveLogic": 0,
            "addMemo": true,
            "order": 100,
            "position": 0,
            "disable": false,
            "ignoreBudget": false,
            "excludeRecursion": false,
            "preventRecursion": false,
            "matchPersonaDescription": false,
            "matchCharacterDescription": false,
            "matchCharacterPersonality": false,
            "matchCharacterDepthPrompt": false,
            "matchScenario": false,
            "matchCreatorNotes": false,
            "delayUntilRecursion": 0,
            "probability": 100,
            "useProbability": true,
            "depth": 4,
            "outletName": "",
            "group": "",
            "groupOverride": false,
            "groupWeight": 100,
            "scanDepth": null,
            "caseSensitive": null,
            "matchWholeWords": null,
            "useGroupScoring": null,
            "automationId": "",
            "role": 0,
            "sticky": null,
            "cooldown": null,
            "delay": null,
            "triggers": []
        }}"#,
            title = quoted(&title),
            content = quoted(&text)
        )
    };
    let entries: Vec<_> = (0..entries).map(entry).collect();
    format!("{{\n    \"entries\": {{\n{}\n    }}\n}}", entries.join(",\n"))
}

/// JSON.stringify of a text that has no other special characters.
fn quoted(text: &str) -> String {
    let escaped = text.replace('\\', "\\\\").replace('"', "\\\"");
    format!("\"{}\"", escaped.replace('\n', "\\n"))
}

/// When message `index` was sent: one every three minutes, in months of 28 days.
fn date(index: usize) -> String {
    let minutes = index * 3;
    let (hours, days) = (minutes / 60, minutes / 1440);
    format!(
        "{}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z",
        2025 + days / 336,
        days / 28 % 12 + 1,
        days % 28 + 1,
        hours % 24,
        minutes % 60,
        index * 7 % 60,
        index * 131 % 1000
    )
}
