//! The programs in `examples/`, called as functions.

use crate::common::Sandbox;

#[path = "../../examples/list_forks.rs"]
#[allow(dead_code, reason = "its main is for cargo run")]
mod list_forks;
#[path = "../../examples/restore_to_folder.rs"]
#[allow(dead_code, reason = "its main is for cargo run")]
mod restore_to_folder;
#[path = "../../examples/snapshot_after_save.rs"]
#[allow(dead_code, reason = "its main is for cargo run")]
mod snapshot_after_save;

#[test]
fn api_examples_run_and_return_the_expected_results() {
    let sandbox = Sandbox::empty();
    let lines = |messages: &[&str]| {
        let messages = messages.iter().map(|words| format!("\n{{\"mes\":\"{words}\"}}"));
        format!("{{\"chat_metadata\":{{}}}}{}", messages.collect::<String>())
    };
    let main = lines(&["One.", "Two.", "Three."]);
    sandbox.write("chats/Mira/Main.jsonl", &main);
    let library = sandbox.library();
    let first = snapshot_after_save::run(&library, "Main").unwrap();
    assert!(first.ends_with(": new"), "{first}");
    let again = snapshot_after_save::run(&library, "Main").unwrap();
    assert_eq!(again, first.replace(": new", ": unchanged"));

    sandbox.write("chats/Mira/Other.jsonl", lines(&["One.", "Two.", "Another."]));
    snapshot_after_save::run(&library, "Other").unwrap();
    assert_eq!(list_forks::run(&library, "Main").unwrap(), [("Other".to_owned(), 2)]);

    sandbox.write("chats/Mira/Main.jsonl", lines(&["Overwritten."]));
    let new = sandbox.folder().join("restored");
    let written = restore_to_folder::run(&library, "Main", &new).unwrap();
    assert_eq!(written, [new.join("chats/Mira/Main.jsonl")]);
    assert_eq!(std::fs::read_to_string(&written[0]).unwrap(), main);
}
