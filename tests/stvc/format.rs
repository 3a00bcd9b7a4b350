//! Stores that earlier versions wrote stay readable: one under `fixtures/` for every version of the format.

use std::fs;

use crate::common::{Sandbox, copy, fixtures};

/// `fixtures/store-1`: all of `fixtures/1.19.0`, one of its chats also as it was at 19 messages, a tag, a checkpoint.
#[test]
fn a_store_of_format_1_is_read_and_goes_on() {
    let sandbox = Sandbox::of_fixture("1.19.0");
    copy(&fixtures().join("store-1"), &sandbox.store());
    sandbox.stvc(&["check"]).exits(0);
    sandbox.git(&["fsck", "--strict"]);
    let status = sandbox.json(&["status"]).exits(0);
    let all = status.of_type("timeline");
    assert!(all.iter().all(|line| line["state"] == "unchanged"), "{all:?}");
    assert_eq!((all.len(), status.of_chats("timeline").len()), (18, 12));

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
