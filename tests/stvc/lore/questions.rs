//! Questions of writers.

use serde_json::{Value, json};

use crate::common::recap_library::RecapLibrary;
use crate::common::{Sandbox, chat, delete_object, message};

pub(super) const CHAT: &str = "chats/Mira/one.jsonl";
pub(super) const BOOK: &str = "worlds/Harbour.json";

pub(super) fn book(entries: &[(u64, &str, &str)]) -> String {
    let entry = |(uid, title, content): &(u64, &str, &str)| {
        let value = json!({ "uid": uid, "key": [title.to_lowercase()], "comment": title, "content": content });
        (uid.to_string(), value)
    };
    let entries: serde_json::Map<_, _> = entries.iter().map(entry).collect();
    serde_json::to_string_pretty(&json!({ "entries": entries })).unwrap()
}

pub(super) const DAY: i64 = 86_400;
pub(super) const TWO: &str = "The Kestrel is a ship with two masts. She is old.";
const ONE: &str = "The Kestrel is a ship with one mast. She is old.";
const GREEN: &str = "The Kestrel is a ship with one mast. She is old. Her hull is green.";

/// Creates three days of a story: a mast is lost, then the hull is painted and the pier burns down.
pub(super) fn story() -> Sandbox {
    let mut sandbox = Sandbox::empty();
    sandbox.write(CHAT, chat("one", 2, Some("Harbour")));
    sandbox.write(BOOK, book(&[(0, "Kestrel", TWO), (1, "Pier", "Wet stones.")]));
    sandbox.take(&[]);
    sandbox.wait(DAY);
    sandbox.append(CHAT, &message("one", 2));
    sandbox.write(BOOK, book(&[(0, "Kestrel", ONE), (1, "Pier", "Wet stones.")]));
    sandbox.take(&[]);
    sandbox.wait(DAY);
    sandbox.append(CHAT, &message("one", 3));
    sandbox.write(BOOK, book(&[(0, "The Kestrel", GREEN)]));
    sandbox.take(&[]);
    sandbox.wait(DAY);
    sandbox
}

#[test]
fn lore_lists_entries_and_their_age() {
    let sandbox = story();
    insta::assert_snapshot!(sandbox.stvc(&["lore"]).exits(0).stdout, @"
    Harbour  1 entry, 3 versions, changed 1 day ago
         0  The Kestrel  1 day ago
    ");
    let lines = sandbox.json(&["lore"]).exits(0);
    assert_eq!(lines.of_type("lore_book")[0]["states"], 3);
    let entry = &lines.of_type("lore_entry")[0];
    assert_eq!(
        (&entry["uid"], &entry["title"], &entry["changes"]),
        (&json!("0"), &json!("The Kestrel"), &json!(3))
    );
}

#[test]
fn changes_within_one_second_keep_their_order() {
    let sandbox = Sandbox::empty();
    sandbox.write(CHAT, chat("one", 1, Some("Harbour")));
    let says = |n: usize| format!("The Kestrel has sailed to {n} harbours.");
    for n in 0..7 {
        sandbox.write(BOOK, book(&[(0, "Kestrel", &says(n))]));
        sandbox.append(CHAT, &message("one", n + 1));
        // Only the chat: the lorebook has no history of its own.
        sandbox.stvc(&["snapshot", "--only", "chats"]).exits(0);
    }
    let changes = sandbox.json(&["lore", "Kestrel"]).exits(0).of_type("lore_change");
    let last = |line: &Value| line["index"].as_u64().unwrap();
    assert_eq!(changes.iter().map(last).collect::<Vec<_>>(), [7, 6, 5, 4, 3, 2, 1]);
}

#[test]
fn lore_names_the_message_of_a_change() {
    let sandbox = story();
    insta::assert_snapshot!(sandbox.stvc(&["lore", "kestrel"]).exits(0).stdout, @"
    The Kestrel  UID 0 in Harbour

    bed1009b90 2026-11-16 23:46  Mira / one #3
        Mira: one 3: e4c4fd91926ea729 f1696e97eafb5c9b
      changed between 2026-11-15 23:46 and 2026-11-16 23:46, during messages 2 to 3
      title: {+The +}Kestrel
      content: The Kestrel is a ship with one mast. She is old.{+ Her hull is green.+}
      keys: [-kestrel-] {+the kestrel+}

    f2a5496aa5 2026-11-15 23:46  Mira / one #2
        Mira: one 2: e4c4fc91926ea576 eb696e97e0c95c9b
      changed between 2026-11-14 23:46 and 2026-11-15 23:46, during messages 1 to 2
      content: The Kestrel is a ship with [-two masts-]{+one mast+}. She is old.

    4e5bfe1057 2026-11-14 23:46  Mira / one #1
        Mira: one 1: e4c4fb91926ea3c3 e5696e97d6975c9b
      {+The Kestrel is a ship with two masts. She is old.+}
    ");
    insta::assert_snapshot!(sandbox.stvc(&["lore", "kestrel", "--blame"]).exits(0).stdout, @"
    The Kestrel  UID 0 in Harbour

    The Kestrel is a ship with one mast.
        f2a5496aa5 2026-11-15 23:46  Mira / one #2

    She is old.
        4e5bfe1057 2026-11-14 23:46  Mira / one #1

    Her hull is green.
        bed1009b90 2026-11-16 23:46  Mira / one #3
    ");
    // Git reports the same for the entry's file.
    let git = sandbox.git(&[
        "log",
        "--format=%H",
        "refs/heads/worlds/Harbour",
        "--",
        "lorebooks/Harbour/entries/0.json",
    ]);
    let lines = sandbox.json(&["lore", "Harbour", "0"]).exits(0).of_type("lore_change");
    let ids: Vec<_> = lines.iter().map(|line| line["snapshot"].as_str().unwrap()).collect();
    assert_eq!(ids, git.lines().collect::<Vec<_>>());
    assert_eq!(lines[0]["index"], 3);
    assert_eq!(lines[1]["change"]["fields"][0]["field"], "content");
}

#[test]
fn lore_shows_the_lorebook_at_a_date_or_message() {
    let sandbox = story();
    let contents = |arguments: &[&str]| {
        let lines = sandbox.json(&[&["lore"], arguments].concat()).exits(0).of_type("lore_entry");
        lines.iter().map(|line| line["value"]["content"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(contents(&["Kestrel", "--at", "2 days ago"]), [json!(ONE)]);
    assert_eq!(contents(&["Kestrel", "--at", "1"]), [json!(TWO)]);
    assert_eq!(contents(&["Harbour", "--at", "2"]), [json!(ONE), json!("Wet stones.")]);
    assert_eq!(
        contents(&["Harbour", "--at", "worlds/Harbour~2"]),
        [json!(TWO), json!("Wet stones.")]
    );
    assert_eq!(contents(&["pier", "--at", "3"]), Vec::<Value>::new());
    // For a snapshot of the chat or of the lorebook too.
    let shown = |arguments: &[&str]| {
        let lines = sandbox.json(&[&["show"], arguments].concat()).exits(0).of_type("lore_entry");
        lines.iter().map(|line| line["value"]["content"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(shown(&["Mira/one~1", "--book"]), [json!(ONE), json!("Wet stones.")]);
    assert_eq!(shown(&["worlds/Harbour~2", "--entry", "kestrel"]), [json!(TWO)]);
    sandbox.stvc(&["show", "Mira/one", "--entry", "nobody"]).exits(1);
    let early = sandbox.stvc(&["lore", "Kestrel", "--at", "2001-01-01"]).exits(1);
    assert!(early.stderr.contains("has no snapshot from that time"), "{}", early.stderr);
    let late = sandbox.stvc(&["lore", "Kestrel", "--at", "99"]).exits(4);
    assert!(late.stderr.contains("its last one is 3"), "{}", late.stderr);
    sandbox.stvc(&["lore", "Kestrel", "--at", "some day"]).exits(1);
}

#[test]
fn deleted_and_renamed_entries_are_found() {
    let sandbox = story();
    let title = |named: &[&str]| {
        let lines = sandbox.json(&[&["lore"], named].concat()).exits(0).of_type("lore_entry");
        (lines[0]["title"].as_str().unwrap().to_owned(), lines[0]["live"].as_bool().unwrap())
    };
    assert_eq!(title(&["Pier"]), ("Pier".into(), false));
    assert_eq!(title(&["Kestrel"]), ("The Kestrel".into(), true));
    assert_eq!(title(&["Harbour", "the kes"]), ("The Kestrel".into(), true));
    let nobody = sandbox.stvc(&["lore", "Gull"]).exits(1);
    assert!(nobody.stderr.contains("there is no entry \"Gull\""), "{}", nobody.stderr);
}

#[test]
fn entries_with_equal_titles_are_distinguished_by_uid() {
    let sandbox = Sandbox::empty();
    sandbox.write(CHAT, chat("one", 1, Some("Harbour")));
    let entries = [(0, "Gull", "Grey birds."), (7, "Gull", "A boat."), (8, "", "No title at all.")];
    sandbox.write(BOOK, book(&entries));
    sandbox.take(&[]);
    let both = sandbox.stvc(&["lore", "gull"]).exits(1);
    assert!(both.stderr.contains("UID 0") && both.stderr.contains("UID 7"), "{}", both.stderr);
    let one = sandbox.stvc(&["lore", "Harbour", "7"]).exits(0).stdout;
    assert!(one.contains("A boat."), "{one}");
    let untitled = sandbox.stvc(&["lore", "Harbour", "8"]).exits(0).stdout;
    assert!(untitled.contains("(no title)") && untitled.contains("No title at all."), "{untitled}");
}

#[test]
fn lore_compares_forks() {
    let mut sandbox = story();
    sandbox.stvc(&["fork", "Mira/one", "--as", "What if"]).exits(0);
    sandbox.wait(60);
    let files = sandbox.files();
    let clone = files.keys().find(|path| path.starts_with("worlds/") && *path != BOOK).unwrap();
    let text = String::from_utf8(sandbox.read(clone)).unwrap();
    sandbox.write(clone, text.replace("green", "black"));
    sandbox.take(&[]);
    let output = sandbox.stvc(&["lore", "Harbour", "kestrel"]).exits(0).stdout;
    assert!(
        output.contains("In related lorebooks:") && output.contains("Her hull is black."),
        "{output}"
    );
    // The fork's history includes the time before the fork.
    let name = clone.trim_start_matches("worlds/").trim_end_matches(".json");
    let changes = sandbox.json(&["lore", name, "kestrel"]).exits(0).of_type("lore_change");
    assert_eq!(changes.len(), 4, "{changes:?}");
    // Without a name, the book that changed last is used.
    let newest = sandbox.json(&["lore", "kestrel"]).exits(0).of_type("lore_entry");
    assert_eq!(newest[0]["lorebook"], name);
}

#[test]
fn damaged_lorebook_versions_are_reported_and_others_are_shown() {
    let sandbox = story();
    let blob =
        sandbox.git(&["rev-parse", "refs/heads/worlds/Harbour~1:lorebooks/Harbour/entries/0.json"]);
    delete_object(&sandbox.store(), blob.trim());
    let answer = sandbox.stvc(&["lore", "Harbour", "kestrel"]).exits(3);
    assert!(
        answer.stdout.contains("cannot be read") && answer.stdout.contains("Her hull is green."),
        "{}",
        answer.stdout
    );
    assert!(answer.stderr.contains(blob.trim()), "{}", answer.stderr);
}

#[test]
fn invalid_lorebooks_have_no_entries() {
    let mut sandbox = story();
    sandbox.write(BOOK, "{ torn");
    sandbox.take(&[]);
    sandbox.wait(60);
    sandbox.write(BOOK, book(&[(0, "The Kestrel", GREEN)]));
    sandbox.take(&[]);
    let changes = sandbox.json(&["lore", "Harbour", "kestrel"]).exits(3).of_type("lore_change");
    assert_eq!(changes.len(), 3, "what cannot be read is no change");
    let empty = Sandbox::empty();
    empty.write(CHAT, chat("one", 1, None));
    empty.take(&[]);
    assert!(
        empty.stvc(&["lore"]).exits(0).stdout.contains("There are no lorebooks in the store yet.")
    );
}

/// ST-Auto-Recap records the lorebook at the end of a scene, so the scene of a change is known.
#[test]
fn lore_names_the_scene_of_a_change() {
    let mut sandbox = Sandbox::empty();
    let whole = RecapLibrary::default();
    let mut first = whole.clone();
    first.messages = 5;
    first.scenes.truncate(1);
    first.entries.truncate(2);
    for library in [first, whole] {
        sandbox.write(&library.chat_path(), library.chat_bytes());
        sandbox.write(&library.book_path(), library.book_bytes());
        sandbox.take(&[]);
        sandbox.wait(DAY);
    }
    let scene = |entry: &str| {
        let lines = sandbox.json(&["lore", entry]).exits(0).of_type("lore_change");
        lines.iter().map(|line| line["scene"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(scene("character-Mira"), [json!({ "index": 7, "name": "The ferry" })]);
    // It existed when the chat was first stored.
    assert_eq!(scene("Quay"), [Value::Null]);
}

#[test]
fn lore_lists_active_entries() {
    let sandbox = Sandbox::empty();
    let entry = json!({ "uid": 7, "world": "Harbour", "comment": "Kestrel", "content": ONE });
    let queue =
        json!({ "uid": 9, "world": "Harbour", "comment": "__operation_queue", "content": "{}" });
    let other = json!({ "uid": 1, "world": "Other", "comment": "Moon", "content": "It is full." });
    let carries = json!({ "name": "You", "is_user": true, "mes": "Where is she?", "extra": { "activeLorebookEntries": [entry, queue, other] } });
    let mut lines = String::from_utf8(chat("one", 2, Some("Harbour"))).unwrap();
    lines.push_str(&format!("\n{carries}\n{}\n{carries}", message("one", 3)));
    sandbox.write(CHAT, lines);
    sandbox.write(BOOK, book(&[(7, "Kestrel", ONE)]));
    sandbox.take(&[]);
    insta::assert_snapshot!(sandbox.stvc(&["lore", "--active", "2"]).exits(0).stdout, @"
    Mira / one #2  2 entries active
    UID 7  Kestrel  Harbour
        The Kestrel is a ship with one mast. She is old.
    UID 1  Moon  Other
        It is full.
    ");
    let only = sandbox.json(&["lore", "Harbour", "--active", "2"]).exits(0).of_type("lore_active");
    assert_eq!(only.len(), 1);
    assert_eq!((&only[0]["uid"], &only[0]["value"]), (&json!("7"), &entry));
    // A message without that data says so and names those that have it.
    insta::assert_snapshot!(sandbox.stvc(&["lore", "--active", "3", "--in", "Mira/one"]).exits(0).stdout, @"Mira / one #3: the message does not record which entries were active; the nearest messages that do are #2 and #4.");
    sandbox.stvc(&["lore", "--active", "9"]).exits(4);
}

/// While UIDs are stable, an entry is a file of the store and its content a line: `git blame` names
/// the same snapshot, and `git log -S` finds the same text.
#[test]
fn git_blame_names_the_snapshot_that_lore_names() {
    let sandbox = story();
    let branch = "refs/heads/worlds/Harbour";
    let file = "lorebooks/Harbour/entries/0.json";
    let blame = sandbox.git(&["blame", "-l", branch, "--", file]);
    let changes = sandbox.json(&["lore", "Harbour", "0"]).exits(0).of_type("lore_change");
    for field in ["content", "comment"] {
        let is_it = |line: &&str| line.contains(&format!("\"{field}\""));
        let line = blame.lines().find(is_it).unwrap();
        let changed = changes.iter().find(|change| {
            let fields = change["change"]["fields"].as_array().unwrap();
            fields.iter().any(|changed| changed["field"] == field)
        });
        assert_eq!(line.split(' ').next().unwrap(), changed.unwrap()["snapshot"], "{field}");
    }
    for (word, many) in [("green", 1), ("masts", 2), ("mast.", 1), ("nowhere", 0)] {
        let log = sandbox.git(&["log", "--format=%H", "-S", word, branch, "--", file]);
        assert_eq!(log.lines().count(), many, "{word}");
        let text = |side: &Value| side["content"].as_str().unwrap_or_default().contains(word);
        let is_one =
            |change: &&Value| text(&change["change"]["before"]) != text(&change["change"]["after"]);
        let own = changes.iter().filter(is_one).map(|change| change["snapshot"].as_str().unwrap());
        assert_eq!(own.collect::<Vec<_>>(), log.lines().collect::<Vec<_>>(), "{word}");
        sandbox.stvc(&["search", word, "--only", "lorebook"]).exits(i32::from(many == 0));
    }
}

#[test]
fn untitled_non_latin_and_long_entries_have_a_history() {
    let mut sandbox = Sandbox::empty();
    let long = "Rain. ".repeat(35_000);
    let (cjk, rtl) = ("雨の港には古い灯台がある。", "السفينة قديمة جدا.");
    let states = [
        [(0, "", "No title."), (1, "雨", cjk), (2, "سفينة", rtl), (3, "Long", &long)],
        [
            (0, "", "No title, still."),
            (1, "雨", "雨の港には新しい灯台がある。"),
            (2, "سفينة", "السفينة جديدة جدا."),
            (3, "Long", &format!("{long}It stops.")),
        ],
    ];
    sandbox.write(CHAT, chat("one", 2, Some("Harbour")));
    for entries in &states {
        sandbox.write(BOOK, book(entries));
        sandbox.take(&[]);
        sandbox.wait(DAY);
    }
    let show = |name: &str| sandbox.stvc(&["lore", "Harbour", name]).exits(0).stdout;
    for (name, change) in [
        ("0", "No title{+, still+}."),
        ("雨", "雨の港には[-古-]{+新し+}い灯台がある。"),
        ("سفينة", "السفينة [-قديمة-]{+جديدة+} جدا."),
        ("Long", "{+It stops.+}"),
    ] {
        let output = show(name);
        assert!(output.contains(change), "{output}");
    }
    // On a terminal a long text is cut.
    let command = |columns: &str| {
        let mut command = sandbox.command(&["lore", "Harbour", "Long"]);
        command.env("STVC_COLUMNS", columns);
        String::from_utf8(command.output().unwrap().stdout).unwrap()
    };
    assert!(command("80").lines().count() < 40, "{}", command("80").lines().count());
    let blame = sandbox.json(&["lore", "Harbour", "Long", "--blame"]).exits(0);
    assert_eq!(blame.of_type("lore_sentence").len(), 35_001);
}
