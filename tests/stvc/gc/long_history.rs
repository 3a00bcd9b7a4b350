//! A library with a long history.

use stvc::progress::NoProgress;
use stvc::verbs::snapshot;

use super::Random;
use crate::common::Sandbox;
use crate::common::recap_library::{Entry, RecapLibrary, Scene};

fn take(sandbox: &Sandbox) {
    snapshot::snapshot(&sandbox.workspace(), &snapshot::Options::default(), &mut NoProgress)
        .unwrap();
}

/// Chats that grow, are edited, hidden and forked, and a lorebook that changes often.
pub struct Lived {
    pub sandbox: Sandbox,
    chats: Vec<(RecapLibrary, Vec<(String, String)>)>,
    random: Random,
}

impl Lived {
    pub fn new(rounds: usize) -> Self {
        let mut lived = Self {
            sandbox: Sandbox::from_fixture("1.19.0"),
            chats: vec![
                (RecapLibrary::default(), Vec::new()),
                (RecapLibrary::new("Voss", "Ferry"), Vec::new()),
            ],
            random: Random(7),
        };
        for round in 0..rounds {
            lived.go_on(round);
        }
        lived
    }

    pub fn go_on(&mut self, round: usize) {
        self.sandbox.wait(600);
        if round % 6 == 4 {
            let (parent, edits) = self.chats[round % 2].clone();
            let mut fork =
                parent.fork(&format!("{} - Branch #{round}", parent.chat), 5 + round % 3);
            fork.story = parent.story.clone();
            self.chats.push((fork, edits));
        }
        let random = &mut self.random;
        for (n, (library, edits)) in self.chats.iter_mut().enumerate() {
            library.messages += random.below(4) + usize::from(n == 0);
            if random.below(3) == 0 {
                let at = random.below(library.messages);
                edits.push((
                    format!("Message {at} of"),
                    format!("Message {at} {} of", random.words(40)),
                ));
            }
            if random.below(4) == 0 {
                let sent = format!("23:{:02}:{:02}", 0, random.below(12));
                edits.push((
                    format!(r#""is_system":false,"send_date":"2026-11-14T{sent}"#),
                    format!(r#""is_system":true,"send_date":"2026-11-14T{sent}"#),
                ));
            }
            if random.below(2) == 0 {
                let uid = 10 + random.below(9) as i64;
                library.entries.retain(|entry| entry.key != uid.to_string());
                let words = random.words(60);
                library.entries.push(Entry::new(uid, &format!("event-{uid}"), &words));
            }
            if round % 3 == 2 {
                let mut scene = Scene::new(
                    library.messages - 1,
                    &format!("Scene {round}"),
                    library.entries.clone(),
                );
                scene.book = library.book.clone().unwrap();
                library.scenes.push(scene);
            }
            library.write(&self.sandbox);
            let mut text = library.chat_bytes();
            for (from, to) in edits.iter() {
                text = text.replacen(from, to, 1);
            }
            self.sandbox.write(&library.chat_path(), text);
        }
        take(&self.sandbox);
    }
}
