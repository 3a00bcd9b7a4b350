//! Every oddity, and what all commands say of it.

use std::fs;

use serde_json::{Value, json};
use stvc::archive::{Snapshot, Validator, Verdict, Weight, rebuild};
use stvc::store::{ObjectId, Store};

use super::{Case, exits};
use crate::common::card::card;
use crate::common::forged_snapshot::{Forge, Library, Node, comes_in, entry, file, lost};
use crate::common::{Answer, B, Sandbox, assert_same, calm, chat, text};

/// What everybody must say of a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Said {
    Odd(Weight),
    Newer,
}

impl Said {
    fn finding(self) -> (&'static str, &'static str) {
        match self {
            Said::Odd(Weight::Fatal) => ("snapshot-damaged", "error"),
            Said::Odd(Weight::Unsafe) => ("snapshot-odd", "error"),
            Said::Odd(Weight::Flaw) => ("snapshot-odd", "warning"),
            Said::Newer => ("snapshot-newer", "warning"),
        }
    }

    fn is_restored(self) -> bool {
        matches!(self, Said::Odd(Weight::Flaw | Weight::Unsafe))
    }

    fn is_taken_in(self) -> bool {
        matches!(self, Said::Odd(Weight::Flaw) | Said::Newer)
    }
}

/// The code and level of what is said of a snapshot, and nothing is said of any other.
#[track_caller]
fn said(answer: &Answer, id: &str, what: &str) -> Vec<(String, String)> {
    let mut said = Vec::new();
    for line in answer.of_type("finding") {
        let text = |field: &str| line[field].as_str().unwrap().to_owned();
        if text("subject") == id {
            said.push((text("code"), text("level")));
        } else if text("code").starts_with("snapshot-") {
            panic!("{what}: {line}");
        }
    }
    said
}

/// Forge the middle snapshot, and let everybody look at it.
#[track_caller]
fn agree(library: &Library, expected: Said, what: &str, edit: impl FnOnce(&mut Forge)) {
    let (odd, next) = library.forge(edit);
    restore_agrees(library, expected, what, &odd);
    others_agree(library, expected, what, &odd, &next);
}

#[track_caller]
fn restore_agrees(library: &Library, expected: Said, what: &str, odd: &str) {
    let sandbox = &library.sandbox;
    if expected.is_restored() {
        let to = tempfile::tempdir_in(sandbox.folder()).unwrap();
        let out = to.path().join("out");
        calm(sandbox.stvc(&["restore", odd, "--to", text(&out)])).exits(0);
        assert_eq!(fs::read(out.join(B)).unwrap(), library.stored[1].bytes, "{what}");
    } else {
        let before = sandbox.files();
        exits(&calm(sandbox.stvc(&["restore", odd, "--overwrite"])), 1, what);
        assert_same(&sandbox.files(), &before);
    }
}

/// `check`, `show`, `backup` and `import`.
#[track_caller]
fn others_agree(library: &Library, expected: Said, what: &str, odd: &str, next: &str) {
    let sandbox = &library.sandbox;
    let (code, level) = expected.finding();
    let told = vec![(code.to_owned(), level.to_owned())];
    let in_check = match expected {
        Said::Newer => vec![(code.to_owned(), "error".to_owned())],
        _ => told.clone(),
    };

    let store = library.store();
    let id = ObjectId::from_hex(odd.as_bytes()).unwrap();
    let snapshot = Snapshot::read(&store.reader().commit(id).unwrap()).unwrap();
    let verdict = Validator::new(store.reader()).judge(&snapshot).unwrap();
    let weight = match &verdict {
        Verdict::Unsound(problems) => Some(Said::Odd(problems.worst().unwrap())),
        Verdict::Newer { .. } => Some(Said::Newer),
        Verdict::Sound => None,
    };
    assert_eq!(weight, Some(expected), "{what}: {verdict:?}");

    let is_sound = expected == Said::Odd(Weight::Flaw);
    let checked = calm(sandbox.json(&["check"]));
    exits(&checked, if is_sound { 0 } else { 1 }, what);
    assert_eq!(said(&checked, odd, what), in_check, "check: {what}");

    let code = i32::from(!expected.is_restored());
    let shown = calm(sandbox.json(&["show", odd]));
    exits(&shown, code, what);
    if expected.is_restored() {
        assert_eq!(said(&shown, odd, what), told, "show: {what}");
    }
    let to = tempfile::tempdir_in(sandbox.folder()).unwrap();
    let partly = if expected.is_taken_in() { 0 } else { 3 };
    for backup in [to.path().join("b.stvc"), to.path().join("mirror")] {
        let answer = calm(sandbox.json(&["backup", text(&backup)]));
        exits(&answer, partly, what);
        assert_eq!(said(&answer, odd, what), told, "backup: {what}");
        let checked = calm(sandbox.json(&["check", text(&backup)]));
        exits(&checked, if is_sound { 0 } else { 1 }, what);
        assert_eq!(said(&checked, odd, what), in_check, "check {backup:?}: {what}");

        let (other, answer) = library.take_in(&backup);
        exits(&answer, partly, what);
        assert_eq!(said(&answer, odd, what), told, "import {backup:?}: {what}");
        comes_in(library, &other, expected.is_taken_in().then_some((odd, next)), what);
        // Once more: nothing is new.
        let ids = other.snapshot_ids();
        exits(&calm(other.json(&["import", text(&backup)])), partly, what);
        assert_eq!(other.snapshot_ids(), ids, "{what}");
    }
}

const FLAW: Said = Said::Odd(Weight::Flaw);

const UNSAFE: Said = Said::Odd(Weight::Unsafe);

const FATAL: Said = Said::Odd(Weight::Fatal);

#[track_caller]
fn all_agree(expected: Said, cases: &[Case<'_>]) {
    let library = Library::new();
    for (what, edit) in cases {
        agree(&library, expected, what, edit);
    }
}

fn join_last_messages(it: &mut Forge) {
    let last = it.remove("chat/messages/001/00105.json");
    let Node::Blob(last) = last.node else { panic!() };
    let path = "chat/messages/001/00104.json";
    let both = [&it.bytes(path)[..], b"\n", &last].concat();
    it.of(path).node = Node::Blob(both);
}

#[test]
fn what_is_odd_in_a_tree_is_told_and_comes_back() {
    all_agree(
        FLAW,
        &[
            ("a file that is no part", &|it| it.root.push(file("extra", b"more"))),
            ("a folder that is no part", &|it| {
                let below = Node::Tree(vec![file("more", b"more")]);
                it.at("chat").push(entry("40000", "extra", below));
            }),
            ("a program", &|it| it.of("chat/header.json").mode = "100755"),
            ("other rights", &|it| it.of("chat/messages/000/00007.json").mode = "100664"),
            ("a message without zeros", &|it| {
                it.of("chat/messages/000/00007.json").name = b"7.json".to_vec();
            }),
            ("a message in the wrong folder", &|it| {
                let message = it.remove("chat/messages/001/00105.json");
                it.at("chat/messages/000").push(message);
            }),
            ("a folder without zeros", &|it| {
                it.of("chat/messages/001").name = b"1".to_vec();
            }),
            ("two messages in one", &join_last_messages),
            ("two messages in one that are counted as one", &|it| {
                join_last_messages(it);
                it.manifest(|manifest| manifest["messages"] = 105.into());
                it.trailer("Stvc-Messages", "105");
            }),
        ],
    );
}

#[test]
fn what_is_odd_in_a_lorebook_or_in_numbers_is_told_and_comes_back() {
    all_agree(
        FLAW,
        &[
            ("a second lorebook", &|it| {
                let book = it.of("lorebooks/Harbour").node.clone();
                it.at("lorebooks").push(entry("40000", "Another", book));
            }),
            ("another name for the lorebook's folder", &|it| {
                it.of("lorebooks/Harbour").name = b"Another".to_vec();
            }),
            ("an entry that the book does not name", &|it| {
                it.at("lorebooks/Harbour/entries").push(file("9.json", b"{}"));
            }),
            ("a group that the manifest does not name", &|it| {
                it.root.push(file("group.json", b"{}"))
            }),
            ("too many messages in the manifest", &|it| {
                it.manifest(|manifest| manifest["messages"] = 7.into());
            }),
            ("too many messages in the commit", &|it| it.trailer("Stvc-Messages", "7")),
            ("another lorebook in the commit", &|it| it.trailer("Stvc-Lorebook", "Another")),
            ("the lorebook first", &|it| {
                it.files(|manifest| manifest["files"].as_array_mut().unwrap().reverse());
            }),
        ],
    );
}

#[test]
fn what_would_mislead_a_store_or_git_comes_back_and_stays_where_it_is() {
    let zeros = "0".repeat(64);
    all_agree(
        UNSAFE,
        &[
            ("a content id of nothing", &|it| it.break_content_id()),
            ("another content id in the commit", &|it| it.trailer("Stvc-Content", &zeros)),
            (".git", &|it| it.root.push(file(".git", b"evil"))),
            ("a device", &|it| it.at("lorebooks/Harbour").push(file("con", b"evil"))),
            ("a link", &|it| {
                it.root.push(entry("120000", "link", Node::Blob(b"/etc/passwd".to_vec())));
            }),
            ("another order", &|it| {
                it.as_it_stands = true;
                it.root.reverse();
            }),
            ("a name twice", &|it| {
                let header = it.of("chat/header.json").clone();
                it.at("chat").push(header);
            }),
            ("a folder's mode with a zero", &|it| it.of("chat").mode = "040000"),
            ("a lost object that no file needs", &|it| {
                it.root.push(entry("100644", "extra", lost()));
            }),
        ],
    );
}

#[test]
fn what_does_not_come_back_is_called_damaged_by_all() {
    all_agree(
        FATAL,
        &[
            ("a path out of the library", &|it| {
                it.files(|manifest| manifest["files"][1]["path"] = "../evil.json".into());
            }),
            ("a group for a chat that has none", &|it| {
                it.root.push(file("group.json", b"{}"));
                it.files(|manifest| {
                    let hash = blake3::hash(b"{}").to_hex().to_string();
                    let record = json!({ "role": "group", "path": "groups/1.json", "bytes": 2, "blake3": hash });
                    manifest["files"].as_array_mut().unwrap().push(record);
                });
            }),
            ("two chats", &|it| {
                it.files(|manifest| {
                    let first = manifest["files"][0].clone();
                    manifest["files"].as_array_mut().unwrap().insert(1, first);
                });
            }),
            ("another hash", &|it| {
                it.files(|manifest| manifest["files"][0]["blake3"] = "0".repeat(64).into());
            }),
            ("another length", &|it| {
                it.files(|manifest| manifest["files"][0]["bytes"] = 7.into());
            }),
            ("a file's mode with a zero", &|it| it.of("chat/header.json").mode = "0100644"),
            ("an enormous length", &|it| {
                it.files(|manifest| manifest["files"][0]["bytes"] = (1_u64 << 30).into());
            }),
        ],
    );
}

#[test]
fn a_manifest_of_another_timeline_is_called_damaged() {
    let library = Library::new();
    let (odd, next) = library.forge(|it| {
        it.files(|manifest| {
            manifest["timeline"] = "chats/Mira/z".into();
            manifest["files"][0]["path"] = "chats/Mira/z.jsonl".into();
        });
    });
    let what = "a manifest of another timeline";
    restore_agrees(&library, FATAL, what, &odd);
    others_agree(&library, FATAL, what, &odd, &next);
}

#[test]
fn what_is_missing_is_missing_for_all() {
    all_agree(
        FATAL,
        &[
            ("no manifest", &|it| drop(it.remove("snapshot.json"))),
            ("no manifest that can be read", &|it| {
                it.of("snapshot.json").node = Node::Blob(b"{ \"format\": 1 }".to_vec());
            }),
            ("no message 5", &|it| drop(it.remove("chat/messages/000/00005.json"))),
            ("a message that is lost", &|it| it.of("chat/messages/000/00005.json").node = lost()),
            ("no folder 0", &|it| drop(it.remove("chat/messages/000"))),
            ("a folder where a file belongs", &|it| {
                it.remove("chat/header.json");
                it.at("chat").push(entry("40000", "header.json", Node::Tree(Vec::new())));
            }),
            ("no lorebook", &|it| drop(it.remove("lorebooks"))),
            ("no entry 7", &|it| drop(it.remove("lorebooks/Harbour/entries/7.json"))),
            ("an entry that is lost", &|it| {
                it.of("lorebooks/Harbour/entries/7.json").node = lost();
            }),
        ],
    );
}

#[test]
fn what_is_newer_is_not_damaged_and_travels_as_it_is() {
    all_agree(
        Said::Newer,
        &[("format 3", &|it| {
            it.manifest(|manifest| *manifest = json!({ "format": 3, "what": "nobody knows" }));
            it.root.push(file("future", b"more"));
            let below =
                Node::Tree(vec![entry("40000", "deeper", Node::Tree(vec![file("x", b"y")]))]);
            it.root.push(entry("40000", "unknown", below));
        })],
    );
}

/// What is said of the newest snapshot of a timeline once it is edited.
fn judged(sandbox: &Sandbox, branch: &str, edit: impl FnOnce(&mut Forge)) -> Verdict {
    let store = Store::open(&sandbox.store()).unwrap();
    let head = sandbox.git(&["rev-parse", &format!("refs/heads/{branch}")]);
    let mut forged = Forge::read(&store, head.trim());
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

fn worst(verdict: &Verdict) -> Option<Weight> {
    match verdict {
        Verdict::Unsound(problems) => problems.worst(),
        _ => None,
    }
}

/// A card, a lorebook, a group chat and a group.
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
fn texts_of_a_card_must_be_called_after_their_chunks() {
    let sandbox = library_of_all_kinds();
    let called = |name: &str| {
        judged(&sandbox, "characters/Mira", |it| it.of("card/0-chara").name = name.into())
    };
    assert_eq!(called("0-chara"), Verdict::Sound);
    for name in ["0-charax", "0-CHARA", "0-ccv3", "00-chara", "0-", "0-chara.x"] {
        assert_eq!(worst(&called(name)), Some(Weight::Flaw), "{name}");
    }
    for name in ["2-chara", "chara", "9-ccv3"] {
        let verdict = called(name);
        assert!(worst(&verdict) >= Some(Weight::Flaw), "{name}: {verdict:?}");
    }
    let more = judged(&sandbox, "characters/Mira", |it| {
        let text = it.of("card/0-chara").node.clone();
        it.at("card").push(entry("40000", "2-chara", text));
    });
    assert_eq!(worst(&more), Some(Weight::Fatal));
}

#[test]
fn what_a_later_program_wrote_is_not_called_damaged() {
    let sandbox = library_of_all_kinds();
    for branch in ["characters/Mira", "worlds/Harbour", "groups/1", "group%20chats/g"] {
        let with = |format: u64, needs: Value| {
            judged(&sandbox, branch, |it| {
                it.manifest(|manifest| {
                    manifest["format"] = format.into();
                    manifest["needs"] = needs;
                })
            })
        };
        assert_eq!(judged(&sandbox, branch, |_| {}), Verdict::Sound, "{branch}");
        assert_eq!(with(1, json!([])), Verdict::Sound, "{branch}");
        assert_eq!(with(1, json!(["moods"])), Verdict::Newer { format: 1 }, "{branch}");
        assert_eq!(with(2, json!([])), Verdict::Newer { format: 2 }, "{branch}");
    }
}

#[test]
fn a_manifest_of_another_kind_than_a_chat_has_no_messages_and_names_only_lorebooks() {
    let sandbox = library_of_all_kinds();
    for (branch, edit) in [
        ("worlds/Harbour", (|manifest| manifest["messages"] = 7.into()) as fn(&mut Value)),
        ("worlds/Harbour", |manifest| manifest["files"][0]["name"] = "Other".into()),
        ("characters/Mira", |manifest| manifest["files"][0]["name"] = "Mira".into()),
        ("group%20chats/g", |manifest| manifest["files"][0]["name"] = "g".into()),
    ] {
        let verdict = judged(&sandbox, branch, |it| it.manifest(edit));
        assert_eq!(worst(&verdict), Some(Weight::Flaw), "{branch}: {verdict:?}");
    }
}
