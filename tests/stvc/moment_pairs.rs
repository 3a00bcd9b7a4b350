//! A moment of a chat is one pair of chat and lorebook, by every form of name and for every command (design 5.4; requirements row 89). The cases here were defects.

use serde_json::{Value, json};

use crate::common::{Sandbox, chat, files, message};

const CHAT: &str = "chats/Mira/one.jsonl";
const NAME: &str = "Mira/one";
const BOOK: &str = "worlds/Harbour.json";
const DAY: i64 = 86_400;

/// Three entries, so that a rename with an edit leaves most of them.
fn book(kestrel: &str) -> String {
    let entry = |uid: usize, title: &str, content: &str| json!({ "uid": uid, "comment": title, "content": content });
    let entries = json!({
        "0": entry(0, "Kestrel", kestrel),
        "1": entry(1, "Harbour", "Wet."),
        "2": entry(2, "Tide", "Twice a day."),
    });
    json!({ "entries": entries }).to_string()
}

/// A chat of two messages and its lorebook, snapshotted.
fn story() -> Sandbox {
    let sandbox = Sandbox::empty();
    sandbox.write(CHAT, chat("one", 2, Some("Harbour")));
    sandbox.write(BOOK, book("Two masts."));
    sandbox.take(&[]);
    sandbox
}

fn edit(sandbox: &Sandbox, kestrel: &str) {
    sandbox.write(BOOK, book(kestrel));
    sandbox.take(&[]);
}

fn date(sandbox: &Sandbox, ago: i64) -> String {
    let then = sandbox.workspace().now.timestamp() - ago;
    let then = chrono::DateTime::from_timestamp(then, 0).unwrap();
    format!("{NAME}@{{{}}}", then.format("%Y-%m-%dT%H:%M:%SZ"))
}

/// What each command says of the entry `Kestrel` at a moment: `restore --to`, `show --entry`, `lore --at`, `diff` against the latest, `restore --as`.
#[track_caller]
fn kestrel(sandbox: &Sandbox, moment: &str) -> String {
    let to = sandbox.folder().join("restored");
    sandbox.stvc(&["restore", moment, "--to", to.to_str().unwrap()]).exits(0);
    let restored = files(&to);
    std::fs::remove_dir_all(&to).unwrap();
    let (_, book) = restored.iter().find(|(path, _)| path.starts_with("worlds/")).unwrap();
    let book: Value = serde_json::from_slice(book).unwrap();
    let text = book["entries"]["0"]["content"].as_str().unwrap().to_owned();
    let content = |arguments: &[&str]| {
        let told = sandbox.json(arguments).exits(0).of_type("lore_entry");
        let entry = told.iter().find(|entry| entry["uid"] == "0").unwrap();
        entry["value"]["content"].as_str().unwrap().to_owned()
    };
    assert_eq!(content(&["show", moment, "--entry", "Kestrel"]), text, "show {moment} --entry");
    assert_eq!(content(&["show", moment, "--book"]), text, "show {moment} --book");
    assert_eq!(content(&["lore", "Kestrel", "--at", moment]), text, "lore --at {moment}");
    let plan = sandbox.json(&["restore", moment, "--as", "Another ending", "--dry-run"]).exits(0);
    let files = plan.of_type("file");
    let clone = files.iter().find(|file| file["path"].as_str().unwrap().starts_with("worlds/"));
    let shown = sandbox.json(&["show", moment]).exits(0).of_type("snapshot");
    let shown = shown[0]["files"].as_array().unwrap().clone();
    let shown = shown.iter().find(|file| file["role"] == "lorebook").unwrap().clone();
    assert_eq!(clone.unwrap()["blake3"], shown["blake3"], "restore {moment} --as");
    text
}

#[test]
fn restore_by_date_brings_back_the_lorebook_of_that_date() {
    let mut sandbox = story();
    sandbox.wait(DAY);
    edit(&sandbox, "Damaged.");
    sandbox.wait(DAY);
    let then = date(&sandbox, DAY + 1);
    assert_eq!(kestrel(&sandbox, &then), "Two masts.");
    sandbox.stvc(&["restore", &then, "--overwrite"]).exits(0);
    assert_eq!(sandbox.read(BOOK), book("Two masts.").into_bytes());
    // The newest snapshot is what is on disk, of the chat and of its lorebook.
    assert_eq!(kestrel(&sandbox, NAME), "Two masts.");
    let status = sandbox.json(&["status"]).exits(0).of_type("timeline");
    assert!(status.iter().all(|timeline| timeline["state"] == "unchanged"), "{status:?}");
}

#[test]
fn states_of_the_lorebook_between_two_snapshots_of_the_chat_are_reached_by_date() {
    let mut sandbox = story();
    for text in ["One mast.", "No mast."] {
        sandbox.wait(DAY);
        edit(&sandbox, text);
    }
    sandbox.wait(DAY);
    sandbox.append(CHAT, &message("one", 2));
    edit(&sandbox, "Sunk.");
    for (ago, text) in
        [(0, "Sunk."), (DAY, "No mast."), (2 * DAY, "One mast."), (3 * DAY, "Two masts.")]
    {
        assert_eq!(kestrel(&sandbox, &date(&sandbox, ago)), text);
    }
    // The chat is that of then, too.
    let shown = sandbox.json(&["show", &date(&sandbox, DAY)]).exits(0).of_type("snapshot");
    assert_eq!(shown[0]["messages"], 2);
}

#[test]
fn a_change_of_the_lorebook_alone_is_a_moment_for_every_command() {
    let sandbox = story();
    edit(&sandbox, "One mast.");
    edit(&sandbox, "No mast.");
    for (moment, text) in
        [("", "No mast."), ("~1", "One mast."), ("~2", "Two masts."), (":1", "No mast.")]
    {
        assert_eq!(kestrel(&sandbox, &format!("{NAME}{moment}")), text, "{moment}");
    }
    let status = sandbox.stvc(&["status"]).exits(0).stdout;
    assert!(status.contains("Nothing changed"), "{status}");
    let changed = sandbox.json(&["diff", NAME]).exits(0).of_type("change");
    assert_eq!(changed, [json!(null); 0]);
    // `log CHAT` counts as `~N` does, and its lines name the moments.
    let log = sandbox.json(&["log", NAME]).exits(0).of_type("snapshot");
    let timelines: Vec<_> = log.iter().map(|line| line["timeline"].as_str().unwrap()).collect();
    assert_eq!(timelines, ["worlds/Harbour", "worlds/Harbour", "chats/Mira/one"]);
    for (step, line) in log.iter().enumerate() {
        assert_eq!(line["step"], step);
        let moment = line["moment"].as_str().unwrap();
        assert_eq!(kestrel(&sandbox, moment), kestrel(&sandbox, &format!("{NAME}~{step}")));
    }
    assert_eq!([&log[0]["lorebook_only"], &log[0]["chat"]], [&json!(true), &log[2]["id"]]);
    assert_eq!(log[0]["messages"], 2);
    // So does the history of differences.
    let history = sandbox.json(&["diff", "--history", NAME]).exits(0).of_type("comparison");
    let moments: Vec<_> = history.iter().map(|line| &line["after_moment"]).collect();
    assert_eq!(moments, log.iter().map(|line| &line["moment"]).collect::<Vec<_>>());
    // Both sides are of one snapshot of the chat; the lorebook tells them apart.
    let changed = sandbox.stvc(&["diff", &format!("{NAME}~1"), NAME]).exits(0).stdout;
    let sides: Vec<_> = changed.lines().take(2).map(|line| &line[3..]).collect();
    assert!(sides.iter().all(|side| side.contains("; lorebook ")), "{changed}");
    assert_ne!(sides[0], sides[1]);
    insta::assert_snapshot!(crate::common::words(&sandbox.stvc(&["log", NAME]).exits(0)), @r"
    ID lorebook / Harbour  3 entries, 2026-11-14 23:46, lorebook only
    ID lorebook / Harbour  3 entries, 2026-11-14 23:46, lorebook only
    ID Mira / one  2 messages, 2026-11-14 23:46
        Mira: one 1: e4c4fb91926ea3c3 e5696e97d6975c9b
    ");
}

#[test]
fn a_tag_holds_the_lorebook_that_was_current_when_it_was_set() {
    let mut sandbox = story();
    edit(&sandbox, "One mast.");
    sandbox.stvc(&["tag", "mast", NAME]).exits(0);
    sandbox.wait(DAY);
    edit(&sandbox, "No mast.");
    sandbox.stvc(&["snapshot", NAME, "--tag", "wreck"]).exits(0);
    sandbox.wait(DAY);
    edit(&sandbox, "Sunk.");
    assert_eq!(kestrel(&sandbox, "mast"), "One mast.");
    assert_eq!(kestrel(&sandbox, "wreck"), "No mast.");
    // One of the past, too; the timeline stays as it is.
    sandbox.stvc(&["tag", "before", &date(&sandbox, DAY + 1)]).exits(0);
    assert_eq!(kestrel(&sandbox, "before"), "One mast.");
    sandbox.stvc(&["tag", "first", &format!("{NAME}~9")]).exits(1);
    assert_eq!(kestrel(&sandbox, NAME), "Sunk.");
    let undone = sandbox.stvc(&["undo"]).exits(0);
    sandbox.stvc(&["show", "before"]).exits(1);
    assert!(undone.stdout.contains("tag"), "{}", undone.stdout);
    sandbox.git(&["fsck", "--strict"]);
    sandbox.stvc(&["check"]).exits(0);
}

#[test]
fn two_snapshots_within_one_second_are_kept_apart() {
    let sandbox = story();
    edit(&sandbox, "One mast.");
    sandbox.append(CHAT, &message("one", 2));
    sandbox.take(&[]);
    edit(&sandbox, "No mast.");
    for (moment, text) in [
        (":1", "One mast."),
        (":2", "No mast."),
        ("~1", "One mast."),
        ("~2", "One mast."),
        ("~3", "Two masts."),
    ] {
        assert_eq!(kestrel(&sandbox, &format!("{NAME}{moment}")), text, "{moment}");
    }
}

#[test]
fn a_clock_that_is_set_back_does_not_change_the_order() {
    let mut sandbox = story();
    sandbox.wait(-10 * DAY);
    edit(&sandbox, "One mast.");
    sandbox.append(CHAT, &message("one", 2));
    sandbox.take(&[]);
    sandbox.wait(5 * DAY);
    edit(&sandbox, "No mast.");
    for (moment, text) in
        [("", "No mast."), (":1", "One mast."), ("~1", "One mast."), ("~3", "Two masts.")]
    {
        assert_eq!(kestrel(&sandbox, &format!("{NAME}{moment}")), text, "{moment}");
    }
    let log = sandbox.git(&[
        "log",
        "--format=%(trailers:key=Stvc-Sequence,valueonly)",
        "-1",
        "refs/heads/worlds/Harbour",
    ]);
    assert_eq!(log.trim(), "1794700000.3");
}

/// Renames the lorebook as SillyTavern does: saves the new file, removes the old one, and binds the open chat to it.
fn rename(sandbox: &Sandbox, kestrel: &str) {
    sandbox.write("worlds/Docks.json", book(kestrel));
    std::fs::remove_file(sandbox.path(BOOK)).unwrap();
    let bound = String::from_utf8(sandbox.read(CHAT)).unwrap().replace("\"Harbour\"", "\"Docks\"");
    sandbox.write(CHAT, bound);
    sandbox.take(&[]);
}

#[test]
fn a_renamed_lorebook_keeps_its_history() {
    for edited in [false, true] {
        let mut sandbox = story();
        let first = sandbox.chat_ids()[0].clone();
        sandbox.wait(DAY);
        edit(&sandbox, "One mast.");
        sandbox.wait(DAY);
        sandbox.append(CHAT, &message("one", 2));
        sandbox.take(&[]);
        sandbox.wait(DAY);
        let renamed = if edited { "No mast." } else { "One mast." };
        rename(&sandbox, renamed);
        let heads = sandbox.git(&["for-each-ref", "--format=%(refname)", "refs/heads/worlds"]);
        assert_eq!(heads.trim(), "refs/heads/worlds/Docks", "edited: {edited}");
        sandbox.wait(DAY);
        sandbox.append(CHAT, &message("one", 3));
        sandbox.write("worlds/Docks.json", book("Sunk."));
        sandbox.take(&[]);
        assert_eq!(kestrel(&sandbox, &format!("{NAME}:1")), "One mast.");
        assert_eq!(kestrel(&sandbox, &first), "Two masts.");
        assert_eq!(kestrel(&sandbox, &date(&sandbox, DAY)), renamed);
        assert_eq!(kestrel(&sandbox, &date(&sandbox, 3 * DAY)), "One mast.");
        assert_eq!(kestrel(&sandbox, NAME), "Sunk.");
        let lore = sandbox.json(&["lore", "Docks", "--at", ":1"]).exits(0).of_type("lore_entry");
        assert_eq!(lore[0]["value"]["content"], "One mast.");
        // The history of the entry goes through the rename.
        let story = sandbox.json(&["lore", "Kestrel"]).exits(0).of_type("lore_change");
        assert_eq!(story.len(), if edited { 4 } else { 3 });
    }
}

/// Only the open chat follows a rename in SillyTavern; the others still name the old file.
#[test]
fn a_chat_that_did_not_follow_a_rename_still_has_its_lorebook() {
    let mut sandbox = story();
    sandbox.write("chats/Mira/two.jsonl", chat("two", 2, Some("Harbour")));
    sandbox.take(&[]);
    sandbox.wait(DAY);
    rename(&sandbox, "Two masts.");
    sandbox.wait(DAY);
    sandbox.write("worlds/Docks.json", book("One mast."));
    sandbox.take(&[]);
    assert_eq!(kestrel(&sandbox, "Mira/two"), "One mast.");
    assert_eq!(kestrel(&sandbox, "Mira/two~1"), "Two masts.");
}

#[test]
fn a_fork_gets_the_lorebook_that_is_on_disk() {
    let sandbox = story();
    sandbox.write(BOOK, book("Not stored yet."));
    let fork = sandbox.json(&["fork", NAME, "--at", "1", "--as", "Fork"]).exits(0);
    assert!(!fork.stdout.is_empty());
    assert_eq!(kestrel(&sandbox, "Mira/Fork"), "Not stored yet.");
    let book =
        sandbox.json(&["show", "Mira/Fork"]).exits(0).of_type("snapshot")[0]["lorebook"].clone();
    let bytes = sandbox.read(&format!("worlds/{}.json", book.as_str().unwrap()));
    assert_eq!(bytes, self::book("Not stored yet.").into_bytes());
}

/// A plan names the moment; what is stored before it is confirmed does not change what is done.
#[test]
fn a_plan_names_the_moment_that_is_restored_later() {
    let mut sandbox = story();
    sandbox.wait(DAY);
    edit(&sandbox, "One mast.");
    edit(&sandbox, "Damaged.");
    let plan =
        sandbox.json(&["restore", &format!("{NAME}~1"), "--overwrite", "--dry-run"]).exits(0);
    let moment = plan.of_type("restored")[0]["moment"].as_str().unwrap().to_owned();
    assert_eq!(moment.len(), 81, "{moment}");
    sandbox.wait(DAY);
    edit(&sandbox, "Damaged again.");
    sandbox.append(CHAT, &message("one", 2));
    sandbox.take(&[]);
    sandbox.stvc(&["restore", &moment, "--overwrite"]).exits(0);
    assert_eq!(sandbox.read(BOOK), book("One mast.").into_bytes());
    assert_eq!(sandbox.read(CHAT), chat("one", 2, Some("Harbour")));
    sandbox.stvc(&["show", &format!("{moment}:1")]).exits(0);
    sandbox.stvc(&["show", &format!("{moment}:2")]).exits(4);
    // Neither part can be anything else.
    let (chat, book) = moment.split_once('+').unwrap();
    for wrong in [format!("{book}+{chat}"), format!("{book}+{book}")] {
        sandbox.stvc(&["restore", &wrong, "--overwrite"]).exits(1);
    }
    for wrong in [
        "+",
        "ab+cd",
        &moment[..80],
        &moment.replace('+', "+0"),
        &moment.replace(&moment[41..45], "zzzz"),
    ] {
        sandbox.stvc(&["show", wrong]).exits(1);
    }
}

/// The lorebook of a message at which no snapshot was created is the last one known before it, and that is reported.
#[test]
fn the_lorebook_at_a_message_without_a_snapshot_is_the_last_one_before_it() {
    let mut sandbox = story();
    sandbox.wait(DAY);
    edit(&sandbox, "One mast.");
    sandbox.wait(DAY);
    for n in 2..6 {
        sandbox.append(CHAT, &message("one", n));
    }
    edit(&sandbox, "No mast.");
    assert_eq!(kestrel(&sandbox, &format!("{NAME}:3")), "One mast.");
    let shown = sandbox.json(&["show", &format!("{NAME}:3")]).exits(0).of_type("finding");
    assert!(shown.iter().any(|finding| finding["code"] == "lorebook-from-elsewhere"), "{shown:?}");
    // Before the first snapshot nothing is known.
    sandbox.stvc(&["restore", &format!("{NAME}:0"), "--as", "Fork"]).exits(4);
}

/// The chat before the loss, and the lorebook as it was then: a change of the book alone is not taken back with the chat.
#[test]
fn req_92_an_alarm_names_the_pair_before_the_loss() {
    let mut sandbox = story();
    for n in 2..8 {
        sandbox.append(CHAT, &message("one", n));
    }
    sandbox.take(&[]);
    let whole = sandbox.read(CHAT);
    sandbox.wait(DAY);
    edit(&sandbox, "One mast.");
    sandbox.wait(DAY);
    sandbox.write(CHAT, chat("one", 1, Some("Harbour")));
    let found = sandbox.json(&["snapshot"]).exits(0).of_type("finding");
    let alarm = found.iter().find(|finding| finding["code"] == "chat-shrank").unwrap();
    let moment = alarm["snapshot"].as_str().unwrap();
    assert_eq!(kestrel(&sandbox, moment), "One mast.");
    sandbox.stvc(&["restore", moment, "--overwrite"]).exits(0);
    assert_eq!((sandbox.read(CHAT), sandbox.read(BOOK)), (whole, book("One mast.").into_bytes()));
}

/// One device writes and the other only takes over: nothing is merged, and the moments are the same on both.
#[test]
fn sync_creates_no_snapshot_for_a_lorebook_that_changed_alone() {
    let mut one = story();
    one.wait(60);
    edit(&one, "One mast.");
    let folder = one.folder().join("shared");
    let folder = folder.to_str().unwrap();
    let two = Sandbox::empty();
    one.stvc(&["sync", folder]).exits(0);
    two.stvc(&["sync", folder]).exits(0);
    one.wait(60);
    one.append(CHAT, &message("one", 2));
    one.take(&[]);
    one.wait(60);
    edit(&one, "No mast.");
    for device in [&one, &two, &one, &two] {
        device.stvc(&["sync", folder]).exits(0);
    }
    for device in [&one, &two] {
        for (moment, text) in [
            ("", "No mast."),
            ("~1", "One mast."),
            ("~2", "One mast."),
            ("~3", "Two masts."),
            (":1", "One mast."),
        ] {
            assert_eq!(kestrel(device, &format!("{NAME}{moment}")), text, "{moment}");
        }
    }
}

/// What is created after a sync comes after what the sync brought, also from a device whose clock is ahead.
#[test]
fn a_device_whose_clock_is_ahead_does_not_change_the_order() {
    let mut one = story();
    let folder = one.folder().join("shared");
    let folder = folder.to_str().unwrap();
    one.stvc(&["sync", folder]).exits(0);
    let mut two = Sandbox::empty();
    two.wait(365 * DAY);
    two.stvc(&["sync", folder]).exits(0);
    edit(&two, "One mast.");
    two.stvc(&["sync", folder]).exits(0);
    one.wait(60);
    one.stvc(&["sync", folder]).exits(0);
    one.wait(60);
    one.append(CHAT, &message("one", 2));
    edit(&one, "No mast.");
    for (moment, text) in [("", "No mast."), ("~1", "One mast."), ("~2", "Two masts.")] {
        assert_eq!(kestrel(&one, &format!("{NAME}{moment}")), text, "{moment}");
    }
}

#[test]
fn backup_of_one_chat_has_the_states_of_its_lorebook() {
    let sandbox = story();
    edit(&sandbox, "One mast.");
    let file = sandbox.folder().join("one.stvc");
    let file = file.to_str().unwrap();
    sandbox.stvc(&["backup", file, NAME]).exits(0);
    let other = Sandbox::empty();
    other.stvc(&["import", file]).exits(0);
    assert_eq!(kestrel(&other, NAME), "One mast.");
    assert_eq!(kestrel(&other, &format!("{NAME}~1")), "Two masts.");
    other.stvc(&["restore", "--all"]).exits(0);
    assert_eq!(other.read(BOOK), book("One mast.").into_bytes());
}

#[test]
fn a_lorebook_whose_file_comes_later_belongs_to_the_chat() {
    let mut sandbox = Sandbox::empty();
    sandbox.write(CHAT, chat("one", 2, Some("Harbour")));
    sandbox.take(&[]);
    for text in ["Two masts.", "One mast."] {
        sandbox.wait(60);
        edit(&sandbox, text);
    }
    assert_eq!(kestrel(&sandbox, NAME), "One mast.");
    assert_eq!(kestrel(&sandbox, &format!("{NAME}~1")), "Two masts.");
    let shown = sandbox.json(&["show", &format!("{NAME}~2")]).exits(0).of_type("snapshot");
    assert_eq!(shown[0]["files"].as_array().unwrap().len(), 1);
    let changed = sandbox.json(&["diff", NAME]).exits(0).of_type("change");
    assert!(changed.is_empty(), "{changed:?}");
    // The same after it was deleted and came back.
    std::fs::remove_file(sandbox.path(BOOK)).unwrap();
    sandbox.write("worlds/Other.json", book("Other."));
    sandbox.append(CHAT, &message("one", 2));
    sandbox.take(&[]);
    sandbox.wait(60);
    edit(&sandbox, "One mast.");
    assert_eq!(kestrel(&sandbox, NAME), "One mast.");
}

#[test]
fn an_imported_chat_has_the_lorebook_of_its_time() {
    let mut sandbox = story();
    sandbox.wait(DAY);
    let then = chrono::DateTime::from_timestamp(sandbox.workspace().now.timestamp(), 0).unwrap();
    let backup = format!("backups/chat_mira_{}.jsonl", then.format("%Y%m%d-%H%M%S"));
    sandbox.write(&backup, chat("one", 3, Some("Harbour")));
    sandbox.wait(DAY);
    edit(&sandbox, "One mast.");
    sandbox.wait(DAY);
    sandbox.append(CHAT, &message("one", 2));
    sandbox.append(CHAT, &message("one", 3));
    sandbox.take(&[]);
    sandbox.stvc(&["import"]).exits(0);
    assert_eq!(kestrel(&sandbox, &date(&sandbox, 2 * DAY)), "Two masts.");
    assert_eq!(kestrel(&sandbox, &date(&sandbox, DAY)), "One mast.");
    assert_eq!(kestrel(&sandbox, &format!("{NAME}:2")), "One mast.");
    let log = sandbox.json(&["log", NAME]).exits(0).of_type("snapshot");
    let kinds: Vec<_> = log.iter().map(|line| line["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["snapshot", "snapshot", "import", "snapshot"]);
}

/// A chat that was not bound when a message was the last has no lorebook at that message, whatever it was bound to before and since.
#[test]
fn a_message_from_a_time_without_a_lorebook_has_none() {
    let sandbox = story();
    sandbox.write(CHAT, chat("one", 3, None));
    sandbox.take(&[]);
    sandbox.write("worlds/Other.json", book("Another book."));
    sandbox.write(CHAT, chat("one", 4, Some("Other")));
    sandbox.take(&[]);
    let shown = sandbox.json(&["show", &format!("{NAME}:2")]).exits(0).of_type("snapshot");
    assert_eq!(shown[0]["files"].as_array().unwrap().len(), 1, "{shown:?}");
    sandbox.stvc(&["restore", &format!("{NAME}:2"), "--overwrite"]).exits(0);
    assert_eq!(sandbox.read("worlds/Other.json"), book("Another book.").into_bytes());
    assert_eq!(sandbox.read(CHAT), chat("one", 3, None));
    // One that the chat had before is not put under the name of the one that it has now.
    let sandbox = story();
    sandbox.write("worlds/Other.json", book("Another book."));
    sandbox.write(CHAT, chat("one", 5, Some("Other")));
    sandbox.take(&[]);
    sandbox.stvc(&["restore", &format!("{NAME}:3"), "--as", "Fork"]).exits(4);
}

#[test]
fn forget_makes_no_pair_that_never_stood_together() {
    let mut sandbox = story();
    sandbox.stvc(&["tag", "kept", NAME]).exits(0);
    for n in [2, 3] {
        sandbox.wait(DAY);
        sandbox.append(CHAT, &message("one", n));
        sandbox.take(&[]);
        sandbox.wait(DAY);
        edit(&sandbox, &format!("After message {n}."));
    }
    sandbox.wait(DAY);
    sandbox.append(CHAT, &message("one", 4));
    sandbox.take(&[]);
    let moment = sandbox.json(&["show", NAME]).exits(0).of_type("snapshot")[0]["moment"].clone();
    sandbox.stvc(&["forget", NAME, "--keep-last", "1"]).exits(0);
    sandbox.stvc(&["gc", "--keep-undo", "0d", "--grace", "0d"]).exits(0);
    assert_eq!(kestrel(&sandbox, &format!("{NAME}~1")), "Two masts.");
    assert_eq!(kestrel(&sandbox, &format!("{NAME}:1")), "Two masts.");
    assert_eq!(kestrel(&sandbox, NAME), "After message 3.");
    // What was named before it was written anew is still that.
    assert_eq!(kestrel(&sandbox, moment.as_str().unwrap()), "After message 3.");
    sandbox.git(&["fsck", "--strict"]);
    sandbox.stvc(&["check"]).exits(0);
}

#[test]
fn merge_of_an_earlier_moment_has_nothing_to_do() {
    let sandbox = story();
    for text in ["One mast.", "No mast."] {
        edit(&sandbox, text);
    }
    let merged = sandbox.stvc(&["merge", NAME, &format!("{NAME}~1"), "--dry-run"]).exits(0).stdout;
    assert!(merged.contains("Nothing to do"), "{merged}");
}

#[test]
fn a_fork_at_a_message_has_the_lorebook_of_that_message() {
    let mut sandbox = story();
    sandbox.wait(DAY);
    sandbox.append(CHAT, &message("one", 2));
    edit(&sandbox, "One mast.");
    let told = sandbox.stvc(&["fork", NAME, "--at", "1", "--as", "Fork"]).exits(0).stdout;
    assert!(told.contains("a copy of the one at #1"), "{told}");
    assert_eq!(kestrel(&sandbox, "Mira/Fork"), "Two masts.");
    // Where it is not known, it is the one of now, and that is said.
    let told = sandbox.stvc(&["fork", NAME, "--at", "0", "--as", "Other"]).exits(0).stdout;
    assert!(told.contains("a copy of the one of now"), "{told}");
    assert_eq!(kestrel(&sandbox, "Mira/Other"), "One mast.");
}

/// A deleted chat is restored with the lorebook as it was when it was deleted; what changed since is the choice of whoever restores it.
#[test]
fn a_deleted_chat_has_the_lorebook_of_when_it_was_deleted() {
    let mut sandbox = story();
    sandbox.write("chats/Mira/two.jsonl", chat("two", 2, None));
    sandbox.take(&[]);
    sandbox.wait(DAY);
    edit(&sandbox, "One mast.");
    sandbox.wait(DAY);
    // Both in one save.
    std::fs::remove_file(sandbox.path(CHAT)).unwrap();
    edit(&sandbox, "No mast.");
    sandbox.wait(DAY);
    edit(&sandbox, "Sunk.");
    let timelines = sandbox.json(&["timelines"]).exits(0).of_type("timeline");
    let deleted = timelines.iter().find(|line| line["state"] == "deleted").unwrap();
    assert_eq!(kestrel(&sandbox, deleted["moment"].as_str().unwrap()), "One mast.");
    assert_eq!(kestrel(&sandbox, NAME), "One mast.");
    assert_eq!(kestrel(&sandbox, &format!("{NAME}~1")), "One mast.");
    assert_eq!(kestrel(&sandbox, &format!("{NAME}~2")), "Two masts.");
}
