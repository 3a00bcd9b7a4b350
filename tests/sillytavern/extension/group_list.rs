//! A group's file lists its chats, and SillyTavern's page writes the whole list with every save: what was forked or restored in the page must stay in it.

use std::fs;

use serde_json::{Value, json};

use crate::stage::{Stage, again};

#[test]
fn a_group_chat_forked_or_restored_in_the_page_stays_listed_in_1_19() {
    again(|| scenario("group-list-1.19", "1.19.0"));
}

#[test]
fn a_group_chat_forked_or_restored_in_the_page_stays_listed_in_1_12() {
    again(|| scenario("group-list-1.12", "1.12.14"));
}

fn scenario(name: &'static str, version: &str) {
    let Some((mut stage, watching)) = Stage::inside(name, version) else { return };
    stage.writer.character("Mira Voss", "The tide is low.");
    stage.writer.character("Wren", "Cold, cold, cold.");
    stage.connect();
    let main = stage.writer.group("The Office", &["Mira Voss", "Wren"]);
    stage.bind_book("Office Book");
    stage.writer.say("I see a lantern.");

    // Forked right after a message: the save of the group is still pending in the page.
    stage.writer.say("The storm begins.");
    assert_eq!(stage.writer.pipe("/stvc-fork at=2 Another storm"), "Another storm");
    stage.writer.until("SillyTavern.getContext().getCurrentChatId() === 'Another storm'");
    let book = stage.writer.sees()["world"].clone();
    assert_ne!(book, "Office Book", "it has a lorebook of its own");
    stays_listed(&mut stage, &[&main, "Another storm"]);
    stage.writer.say("Rain in the fork.");
    stays_listed(&mut stage, &[&main, "Another storm"]);
    assert_eq!(stage.writer.sees()["world"], book);
    stage.writer.open(&main);
    stage.writer.say("The main line goes on.");
    stays_listed(&mut stage, &[&main, "Another storm"]);

    // Deleted in SillyTavern, and restored where people look for it.
    stage.writer.delete("Another storm");
    stays_listed(&mut stage, &[&main]);
    stage.writer.pipe("/stvc-snapshot");
    stage.writer.say("And on.");
    stage.writer.click("#options_button");
    stage.writer.click("#option_select_chat");
    stage.writer.until("document.querySelector('.stvc-deleted button')");
    stage.writer.evaluate("document.querySelector('.stvc-deleted').open = true");
    stage.writer.evaluate("document.querySelector('.stvc-deleted button').click()");
    // The group's file is replaced, so the plan is shown first.
    stage.writer.click("dialog.popup[open] .popup-button-ok");
    stage.writer.until("!document.querySelector('.stvc-deleted li')");
    stage.writer.evaluate("document.getElementById('select_chat_cross').click()");
    stays_listed(&mut stage, &[&main, "Another storm"]);
    stage.writer.say("After the restore.");
    stays_listed(&mut stage, &[&main, "Another storm"]);

    // Forked by the command line while the page has the older list.
    stage.stvc(&["fork", &main, "--as", "From outside", "--at", "1"]).exits(0);
    stage.writer.evaluate("document.dispatchEvent(new Event('visibilitychange'))");
    stage.writer.until("SillyTavern.getContext().groups[0].chats.includes('From outside')");
    stage.writer.say("The page saves again.");
    stays_listed(&mut stage, &[&main, "Another storm", "From outside"]);
    stage.writer.open("Another storm");
    assert_eq!(stage.writer.sees()["world"], book);
    watching.stop();
}

/// What the page wrote last lists these chats, on the disk and in memory.
#[track_caller]
fn stays_listed(stage: &mut Stage, names: &[&str]) {
    stage.writer.settle();
    // A save of the group may come a second after that of the chat.
    std::thread::sleep(std::time::Duration::from_millis(1500));
    stage.writer.settle();
    let folder = fs::read_dir(stage.path("groups")).unwrap();
    let file = folder.map(|entry| entry.unwrap().path()).next().unwrap();
    let group: Value = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
    let sorted = |list: &Value| {
        let list = list.as_array().unwrap().iter().map(|name| name.as_str().unwrap().to_owned());
        let mut list: Vec<_> = list.collect();
        list.sort();
        list
    };
    let wanted = sorted(&json!(names));
    assert_eq!(sorted(&group["chats"]), wanted);
    let held = stage.writer.evaluate("SillyTavern.getContext().groups[0].chats");
    assert_eq!(sorted(&held), wanted, "in memory");
}
