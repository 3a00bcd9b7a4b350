//! A group's file lists its chats, and SillyTavern's page writes the whole list with every save.
//! Forked and restored chats must stay in it.

use std::fs;

use serde_json::{Value, json};

use crate::session::{Session, with_retries};

#[test]
fn forked_or_restored_group_chat_stays_listed_in_1_19() {
    with_retries(|| scenario("group-list-1.19", "1.19.0"));
}

#[test]
fn forked_or_restored_group_chat_stays_listed_in_1_12() {
    with_retries(|| scenario("group-list-1.12", "1.12.14"));
}

fn scenario(name: &'static str, version: &str) {
    let Some((mut session, watching)) = Session::with_extension(name, version) else { return };
    session.writer.character("Mira Voss", "The tide is low.");
    session.writer.character("Wren", "Cold, cold, cold.");
    session.connect_model();
    let main = session.writer.group("The Office", &["Mira Voss", "Wren"]);
    session.add_chat_lorebook("Office Book");
    session.writer.say("I see a lantern.");

    // Forked right after a message: the save of the group is still pending in the page.
    session.writer.say("The storm begins.");
    assert_eq!(session.writer.run_command("/stvc-fork at=2 Another storm"), "Another storm");
    session.writer.wait_until("SillyTavern.getContext().getCurrentChatId() === 'Another storm'");
    let book = session.writer.state()["world"].clone();
    assert_ne!(book, "Office Book", "the fork has its own lorebook");
    assert_listed(&mut session, &[&main, "Another storm"]);
    session.writer.say("Rain in the fork.");
    assert_listed(&mut session, &[&main, "Another storm"]);
    assert_eq!(session.writer.state()["world"], book);
    session.writer.open(&main);
    session.writer.say("The main line goes on.");
    assert_listed(&mut session, &[&main, "Another storm"]);

    // A deleted chat is restored in "Manage chat files".
    session.writer.delete("Another storm");
    assert_listed(&mut session, &[&main]);
    session.writer.run_command("/stvc-snapshot");
    session.writer.say("And on.");
    session.writer.click("#options_button");
    session.writer.click("#option_select_chat");
    session.writer.click_element("document.querySelector('.stvc-deleted button')");
    // The group's file is replaced, so the plan is shown first.
    session.writer.click("dialog.popup[open] .popup-button-ok");
    session.writer.wait_until("!document.querySelector('.stvc-deleted li')");
    session.writer.click_element("document.getElementById('select_chat_cross')");
    assert_listed(&mut session, &[&main, "Another storm"]);
    session.writer.say("After the restore.");
    assert_listed(&mut session, &[&main, "Another storm"]);

    // A fork by the command line, while the page has the old list in memory.
    session.stvc(&["fork", &main, "--as", "From outside", "--at", "1"]).exits(0);
    session.writer.evaluate("document.dispatchEvent(new Event('visibilitychange'))");
    session.writer.wait_until("SillyTavern.getContext().groups[0].chats.includes('From outside')");
    session.writer.say("The page saves again.");
    assert_listed(&mut session, &[&main, "Another storm", "From outside"]);
    session.writer.open("Another storm");
    assert_eq!(session.writer.state()["world"], book);
    watching.stop();
}

/// Checks that the group's file and the page's memory list exactly these chats.
#[track_caller]
fn assert_listed(session: &mut Session, names: &[&str]) {
    session.writer.settle();
    // SillyTavern saves the group a second after the chat.
    std::thread::sleep(std::time::Duration::from_millis(1500));
    session.writer.settle();
    let folder = fs::read_dir(session.path("groups")).unwrap();
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
    let in_memory = session.writer.evaluate("SillyTavern.getContext().groups[0].chats");
    assert_eq!(sorted(&in_memory), wanted, "in memory");
}
