//! A lorebook that is edited between messages: when it changed, and at which of them.

use serde_json::{Value, json};

use crate::stage::{Stage, again};

#[test]
fn the_history_of_what_was_edited_between_messages() {
    again(|| {
        let Some(mut stage) = Stage::open("looking-back", "1.19.0") else { return };
        let main = stage.writer.character("Mira Voss", "The tide is low.");
        stage.connect();
        stage.bind_book("Tide Office");
        stage.writer.say("Who is there?");
        stage.snapshot();
        let mut known = vec![("The ferry has no name.".to_owned(), 2)];
        for (name, last) in [("Kestrel", 4), ("Heron", 6)] {
            stage.writer.say("They say the ferry has a name.");
            let content = format!("The ferry is called {name}.");
            stage.writer.command(&format!(
                "/setentryfield file=\"Tide Office\" uid=0 field=content {content}"
            ));
            stage.snapshot();
            known.push((content, last));
        }
        stage.writer.edit(1, "Who is there, then?");
        stage.snapshot();

        // Which message changed it, newest first.
        let lines = stage.json(&["lore", "Tide Office", "0"]).exits(0).of_type("lore_change");
        let content = |line: &Value| -> Option<String> {
            let after: Value = line["change"]["after"].clone();
            after["content"].as_str().map(str::to_owned)
        };
        let told: Vec<_> = lines
            .iter()
            .map(|line| (content(line).unwrap(), line["index"].as_u64().unwrap()))
            .collect();
        known.reverse();
        assert_eq!(told, known);
        // What was known at each, though a message before them was edited since.
        for (text, at) in &known {
            let then = stage.json(&["lore", "Tide Office", "0", "--at", &at.to_string()]).exits(0);
            let entry = &then.of_type("lore_entry")[0];
            assert_eq!(entry["value"]["content"], json!(text), "at message {at}");
        }
        // The message as it was before it was edited.
        let versions = stage.json(&["log", &main, "--message", "1"]).exits(0);
        let versions = versions.of_type("message_version");
        let said: Vec<_> = versions.iter().map(|line| &line["change"]["after"]["mes"]).collect();
        assert_eq!(said, [&json!("Who is there, then?"), &json!("Who is there?")]);
        let before = versions[1]["snapshot"].as_str().unwrap();
        let whole = stage.stvc(&["show", before, "--message", "1"]).exits(0).stdout;
        assert!(whole.ends_with("Who is there?\n"), "{whole}");
        stage.store_holds_what_is_there();
    });
}
