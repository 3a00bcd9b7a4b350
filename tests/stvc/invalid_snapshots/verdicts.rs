//! Every defect of a snapshot, and the verdict of all commands.

use std::fs;

use serde_json::{Value, json};
use stvc::internals::archive::{Severity, Snapshot, Validator, Verdict, rebuild};
use stvc::internals::store::{ObjectId, Store};

use super::{Case, exits};
use crate::common::card::card;
use crate::common::forged_snapshot::{
    ForgedSnapshot, Library, Node, assert_imported, entry, file, missing_object,
};
use crate::common::{Answer, B, Sandbox, assert_no_panic, assert_same, chat, text};

/// The expected verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expectation {
    Odd(Severity),
    Newer,
}

impl Expectation {
    fn finding(self) -> (&'static str, &'static str) {
        match self {
            Expectation::Odd(Severity::Fatal) => ("snapshot-damaged", "error"),
            Expectation::Odd(Severity::Unsafe) => ("snapshot-odd", "error"),
            Expectation::Odd(Severity::Flaw) => ("snapshot-odd", "warning"),
            Expectation::Newer => ("snapshot-newer", "warning"),
        }
    }

    fn is_restored(self) -> bool {
        matches!(self, Expectation::Odd(Severity::Flaw | Severity::Unsafe))
    }

    fn is_taken_in(self) -> bool {
        matches!(self, Expectation::Odd(Severity::Flaw) | Expectation::Newer)
    }
}

/// Returns code and level of the findings about a snapshot, and asserts that there is nothing else.
#[track_caller]
fn said(answer: &Answer, id: &str, what: &str) -> Vec<(String, String)> {
    let mut verdicts = Vec::new();
    for line in answer.of_type("finding") {
        let text = |field: &str| line[field].as_str().unwrap().to_owned();
        if text("subject") == id {
            verdicts.push((text("code"), text("level")));
        } else if text("code").starts_with("snapshot-") {
            panic!("{what}: {line}");
        }
    }
    verdicts
}

/// Forges the middle snapshot and asserts the verdict of every command.
#[track_caller]
fn assert_agreement(
    library: &Library,
    expected: Expectation,
    what: &str,
    edit: impl FnOnce(&mut ForgedSnapshot),
) {
    let (odd, next) = library.forge_middle(edit);
    assert_restore_agrees(library, expected, what, &odd);
    assert_others_agree(library, expected, what, &odd, &next);
}

#[track_caller]
fn assert_restore_agrees(library: &Library, expected: Expectation, what: &str, odd: &str) {
    let sandbox = &library.sandbox;
    if expected.is_restored() {
        let to = tempfile::tempdir_in(sandbox.folder()).unwrap();
        let out = to.path().join("out");
        assert_no_panic(sandbox.stvc(&["restore", odd, "--to", text(&out)])).exits(0);
        assert_eq!(fs::read(out.join(B)).unwrap(), library.stored[1].bytes, "{what}");
    } else {
        let before = sandbox.files();
        exits(&assert_no_panic(sandbox.stvc(&["restore", odd, "--overwrite"])), 1, what);
        assert_same(&sandbox.files(), &before);
    }
}

/// `check`, `show`, `backup` and `import`.
#[track_caller]
fn assert_others_agree(
    library: &Library,
    expected: Expectation,
    what: &str,
    odd: &str,
    next: &str,
) {
    let sandbox = &library.sandbox;
    let (code, level) = expected.finding();
    let expected_finding = vec![(code.to_owned(), level.to_owned())];
    let in_check = match expected {
        Expectation::Newer => vec![(code.to_owned(), "error".to_owned())],
        _ => expected_finding.clone(),
    };

    let store = library.store();
    let id = ObjectId::from_hex(odd.as_bytes()).unwrap();
    let snapshot = Snapshot::read(&store.reader().commit(id).unwrap()).unwrap();
    let verdict = Validator::new(store.reader()).judge(&snapshot).unwrap();
    let weight = match &verdict {
        Verdict::Invalid(problems) => Some(Expectation::Odd(problems.worst().unwrap())),
        Verdict::Newer { .. } => Some(Expectation::Newer),
        Verdict::Valid => None,
    };
    assert_eq!(weight, Some(expected), "{what}: {verdict:?}");

    let is_sound = expected == Expectation::Odd(Severity::Flaw);
    let checked = assert_no_panic(sandbox.json(&["check"]));
    exits(&checked, if is_sound { 0 } else { 1 }, what);
    assert_eq!(said(&checked, odd, what), in_check, "check: {what}");

    let code = i32::from(!expected.is_restored());
    let shown = assert_no_panic(sandbox.json(&["show", odd]));
    exits(&shown, code, what);
    if expected.is_restored() {
        assert_eq!(said(&shown, odd, what), expected_finding, "show: {what}");
    }
    let to = tempfile::tempdir_in(sandbox.folder()).unwrap();
    let partly = if expected.is_taken_in() { 0 } else { 3 };
    for backup in [to.path().join("b.stvc"), to.path().join("mirror")] {
        let answer = assert_no_panic(sandbox.json(&["backup", text(&backup)]));
        exits(&answer, partly, what);
        assert_eq!(said(&answer, odd, what), expected_finding, "backup: {what}");
        let checked = assert_no_panic(sandbox.json(&["check", text(&backup)]));
        exits(&checked, if is_sound { 0 } else { 1 }, what);
        assert_eq!(said(&checked, odd, what), in_check, "check {backup:?}: {what}");

        let (other, answer) = library.import_into_empty(&backup);
        exits(&answer, partly, what);
        assert_eq!(said(&answer, odd, what), expected_finding, "import {backup:?}: {what}");
        assert_imported(library, &other, expected.is_taken_in().then_some((odd, next)), what);
        // A second import adds nothing.
        let ids = other.snapshot_ids();
        exits(&assert_no_panic(other.json(&["import", text(&backup)])), partly, what);
        assert_eq!(other.snapshot_ids(), ids, "{what}");
    }
}

const FLAW: Expectation = Expectation::Odd(Severity::Flaw);

const UNSAFE: Expectation = Expectation::Odd(Severity::Unsafe);

const FATAL: Expectation = Expectation::Odd(Severity::Fatal);

#[track_caller]
fn assert_all_agree(expected: Expectation, cases: &[Case<'_>]) {
    let library = Library::new();
    for (what, edit) in cases {
        assert_agreement(&library, expected, what, edit);
    }
}

fn join_last_messages(it: &mut ForgedSnapshot) {
    let last = it.remove("chat/messages/001/00105.json");
    let Node::Blob(last) = last.node else { panic!() };
    let path = "chat/messages/001/00104.json";
    let both = [&it.bytes(path)[..], b"\n", &last].concat();
    it.entry_at(path).node = Node::Blob(both);
}

#[test]
fn unusual_trees_are_reported_and_restored() {
    assert_all_agree(
        FLAW,
        &[
            ("a file that is no part", &|it| it.root.push(file("extra", b"more"))),
            ("a folder that is no part", &|it| {
                let below = Node::Tree(vec![file("more", b"more")]);
                it.folder_at("chat").push(entry("40000", "extra", below));
            }),
            ("a program", &|it| it.entry_at("chat/header.json").mode = "100755"),
            ("other rights", &|it| it.entry_at("chat/messages/000/00007.json").mode = "100664"),
            ("a message without zeros", &|it| {
                it.entry_at("chat/messages/000/00007.json").name = b"7.json".to_vec();
            }),
            ("a message in the wrong folder", &|it| {
                let message = it.remove("chat/messages/001/00105.json");
                it.folder_at("chat/messages/000").push(message);
            }),
            ("a folder without zeros", &|it| {
                it.entry_at("chat/messages/001").name = b"1".to_vec();
            }),
            ("two messages in one", &join_last_messages),
            ("two messages in one that are counted as one", &|it| {
                join_last_messages(it);
                it.edit_manifest(|manifest| manifest["messages"] = 105.into());
                it.set_trailer("Stvc-Messages", "105");
            }),
        ],
    );
}

#[test]
fn unusual_lorebooks_and_numbers_are_reported_and_restored() {
    assert_all_agree(
        FLAW,
        &[
            ("a second lorebook", &|it| {
                let book = it.entry_at("lorebooks/Harbour").node.clone();
                it.folder_at("lorebooks").push(entry("40000", "Another", book));
            }),
            ("another name for the lorebook's folder", &|it| {
                it.entry_at("lorebooks/Harbour").name = b"Another".to_vec();
            }),
            ("an entry that the book does not name", &|it| {
                it.folder_at("lorebooks/Harbour/entries").push(file("9.json", b"{}"));
            }),
            ("a group that the manifest does not name", &|it| {
                it.root.push(file("group.json", b"{}"))
            }),
            ("too many messages in the manifest", &|it| {
                it.edit_manifest(|manifest| manifest["messages"] = 7.into());
            }),
            ("too many messages in the commit", &|it| it.set_trailer("Stvc-Messages", "7")),
            ("another lorebook in the commit", &|it| it.set_trailer("Stvc-Lorebook", "Another")),
            ("the lorebook first", &|it| {
                it.edit_files(|manifest| manifest["files"].as_array_mut().unwrap().reverse());
            }),
        ],
    );
}

#[test]
fn unsafe_snapshots_are_restored_and_not_copied() {
    let zeros = "0".repeat(64);
    assert_all_agree(
        UNSAFE,
        &[
            ("a content id of nothing", &|it| it.break_content_id()),
            ("another content id in the commit", &|it| it.set_trailer("Stvc-Content", &zeros)),
            (".git", &|it| it.root.push(file(".git", b"evil"))),
            ("a device", &|it| it.folder_at("lorebooks/Harbour").push(file("con", b"evil"))),
            ("a link", &|it| {
                it.root.push(entry("120000", "link", Node::Blob(b"/etc/passwd".to_vec())));
            }),
            ("another order", &|it| {
                it.keep_order = true;
                it.root.reverse();
            }),
            ("a name twice", &|it| {
                let header = it.entry_at("chat/header.json").clone();
                it.folder_at("chat").push(header);
            }),
            ("a folder's mode with a zero", &|it| it.entry_at("chat").mode = "040000"),
            ("a lost object that no file needs", &|it| {
                it.root.push(entry("100644", "extra", missing_object()));
            }),
        ],
    );
}

#[test]
fn every_command_reports_an_unrestorable_snapshot_as_damaged() {
    assert_all_agree(
        FATAL,
        &[
            ("a path out of the library", &|it| {
                it.edit_files(|manifest| manifest["files"][1]["path"] = "../evil.json".into());
            }),
            ("a group for a chat that has none", &|it| {
                it.root.push(file("group.json", b"{}"));
                it.edit_files(|manifest| {
                    let hash = blake3::hash(b"{}").to_hex().to_string();
                    let record = json!({ "role": "group", "path": "groups/1.json", "bytes": 2, "blake3": hash });
                    manifest["files"].as_array_mut().unwrap().push(record);
                });
            }),
            ("two chats", &|it| {
                it.edit_files(|manifest| {
                    let first = manifest["files"][0].clone();
                    manifest["files"].as_array_mut().unwrap().insert(1, first);
                });
            }),
            ("another hash", &|it| {
                it.edit_files(|manifest| manifest["files"][0]["blake3"] = "0".repeat(64).into());
            }),
            ("another length", &|it| {
                it.edit_files(|manifest| manifest["files"][0]["bytes"] = 7.into());
            }),
            ("a file's mode with a zero", &|it| it.entry_at("chat/header.json").mode = "0100644"),
            ("an enormous length", &|it| {
                it.edit_files(|manifest| manifest["files"][0]["bytes"] = (1_u64 << 30).into());
            }),
        ],
    );
}

#[test]
fn snapshot_with_the_manifest_of_another_timeline_is_damaged() {
    let library = Library::new();
    let (odd, next) = library.forge_middle(|it| {
        it.edit_files(|manifest| {
            manifest["timeline"] = "chats/Mira/z".into();
            manifest["files"][0]["path"] = "chats/Mira/z.jsonl".into();
        });
    });
    let what = "a manifest of another timeline";
    assert_restore_agrees(&library, FATAL, what, &odd);
    assert_others_agree(&library, FATAL, what, &odd, &next);
}

#[test]
fn every_command_reports_missing_parts_of_a_snapshot() {
    assert_all_agree(
        FATAL,
        &[
            ("no manifest", &|it| drop(it.remove("snapshot.json"))),
            ("no manifest that can be read", &|it| {
                it.entry_at("snapshot.json").node = Node::Blob(b"{ \"format\": 1 }".to_vec());
            }),
            ("no message 5", &|it| drop(it.remove("chat/messages/000/00005.json"))),
            ("a message that is lost", &|it| {
                it.entry_at("chat/messages/000/00005.json").node = missing_object()
            }),
            ("no folder 0", &|it| drop(it.remove("chat/messages/000"))),
            ("a folder where a file belongs", &|it| {
                it.remove("chat/header.json");
                it.folder_at("chat").push(entry("40000", "header.json", Node::Tree(Vec::new())));
            }),
            ("no lorebook", &|it| drop(it.remove("lorebooks"))),
            ("no entry 7", &|it| drop(it.remove("lorebooks/Harbour/entries/7.json"))),
            ("an entry that is lost", &|it| {
                it.entry_at("lorebooks/Harbour/entries/7.json").node = missing_object();
            }),
        ],
    );
}

#[test]
fn snapshot_of_a_newer_format_is_copied_unchanged() {
    assert_all_agree(
        Expectation::Newer,
        &[("format 3", &|it| {
            it.edit_manifest(|manifest| *manifest = json!({ "format": 3, "what": "nobody knows" }));
            it.root.push(file("future", b"more"));
            let below =
                Node::Tree(vec![entry("40000", "deeper", Node::Tree(vec![file("x", b"y")]))]);
            it.root.push(entry("40000", "unknown", below));
        })],
    );
}

/// Returns the verdict on the edited latest snapshot of a timeline.
fn judged(sandbox: &Sandbox, branch: &str, edit: impl FnOnce(&mut ForgedSnapshot)) -> Verdict {
    let store = Store::open(&sandbox.store()).unwrap();
    let head = sandbox.git(&["rev-parse", &format!("refs/heads/{branch}")]);
    let mut forged = ForgedSnapshot::read(&store, head.trim());
    edit(&mut forged);
    let id = ObjectId::from_hex(forged.write(&store, None).as_bytes()).unwrap();
    let store = Store::open(&sandbox.store()).unwrap();
    let snapshot = Snapshot::read(&store.reader().commit(id).unwrap()).unwrap();
    let verdict = Validator::new(store.reader()).judge(&snapshot).unwrap();
    if verdict.can_be_restored() {
        rebuild(&store.reader(), &snapshot).unwrap();
    }
    verdict
}

fn worst(verdict: &Verdict) -> Option<Severity> {
    match verdict {
        Verdict::Invalid(problems) => problems.worst(),
        _ => None,
    }
}

/// Creates a card, a lorebook, a group chat and a group.
fn library_of_all_kinds() -> Sandbox {
    let sandbox = Sandbox::empty();
    let data = json!({ "name": "Mira", "description": "x".repeat(200) });
    sandbox.write("characters/Mira.png", card(&json!({ "data": data }), 100));
    sandbox.write("worlds/Harbour.json", r#"{"entries":{}}"#);
    sandbox.write("group chats/g.jsonl", chat("g", 3, None));
    sandbox.write("groups/1.json", r#"{"id":"1","chats":["g"]}"#);
    sandbox.stvc(&["snapshot"]).exits(0);
    sandbox
}

#[test]
fn card_texts_must_match_their_chunks() {
    let sandbox = library_of_all_kinds();
    let called = |name: &str| {
        judged(&sandbox, "characters/Mira", |it| it.entry_at("card/0-chara").name = name.into())
    };
    assert_eq!(called("0-chara"), Verdict::Valid);
    for name in ["0-charax", "0-CHARA", "0-ccv3", "00-chara", "0-", "0-chara.x"] {
        assert_eq!(worst(&called(name)), Some(Severity::Flaw), "{name}");
    }
    for name in ["2-chara", "chara", "9-ccv3"] {
        let verdict = called(name);
        assert!(worst(&verdict) >= Some(Severity::Flaw), "{name}: {verdict:?}");
    }
    let more = judged(&sandbox, "characters/Mira", |it| {
        let text = it.entry_at("card/0-chara").node.clone();
        it.folder_at("card").push(entry("40000", "2-chara", text));
    });
    assert_eq!(worst(&more), Some(Severity::Fatal));
}

#[test]
fn snapshot_of_a_newer_format_is_not_reported_as_damaged() {
    let sandbox = library_of_all_kinds();
    for branch in ["characters/Mira", "worlds/Harbour", "groups/1", "group%20chats/g"] {
        let with = |format: u64, needs: Value| {
            judged(&sandbox, branch, |it| {
                it.edit_manifest(|manifest| {
                    manifest["format"] = format.into();
                    manifest["needs"] = needs;
                })
            })
        };
        assert_eq!(judged(&sandbox, branch, |_| {}), Verdict::Valid, "{branch}");
        assert_eq!(with(1, json!([])), Verdict::Valid, "{branch}");
        assert_eq!(with(1, json!(["moods"])), Verdict::Newer { format: 1 }, "{branch}");
        assert_eq!(with(2, json!([])), Verdict::Newer { format: 2 }, "{branch}");
    }
}

#[test]
fn manifest_with_fields_of_another_kind_of_timeline_is_reported() {
    let sandbox = library_of_all_kinds();
    for (branch, edit) in [
        ("worlds/Harbour", (|manifest| manifest["messages"] = 7.into()) as fn(&mut Value)),
        ("worlds/Harbour", |manifest| manifest["files"][0]["name"] = "Other".into()),
        ("characters/Mira", |manifest| manifest["files"][0]["name"] = "Mira".into()),
        ("group%20chats/g", |manifest| manifest["files"][0]["name"] = "g".into()),
    ] {
        let verdict = judged(&sandbox, branch, |it| it.edit_manifest(edit));
        assert_eq!(worst(&verdict), Some(Severity::Flaw), "{branch}: {verdict:?}");
    }
}
