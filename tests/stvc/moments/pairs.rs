//! A moment of a chat is one pair of chat and lorebook in every form of its name (docs/moments.md;
//! requirements row 89). Each case was a defect.

use serde_json::json;

use super::story::{BOOK, CHAT, DAY, NAME, book, date, edit, kestrel, story};
use crate::common::{Sandbox, chat, message};

#[test]
fn restore_by_date_restores_the_lorebook_of_that_date() {
    let mut sandbox = story();
    sandbox.wait(DAY);
    edit(&sandbox, "Damaged.");
    sandbox.wait(DAY);
    let then = date(&sandbox, DAY + 1);
    assert_eq!(kestrel(&sandbox, &then), "Two masts.");
    sandbox.stvc(&["restore", &then, "--overwrite"]).exits(0);
    assert_eq!(sandbox.read(BOOK), book("Two masts.").into_bytes());
    // The latest snapshots of chat and lorebook equal the files.
    assert_eq!(kestrel(&sandbox, NAME), "Two masts.");
    let status = sandbox.json(&["status"]).exits(0).of_type("timeline");
    assert!(status.iter().all(|timeline| timeline["state"] == "unchanged"), "{status:?}");
}

#[test]
fn lorebook_versions_between_chat_snapshots_are_found_by_date() {
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
    // The chat is that of the date too.
    let shown = sandbox.json(&["show", &date(&sandbox, DAY)]).exits(0).of_type("snapshot");
    assert_eq!(shown[0]["messages"], 2);
}

#[test]
fn change_of_only_the_lorebook_is_a_moment() {
    let sandbox = story();
    edit(&sandbox, "One mast.");
    edit(&sandbox, "No mast.");
    for (moment, text) in
        [("", "No mast."), ("~1", "One mast."), ("~2", "Two masts."), (":1", "No mast.")]
    {
        assert_eq!(kestrel(&sandbox, &format!("{NAME}{moment}")), text, "{moment}");
    }
    let status = sandbox.stvc(&["status"]).exits(0).stdout;
    assert!(status.contains("No changes since the latest snapshots"), "{status}");
    let changed = sandbox.json(&["diff", NAME]).exits(0).of_type("change");
    assert_eq!(changed, [json!(null); 0]);
    // `log CHAT` counts like `~N`, and its lines name the moments.
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
    // `diff --history` counts like that too.
    let history = sandbox.json(&["diff", "--history", NAME]).exits(0).of_type("comparison");
    let moments: Vec<_> = history.iter().map(|line| &line["after_moment"]).collect();
    assert_eq!(moments, log.iter().map(|line| &line["moment"]).collect::<Vec<_>>());
    // Both sides have the same snapshot of the chat; the lorebooks differ.
    let changed = sandbox.stvc(&["diff", &format!("{NAME}~1"), NAME]).exits(0).stdout;
    let sides: Vec<_> = changed.lines().take(2).map(|line| &line[3..]).collect();
    assert!(sides.iter().all(|side| side.contains("; lorebook ")), "{changed}");
    assert_ne!(sides[0], sides[1]);
    insta::assert_snapshot!(crate::common::output_without_ids(&sandbox.stvc(&["log", NAME]).exits(0)), @r"
    ID lorebook / Harbour  3 entries, 2026-11-14 23:46, lorebook only
    ID lorebook / Harbour  3 entries, 2026-11-14 23:46, lorebook only
    ID Mira / one  2 messages, 2026-11-14 23:46
        Mira: one 1: e4c4fb91926ea3c3 e5696e97d6975c9b
    ");
}

#[test]
fn tag_holds_the_lorebook_that_was_current_when_it_was_set() {
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
    // A past moment too; the timeline stays.
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
fn snapshots_within_one_second_are_distinct() {
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
fn clock_set_back_does_not_change_the_order() {
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

/// Renames the lorebook as SillyTavern does: saves the new file, removes the old one, and binds the
/// open chat to it.
fn rename(sandbox: &Sandbox, kestrel: &str) {
    sandbox.write("worlds/Docks.json", book(kestrel));
    std::fs::remove_file(sandbox.path(BOOK)).unwrap();
    let bound = String::from_utf8(sandbox.read(CHAT)).unwrap().replace("\"Harbour\"", "\"Docks\"");
    sandbox.write(CHAT, bound);
    sandbox.take(&[]);
}

#[test]
fn renamed_lorebook_keeps_its_history() {
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
        // The history of the entry includes the time before the rename.
        let story = sandbox.json(&["lore", "Kestrel"]).exits(0).of_type("lore_change");
        assert_eq!(story.len(), if edited { 4 } else { 3 });
    }
}

/// SillyTavern rebinds only the open chat; the others still name the old file.
#[test]
fn chat_that_names_the_old_lorebook_uses_the_renamed_lorebook() {
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

/// Without a snapshot at the message, its lorebook is the last known one before it, and that is
/// reported.
#[test]
fn message_without_snapshot_has_the_last_lorebook_before_it() {
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

#[test]
fn lorebook_created_after_the_chat_snapshot_belongs_to_the_chat() {
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
    // Also after its deletion and return.
    std::fs::remove_file(sandbox.path(BOOK)).unwrap();
    sandbox.write("worlds/Other.json", book("Other."));
    sandbox.append(CHAT, &message("one", 2));
    sandbox.take(&[]);
    sandbox.wait(60);
    edit(&sandbox, "One mast.");
    assert_eq!(kestrel(&sandbox, NAME), "One mast.");
}

/// A chat that was unbound at a message has no lorebook there, whatever it was bound to earlier or
/// later.
#[test]
fn message_of_an_unbound_chat_has_no_lorebook() {
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
    // A former lorebook is not written under the name of the current one.
    let sandbox = story();
    sandbox.write("worlds/Other.json", book("Another book."));
    sandbox.write(CHAT, chat("one", 5, Some("Other")));
    sandbox.take(&[]);
    sandbox.stvc(&["restore", &format!("{NAME}:3"), "--as", "Fork"]).exits(4);
}

#[test]
fn name_of_deleted_chat_selects_latest_lorebook_and_id_its_last_one() {
    let sandbox = story();
    edit(&sandbox, "One mast.");
    std::fs::remove_file(sandbox.path(CHAT)).unwrap();
    sandbox.write("chats/Mira/two.jsonl", chat("two", 2, None));
    sandbox.take(&[]);
    let log = sandbox.json(&["log", NAME]).exits(0).of_type("snapshot");
    let deleted = log.iter().find(|line| line["kind"] == "deleted").unwrap();
    let id = deleted["id"].as_str().unwrap();
    for end in ["", "~0", ":1"] {
        assert_eq!(kestrel(&sandbox, &format!("{NAME}{end}")), "One mast.", "{end}");
        assert_eq!(kestrel(&sandbox, &format!("{id}{end}")), "Two masts.", "{end}");
    }
    assert_eq!(kestrel(&sandbox, &format!("{id}~1")), "One mast.");
}
