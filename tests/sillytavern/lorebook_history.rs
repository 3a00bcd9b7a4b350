//! The history of a lorebook that is edited between messages.

use serde_json::{Value, json};

use crate::session::{Session, with_retries};

#[test]
fn history_names_the_message_at_which_an_entry_changed() {
    with_retries(|| {
        let Some(mut session) = Session::open("lorebook-history", "1.19.0") else { return };
        let main = session.writer.character("Mira Voss", "The tide is low.");
        session.connect_model();
        session.add_chat_lorebook("Tide Office");
        session.writer.say("Who is there?");
        session.snapshot();
        let mut known = vec![("The ferry has no name.".to_owned(), 2)];
        for (name, last) in [("Kestrel", 4), ("Heron", 6)] {
            session.writer.say("They say the ferry has a name.");
            let content = format!("The ferry is called {name}.");
            session.writer.type_command(&format!(
                "/setentryfield file=\"Tide Office\" uid=0 field=content {content}"
            ));
            session.snapshot();
            known.push((content, last));
        }
        session.writer.edit(1, "Who is there, then?");
        session.snapshot();

        // `lore` lists the changes with their messages, the newest first.
        let lines = session.json(&["lore", "Tide Office", "0"]).exits(0).of_type("lore_change");
        let content = |line: &Value| -> Option<String> {
            let after: Value = line["change"]["after"].clone();
            after["content"].as_str().map(str::to_owned)
        };
        let changes: Vec<_> = lines
            .iter()
            .map(|line| (content(line).unwrap(), line["index"].as_u64().unwrap()))
            .collect();
        known.reverse();
        assert_eq!(changes, known);
        // `lore --at` shows the entry at each message, although an earlier one was edited since.
        for (text, at) in &known {
            let entries =
                session.json(&["lore", "Tide Office", "0", "--at", &at.to_string()]).exits(0);
            let entry = &entries.of_type("lore_entry")[0];
            assert_eq!(entry["value"]["content"], json!(text), "at message {at}");
        }
        // `log --message` lists the versions of a message.
        let versions = session.json(&["log", &main, "--message", "1"]).exits(0);
        let versions = versions.of_type("message_version");
        let texts: Vec<_> = versions.iter().map(|line| &line["change"]["after"]["mes"]).collect();
        assert_eq!(texts, [&json!("Who is there, then?"), &json!("Who is there?")]);
        let before = versions[1]["snapshot"].as_str().unwrap();
        let shown = session.stvc(&["show", before, "--message", "1"]).exits(0).stdout;
        assert!(shown.ends_with("Who is there?\n"), "{shown}");
        session.assert_store_matches_library();
    });
}
