//! A group chat with a checkpoint.

use crate::common::assert_same;
use crate::stage::{Stage, again};

#[test]
fn a_group_chat_in_1_19_with_a_checkpoint() {
    again(|| {
        let Some(mut stage) = Stage::open("group-1.19", "1.19.0") else { return };
        story(&mut stage);
    });
}

/// Its group chats have no header; what they know is in the group's file.
#[test]
fn a_group_chat_in_1_12_with_a_checkpoint() {
    again(|| {
        let Some(mut stage) = Stage::open("group-1.12", "1.12.14") else { return };
        story(&mut stage);
    });
}

fn story(stage: &mut Stage) {
    stage.writer.character("Mira Voss", "The tide is low.");
    stage.writer.character("Wren", "Cold, cold, cold.");
    stage.connect();
    let main = stage.writer.group("The Office", &["Mira Voss", "Wren"]);
    stage.bind_book("Office Book");
    stage.writer.say("I see a lantern.");
    stage.snapshot();
    let checkpoint = stage.writer.checkpoint(2, "Before the storm");
    let at_checkpoint = stage.snapshot()[&checkpoint].clone();
    stage.writer.say("The main line goes on.");
    stage.writer.open(&checkpoint);
    stage.writer.say("The checkpoint goes on.");
    stage.snapshot();
    assert_eq!(stage.writer.back(), main);

    let chat = |name: &str| format!("group chats/{name}.jsonl");
    let before = stage.stories();
    stage.writer.delete(&checkpoint);
    assert!(!stage.path(&chat(&checkpoint)).exists());
    stage.while_away("The Office", |stage| stage.stvc(&["restore", &checkpoint]).exits(0));
    assert_same(&stage.stories(), &before);
    let seen = stage.opens_unchanged(&checkpoint);
    assert!(seen["messages"].to_string().contains("The checkpoint goes on."), "{seen}");
    assert_eq!(seen["world"], "Office Book");

    stage.while_away("The Office", |stage| {
        stage.stvc(&["restore", &at_checkpoint, "--as", "Another storm"]).exits(0)
    });
    let seen = stage.opens_unchanged("Another storm");
    let said = seen["messages"].as_array().unwrap();
    assert_eq!((said.len(), &said[2]), (3, &"I see a lantern.".into()));
    assert_ne!(seen["world"], "Office Book");
    assert_eq!(seen["uids"], serde_json::json!([0, 1, 2]));
    assert_eq!(stage.writer.back(), checkpoint);
    for name in [&main, &checkpoint, "Another storm"] {
        let changed = stage.changed_by(|writer| {
            writer.open(name);
            writer.say("Good night.");
        });
        assert_eq!(changed, [chat(name)]);
    }
    stage.store_holds_what_is_there();
}
