//! One character, from the first message to timelines that know nothing of each other.

use std::fs;

use serde_json::json;

use crate::common::assert_same;
use crate::stage::{LANTERN, Stage, again, chat_of};

#[test]
fn a_story_in_1_19_with_checkpoint_branch_and_another_ending() {
    again(|| {
        let Some(mut stage) = Stage::open("solo-1.19", "1.19.0") else { return };
        story(&mut stage);
    });
}

/// Its chats have another header, its forks other names and their parent's integrity.
#[test]
fn the_same_story_in_1_12() {
    again(|| {
        let Some(mut stage) = Stage::open("solo-1.12", "1.12.14") else { return };
        story(&mut stage);
    });
}

fn story(stage: &mut Stage) {
    // A chat with edits, swipes and a lorebook of its own, one entry of which is sticky.
    let main = stage.writer.character("Mira Voss", "The tide is low.");
    stage.connect();
    stage.writer.say("Who is there?");
    stage.snapshot();
    stage.writer.edit(1, "Who is there, then?");
    stage.writer.swipe();
    stage.snapshot();
    stage.bind_book("Tide Office");
    stage.writer.say("I see a lantern.");
    stage.snapshot();
    // Out of the depth that SillyTavern scans: from here on only the running effect tells of it.
    stage.writer.say("We walk on.");
    stage.writer.say("And on.");
    assert!(stage.model.last_prompt().contains(LANTERN), "the entry is not sticky");
    stage.snapshot();

    // A checkpoint and a branch by the buttons, every side continued.
    let checkpoint = stage.writer.checkpoint(6, "At the bell");
    let at_checkpoint = stage.snapshot()[&checkpoint].clone();
    stage.writer.say("The main line goes on.");
    stage.snapshot();
    stage.writer.open(&checkpoint);
    stage.writer.say("The checkpoint goes on.");
    stage.snapshot();
    assert_eq!(stage.writer.back(), main);
    let branch = stage.writer.branch(4);
    stage.writer.say("The branch goes on.");
    stage.snapshot();
    assert_eq!(stage.writer.back(), main);
    stage.writer.say("The main line goes on still.");
    stage.snapshot();
    the_tree_is_true(stage, &main, &checkpoint, &branch);

    // A chat that was deleted comes back, byte for byte, and SillyTavern opens it.
    let chat = |name: &str| format!("chats/Mira Voss/{name}.jsonl");
    let before = stage.stories();
    stage.writer.delete(&checkpoint);
    assert!(!stage.path(&chat(&checkpoint)).exists());
    stage.stvc(&["restore", &checkpoint]).exits(0);
    assert_same(&stage.stories(), &before);
    let seen = stage.opens_unchanged(&checkpoint);
    assert_eq!(seen["messages"].as_array().unwrap().len(), 9);
    assert_eq!(seen["messages"][7], "The checkpoint goes on.");

    // A chat that was damaged comes back over what is left of it.
    stage.while_away("Mira Voss", |stage| {
        let path = stage.path(&chat(&main));
        let bytes = fs::read(&path).unwrap();
        fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
        stage.stvc(&["restore", &main]).exits(4);
        stage.stvc(&["restore", &main, "--overwrite", "--chat-closed"]).exits(0);
    });
    assert_same(&stage.stories(), &before);
    let seen = stage.opens_unchanged(&main);
    assert_eq!(seen["messages"].as_array().unwrap().len(), 13);
    assert_eq!(seen["swipes"][2], 2);
    assert_eq!(seen["links"][6], json!(checkpoint));

    // Another ending: the checkpoint as it was when it was made, beside all others.
    stage.stvc(&["restore", &at_checkpoint, "--as", "Another ending"]).exits(0);
    stage.writer.reload();
    stage.writer.go("Mira Voss");
    stage.connect();
    let seen = stage.opens_unchanged("Another ending");
    let said = seen["messages"].as_array().unwrap();
    assert_eq!(said.len(), 7);
    assert_eq!((&said[1], &said[5]), (&json!("Who is there, then?"), &json!("We walk on.")));
    let book = seen["world"].as_str().unwrap().to_owned();
    assert_ne!(book, "Tide Office");
    assert_eq!(seen["uids"], json!([0, 1, 2]));
    assert_eq!(seen["contents"], json!(["The ferry has no name.", LANTERN, "It rings twice."]));
    assert_eq!(seen["sticky"], json!([format!("{book}.1")]));
    assert_eq!(stage.writer.back(), checkpoint);

    // What is said in one timeline changes that one's file and no other, and the effect runs in each.
    for name in [&main, &checkpoint, &branch, "Another ending"] {
        let changed = stage.changed_by(|writer| {
            writer.open(name);
            writer.say("Good night.");
        });
        assert_eq!(changed, [chat(name)]);
        assert!(stage.model.last_prompt().contains(LANTERN), "the effect stopped in {name}");
        assert_eq!(stage.writer.sees()["sticky"].as_array().unwrap().len(), 1, "{name}");
    }
    // Nor does what its lorebook learns.
    let changed = stage.changed_by(|writer| {
        writer.command(&format!("/createentry file=\"{book}\" key=\"oar\" The oar is broken."));
    });
    assert_eq!(changed, [format!("worlds/{book}.json")]);
    assert_eq!(stage.writer.sees()["uids"], json!([0, 1, 2, 3]));
    stage.store_holds_what_is_there();
}

/// The checkpoint and the branch part from the main line where the buttons were pressed.
#[track_caller]
fn the_tree_is_true(stage: &Stage, main: &str, checkpoint: &str, branch: &str) {
    let log = stage.json(&["log"]).exits(0).of_chats("snapshot");
    let forks: Vec<_> = log.iter().filter(|line| !line["fork_at"].is_null()).collect();
    let mut parted: Vec<_> = forks
        .iter()
        .map(|line| {
            let parent = log.iter().find(|other| other["id"] == line["parents"][0]).unwrap();
            (chat_of(line), chat_of(parent), line["fork_at"].as_u64().unwrap())
        })
        .collect();
    parted.sort_by_key(|(_, _, at)| *at);
    let named = |fork: &str, at| (fork.to_owned(), main.to_owned(), at);
    assert_eq!(parted, [named(branch, 5), named(checkpoint, 7)]);
    let of_main: Vec<_> = log.iter().filter(|line| chat_of(line) == main).collect();
    for (newer, older) in of_main.iter().zip(&of_main[1..]) {
        assert_eq!(newer["parents"], json!([older["id"]]), "the main line has a gap");
    }
    let graph = stage.stvc(&["log", "--graph"]).exits(0).stdout;
    let shown = |name: &str| {
        graph.lines().any(|line| line.contains(name) && line.contains("forked after #"))
    };
    assert!(shown(checkpoint) && shown(branch), "{graph}");
    assert_eq!(graph.matches("├─╯").count(), 2, "{graph}");
}
