//! `merge` merges the lorebook of one timeline into that of another.

use serde_json::{Value, json};

use crate::common::{Sandbox, assert_same};

const MAIN: &str = "worlds/Lore.json";

fn chat(book: Option<&str>, last: &str) -> String {
    let world = book.map(|book| format!("\"world_info\":\"{book}\"")).unwrap_or_default();
    let header = format!("{{\"chat_metadata\":{{{world}}},\"user_name\":\"unused\"}}");
    let message = |n: usize, text: &str| {
        format!("{{\"name\":\"Mira\",\"send_date\":\"2026-01-0{n}\",\"mes\":\"{text}\"}}")
    };
    [header, message(1, "The lamp is out."), message(2, "Then light it."), message(3, last)]
        .join("\n")
}

fn entry(uid: u32, title: &str, content: &str) -> String {
    format!(
        "{{\n            \"uid\": {uid},\n            \"key\": [\n                \"{title}\"\n            ],\n            \"comment\": \"{title}\",\n            \"content\": \"{content}\",\n            \"order\": 100\n        }}"
    )
}

fn book(entries: &[(u32, &str, &str)]) -> String {
    let entries: Vec<_> = entries
        .iter()
        .map(|(uid, title, content)| format!("        \"{uid}\": {}", entry(*uid, title, content)))
        .collect();
    format!("{{\n    \"entries\": {{\n{}\n    }}\n}}", entries.join(",\n"))
}

const QUAY: (u32, &str, &str) = (0, "Quay", "Wet stones under the old lamp.");

const MIRA: (u32, &str, &str) = (1, "Mira", "She keeps the charts of the harbour.");

/// A chat and a fork with its own lorebook, both stored.
struct Fork {
    sandbox: Sandbox,
    book: String,
}

impl Fork {
    fn new() -> Self {
        let sandbox = Sandbox::empty();
        sandbox.write("chats/Mira/Main.jsonl", chat(Some("Lore"), "Done."));
        sandbox.write(MAIN, book(&[QUAY, MIRA]));
        sandbox.stvc(&["snapshot"]).exits(0);
        sandbox.stvc(&["restore", "Main", "--as", "What if"]).exits(0);
        let header = String::from_utf8(sandbox.read("chats/Mira/What if.jsonl")).unwrap();
        let header: Value = serde_json::from_str(header.lines().next().unwrap()).unwrap();
        let name = header["chat_metadata"]["world_info"].as_str().unwrap();
        Self { book: format!("worlds/{name}.json"), sandbox }
    }

    fn write(&self, ours: &[(u32, &str, &str)], theirs: &[(u32, &str, &str)]) {
        self.sandbox.write(MAIN, book(ours));
        self.sandbox.write(&self.book, book(theirs));
    }

    #[track_caller]
    fn main_is(&self, entries: &[(u32, &str, &str)]) {
        assert_eq!(String::from_utf8(self.sandbox.read(MAIN)).unwrap(), book(entries));
    }
}

const BELL: &str = "It rings three times before dawn.";

const GULL: &str = "Grey birds scream over each roof.";

#[test]
fn merge_is_shown_first_and_can_be_undone() {
    let fork = Fork::new();
    let edited = (1, "Mira", "She keeps the charts of the whole harbour.");
    fork.write(&[QUAY, MIRA, (2, "Bell", BELL)], &[edited, (2, "Gull", GULL)]);
    let sandbox = &fork.sandbox;
    let before = sandbox.files();
    let ids = sandbox.chat_ids();
    for arguments in
        [&["merge", "Main", "What if"][..], &["merge", "Main", "What if", "--yes", "--dry-run"]]
    {
        let answer = sandbox.stvc(arguments).exits(0);
        assert!(
            answer.stdout.contains("+ UID 0  Gull (UID 2 in the other lorebook)"),
            "{}",
            answer.stdout
        );
        assert!(answer.stdout.contains("- UID 0  Quay"), "{}", answer.stdout);
        assert!(answer.stdout.contains("of the {+whole +}harbour"), "{}", answer.stdout);
        assert!(
            answer.stdout.contains(
                "Nothing has been changed. Run `stvc merge Main \"What if\" --yes` to merge."
            ),
            "{}",
            answer.stdout
        );
        assert_same(&sandbox.files(), &before);
        assert_eq!(sandbox.chat_ids(), ids);
    }
    let answer = sandbox.stvc(&["merge", "Main", "What if", "--yes"]).exits(0);
    assert!(answer.stdout.contains("Merged and verified"), "{}", answer.stdout);
    assert!(answer.stdout.contains("reload SillyTavern's page"), "{}", answer.stdout);
    fork.main_is(&[(0, "Gull", GULL), edited, (2, "Bell", BELL)]);
    let mut after = sandbox.files();
    after.insert(MAIN.into(), before[MAIN].clone());
    assert_same(&after, &before);
    // Unsaved states of both sides are stored first.
    assert_eq!(sandbox.chat_ids().len(), ids.len() + 3);
    // A second merge has nothing to do.
    let again = sandbox.stvc(&["merge", "Main", "What if", "--yes"]).exits(0);
    assert!(again.stdout.contains("Nothing to do"), "{}", again.stdout);
    sandbox.stvc(&["undo"]).exits(0);
    assert_same(&sandbox.files(), &before);
    sandbox.stvc(&["check"]).exits(0);
    sandbox.git(&["fsck", "--strict"]);
}

/// The first merge is in the history, so its conflicts are not reported again.
#[test]
fn second_merge_uses_the_first_as_its_base() {
    let fork = Fork::new();
    let (here, there) = (
        (0, "Quay", "Dry stones under the old lamp."),
        (0, "Quay", "Wet stones under the new lamp."),
    );
    fork.write(&[here, MIRA], &[there, MIRA]);
    let sandbox = &fork.sandbox;
    sandbox.stvc(&["merge", "Main", "What if", "--keep", "a", "--yes"]).exits(0);
    let again = sandbox.stvc(&["merge", "Main", "What if", "--yes"]).exits(0);
    assert!(again.stdout.contains("Nothing to do"), "{}", again.stdout);
    fork.write(&[here, MIRA], &[there, MIRA, (2, "Gull", GULL)]);
    sandbox.stvc(&["merge", "Main", "What if", "--yes"]).exits(0);
    fork.main_is(&[here, MIRA, (2, "Gull", GULL)]);
    sandbox.stvc(&["check"]).exits(0);
    sandbox.stvc(&["undo"]).exits(0);
    fork.main_is(&[here, MIRA]);
}

#[test]
fn merge_with_conflicts_is_refused_until_resolved() {
    let fork = Fork::new();
    let (here, there) = (
        (0, "Quay", "Dry stones under the old lamp."),
        (0, "Quay", "Wet stones under the new lamp."),
    );
    fork.write(&[here, MIRA], &[there, MIRA, (2, "Gull", GULL)]);
    let sandbox = &fork.sandbox;
    let before = sandbox.files();
    let shown = sandbox.stvc(&["merge", "Main", "What if"]).exits(0);
    assert!(shown.stdout.contains("1 conflict"), "{}", shown.stdout);
    let refused = sandbox.stvc(&["merge", "Main", "What if", "--yes"]).exits(4);
    assert!(
        refused.stdout.contains("! UID 0  Quay: content changed on both sides"),
        "{}",
        refused.stdout
    );
    assert!(refused.stdout.contains("Main: Dry stones"), "{}", refused.stdout);
    assert!(refused.stdout.contains("What if: Wet stones under the new"), "{}", refused.stdout);
    for way in [
        r#"`stvc merge Main "What if" --keep a --yes`"#,
        r#"`stvc merge Main "What if" --keep b --yes`"#,
    ] {
        assert!(refused.stderr.contains(way), "{}", refused.stderr);
    }
    assert_same(&sandbox.files(), &before);
    sandbox.stvc(&["merge", "Main", "What if", "--yes", "--keep", "a"]).exits(0);
    fork.main_is(&[here, MIRA, (2, "Gull", GULL)]);
    sandbox.stvc(&["undo"]).exits(0);
    assert_same(&sandbox.files(), &before);
    sandbox.stvc(&["merge", "Main", "What if", "--yes", "--keep", "b"]).exits(0);
    fork.main_is(&[there, MIRA, (2, "Gull", GULL)]);
    sandbox.stvc(&["merge", "Main", "What if", "--keep", "nobody"]).exits(2);
}

#[test]
fn entry_removed_on_one_side_and_edited_on_the_other_stays() {
    let fork = Fork::new();
    let edited = (0, "Quay", "Wet stones under the old lamp, and a boat.");
    fork.write(&[edited, MIRA], &[MIRA]);
    let sandbox = &fork.sandbox;
    let answer = sandbox.stvc(&["merge", "Main", "What if", "--yes"]).exits(4);
    assert!(
        answer.stdout.contains("edited in Main, removed in What if; kept"),
        "{}",
        answer.stdout
    );
    let settled = sandbox.stvc(&["merge", "Main", "What if", "--yes", "--keep", "b"]).exits(0);
    let resolution = "1 conflict: the values of worlds/Lore.json are kept.";
    assert!(settled.stdout.contains(resolution), "{}", settled.stdout);
    fork.main_is(&[edited, MIRA]);
    let fork = Fork::new();
    let sandbox = &fork.sandbox;
    fork.write(&[MIRA], &[edited, MIRA]);
    sandbox.stvc(&["merge", "Main", "What if", "--yes"]).exits(4);
    fork.main_is(&[MIRA]);
    sandbox.stvc(&["merge", "Main", "What if", "--yes", "--keep", "a"]).exits(0);
    fork.main_is(&[edited, MIRA]);
}

#[test]
fn merge_prints_documented_json() {
    let fork = Fork::new();
    let (here, there) = (
        (0, "Quay", "Dry stones under the old lamp."),
        (0, "Quay", "Wet stones under the new lamp."),
    );
    fork.write(
        &[here, MIRA, (2, "Bell", BELL)],
        &[there, (1, "Mira V", MIRA.2), (2, "Gull", GULL)],
    );
    let answer = fork.sandbox.json(&["merge", "Main", "What if", "--keep", "a", "--yes"]).exits(0);
    assert_eq!(answer.stderr, "");
    let lines: Vec<_> = answer
        .of_type("merge")
        .iter()
        .map(|line| json!([line["kind"], line["uid"], line["title"], line["field"]]))
        .collect();
    assert_eq!(
        lines,
        [
            json!(["added", "3", "Gull", null]),
            json!(["edited", "1", "Mira V", "key"]),
            json!(["edited", "1", "Mira V", "comment"]),
            json!(["renumbered", "3", "Gull", null]),
            json!(["conflict", "0", "Quay", "content"]),
        ]
    );
    let conflict = answer.of_type("merge").pop().unwrap();
    assert_eq!(
        json!([conflict["base"], conflict["ours"], conflict["theirs"], conflict["merged"]]),
        json!([QUAY.2, here.2, there.2, here.2])
    );
    assert_eq!(answer.of_type("merge")[3]["from"], "2");
    assert_eq!(answer.of_type("file")[0]["path"], MAIN);
    assert!(answer.of_type("snapshot").iter().all(|line| line["kind"] == "safety"));
    let summary = answer.lines().pop().unwrap();
    for (count, n) in
        [("added", 1), ("removed", 0), ("edited", 1), ("renumbered", 1), ("conflicts", 1)]
    {
        assert_eq!(summary[count], n, "{count}");
    }
    assert_eq!((&summary["written"], summary["base"].is_string()), (&json!(true), true));
    let fork = Fork::new();
    fork.write(&[here, MIRA], &[there, MIRA]);
    let refused = fork.sandbox.json(&["merge", "What if", "Main", "--yes"]).exits(4);
    assert_eq!(refused.of_type("error")[0]["exit"], 4);
    assert!(!refused.of_type("merge").is_empty());
}

#[test]
fn snapshot_can_be_the_source_but_not_the_target_of_a_merge() {
    let mut fork = Fork::new();
    fork.write(&[QUAY, MIRA], &[QUAY, MIRA, (2, "Gull", GULL)]);
    fork.sandbox.stvc(&["snapshot", "What if", "--tag", "with gull"]).exits(0);
    fork.sandbox.wait(60);
    fork.write(&[QUAY, MIRA], &[QUAY, MIRA]);
    fork.sandbox.stvc(&["snapshot", "What if"]).exits(0);
    let sandbox = &fork.sandbox;
    let nothing = sandbox.stvc(&["merge", "Main", "What if", "--yes"]).exits(0);
    assert!(nothing.stdout.contains("Nothing to do"), "{}", nothing.stdout);
    sandbox.stvc(&["merge", "with gull", "Main", "--yes"]).exits(2);
    sandbox.stvc(&["merge", "Main", "with gull", "--yes"]).exits(0);
    fork.main_is(&[QUAY, MIRA, (2, "Gull", GULL)]);
    // A deleted chat is still in the store.
    std::fs::remove_file(sandbox.path("chats/Mira/What if.jsonl")).unwrap();
    sandbox.stvc(&["merge", "Main", "What if", "--yes"]).exits(0);
    sandbox.stvc(&["merge", "What if", "Main", "--yes"]).exits(1);
}

#[test]
fn unrelated_lorebooks_are_merged_by_content() {
    let sandbox = Sandbox::empty();
    sandbox.write("chats/Mira/Main.jsonl", chat(Some("Lore"), "Done."));
    sandbox.write(MAIN, book(&[QUAY, MIRA]));
    let other = chat(Some("Other"), "x").replace("lamp", "ship").replace("light", "sink");
    sandbox.write("chats/Wren/Elsewhere.jsonl", other);
    sandbox.write("worlds/Other.json", book(&[(0, "Gull", GULL), (7, "Quay", QUAY.2)]));
    sandbox.stvc(&["snapshot"]).exits(0);
    let answer = sandbox.json(&["merge", "Main", "Elsewhere", "--yes"]).exits(0);
    let codes: Vec<_> = answer.of_type("finding").iter().map(|line| line["code"].clone()).collect();
    assert_eq!(codes, ["merge-no-base", "reload-sillytavern"]);
    let merged = String::from_utf8(sandbox.read(MAIN)).unwrap();
    assert_eq!(merged, book(&[QUAY, MIRA, (2, "Gull", GULL)]));
}

#[test]
fn unmergeable_lorebooks_are_reported() {
    let fork = Fork::new();
    let sandbox = &fork.sandbox;
    sandbox.write("chats/Mira/Same.jsonl", chat(Some("Lore"), "Shared."));
    sandbox.write("chats/Mira/None.jsonl", chat(None, "Bare."));
    sandbox.stvc(&["snapshot"]).exits(0);
    let same = sandbox.stvc(&["merge", "Main", "Same", "--yes"]).exits(0);
    assert!(same.stdout.contains("both chats use this lorebook"), "{}", same.stdout);
    for (a, b) in [("Main", "None"), ("None", "Main")] {
        let none = sandbox.stvc(&["merge", a, b]).exits(1);
        assert!(none.stderr.contains("chats/Mira/None has no lorebook"), "{}", none.stderr);
    }
    fork.write(&[QUAY, MIRA, (5, "Bell", BELL)], &[QUAY, MIRA, (2, "Gull", GULL)]);
    let shared = sandbox.stvc(&["merge", "Main", "What if"]).exits(0);
    assert!(shared.stderr.contains("also used by chats/Mira/Same"), "{}", shared.stderr);
    for broken in ["torn {", "[]", "{\"entries\":{\"1\":{},\"1\":{}}}"] {
        sandbox.write(&fork.book, broken);
        let before = sandbox.files();
        let answer = sandbox.stvc(&["merge", "Main", "What if", "--yes", "--keep", "a"]).exits(4);
        assert!(answer.stderr.contains("cannot merge worlds/"), "{}", answer.stderr);
        sandbox.stvc(&["merge", "What if", "Main", "--yes", "--keep", "b"]).exits(4);
        assert_same(&sandbox.files(), &before);
    }
}
