//! The chats of one character: restores, forks, and timelines that do not affect each other.

use std::fs;

use serde_json::json;

use crate::common::assert_same;
use crate::session::{LANTERN, Session, chat_name, with_retries};

#[test]
fn restored_and_forked_timelines_stay_separate_in_1_19() {
    with_retries(|| {
        let Some(mut session) = Session::open("one-character-1.19", "1.19.0") else { return };
        scenario(&mut session);
    });
}

/// In 1.12, chats have other headers, and forks have other names and the integrity of their parent.
#[test]
fn restored_and_forked_timelines_stay_separate_in_1_12() {
    with_retries(|| {
        let Some(mut session) = Session::open("one-character-1.12", "1.12.14") else { return };
        scenario(&mut session);
    });
}

fn scenario(session: &mut Session) {
    // A chat with edits, swipes, and its own lorebook with a sticky entry.
    let main = session.writer.character("Mira Voss", "The tide is low.");
    session.connect_model();
    session.writer.say("Who is there?");
    session.snapshot();
    session.writer.edit(1, "Who is there, then?");
    session.writer.swipe();
    session.snapshot();
    session.add_chat_lorebook("Tide Office");
    session.writer.say("I see a lantern.");
    session.snapshot();
    // Beyond the depth that SillyTavern scans, only the sticky effect adds the entry to prompts.
    session.writer.say("We walk on.");
    session.writer.say("And on.");
    assert!(session.model.last_prompt().contains(LANTERN), "the entry is not sticky");
    session.snapshot();

    // A checkpoint and a branch, created by the buttons; every chat continues.
    let checkpoint = session.writer.checkpoint(6, "At the bell");
    let at_checkpoint = session.snapshot()[&checkpoint].clone();
    session.writer.say("The main line goes on.");
    session.snapshot();
    session.writer.open(&checkpoint);
    session.writer.say("The checkpoint goes on.");
    session.snapshot();
    assert_eq!(session.writer.back(), main);
    let branch = session.writer.branch(4);
    session.writer.say("The branch goes on.");
    session.snapshot();
    assert_eq!(session.writer.back(), main);
    session.writer.say("The main line goes on still.");
    session.snapshot();
    assert_fork_points(session, &main, &checkpoint, &branch);

    // A deleted chat is restored byte for byte, and SillyTavern opens it.
    let chat = |name: &str| format!("chats/Mira Voss/{name}.jsonl");
    let before = session.chats_and_lorebooks();
    session.writer.delete(&checkpoint);
    assert!(!session.path(&chat(&checkpoint)).exists());
    session.stvc(&["restore", &checkpoint]).exits(0);
    assert_same(&session.chats_and_lorebooks(), &before);
    let state = session.open_without_changes(&checkpoint);
    assert_eq!(state["messages"].as_array().unwrap().len(), 9);
    assert_eq!(state["messages"][7], "The checkpoint goes on.");

    // A damaged chat is replaced by its latest snapshot.
    session.with_page_closed("Mira Voss", |session| {
        let path = session.path(&chat(&main));
        let bytes = fs::read(&path).unwrap();
        fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
        session.stvc(&["restore", &main]).exits(4);
        session.stvc(&["restore", &main, "--overwrite", "--chat-closed"]).exits(0);
    });
    assert_same(&session.chats_and_lorebooks(), &before);
    let state = session.open_without_changes(&main);
    assert_eq!(state["messages"].as_array().unwrap().len(), 13);
    assert_eq!(state["swipes"][2], 2);
    assert_eq!(state["links"][6], json!(checkpoint));

    // The first snapshot of the checkpoint, restored as a new chat.
    session.stvc(&["restore", &at_checkpoint, "--as", "Another ending"]).exits(0);
    session.writer.reload();
    session.writer.select("Mira Voss");
    session.connect_model();
    let state = session.open_without_changes("Another ending");
    let messages = state["messages"].as_array().unwrap();
    assert_eq!(messages.len(), 7);
    assert_eq!(
        (&messages[1], &messages[5]),
        (&json!("Who is there, then?"), &json!("We walk on."))
    );
    let book = state["world"].as_str().unwrap().to_owned();
    assert_ne!(book, "Tide Office");
    assert_eq!(state["uids"], json!([0, 1, 2]));
    assert_eq!(state["contents"], json!(["The ferry has no name.", LANTERN, "It rings twice."]));
    assert_eq!(state["sticky"], json!([format!("{book}.1")]));
    assert_eq!(session.writer.back(), checkpoint);

    // A message changes only the file of its own chat, and the sticky effect continues in each.
    for name in [&main, &checkpoint, &branch, "Another ending"] {
        let changed = session.files_changed_by(|writer| {
            writer.open(name);
            writer.say("Good night.");
        });
        assert_eq!(changed, [chat(name)]);
        assert!(
            session.model.last_prompt().contains(LANTERN),
            "the sticky effect stopped in {name}"
        );
        assert_eq!(session.writer.state()["sticky"].as_array().unwrap().len(), 1, "{name}");
    }
    // An entry changes only the lorebook of its own chat.
    let changed = session.files_changed_by(|writer| {
        writer
            .type_command(&format!("/createentry file=\"{book}\" key=\"oar\" The oar is broken."));
    });
    assert_eq!(changed, [format!("worlds/{book}.json")]);
    assert_eq!(session.writer.state()["uids"], json!([0, 1, 2, 3]));
    session.assert_store_matches_library();
}

/// Checks the parent and the fork point of the checkpoint and the branch.
#[track_caller]
fn assert_fork_points(session: &Session, main: &str, checkpoint: &str, branch: &str) {
    let log = session.json(&["log"]).exits(0).chat_lines("snapshot");
    let forks: Vec<_> = log.iter().filter(|line| !line["fork_at"].is_null()).collect();
    let mut fork_points: Vec<_> = forks
        .iter()
        .map(|line| {
            let parent = log.iter().find(|other| other["id"] == line["parents"][0]).unwrap();
            (chat_name(line), chat_name(parent), line["fork_at"].as_u64().unwrap())
        })
        .collect();
    fork_points.sort_by_key(|(_, _, at)| *at);
    let named = |fork: &str, at| (fork.to_owned(), main.to_owned(), at);
    assert_eq!(fork_points, [named(branch, 5), named(checkpoint, 7)]);
    let of_main: Vec<_> = log.iter().filter(|line| chat_name(line) == main).collect();
    for (newer, older) in of_main.iter().zip(&of_main[1..]) {
        assert_eq!(
            newer["parents"],
            json!([older["id"]]),
            "the snapshots of the main chat have a gap"
        );
    }
    let graph = session.stvc(&["log", "--graph"]).exits(0).stdout;
    let shown = |name: &str| {
        graph.lines().any(|line| line.contains(name) && line.contains("forked after #"))
    };
    assert!(shown(checkpoint) && shown(branch), "{graph}");
    assert_eq!(graph.matches("├─╯").count(), 2, "{graph}");
}
