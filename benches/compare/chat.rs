//! A plain chat in the format of SillyTavern 1.19.

use std::path::{Path, PathBuf};

use crate::library::{Library, date, quoted};
use crate::lorebook::{self, Entry};
use crate::prose::{Random, story};

/// Average bytes per message, measured.
pub const PER_MESSAGE: usize = 2400;

pub struct Chat {
    pub character: String,
    pub name: String,
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

    /// Forks like SillyTavern's "branch": the first messages, all metadata, and the parent's name.
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

    /// Adds messages of user and character in turn.
    pub fn grow(&mut self, messages: usize) {
        for _ in 0..messages {
            let index = self.messages.len();
            let line = if index % 2 == 1 {
                by_user(&mut self.random, index, "")
            } else {
                by_character(&mut self.random, index, &self.character)
            };
            self.messages.push(line);
        }
        self.saves += 1;
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

    pub fn path(&self) -> PathBuf {
        chat_path(&self.character, &self.name)
    }

    /// Appends a message of the user and a reply, and saves.
    pub fn next_turn(&mut self, library: &Library) {
        self.grow(2);
        self.save(library);
    }

    pub fn save(&self, library: &Library) {
        library.write(&self.path(), &joined(&self.header(), &self.messages));
    }

    /// Writes the lorebook that the chat is bound to.
    pub fn save_lorebook(&mut self, library: &Library, entries: u64) {
        let entries: Vec<_> = (0..entries).map(|uid| Entry::new(&mut self.random, uid)).collect();
        library.write(&lorebook_path(&self.lorebook), lorebook::file(&entries).as_bytes());
    }
}

pub fn chat_path(character: &str, name: &str) -> PathBuf {
    Path::new("chats").join(character).join(format!("{name}.jsonl"))
}

pub fn lorebook_path(name: &str) -> PathBuf {
    Path::new("worlds").join(format!("{name}.json"))
}

/// Joins the lines without a newline at the end.
pub fn joined(header: &str, messages: &[String]) -> Vec<u8> {
    let mut bytes = header.as_bytes().to_vec();
    for message in messages {
        bytes.push(b'\n');
        bytes.extend_from_slice(message.as_bytes());
    }
    bytes
}

/// Builds a user's message; `extra` are further fields of `extra`, each after a comma.
pub fn by_user(random: &mut Random, index: usize, extra: &str) -> String {
    let length = 100 + random.below(1100);
    format!(
        r#"{{"name":"Wren","is_user":true,"is_system":false,"send_date":"{}","mes":{},"extra":{{"isSmallSys":false{extra}}},"force_avatar":"/thumbnail?type=persona&file=user-default.png"}}"#,
        date(index),
        quoted(&story(random, length))
    )
}

/// Builds a reply with its swipes; `mes` repeats the chosen one.
pub fn by_character(random: &mut Random, index: usize, name: &str) -> String {
    let count = if random.once_in(6) { 2 } else { 1 };
    let mut swipes = Vec::new();
    let mut infos = Vec::new();
    for _ in 0..count {
        let length = 500 + random.below(1950);
        swipes.push(quoted(&story(random, length)));
        infos.push(format!(
            r#"{{"send_date":"{0}","gen_started":"{0}","gen_finished":"{0}","extra":{{"api":"openai","model":"a-model","gen_id":{1},"token_count":{2}}}}}"#,
            date(index),
            random.next(),
            random.below(900)
        ));
    }
    format!(
        r#"{{"name":"{name}","is_user":false,"is_system":false,"send_date":"{date}","mes":{},"extra":{{"api":"openai","model":"a-model","token_count":{}}},"swipe_id":{},"swipes":[{}],"swipe_info":[{}],"gen_started":"{date}","gen_finished":"{date}"}}"#,
        swipes[count - 1],
        random.below(900),
        count - 1,
        swipes.join(","),
        infos.join(","),
        date = date(index)
    )
}
