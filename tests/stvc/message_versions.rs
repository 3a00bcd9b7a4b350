//! `log --message`: every version of a message, compared with a record of each and with git.

use proptest::prelude::*;
use serde_json::{Value, json};

use crate::common::{Sandbox, git};

const CHAT: &str = "chats/Mira/one.jsonl";
const HEADER: &str = r#"{"chat_metadata":{},"user_name":"You","character_name":"Mira"}"#;

/// An edit by the writer.
#[derive(Clone, Debug)]
enum Edit {
    Say,
    ChangeText(usize),
    Hide(usize),
    Swipe(usize),
    /// Between others.
    Insert(usize),
    Delete(usize),
}

fn edit() -> impl Strategy<Value = Edit> {
    prop_oneof![
        4 => Just(Edit::Say),
        5 => (0usize..64).prop_map(Edit::ChangeText),
        2 => (0usize..64).prop_map(Edit::Hide),
        2 => (0usize..64).prop_map(Edit::Swipe),
        1 => (0usize..64).prop_map(Edit::Insert),
        1 => (0usize..64).prop_map(Edit::Delete),
    ]
}

/// A message, and its versions by snapshot.
#[derive(Clone)]
struct Remembered {
    value: Value,
    versions: Vec<String>,
}

struct Writer {
    sandbox: Sandbox,
    messages: Vec<Remembered>,
    said: usize,
}

impl Writer {
    fn new() -> Self {
        let mut writer = Self { sandbox: Sandbox::empty(), messages: Vec::new(), said: 0 };
        for _ in 0..3 {
            let message = writer.new_message();
            writer.messages.push(message);
        }
        writer.save(&[0, 1, 2]);
        writer
    }

    fn new_message(&mut self) -> Remembered {
        self.said += 1;
        let n = self.said;
        let words = (0..12).map(|word| format!("w{n}x{word}")).collect::<Vec<_>>().join(" ");
        let date = format!("2026-11-01T18:{:02}:{:02}.000Z", n / 60, n % 60);
        let value = json!({ "name": "Mira", "is_system": false, "send_date": date, "mes": words, "swipes": [words], "swipe_id": 0 });
        Remembered { value, versions: Vec::new() }
    }

    fn act(&mut self, edit: &Edit) {
        let many = self.messages.len();
        let at = |number: &usize| number % many;
        let touched = match edit {
            Edit::Say => {
                let message = self.new_message();
                self.messages.push(message);
                vec![self.messages.len() - 1]
            }
            Edit::Insert(number) => {
                let at = at(number);
                let message = self.new_message();
                self.messages.insert(at, message);
                vec![at]
            }
            Edit::Delete(number) if self.messages.len() > 1 => {
                let at = at(number);
                self.messages.remove(at);
                vec![]
            }
            Edit::Delete(_) => vec![],
            Edit::ChangeText(number) => self.change(at(number), |value| {
                let text = format!("{}, and more", value["mes"].as_str().unwrap());
                value["mes"] = json!(text);
                value["swipes"][0] = json!(text);
            }),
            Edit::Hide(number) => self.change(at(number), |value| {
                value["is_system"] = json!(!value["is_system"].as_bool().unwrap());
            }),
            Edit::Swipe(number) => self.change(at(number), |value| {
                let many = value["swipes"].as_array().unwrap().len();
                let text = format!("{} another way {many}", value["mes"].as_str().unwrap());
                value["swipes"].as_array_mut().unwrap().push(json!(text));
                value["swipe_id"] = json!(many);
                value["mes"] = json!(text);
            }),
        };
        self.save(&touched);
    }

    fn change(&mut self, at: usize, change: impl FnOnce(&mut Value)) -> Vec<usize> {
        change(&mut self.messages[at].value);
        vec![at]
    }

    fn save(&mut self, touched: &[usize]) {
        let mut lines = vec![HEADER.to_owned()];
        lines.extend(self.messages.iter().map(|message| message.value.to_string()));
        self.sandbox.write(CHAT, lines.join("\n"));
        let taken = self.sandbox.take(&[]);
        for at in touched {
            self.messages[*at].versions.push(taken[0].clone());
        }
        self.sandbox.wait(60);
    }
}

fn versions_of(sandbox: &Sandbox, message: usize) -> Vec<String> {
    let answer = sandbox.json(&["log", "Mira/one", "--message", &message.to_string()]).exits(0);
    let versions = answer.of_type("message_version");
    versions.iter().map(|line| line["snapshot"].as_str().unwrap().to_owned()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 6, ..ProptestConfig::default() })]

    #[test]
    fn every_version_of_a_message_is_listed(edits in prop::collection::vec(edit(), 1..14)) {
        let mut writer = Writer::new();
        edits.iter().for_each(|edit| writer.act(edit));
        for (n, message) in writer.messages.iter().enumerate() {
            let mut expected = message.versions.clone();
            expected.reverse();
            prop_assert_eq!(versions_of(&writer.sandbox, n), expected, "message {} after {:?}", n, edits);
        }
    }
}

/// While message numbers are stable, a message is a file of the store, and git lists the same
/// versions.
#[test]
fn git_log_lists_the_same_message_versions() {
    let mut writer = Writer::new();
    for edit in [
        Edit::Say,
        Edit::ChangeText(0),
        Edit::Say,
        Edit::Hide(0),
        Edit::ChangeText(2),
        Edit::Swipe(4),
        Edit::ChangeText(0),
    ] {
        writer.act(&edit);
    }
    let store = writer.sandbox.store();
    let branch = "refs/heads/chats/Mira/one";
    let files = String::from_utf8(git(&store, &["ls-tree", "-r", "--name-only", branch])).unwrap();
    let files: Vec<_> = files
        .lines()
        .filter(|path| path.starts_with("chat/messages/"))
        .map(str::to_owned)
        .collect();
    for (n, file) in files.iter().enumerate() {
        let log = git(&store, &["log", "--format=%H", branch, "--", file]);
        let log: Vec<_> = std::str::from_utf8(&log).unwrap().lines().map(str::to_owned).collect();
        assert_eq!(versions_of(&writer.sandbox, n), log, "{file}");
    }
}
