//! Five ways in which a library grows, each from a seed.

use std::path::PathBuf;

use crate::chat::{Chat, PER_MESSAGE};
use crate::library::Library;
use crate::recap::RecapChat;

pub trait Workload {
    /// Writes the first state.
    fn begin(&mut self, library: &Library);
    /// Writes the changes of the next save.
    fn save(&mut self, library: &Library);
    /// File and timeline name of the chat to restore.
    fn chat(&self) -> (PathBuf, String);
}

/// (a) A plain chat that ends with 12.5 messages per save, and four forks.
pub struct Plain {
    saves: usize,
    done: usize,
    /// The parent and its forks.
    chats: Vec<Chat>,
}

impl Plain {
    pub fn new(saves: usize) -> Self {
        let messages = saves * 25 / 2 - saves * 2;
        let main = Chat::new(1, "Mira Voss", "The Tide Office", messages);
        Self { saves, done: 1, chats: vec![main] }
    }
}

impl Workload for Plain {
    fn begin(&mut self, library: &Library) {
        self.chats[0].save(library);
        self.chats[0].save_lorebook(library, 40);
    }

    fn save(&mut self, library: &Library) {
        let forks = self.chats.len() - 1;
        if self.done.is_multiple_of(self.saves / 5) && forks < 4 {
            let main = &self.chats[0];
            let name = format!("The Tide Office - Branch #{}", forks + 1);
            let fork = main.fork(100 + forks as u64, main.len() * 2 / 3, &name);
            fork.save(library);
            self.chats.push(fork);
        } else {
            let turn = if self.done % 5 == 4 { forks } else { 0 };
            self.chats[turn].next_turn(library);
        }
        self.done += 1;
    }

    fn chat(&self) -> (PathBuf, String) {
        of(&self.chats[0])
    }
}

/// (b) A chat with ST-Auto-Recap and four forks that grow occasionally.
pub struct Recap {
    /// Final number of messages of the main chat; `saves` reaches it.
    messages: usize,
    saves: usize,
    /// Saves of the main chat.
    done: usize,
    /// Saves of any chat.
    turn: usize,
    chats: Vec<RecapChat>,
}

impl Recap {
    pub fn new(messages: usize, saves: usize, entries: u64) -> Self {
        let main = RecapChat::new(1, "Night Market", entries);
        Self { messages, saves, done: 0, turn: 0, chats: vec![main] }
    }

    /// Total number of saves: of the main chat, the creation of the forks, and one in five for
    /// later saves of the forks.
    pub fn all_saves(&self) -> usize {
        (self.saves + 4) * 5 / 4
    }

    fn next(&mut self, library: &Library) {
        self.done += 1;
        let main = &mut self.chats[0];
        main.grow(self.messages / self.saves);
        main.save(library);
    }
}

impl Workload for Recap {
    fn begin(&mut self, library: &Library) {
        self.next(library);
    }

    fn save(&mut self, library: &Library) {
        self.turn += 1;
        let forks = self.chats.len() - 1;
        // The first fork after a third of the saves.
        let due = self.saves * (2 + forks) / 6;
        if forks < 4 && self.done > due {
            let name = format!("Night Market - Branch #{}", forks + 1);
            let fork = self.chats[0].fork(100 + forks as u64, &name);
            fork.save(library);
            self.chats.push(fork);
        } else if forks > 0 && (self.turn.is_multiple_of(4) || self.done == self.saves) {
            let fork = &mut self.chats[1 + self.turn / 4 % forks];
            fork.grow(self.messages / self.saves / 2);
            fork.save(library);
        } else {
            self.next(library);
        }
    }

    fn chat(&self) -> (PathBuf, String) {
        (self.chats[0].path(), self.chats[0].timeline())
    }
}

/// (c) Many chats, each with a lorebook; one grows at a time.
pub struct Many {
    chats: Vec<Chat>,
    done: usize,
}

impl Many {
    pub fn new(chats: u64, megabytes: usize) -> Self {
        let messages = megabytes * 1_000_000 / chats as usize / (PER_MESSAGE + 80);
        let chat = |n: u64| Chat::new(n, &format!("Character {n}"), "A long evening", messages);
        Self { chats: (1..=chats).map(chat).collect(), done: 0 }
    }

    /// Appends one message to the first chat.
    pub fn append_message(&mut self, library: &Library) {
        self.chats[0].grow(1);
        self.chats[0].save(library);
    }
}

impl Workload for Many {
    fn begin(&mut self, library: &Library) {
        for chat in &mut self.chats {
            chat.save(library);
            chat.save_lorebook(library, 10);
        }
    }

    fn save(&mut self, library: &Library) {
        let turn = self.done % self.chats.len();
        self.chats[turn].next_turn(library);
        self.done += 1;
    }

    fn chat(&self) -> (PathBuf, String) {
        of(&self.chats[0])
    }
}

/// (d) Ten chats in turn. A chat of 400 messages is replaced by a new one, so that saves do not
/// grow.
pub struct Long {
    chats: Vec<Chat>,
    /// Number of chats created.
    begun: u64,
    done: usize,
}

impl Long {
    pub fn new() -> Self {
        let chat =
            |n: u64| Chat::new(n, &format!("Character {n}"), "Evening 0", n as usize * 40 - 20);
        Self { chats: (1..=10).map(chat).collect(), begun: 10, done: 0 }
    }
}

impl Workload for Long {
    fn begin(&mut self, library: &Library) {
        for chat in &mut self.chats {
            chat.save(library);
            chat.save_lorebook(library, 20);
        }
    }

    fn save(&mut self, library: &Library) {
        let chat = &mut self.chats[self.done % 10];
        if chat.len() >= 400 {
            self.begun += 1;
            let name = format!("Evening {}", self.begun);
            *chat = Chat::new(self.begun, &chat.character, &name, 0);
        }
        chat.next_turn(library);
        self.done += 1;
    }

    fn chat(&self) -> (PathBuf, String) {
        let longest = self.chats.iter().max_by_key(|chat| chat.len());
        of(longest.expect("there are ten"))
    }
}

/// (e) One large chat.
pub struct Large(Chat);

impl Large {
    pub fn new(megabytes: usize) -> Self {
        let messages = megabytes * 1_000_000 / PER_MESSAGE;
        Self(Chat::new(1, "Mira Voss", "The Tide Office", messages))
    }
}

impl Workload for Large {
    fn begin(&mut self, library: &Library) {
        self.0.save(library);
        self.0.save_lorebook(library, 40);
    }

    fn save(&mut self, library: &Library) {
        self.0.next_turn(library);
    }

    fn chat(&self) -> (PathBuf, String) {
        of(&self.0)
    }
}

fn of(chat: &Chat) -> (PathBuf, String) {
    (chat.path(), format!("{}/{}", chat.character, chat.name))
}
