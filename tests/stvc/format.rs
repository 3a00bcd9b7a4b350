//! Stores of earlier versions stay readable: `fixtures/` has one per format version.

use std::fs;

use crate::common::{Sandbox, copy_folder, fixtures};

/// `fixtures/store-1`: all of `fixtures/1.19.0`, an earlier state of one chat with 19 messages, a
/// tag, a checkpoint.
#[test]
fn store_of_format_1_is_read_and_extended() {
    let sandbox = Sandbox::from_fixture("1.19.0");
    copy_folder(&fixtures().join("store-1"), &sandbox.store());
    sandbox.stvc(&["check"]).exits(0);
    sandbox.git(&["fsck", "--strict"]);
    let status = sandbox.json(&["status"]).exits(0);
    let all = status.of_type("timeline");
    assert!(all.iter().all(|line| line["state"] == "unchanged"), "{all:?}");
    assert_eq!((all.len(), status.chat_lines("timeline").len()), (18, 12));

    let ids = sandbox.snapshot_ids();
    assert_eq!(ids.len(), 20);
    let to = sandbox.folder().join("old");
    let chat = "chats/Mira Voss/The Tide Office — part 1 (雨).jsonl";
    sandbox.stvc(&["restore", "part one~1", "--to", to.to_str().unwrap()]).exits(0);
    let (old, new) = (fs::read(to.join(chat)).unwrap(), sandbox.read(chat));
    assert!(new.starts_with(&old) && old.split(|byte| *byte == b'\n').count() == 20);
    let checkpoint = sandbox.json(&["show", "The Tide Office — part 1 (雨) @12"]).exits(0);
    assert_eq!(checkpoint.of_type("snapshot")[0]["messages"], 13);

    sandbox.append(chat, r#"{"name":"Wren","mes":"and on"}"#);
    sandbox.stvc(&["snapshot"]).exits(0);
    let format = fs::read_to_string(sandbox.store().join("stvc/format")).unwrap();
    assert!(format.starts_with("stvc store format 1 "), "{format}");
    sandbox.stvc(&["check"]).exits(0);
    sandbox.stvc(&["undo"]).exits(0);
    assert_eq!(sandbox.snapshot_ids(), ids);
}
