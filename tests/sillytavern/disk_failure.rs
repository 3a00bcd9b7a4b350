//! After a disk failure, a new SillyTavern has everything that a backup contains.

use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use crate::session::{Session, stvc, with_retries};

/// A picture of 3 by 2 pixels.
const PICTURE: &str = "iVBORw0KGgoAAAANSUhEUgAAAAMAAAACCAIAAAASFvFNAAAAEElEQVR4nGM4kWIEQQxwFgBVoAg1rtvKGQAAAABJRU5ErkJggg==";
const NOTES: &str = "High water at four.";

/// The new SillyTavern was started before, so it has characters, lorebooks and settings.
#[test]
fn import_with_restore_restores_everything_into_a_started_sillytavern_1_19() {
    with_retries(|| {
        let folder = tempfile::tempdir().unwrap();
        let backup = folder.path().join("stories.stvc");
        let Some(chats) = create_backup("1.19.0", "disk-failure-1.19-before", &backup) else {
            return;
        };
        let mut session = Session::open("disk-failure-1.19", "1.19.0").unwrap();
        session.writer.close_page();
        let before = session.user_files();
        let import = ["import", backup.to_str().unwrap(), "--restore", "--chat-closed"];
        session.stvc(&import).exits(0);
        let after = session.user_files();
        let overwritten: Vec<_> =
            before.iter().filter(|(path, bytes)| after.get(*path) != Some(bytes)).collect();
        let overwritten: Vec<_> = overwritten.iter().map(|(path, _)| path.as_str()).collect();
        // The other files are new, or are the same in every new SillyTavern.
        assert_eq!(overwritten, ["settings.json"]);
        session.open_page();
        assert_everything_restored(&mut session, &chats);
    });
}

/// The new SillyTavern was never started.
#[test]
fn restore_all_restores_everything_into_a_new_sillytavern_1_12() {
    with_retries(|| {
        let folder = tempfile::tempdir().unwrap();
        let backup = folder.path().join("stories.stvc");
        let Some(chats) = create_backup("1.12.14", "disk-failure-1.12-before", &backup) else {
            return;
        };
        let session = Session::open_prepared("disk-failure-1.12", "1.12.14", |sandbox| {
            std::fs::create_dir(sandbox.library()).unwrap();
            stvc(sandbox, &["--data", ".", "import", backup.to_str().unwrap()]).exits(0);
            stvc(sandbox, &["--data", ".", "restore", "--all"]).exits(0);
        });
        assert_everything_restored(&mut session.unwrap(), &chats);
    });
}

/// Names of the chats in the backup.
pub struct Chats {
    mira: String,
    wren: String,
    group: String,
}

/// Creates stories and backs them up.
fn create_backup(version: &str, name: &'static str, backup: &Path) -> Option<Chats> {
    let (session, chats) = create_stories(version, name)?;
    session.stvc(&["backup", backup.to_str().unwrap()]).exits(0);
    Some(chats)
}

/// Creates two characters, a group, a lorebook of each kind, a picture and a text file. The store
/// includes the settings, too.
pub fn create_stories(version: &str, name: &'static str) -> Option<(Session, Chats)> {
    let mut session = Session::open(name, version)?;
    let wren = session.writer.character("Wren", "Cold, cold, cold.");
    let mira = session.writer.character("Mira Voss", "The tide is low.");
    session.connect_model();
    session.writer.add_lorebook("Of the card", ("anchor", "The anchor is gold."), "character");
    session.writer.add_lorebook("Of the persona", ("coat", "The coat is wet."), "persona");
    session.writer.add_lorebook("Of all chats", ("bell", "The bell rings twice."), "all");
    session.add_chat_lorebook("Of the chat");
    session.writer.say("I see a lantern.");
    let picture = STANDARD.decode(PICTURE).unwrap();
    session.writer.attach("Look at the map.", ("map.png", "image/png"), &picture);
    session.writer.attach("And at my notes.", ("notes.txt", "text/plain"), NOTES.as_bytes());
    session.writer.select("Wren");
    session.writer.say("Nothing to see.");
    let group = session.writer.group("The Office", &["Mira Voss", "Wren"]);
    session.writer.say("Both of you, listen.");
    session.writer.settle();
    session.stvc(&["config", "include.settings", "true"]).exits(0);
    Some((session, Chats { mira, wren, group }))
}

/// Every chat opens with its messages and attachments, and every lorebook is active where it was.
pub fn assert_everything_restored(session: &mut Session, chats: &Chats) {
    session.writer.select("Mira Voss");
    let state = session.open_without_changes(&chats.mira);
    assert_eq!(state["messages"].as_array().unwrap().len(), 7, "{state}");
    assert_eq!(state["world"], "Of the chat");
    let attached = json!({ "pictures": [3], "files": [format!("notes.txt: {NOTES}")] });
    assert_eq!(session.writer.attachments(), attached);
    session.connect_model();
    session.writer.say("An anchor, a coat, a bell and a lantern.");
    let prompt = session.model.last_prompt();
    let expected =
        ["The anchor is gold.", "The coat is wet.", "The bell rings twice.", "burns green"];
    for words in expected {
        assert!(prompt.contains(words), "{words} is not in {prompt}");
    }

    session.writer.select("Wren");
    let state = session.open_without_changes(&chats.wren);
    assert!(state["messages"].to_string().contains("Nothing to see."), "{state}");
    session.writer.say("An anchor and a bell.");
    let prompt = session.model.last_prompt();
    assert!(prompt.contains("rings twice") && !prompt.contains("is gold"), "{prompt}");

    session.writer.select("The Office");
    let state = session.open_without_changes(&chats.group);
    assert!(state["messages"].to_string().contains("Both of you, listen."), "{state}");
    session.writer.say("Good night.");
    session.assert_store_matches_library();
}
