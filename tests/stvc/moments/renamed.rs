//! A moment of a renamed timeline belongs to that timeline under its current name, even if another
//! one has its former name.

use std::fs;

use serde_json::{Value, json};
use stvc::api::{BackgroundJobs, Request, Rights, serve};

use crate::common::recap_story::{metadata, story};
use crate::common::{Sandbox, assert_valid, chat, message};

const C1: &str = "chats/Mira/c1.jsonl";
const C2: &str = "chats/Mira/c2.jsonl";
const X: &str = "chats/Mira/x.jsonl";
const LORE: &str = "worlds/Lore.json";

fn rename(sandbox: &Sandbox, from: &str, to: &str) {
    fs::rename(sandbox.path(from), sandbox.path(to)).unwrap();
}

fn lore(words: &str) -> String {
    format!("{{\"entries\":{{\"0\":{{\"uid\":0,\"content\":\"{words}\"}}}}}}")
}

/// The chats c1, with a lorebook, and c2, which were renamed to x and c1, and their earlier bytes.
struct Renamed {
    sandbox: Sandbox,
    p: Vec<u8>,
    q: Vec<u8>,
}

impl Renamed {
    fn new() -> Self {
        let mut renamed = Self::only_the_first();
        rename(&renamed.sandbox, C2, C1);
        take(&mut renamed.sandbox);
        renamed
    }

    /// Renames c1 only, without a snapshot of the rename.
    fn only_the_first() -> Self {
        let mut sandbox = Sandbox::empty();
        let (p, q) = (chat("p", 2, Some("Lore")), chat("q", 2, None));
        sandbox.write(C1, &p);
        sandbox.write(C2, &q);
        sandbox.write(LORE, lore("first"));
        sandbox.stvc(&["snapshot"]).exits(0);
        sandbox.stvc(&["tag", "then", "Mira/c1"]).exits(0);
        sandbox.wait(3600);
        rename(&sandbox, C1, X);
        sandbox.append(X, &message("p", 2));
        sandbox.write(LORE, lore("second"));
        Self { sandbox, p, q }
    }

    fn ids(&self, name: &str) -> Vec<String> {
        let log = self.sandbox.json(&["log", name]).exits(0).of_type("snapshot");
        log.iter().map(|line| line["id"].as_str().unwrap().to_owned()).collect()
    }
}

fn take(sandbox: &mut Sandbox) {
    sandbox.stvc(&["snapshot"]).exits(0);
    sandbox.wait(60);
}

fn of_type(answer: &Value, kind: &str) -> Value {
    let lines = answer["lines"].as_array().unwrap();
    lines.iter().find(|line| line["type"] == kind).unwrap().clone()
}

/// Every name of the moment at which x was called c1 and had two messages.
fn names(renamed: &Renamed) -> Vec<String> {
    let log = renamed.sandbox.json(&["log", "Mira/x"]).exits(0).of_type("snapshot");
    let first = log.last().unwrap();
    assert_eq!(first["timeline"], "chats/Mira/c1");
    let id = first["id"].as_str().unwrap();
    let book = renamed.ids("worlds/Lore").pop().unwrap();
    let time = first["time"].as_str().unwrap();
    let content = first["content"].as_str().unwrap();
    vec![
        "Mira/x~1".to_owned(),
        format!("Mira/x@{{{time}}}"),
        "Mira/x:1".to_owned(),
        id.to_owned(),
        format!("{id}+{book}"),
        format!("b3:{content}"),
        "then".to_owned(),
    ]
}

#[test]
fn restore_writes_the_current_file_of_a_renamed_timeline() {
    let renamed = Renamed::new();
    let sandbox = &renamed.sandbox;
    let (x, other) = (renamed.ids("Mira/x"), renamed.ids("Mira/c1"));
    for name in names(&renamed) {
        let answer = sandbox.json(&["restore", &name, "--overwrite"]).exits(0);
        assert_eq!(answer.of_type("restored")[0]["timeline"], "chats/Mira/x", "{name}");
        assert!(sandbox.read(X) == renamed.p, "{name}");
        assert!(sandbox.read(C1) == renamed.q, "{name}");
        assert_eq!(sandbox.read(LORE), lore("first").into_bytes(), "{name}");
        assert_eq!(renamed.ids("Mira/x")[1..], x, "{name}");
        assert_eq!(renamed.ids("Mira/c1"), other, "{name}");
        assert_valid(sandbox);
        sandbox.stvc(&["undo"]).exits(0);
        assert_eq!(renamed.ids("Mira/x"), x, "{name}");
    }
}

#[test]
fn restore_of_a_renamed_chat_makes_no_second_chat() {
    let mut renamed = Renamed::only_the_first();
    take(&mut renamed.sandbox);
    let sandbox = &renamed.sandbox;
    for name in names(&renamed) {
        sandbox.stvc(&["restore", &name, "--overwrite"]).exits(0);
        assert!(sandbox.read(X) == renamed.p, "{name}");
        assert!(!sandbox.path(C1).exists(), "{name}");
        sandbox.stvc(&["undo"]).exits(0);
    }
}

#[test]
fn restore_under_a_new_name_forks_the_renamed_timeline() {
    let renamed = Renamed::new();
    let sandbox = &renamed.sandbox;
    for (n, name) in names(&renamed).iter().enumerate() {
        let fork = format!("fork {n}");
        sandbox.stvc(&["restore", name, "--as", &fork]).exits(0);
        let header = metadata(&sandbox.read(&format!("chats/Mira/{fork}.jsonl")));
        assert_eq!(header["main_chat"], "x", "{name}");
        let lines = sandbox.json(&["timelines"]).exits(0).of_type("timeline");
        let line = lines.iter().find(|line| line["timeline"] == format!("chats/Mira/{fork}"));
        assert_eq!(line.unwrap()["parent"], "chats/Mira/x", "{name}");
    }
}

#[test]
fn restore_of_only_the_lorebook_changes_no_chat() {
    let renamed = Renamed::new();
    let sandbox = &renamed.sandbox;
    let (x, other) = (sandbox.read(X), renamed.ids("Mira/c1"));
    sandbox.stvc(&["restore", "Mira/x~1", "--only", "lorebook", "--overwrite"]).exits(0);
    assert_eq!(sandbox.read(LORE), lore("first").into_bytes());
    assert!(sandbox.read(X) == x && sandbox.read(C1) == renamed.q);
    assert_eq!(renamed.ids("Mira/c1"), other);
}

#[test]
fn restore_at_a_message_uses_the_current_name() {
    let renamed = Renamed::new();
    let sandbox = &renamed.sandbox;
    for at in ["0", "1"] {
        let line = ["restore", "Mira/x~1", "--at", at, "--only", "chat", "--overwrite"];
        sandbox.stvc(&line).exits(0);
        assert!(renamed.p.starts_with(sandbox.read(X).trim_ascii_end()), "{at}");
        assert!(sandbox.read(C1) == renamed.q, "{at}");
        sandbox.stvc(&["undo"]).exits(0);
    }
}

#[test]
fn restore_to_a_folder_uses_the_recorded_names() {
    let renamed = Renamed::new();
    let folder = renamed.sandbox.folder().join("elsewhere");
    renamed.sandbox.stvc(&["restore", "Mira/x~1", "--to", folder.to_str().unwrap()]).exits(0);
    assert!(fs::read(folder.join(C1)).unwrap() == renamed.p);
    assert!(!folder.join(X).exists());
}

#[test]
fn refused_restore_names_the_current_file() {
    let renamed = Renamed::new();
    let refused = renamed.sandbox.stvc(&["restore", "then"]);
    assert!(refused.stderr.contains(X) && !refused.stderr.contains(C1), "{}", refused.stderr);
}

#[test]
fn api_uses_the_current_name_of_a_renamed_timeline() {
    let renamed = Renamed::new();
    let asked = |request: Value| {
        let request = Request::read(request.to_string().as_bytes()).unwrap();
        serde_json::to_value(serve(
            &renamed.sandbox.workspace(),
            &request,
            Rights::Change,
            &BackgroundJobs::default(),
        ))
        .unwrap()
    };
    for name in names(&renamed) {
        let args = json!({ "snapshot": name, "dry_run": true });
        let plan = asked(json!({ "verb": "restore", "args": args }));
        assert_eq!(of_type(&plan, "restored")["timeline"], "chats/Mira/x", "{name}");
        let lines = plan["lines"].as_array().unwrap();
        assert!(lines.iter().all(|line| line["path"] != C1), "{name}");
        let shown = asked(json!({ "verb": "show", "args": { "snapshot": name } }));
        let shown = of_type(&shown, "snapshot");
        assert_eq!(shown["timeline"], "chats/Mira/c1", "{name}");
        assert_eq!(shown["timeline_now"], "chats/Mira/x", "{name}");
    }
    let shown = renamed.sandbox.stvc(&["show", "then"]).exits(0);
    assert!(shown.stdout.contains("now        Mira / x"), "{}", shown.stdout);
}

#[test]
fn diff_compares_with_the_current_file_of_a_renamed_timeline() {
    let renamed = Renamed::new();
    for name in names(&renamed) {
        let diff = renamed.sandbox.json(&["diff", &name]);
        let changes = diff.of_type("change");
        let added: Vec<_> = changes.iter().filter(|it| it["part"] == "message").collect();
        assert_eq!(added.len(), 1, "{name}: {}", diff.stdout);
    }
}

#[test]
fn name_restores_the_latest_valid_snapshot_of_a_renamed_timeline() {
    let mut renamed = Renamed::new();
    let valid = renamed.sandbox.read(X);
    renamed.sandbox.write(X, "");
    take(&mut renamed.sandbox);
    let sandbox = &renamed.sandbox;
    sandbox.stvc(&["restore", "Mira/x", "--overwrite"]).exits(0);
    assert!(sandbox.read(X) == valid && sandbox.read(C1) == renamed.q);
}

#[test]
fn deleted_timeline_is_restored_under_its_last_name() {
    let mut renamed = Renamed::new();
    fs::remove_file(renamed.sandbox.path(X)).unwrap();
    take(&mut renamed.sandbox);
    let sandbox = &renamed.sandbox;
    sandbox.stvc(&["restore", "then", "--overwrite"]).exits(0);
    assert!(sandbox.read(X) == renamed.p && sandbox.read(C1) == renamed.q);
}

#[test]
fn snapshot_of_an_undone_rename_is_restored_to_the_existing_file() {
    let mut renamed = Renamed::only_the_first();
    take(&mut renamed.sandbox);
    let sandbox = &renamed.sandbox;
    let id = renamed.ids("Mira/x").remove(0);
    let x = sandbox.read(X);
    sandbox.stvc(&["undo"]).exits(0);
    sandbox.stvc(&["restore", &id]).exits(0);
    assert!(sandbox.read(X) == x && !sandbox.path(C1).exists());
}

#[test]
fn chat_of_a_renamed_character_is_restored_into_the_current_folder() {
    let mut renamed = Renamed::only_the_first();
    rename(&renamed.sandbox, "chats/Mira", "chats/Voss");
    take(&mut renamed.sandbox);
    let sandbox = &renamed.sandbox;
    sandbox.stvc(&["restore", "then", "--overwrite"]).exits(0);
    assert!(sandbox.read("chats/Voss/x.jsonl") == renamed.p);
    assert!(!sandbox.path("chats/Mira").exists());
}

#[test]
fn renamed_lorebook_is_restored_under_its_current_name() {
    let mut sandbox = Sandbox::empty();
    let (port, other) = ("worlds/Port.json", lore("another lorebook altogether"));
    let first = r#"{"entries":{"0":{"uid":0,"key":["ship"],"comment":"Kestrel","content":"A ship of the harbour watch."}}}"#;
    sandbox.write(LORE, first);
    sandbox.write("worlds/Other.json", &other);
    sandbox.stvc(&["snapshot"]).exits(0);
    sandbox.wait(60);
    rename(&sandbox, LORE, port);
    take(&mut sandbox);
    rename(&sandbox, "worlds/Other.json", LORE);
    sandbox.write(port, first.replace("watch", "guard"));
    take(&mut sandbox);
    let log = sandbox.json(&["log", "worlds/Port"]).exits(0).of_type("snapshot");
    let id = log.last().unwrap();
    assert_eq!(id["timeline"], "worlds/Lore");
    let steps = format!("worlds/Port~{}", log.len() - 1);
    for name in [&steps, id["id"].as_str().unwrap()] {
        sandbox.stvc(&["restore", name, "--overwrite"]).exits(0);
        assert_eq!(sandbox.read(port), first.as_bytes(), "{name}");
        assert_eq!(sandbox.read(LORE), other.as_bytes(), "{name}");
        sandbox.stvc(&["undo"]).exits(0);
    }
}

#[test]
fn headerless_group_chat_is_restored_under_its_current_name() {
    let group = |chats: &Value, metadata: &Value| {
        json!({ "id": "7", "name": "G", "chat_id": "g1", "chats": chats, "past_metadata": metadata })
            .to_string()
    };
    let text = |name: &str, messages: usize| {
        let lines: Vec<_> = (0..messages).map(|n| message(name, n)).collect();
        lines.join("\n")
    };
    let mut sandbox = Sandbox::empty();
    let (g1, g2, x) = ("group chats/g1.jsonl", "group chats/g2.jsonl", "group chats/gx.jsonl");
    sandbox.write(g1, text("p", 3));
    sandbox.write(g2, text("q", 3));
    let then = json!({ "g1": { "note": "then" }, "g2": { "note": "other" } });
    sandbox.write("groups/7.json", group(&json!(["g1", "g2"]), &then));
    sandbox.stvc(&["snapshot"]).exits(0);
    sandbox.wait(60);
    rename(&sandbox, g1, x);
    rename(&sandbox, g2, g1);
    sandbox.append(x, &message("p", 3));
    let now = json!({ "gx": { "note": "now" }, "g1": { "note": "other" } });
    sandbox.write("groups/7.json", group(&json!(["gx", "g1"]), &now));
    take(&mut sandbox);
    sandbox.stvc(&["restore", "gx~1", "--overwrite"]).exits(0);
    assert_eq!(sandbox.read(x), text("p", 3).into_bytes());
    assert_eq!(sandbox.read(g1), text("q", 3).into_bytes());
    let group: Value = serde_json::from_slice(&sandbox.read("groups/7.json")).unwrap();
    assert_eq!(group["chats"], json!(["gx", "g1"]));
    let expected = json!({ "gx": { "note": "then" }, "g1": { "note": "other" } });
    assert_eq!(group["past_metadata"], expected);
    // A lost group is restored without the former name.
    fs::remove_file(sandbox.path("groups/7.json")).unwrap();
    fs::remove_file(sandbox.path(x)).unwrap();
    sandbox.stvc(&["restore", "gx~2", "--overwrite"]).exits(0);
    let group: Value = serde_json::from_slice(&sandbox.read("groups/7.json")).unwrap();
    assert_eq!(group["chats"], json!(["g2", "gx"]));
}

#[test]
fn running_recap_of_a_restored_chat_has_the_current_name() {
    let mut sandbox = Sandbox::empty();
    let recap = story("Main", 2);
    assert!(recap.chat_bytes().contains("\"chat_id\":\"Main\""));
    sandbox.write(&recap.chat_path(), recap.chat_bytes());
    sandbox.write(&recap.book_path(), recap.book_bytes());
    sandbox.stvc(&["snapshot"]).exits(0);
    let now = recap.chat_path().replace("Main", "Renamed");
    rename(&sandbox, &recap.chat_path(), &now);
    let of_today =
        recap.chat_bytes().replacen("\"chat_id\":\"Main\"", "\"chat_id\":\"Renamed\"", 9);
    sandbox.write(&now, format!("{}\n{}", of_today.trim_end(), message("p", 99)));
    sandbox.wait(60);
    take(&mut sandbox);
    sandbox.stvc(&["restore", "Renamed~1", "--overwrite"]).exits(0);
    let restored = String::from_utf8(sandbox.read(&now)).unwrap();
    assert!(!restored.contains("\"chat_id\":\"Main\""));
    assert!(restored.contains("\"Renamed\""));
    assert!(!sandbox.path(&recap.chat_path()).exists());
}
