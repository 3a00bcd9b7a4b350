//! One gate for everything that takes, copies or replaces a lorebook: ST-Auto-Recap must not be at work in it.

use crate::common::Sandbox;
use crate::common::recap_library::{Operation, RecapLibrary, book_name};

const NAME: &str = "Harbour nights";

/// A chat whose lorebook has work waiting, and one that was stored when it had none.
fn at_work() -> (Sandbox, RecapLibrary) {
    let mut sandbox = Sandbox::empty();
    let mut library = RecapLibrary::default();
    library.write(&sandbox);
    sandbox.stvc(&["snapshot"]).exits(0);
    sandbox.wait(60);
    library.queue = Some(vec![Operation::new("pending").about(11)]);
    library.write(&sandbox);
    (sandbox, library)
}

#[test]
fn a_lorebook_with_pending_work_is_not_copied_by_a_repair() {
    let (sandbox, main) = at_work();
    for fork in [main.fork("Branch #1", 7), main.fork("Branch #2", 11)] {
        fork.write(&sandbox);
    }
    let before = sandbox.files();
    let answer = sandbox.json(&["doctor", "--fix", "--yes"]).exits(4);
    let refused: Vec<_> = answer
        .of_type("finding")
        .into_iter()
        .filter(|line| line["code"] == "queue-active")
        .collect();
    assert_eq!(refused.len(), 2, "{}", answer.stdout);
    assert!(refused[0]["message"].as_str().unwrap().contains("ST-Auto-Recap"));
    let now = sandbox.files();
    let books = |files: &std::collections::BTreeMap<String, Vec<u8>>| {
        files.keys().filter(|path| path.starts_with("worlds/")).count()
    };
    assert_eq!((books(&before), books(&now)), (1, 1));
    // Once the work is done, so is the repair.
    RecapLibrary { queue: None, ..main }.write(&sandbox);
    sandbox.stvc(&["doctor", "--fix", "--yes"]).exits(0);
    assert_eq!(books(&sandbox.files()), 3);
}

#[test]
fn a_lorebook_with_pending_work_is_not_replaced_unasked() {
    let (sandbox, library) = at_work();
    let book = sandbox.read(&library.book_path());
    for dry in [&["-n"][..], &[]] {
        let words = [&["restore", NAME, "--overwrite"][..], dry].concat();
        let answer = sandbox.stvc(&words).exits(4);
        assert!(answer.stderr.contains("--allow-active-queue"), "{}", answer.stderr);
    }
    assert_eq!(sandbox.read(&library.book_path()), book);
    // The chat alone does no harm.
    sandbox.append(&library.chat_path(), r#"{"name":"Wren","mes":"one more"}"#);
    sandbox.stvc(&["restore", NAME, "--only", "chat", "--overwrite"]).exits(0);
    sandbox
        .stvc(&["restore", &format!("{NAME}~2"), "--overwrite", "--allow-active-queue"])
        .exits(0);
    assert_ne!(sandbox.read(&library.book_path()), book);
    sandbox.stvc(&["undo"]).exits(0);
    assert_eq!(sandbox.read(&library.book_path()), book, "and can be taken back");
}

#[test]
fn a_merge_does_not_write_where_work_is_pending() {
    let (sandbox, _) = at_work();
    sandbox.stvc(&["restore", NAME, "--as", "Another ending"]).exits(0);
    let book = format!("worlds/{}.json", book_name("Mira", "Another ending"));
    let text = String::from_utf8(sandbox.read(&book)).unwrap();
    sandbox.write(&book, text.replace("Wet stones", "Dry stones"));
    let answer = sandbox.stvc(&["merge", NAME, "Another ending", "--keep", "b", "--yes"]).exits(4);
    assert!(answer.stderr.contains("ST-Auto-Recap"), "{}", answer.stderr);
    sandbox
        .stvc(&["merge", NAME, "Another ending", "--keep", "b", "--yes", "--allow-active-queue"])
        .exits(0);
}

#[test]
fn a_state_from_the_middle_of_the_work_says_so_when_it_comes_back() {
    let (sandbox, _) = at_work();
    sandbox.stvc(&["snapshot", "--allow-active-queue"]).exits(0);
    let answer = sandbox.stvc(&["restore", NAME, "--as", "Another ending"]).exits(0);
    assert!(answer.stderr.contains("1 operation in queue"), "{}", answer.stderr);
    assert!(answer.stderr.contains("--clear-queue"), "{}", answer.stderr);
    let answer = sandbox.stvc(&["restore", NAME, "--as", "A third", "--clear-queue"]).exits(0);
    assert!(!answer.stderr.contains("in queue"), "{}", answer.stderr);
}

#[test]
fn a_backup_takes_what_changed_first() {
    let mut sandbox = Sandbox::of_fixture("1.19.0");
    let backup = sandbox.folder().join("all.stvc");
    let destination = backup.to_str().unwrap();
    // Also the first time: nobody has to know about snapshots to have a backup.
    sandbox.stvc(&["backup", destination, "--no-snapshot"]).exits(10);
    sandbox.stvc(&["backup", destination]).exits(0);
    let chat = "chats/Mira Voss/The Tide Office — part 1 (雨).jsonl";
    sandbox.append(chat, r#"{"name":"Wren","mes":"said after the last snapshot"}"#);
    sandbox.wait(60);
    let told = sandbox.json(&["backup", destination]).exits(0).of_type("summary").remove(0);
    assert_eq!((&told["taken_first"], &told["not_taken"]), (&1.into(), &0.into()));
    let other = Sandbox::empty();
    other.stvc(&["import", destination]).exits(0);
    other.stvc(&["restore", "--all"]).exits(0);
    assert_eq!(other.read(chat), sandbox.read(chat));

    sandbox.append(chat, r#"{"name":"Wren","mes":"and more"}"#);
    sandbox.stvc(&["backup", destination, "--no-snapshot"]).exits(0);
    assert_eq!(sandbox.json(&["status"]).of_type("summary")[0]["changed"], 1);
}

#[test]
fn what_is_at_work_stays_out_of_a_backup_and_is_told() {
    let (sandbox, _) = at_work();
    let folder = sandbox.folder().join("mirror");
    let answer = sandbox.json(&["backup", folder.to_str().unwrap()]).exits(3);
    assert_eq!(answer.of_type("summary")[0]["not_taken"], 1);
    assert_eq!(answer.of_type("finding")[0]["code"], "queue-active");
    // Its last good state is there.
    let store = folder.to_str().unwrap();
    let log = sandbox.json(&["--store", store, "log"]).exits(0).of_chats("snapshot");
    assert_eq!(log.len(), 1);
}

#[test]
fn a_sync_leaves_alone_what_is_at_work() {
    let (sandbox, library) = at_work();
    let remote = sandbox.folder().join("remote");
    let remote = remote.to_str().unwrap();
    let answer = sandbox.stvc(&["sync", remote]).exits(3);
    assert!(answer.stderr.contains("ST-Auto-Recap"), "{}", answer.stderr);
    let other = Sandbox::empty();
    other.stvc(&["sync", remote]).exits(0);
    assert_eq!(
        other.read(&library.book_path()),
        RecapLibrary::default().book_bytes().into_bytes(),
        "the last good state went"
    );
}
