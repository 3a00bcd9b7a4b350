//! SillyTavern's own branch shares its parent's lorebook; `doctor` says so and gives it its own.

use crate::stage::{Stage, again};

#[test]
fn doctor_parts_the_lorebook_that_a_branch_shares() {
    again(|| {
        let Some(mut stage) = Stage::open("shared-book", "1.19.0") else { return };
        let main = stage.writer.character("Mira Voss", "The tide is low.");
        stage.connect();
        stage.bind_book("Tide Office");
        stage.writer.say("I see a lantern.");
        let branch = stage.writer.branch(2);
        stage.writer.say("The branch goes on.");
        stage.snapshot();

        let found = stage.json(&["doctor"]);
        let shared = |finding: &&serde_json::Value| finding["code"] == "lorebook-shared";
        let findings = found.of_type("finding");
        assert_eq!(findings.iter().filter(shared).count(), 1, "{}", found.stdout);
        stage.while_away("Mira Voss", |stage| {
            stage.stvc(&["doctor", "--fix", "--yes", "--chat-closed"]).exits(0)
        });
        let found = stage.json(&["doctor"]).exits(0);
        assert_eq!(found.of_type("finding").iter().filter(shared).count(), 0, "{}", found.stdout);

        let mut books = Vec::new();
        for name in [&main, &branch] {
            let seen = stage.opens_unchanged(name);
            assert_eq!(seen["uids"], serde_json::json!([0, 1, 2]));
            let book = seen["world"].as_str().unwrap().to_owned();
            assert_eq!(seen["sticky"], serde_json::json!([format!("{book}.1")]));
            let changed = stage.changed_by(|writer| {
                writer.say("Good night.");
                writer.command(&format!("/createentry file=\"{book}\" key=\"oar\" Broken."));
            });
            assert_eq!(
                changed,
                [format!("chats/Mira Voss/{name}.jsonl"), format!("worlds/{book}.json")]
            );
            books.push(book);
        }
        assert_ne!(books[0], books[1]);
        stage.store_holds_what_is_there();
    });
}
