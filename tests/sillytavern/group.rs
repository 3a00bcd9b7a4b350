//! Restores and forks of a group chat with a checkpoint.

use crate::common::assert_same;
use crate::session::{Session, with_retries};

#[test]
fn restored_and_forked_group_chats_stay_separate_in_1_19() {
    with_retries(|| {
        let Some(mut session) = Session::open("group-1.19", "1.19.0") else { return };
        scenario(&mut session);
    });
}

/// Group chats of 1.12 have no header; their metadata is in the group's file.
#[test]
fn restored_and_forked_group_chats_stay_separate_in_1_12() {
    with_retries(|| {
        let Some(mut session) = Session::open("group-1.12", "1.12.14") else { return };
        scenario(&mut session);
    });
}

fn scenario(session: &mut Session) {
    session.writer.character("Mira Voss", "The tide is low.");
    session.writer.character("Wren", "Cold, cold, cold.");
    session.connect_model();
    let main = session.writer.group("The Office", &["Mira Voss", "Wren"]);
    session.add_chat_lorebook("Office Book");
    session.writer.say("I see a lantern.");
    session.snapshot();
    let checkpoint = session.writer.checkpoint(2, "Before the storm");
    let at_checkpoint = session.snapshot()[&checkpoint].clone();
    session.writer.say("The main line goes on.");
    session.writer.open(&checkpoint);
    session.writer.say("The checkpoint goes on.");
    session.snapshot();
    assert_eq!(session.writer.back(), main);

    let chat = |name: &str| format!("group chats/{name}.jsonl");
    let before = session.chats_and_lorebooks();
    session.writer.delete(&checkpoint);
    assert!(!session.path(&chat(&checkpoint)).exists());
    session
        .with_page_closed("The Office", |session| session.stvc(&["restore", &checkpoint]).exits(0));
    assert_same(&session.chats_and_lorebooks(), &before);
    let state = session.open_without_changes(&checkpoint);
    assert!(state["messages"].to_string().contains("The checkpoint goes on."), "{state}");
    assert_eq!(state["world"], "Office Book");

    session.with_page_closed("The Office", |session| {
        session.stvc(&["restore", &at_checkpoint, "--as", "Another storm"]).exits(0)
    });
    let state = session.open_without_changes("Another storm");
    let messages = state["messages"].as_array().unwrap();
    assert_eq!((messages.len(), &messages[2]), (3, &"I see a lantern.".into()));
    assert_ne!(state["world"], "Office Book");
    assert_eq!(state["uids"], serde_json::json!([0, 1, 2]));
    assert_eq!(session.writer.back(), checkpoint);
    for name in [&main, &checkpoint, "Another storm"] {
        let changed = session.files_changed_by(|writer| {
            writer.open(name);
            writer.say("Good night.");
        });
        assert_eq!(changed, [chat(name)]);
    }
    session.assert_store_matches_library();
}
