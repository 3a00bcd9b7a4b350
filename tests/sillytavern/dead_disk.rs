//! The disk is dead and there is a backup: a SillyTavern elsewhere has everything again.

use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use crate::stage::{Stage, again, stvc};

/// A picture of 3 by 2 points.
const PICTURE: &str = "iVBORw0KGgoAAAANSUhEUgAAAAMAAAACCAIAAAASFvFNAAAAEElEQVR4nGM4kWIEQQxwFgBVoAg1rtvKGQAAAABJRU5ErkJggg==";
const NOTES: &str = "High water at four.";

/// The new one was started before: its own characters, lorebooks and settings are there.
#[test]
fn after_a_dead_disk_1_19_has_everything() {
    again(|| {
        let folder = tempfile::tempdir().unwrap();
        let backup = folder.path().join("stories.stvc");
        let Some(written) = write("1.19.0", "dead-disk-1.19-before", &backup) else { return };
        let mut stage = Stage::open("dead-disk-1.19", "1.19.0").unwrap();
        stage.writer.leave();
        let before = stage.all_files();
        stage.stvc(&["import", backup.to_str().unwrap()]).exits(0);
        // All but the settings, in whose place are others.
        let restored = stage.stvc(&["restore", "--all"]).exits(3);
        assert!(restored.stdout.contains("1 timeline not restored"), "{}", restored.stdout);
        let after = stage.all_files();
        let overwritten: Vec<_> =
            before.iter().filter(|(path, bytes)| after.get(*path) != Some(bytes)).collect();
        assert!(overwritten.is_empty(), "{:?}", overwritten.iter().map(|one| one.0));
        stage.stvc(&["restore", "settings.json", "--overwrite", "--chat-closed"]).exits(0);
        stage.come_in();
        everything_is_there(&mut stage, &written);
    });
}

/// The new one was never started.
#[test]
fn after_a_dead_disk_1_12_has_everything() {
    again(|| {
        let folder = tempfile::tempdir().unwrap();
        let backup = folder.path().join("stories.stvc");
        let Some(written) = write("1.12.14", "dead-disk-1.12-before", &backup) else { return };
        let stage = Stage::open_after("dead-disk-1.12", "1.12.14", |sandbox| {
            std::fs::create_dir(sandbox.library()).unwrap();
            stvc(sandbox, &["--data", ".", "import", backup.to_str().unwrap()]).exits(0);
            stvc(sandbox, &["--data", ".", "restore", "--all"]).exits(0);
        });
        everything_is_there(&mut stage.unwrap(), &written);
    });
}

/// The chats that were written.
struct Written {
    mira: String,
    wren: String,
    group: String,
}

/// Two characters, a group, lorebooks that are bound in each way, a picture and a text; and a backup of it.
fn write(version: &str, name: &'static str, backup: &Path) -> Option<Written> {
    let mut stage = Stage::open(name, version)?;
    let wren = stage.writer.character("Wren", "Cold, cold, cold.");
    let mira = stage.writer.character("Mira Voss", "The tide is low.");
    stage.connect();
    stage.writer.book("Of the card", ("anchor", "The anchor is gold."), "character");
    stage.writer.book("Of the persona", ("coat", "The coat is wet."), "persona");
    stage.writer.book("Of all chats", ("bell", "The bell rings twice."), "all");
    stage.bind_book("Of the chat");
    stage.writer.say("I see a lantern.");
    let picture = STANDARD.decode(PICTURE).unwrap();
    stage.writer.attach("Look at the map.", ("map.png", "image/png"), &picture);
    stage.writer.attach("And at my notes.", ("notes.txt", "text/plain"), NOTES.as_bytes());
    stage.writer.go("Wren");
    stage.writer.say("Nothing to see.");
    let group = stage.writer.group("The Office", &["Mira Voss", "Wren"]);
    stage.writer.say("Both of you, listen.");
    stage.writer.settle();
    stage.stvc(&["config", "include.settings", "true"]).exits(0);
    stage.stvc(&["backup", backup.to_str().unwrap()]).exits(0);
    Some(Written { mira, wren, group })
}

/// Every chat opens under its character, what they say is there, the lorebooks are active where they were, picture and text are shown.
fn everything_is_there(stage: &mut Stage, written: &Written) {
    stage.writer.go("Mira Voss");
    let seen = stage.opens_unchanged(&written.mira);
    assert_eq!(seen["messages"].as_array().unwrap().len(), 7, "{seen}");
    assert_eq!(seen["world"], "Of the chat");
    let attached = json!({ "pictures": [3], "files": [format!("notes.txt: {NOTES}")] });
    assert_eq!(stage.writer.attachments(), attached);
    stage.connect();
    stage.writer.say("An anchor, a coat, a bell and a lantern.");
    let prompt = stage.model.last_prompt();
    let known = ["The anchor is gold.", "The coat is wet.", "The bell rings twice.", "burns green"];
    for words in known {
        assert!(prompt.contains(words), "{words} is not in {prompt}");
    }

    stage.writer.go("Wren");
    let seen = stage.opens_unchanged(&written.wren);
    assert!(seen["messages"].to_string().contains("Nothing to see."), "{seen}");
    stage.writer.say("An anchor and a bell.");
    let prompt = stage.model.last_prompt();
    assert!(prompt.contains("rings twice") && !prompt.contains("is gold"), "{prompt}");

    stage.writer.go("The Office");
    let seen = stage.opens_unchanged(&written.group);
    assert!(seen["messages"].to_string().contains("Both of you, listen."), "{seen}");
    stage.writer.say("Good night.");
    stage.store_holds_what_is_there();
}
