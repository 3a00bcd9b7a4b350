//! Identity of entries, and names for them.

use serde_json::{Value, json};

use super::questions::{BOOK, CHAT, DAY, book, story};
use crate::common::{Sandbox, chat};

const SHIP: &str = "A ship with two masts that sails at night.";
const MAN: &str = "He mends nets by the quay and drinks.";
const BIRD: &str = "Grey wings above every harbour wall.";

/// Creates these states of a book, a day apart.
fn states(states: &[&[(u64, &str, &str)]]) -> Sandbox {
    let mut sandbox = Sandbox::empty();
    sandbox.write(CHAT, chat("one", 2, Some("Harbour")));
    for entries in states {
        sandbox.write(BOOK, book(entries));
        sandbox.take(&[]);
        sandbox.wait(DAY);
    }
    sandbox
}

/// Returns title, presence and number of changes.
fn found(sandbox: &Sandbox, named: &[&str]) -> (String, bool, u64) {
    let line = sandbox.json(&[&["lore"], named].concat()).exits(0).of_type("lore_entry").remove(0);
    let title = line["title"].as_str().unwrap().to_owned();
    (title, line["live"].as_bool().unwrap(), line["changes"].as_u64().unwrap())
}

#[test]
fn entry_with_the_uid_of_a_replaced_entry_is_a_new_entry() {
    let sandbox = states(&[&[(0, "character-Kestrel", SHIP)], &[(0, "character-Tomas", MAN)]]);
    assert_eq!(found(&sandbox, &["character-Tomas"]), ("character-Tomas".into(), true, 1));
    assert_eq!(found(&sandbox, &["character-Kestrel"]), ("character-Kestrel".into(), false, 2));
    // It was not in the book while another entry had its UID.
    let then = |named: &str| {
        sandbox.json(&["lore", named, "--at", "~1"]).exits(0).of_type("lore_entry").len()
    };
    assert_eq!((then("character-Tomas"), then("character-Kestrel")), (0, 1));
    let changes = sandbox.json(&["diff", "worlds/Harbour~1", "worlds/Harbour"]).exits(0);
    assert_eq!(changes.of_type("change")[0]["kind"], "reused");
}

#[test]
fn deleted_entry_is_found_by_its_uid() {
    let sandbox = story();
    assert_eq!(found(&sandbox, &["Harbour", "1"]), ("Pier".into(), false, 2));
    // A partial title of an existing entry comes later.
    let sandbox = states(&[&[(5, "Kestrel", SHIP), (6, "Dock 5", MAN)], &[(6, "Dock 5", MAN)]]);
    assert_eq!(found(&sandbox, &["Harbour", "5"]), ("Kestrel".into(), false, 2));
}

#[test]
fn every_entry_that_ever_had_a_uid_is_found_by_that_uid() {
    let sandbox = states(&[
        &[(0, "", SHIP), (1, "Pier", BIRD)],
        &[(0, "", MAN), (1, "Pier", BIRD)],
        &[(1, "Pier", BIRD)],
        &[(0, "Gull", BIRD), (1, "Pier", BIRD)],
    ]);
    let content = |named: &str| {
        let lines = sandbox.json(&["lore", "Harbour", named]).exits(0).of_type("lore_change");
        lines.last().unwrap()["change"]["after"]["content"].clone()
    };
    assert_eq!(
        [content("0"), content("0~1"), content("0~2")],
        [BIRD, MAN, SHIP].map(|it| json!(it))
    );
    sandbox.stvc(&["lore", "Harbour", "0~3"]).exits(1);
    insta::assert_snapshot!(sandbox.stvc(&["lore", "Harbour", "0"]).exits(0).stdout, @"
    Gull  UID 0 in Harbour

    5eddd8f4a2 2026-11-17 23:46  Mira / one #1
        Mira: one 1: e4c4fb91926ea3c3 e5696e97d6975c9b
      changed between 2026-11-16 23:46 and 2026-11-17 23:46, during message 1
      {+Grey wings above every harbour wall.+}

    Other entries that had UID 0:
      UID 0~1  (no title)
      UID 0~2  (no title)
    ");
    let line = sandbox.json(&["lore", "Harbour", "0~1"]).exits(0).of_type("lore_entry").remove(0);
    let others = json!([{ "name": "0", "title": "Gull" }, { "name": "0~2", "title": "" }]);
    assert_eq!((&line["uid"], &line["same_uid"]), (&json!("0"), &others));
}

#[test]
fn error_for_an_ambiguous_title_lists_names_that_work() {
    let sandbox = states(&[&[(0, "Gull", SHIP), (1, "Gull", BIRD)], &[(0, "Tomas", MAN)]]);
    let both = sandbox.stvc(&["lore", "gull"]).exits(1).stderr;
    for uid in ["0~1", "1"] {
        assert!(both.contains(&format!("UID {uid} Gull")), "{both}");
        assert_eq!(found(&sandbox, &["Harbour", uid]).0, "Gull");
    }
}

#[test]
fn exact_title_of_a_deleted_entry_is_preferred_to_a_partial_title() {
    let cook = (1, "The Kestrel's cook", MAN);
    let sandbox = states(&[&[(0, "Kestrel", SHIP), cook], &[cook]]);
    assert_eq!(found(&sandbox, &["kestrel"]), ("Kestrel".into(), false, 2));
    assert_eq!(found(&sandbox, &["kes"]), ("The Kestrel's cook".into(), true, 1));
    // A former title.
    let sandbox = states(&[&[(0, "Kestrel", SHIP), cook], &[(0, "Gull", SHIP), cook]]);
    assert_eq!(found(&sandbox, &["kestrel"]), ("Gull".into(), true, 2));
}

#[test]
fn formatting_changes_are_shown_on_request() {
    let mut sandbox = states(&[&[(0, "Kestrel", SHIP)]]);
    let value: Value = serde_json::from_slice(&sandbox.read(BOOK)).unwrap();
    sandbox.write(BOOK, value.to_string());
    sandbox.take(&[]);
    sandbox.wait(DAY);
    sandbox.write(BOOK, value.to_string().replace("two masts", "one mast"));
    sandbox.take(&[]);
    sandbox.wait(DAY);
    let kinds = |arguments: &[&str]| {
        let lines = sandbox.json(&[&["lore", "Kestrel"], arguments].concat()).exits(0);
        let changes = lines.of_type("lore_change");
        let kinds: Vec<_> = changes.iter().map(|line| line["change"]["kind"].clone()).collect();
        (kinds, lines.of_type("lore_entry")[0]["formatting"].clone())
    };
    assert_eq!(kinds(&[]), (vec![json!("edited"), json!("added")], json!(1)));
    let all = vec![json!("edited"), json!("rewritten"), json!("added")];
    assert_eq!(kinds(&["--all"]), (all, json!(0)));
    // The list counts and dates only real changes.
    assert_eq!(sandbox.json(&["lore"]).exits(0).of_type("lore_entry")[0]["changes"], 2);
    let output = sandbox.stvc(&["lore", "Kestrel"]).exits(0).stdout;
    assert!(output.contains("1 change of formatting not shown (see --all)"), "{output}");
}
