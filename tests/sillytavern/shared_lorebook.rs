//! SillyTavern's own branches share the parent's lorebook. `doctor --fix` gives each its own.

use crate::session::{Session, with_retries};

#[test]
fn doctor_gives_a_branch_its_own_lorebook() {
    with_retries(|| {
        let Some(mut session) = Session::open("shared-lorebook", "1.19.0") else { return };
        let main = session.writer.character("Mira Voss", "The tide is low.");
        session.connect_model();
        session.add_chat_lorebook("Tide Office");
        session.writer.say("I see a lantern.");
        let branch = session.writer.branch(2);
        session.writer.say("The branch goes on.");
        session.snapshot();

        let found = session.json(&["doctor"]);
        let shared = |finding: &&serde_json::Value| finding["code"] == "lorebook-shared";
        let findings = found.of_type("finding");
        assert_eq!(findings.iter().filter(shared).count(), 1, "{}", found.stdout);
        session.with_page_closed("Mira Voss", |session| {
            session.stvc(&["doctor", "--fix", "--yes", "--chat-closed"]).exits(0)
        });
        let found = session.json(&["doctor"]).exits(0);
        assert_eq!(found.of_type("finding").iter().filter(shared).count(), 0, "{}", found.stdout);

        let mut books = Vec::new();
        for name in [&main, &branch] {
            let state = session.open_without_changes(name);
            assert_eq!(state["uids"], serde_json::json!([0, 1, 2]));
            let book = state["world"].as_str().unwrap().to_owned();
            assert_eq!(state["sticky"], serde_json::json!([format!("{book}.1")]));
            let changed = session.files_changed_by(|writer| {
                writer.say("Good night.");
                writer.type_command(&format!("/createentry file=\"{book}\" key=\"oar\" Broken."));
            });
            assert_eq!(
                changed,
                [format!("chats/Mira Voss/{name}.jsonl"), format!("worlds/{book}.json")]
            );
            books.push(book);
        }
        assert_ne!(books[0], books[1]);
        session.assert_store_matches_library();
    });
}
