//! Moments mean the same pairs after other commands: fork, restore, sync, backup, import, forget,
//! merge and the deletion of a chat. Each case was a defect.

use super::story::{BOOK, CHAT, DAY, NAME, book, date, edit, kestrel, story};
use crate::common::{Sandbox, chat, message};

#[test]
fn fork_gets_a_copy_of_the_lorebook_on_disk() {
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

/// A plan names the moment; snapshots after the plan do not change the restore.
#[test]
fn plan_names_the_moment_that_is_restored_later() {
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
    // Both parts are exact ids.
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

/// The chat before the loss with the lorebook of that time: a later change of the book alone is not
/// reverted.
#[test]
fn req_92_alarm_names_chat_and_lorebook_before_the_loss() {
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

/// One device writes and the other only receives: nothing is merged, and both have the same
/// moments.
#[test]
fn sync_creates_no_chat_snapshot_when_only_the_lorebook_changed() {
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

/// Snapshots after a sync come after the received ones, even those of a device whose clock is
/// ahead.
#[test]
fn device_with_fast_clock_does_not_change_the_order() {
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
fn backup_of_one_chat_contains_the_versions_of_its_lorebook() {
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
fn imported_chat_has_the_lorebook_of_its_time() {
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

#[test]
fn forget_pairs_no_chat_with_a_lorebook_of_another_time() {
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
    // A name from before the rewrite still means that moment.
    assert_eq!(kestrel(&sandbox, moment.as_str().unwrap()), "After message 3.");
    sandbox.git(&["fsck", "--strict"]);
    sandbox.stvc(&["check"]).exits(0);
}

#[test]
fn merge_of_an_ancestor_does_nothing() {
    let sandbox = story();
    for text in ["One mast.", "No mast."] {
        edit(&sandbox, text);
    }
    let merged = sandbox.stvc(&["merge", NAME, &format!("{NAME}~1"), "--dry-run"]).exits(0).stdout;
    assert!(merged.contains("Nothing to do"), "{merged}");
}

#[test]
fn fork_at_a_message_has_the_lorebook_of_that_message() {
    let mut sandbox = story();
    sandbox.wait(DAY);
    sandbox.append(CHAT, &message("one", 2));
    edit(&sandbox, "One mast.");
    let output = sandbox.stvc(&["fork", NAME, "--at", "1", "--as", "Fork"]).exits(0).stdout;
    assert!(output.contains("a copy of the lorebook at #1"), "{output}");
    assert_eq!(kestrel(&sandbox, "Mira/Fork"), "Two masts.");
    // An unknown lorebook is replaced by the current one, and that is reported.
    let output = sandbox.stvc(&["fork", NAME, "--at", "0", "--as", "Other"]).exits(0).stdout;
    assert!(output.contains("a copy of the current lorebook"), "{output}");
    assert_eq!(kestrel(&sandbox, "Mira/Other"), "One mast.");
}

/// A deleted chat is restored with the lorebook at its deletion; later changes need a choice.
#[test]
fn deleted_chat_has_the_lorebook_at_its_deletion() {
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
