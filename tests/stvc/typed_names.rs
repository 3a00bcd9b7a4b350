//! Names as people type them: parts of names, names of characters and groups, full-width characters
//! and typing errors.

use crate::common::{Sandbox, chat, message};

#[test]
fn name_of_a_chat_stays_usable_after_forks_are_named_after_it() {
    let mut sandbox = Sandbox::empty();
    sandbox.write("chats/Mira/The Tide Office (1).jsonl", chat("a", 9, None));
    sandbox.stvc(&["snapshot"]).exits(0);
    for n in ["3", "5"] {
        sandbox.wait(60);
        sandbox.stvc(&["fork", "Tide Office", "--at", n]).exits(0);
    }
    let timeline = |sandbox: &Sandbox, name: &str| {
        sandbox.json(&["show", name]).exits(0).of_type("snapshot")[0]["timeline"].clone()
    };
    assert_eq!(timeline(&sandbox, "Tide Office"), "chats/Mira/The Tide Office (1)");
    assert_eq!(
        timeline(&sandbox, "tide office (1) - branch #2"),
        "chats/Mira/The Tide Office (1) - Branch #2"
    );
    // A chat that is not a fork makes the name ambiguous. The chat that was saved last comes first.
    sandbox.wait(60);
    sandbox.write("chats/Mira/Tide Office two.jsonl", chat("b", 3, None));
    sandbox.stvc(&["snapshot"]).exits(0);
    let refused = sandbox.json(&["show", "Tide Office"]).exits(1).of_type("error");
    assert_eq!(refused[0]["candidates"][0], "chats/Mira/Tide Office two");
}

#[test]
fn name_of_a_character_lists_all_its_chats() {
    let sandbox = Sandbox::empty();
    sandbox.write("chats/Mira Voss/a.jsonl", chat("a", 3, None));
    sandbox.write("chats/Mira Voss/b.jsonl", chat("b", 4, None));
    sandbox.write("chats/Wren/c.jsonl", chat("c", 5, None));
    sandbox.stvc(&["snapshot"]).exits(0);
    let log = sandbox.json(&["log", "mira voss"]).exits(0).of_type("snapshot");
    let mut names: Vec<_> = log.iter().map(|line| line["timeline"].as_str().unwrap()).collect();
    names.sort();
    assert_eq!(names, ["chats/Mira Voss/a", "chats/Mira Voss/b"]);
    let graph = sandbox.stvc(&["log", "Mira Voss", "--graph"]).exits(0).stdout;
    assert!(graph.contains("Mira Voss / a") && !graph.contains("Wren"), "{graph}");
}

#[test]
fn group_is_named_as_it_is_printed() {
    let sandbox = Sandbox::empty();
    sandbox.write("group chats/Night crew.jsonl", chat("a", 3, None));
    sandbox.stvc(&["snapshot"]).exits(0);
    for name in ["group/Night crew", "group / Night crew", "Night crew"] {
        let shown = sandbox.json(&["show", name]).exits(0).of_type("snapshot");
        assert_eq!(shown[0]["timeline"], "group chats/Night crew", "{name}");
    }
}

#[test]
fn moments_may_be_typed_with_full_width_characters() {
    let mut sandbox = Sandbox::empty();
    sandbox.write("chats/黛玉/葬花吟.jsonl", chat("a", 3, None));
    sandbox.stvc(&["snapshot"]).exits(0);
    sandbox.wait(60);
    sandbox.append("chats/黛玉/葬花吟.jsonl", &message("a", 3));
    sandbox.stvc(&["snapshot"]).exits(0);
    let id =
        |name: &str| sandbox.json(&["show", name]).exits(0).of_type("snapshot")[0]["id"].clone();
    assert_eq!(id("葬花吟～１"), id("葬花吟~1"));
    assert_eq!(id("葬花吟：２"), id("葬花吟:2"));
    assert_eq!(id("葬花吟＠今天"), id("葬花吟"));
    let missed = sandbox.json(&["show", "葬花咏"]).exits(1).of_type("error");
    assert_eq!(missed[0]["candidates"][0], "chats/黛玉/葬花吟");
}

#[test]
fn mistyped_lorebook_entry_gets_a_suggestion() {
    let sandbox = Sandbox::empty();
    sandbox.write("chats/Mira/a.jsonl", chat("a", 3, Some("Lore")));
    let book = r#"{"entries":{"0":{"uid":0,"comment":"Kestrel","key":["k"],"content":"a boat"}}}"#;
    sandbox.write("worlds/Lore.json", book);
    sandbox.stvc(&["snapshot"]).exits(0);
    let missed = sandbox.stvc(&["lore", "Kestrl"]).exits(1).stderr;
    assert!(missed.contains("Kestrel"), "{missed}");
}

#[test]
fn removed_characters_of_a_new_name_are_reported() {
    let sandbox = Sandbox::empty();
    sandbox.write("chats/Mira/a.jsonl", chat("a", 3, None));
    sandbox.stvc(&["snapshot"]).exits(0);
    let fork = sandbox.stvc(&["fork", "Mira/a", "--at", "1", "--as", "what/if?"]).exits(0).stdout;
    assert!(
        fork.contains("called whatif: file names of SillyTavern cannot contain `/` `?`"),
        "{fork}"
    );
}

#[test]
fn commands_of_other_tools_are_translated() {
    let sandbox = Sandbox::empty();
    for (word, command) in [
        ("commit", "`stvc snapshot`"),
        ("ls", "`stvc timelines`"),
        ("branch", "`stvc fork`"),
        ("checkout", "`stvc restore`"),
        ("prune", "`stvc forget` and `stvc gc`"),
        ("version", "`stvc --version`"),
    ] {
        let refused = sandbox.stvc(&[word]).exits(2).stderr;
        assert!(refused.contains(&format!("The command for this is {command}.")), "{refused}");
    }
}
