//! Findings about names of lorebooks and about missing ones. `rules` has every case of
//! these rules.

use serde_json::json;

use super::{assert_findings, findings_of_snapshot};
use crate::common::Sandbox;
use crate::common::recap_library::RecapLibrary;
use crate::common::recap_story;

#[test]
fn req_65_copied_lorebooks_are_named_by_the_configured_template() {
    let sandbox = Sandbox::empty();
    let template = "{{chat}}, lore of {{char}}";
    let settings =
        json!({ "extension_settings": { "autoLorebooks": { "nameTemplate": template } } });
    sandbox.write("settings.json", settings.to_string());
    let mut library = RecapLibrary::default();
    let book = Some("Harbour nights, lore of Mira (2)".to_owned());
    (library.book, library.attached) = (book.clone(), book);
    library.write(&sandbox);
    assert_findings(&findings_of_snapshot(&sandbox), &[]);
    sandbox.stvc(&["restore", "Harbour", "--as", "Dawn: the end"]).exits(0);
    let new = recap_story::bound_book(&sandbox, "chats/Mira/Dawn the end.jsonl");
    assert_eq!(new, "worlds/Dawn the end, lore of Mira.json");
    // A fork that shares its parent's book.
    library.fork("Branch #1", 7).write(&sandbox);
    sandbox.stvc(&["doctor", "--fix", "--yes"]).exits(0);
    let new = recap_story::bound_book(&sandbox, "chats/Mira/Branch #1.jsonl");
    assert_eq!(new, "worlds/Branch #1, lore of Mira.json");
}

#[test]
fn req_24_missing_lorebook_is_an_error() {
    let sandbox = Sandbox::empty();
    let library = RecapLibrary::default();
    sandbox.write(&library.chat_path(), library.chat_bytes());
    assert_findings(
        &findings_of_snapshot(&sandbox),
        &[("lorebook-missing", "error", &["z-AutoLB-Mira-Harbour nights"])],
    );
    // The snapshot was created nevertheless.
    assert_eq!(sandbox.snapshot_ids().len(), 1);
    sandbox.json(&["status"]).exits(0);
    sandbox.append(&library.chat_path(), &library.message(12));
    sandbox.json(&["status"]).exits(0);
    // The chat is restored without it.
    std::fs::remove_file(sandbox.path(&library.chat_path())).unwrap();
    let answer = sandbox.json(&["restore", "Harbour"]).exits(0);
    assert_eq!(
        recap_story::codes_and_levels(&answer),
        recap_story::expected_findings(&[("lorebook-missing", "error")])
    );
    assert_eq!(sandbox.read(&library.chat_path()), library.chat_bytes().into_bytes());
}

/// Without settings, and with a folder in their place.
#[test]
fn missing_or_invalid_settings_do_not_prevent_a_snapshot() {
    let sandbox = Sandbox::empty();
    std::fs::remove_file(sandbox.path("settings.json")).unwrap();
    RecapLibrary::default().write(&sandbox);
    assert_findings(&findings_of_snapshot(&sandbox), &[]);
    std::fs::create_dir(sandbox.path("settings.json")).unwrap();
    sandbox.append(&RecapLibrary::default().chat_path(), &RecapLibrary::default().message(12));
    assert_findings(&findings_of_snapshot(&sandbox), &[]);
}
