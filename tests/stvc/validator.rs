//! What is judged, is judged once: whatever is odd about a snapshot, `check`, `show`, `restore`, `backup` and `import` say the same of it, and the others come in.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use stvc::archive::{Snapshot, Validator, Verdict, Weight};
use stvc::store::{Kind, ObjectId, Store};

use crate::common::forged_snapshot::{Forge, Library, Node, comes_in, entry, file, lost};
#[cfg(target_os = "linux")]
use crate::common::scripted;
use crate::common::{Answer, B, Sandbox, assert_same, calm, git, lose, message, text};

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

#[track_caller]
fn exits(answer: &Answer, code: i32, what: &str) {
    assert_eq!(answer.code, code, "{what}\n{}\n{}", answer.stdout, answer.stderr);
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

type Case<'c> = (&'c str, &'c dyn Fn(&mut Forge));

#[track_caller]
fn all_agree(expected: Said, cases: &[Case<'_>]) {
    let library = Library::new();
    for (what, edit) in cases {
        agree(&library, expected, what, edit);
    }
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
            ("two messages in one", &|it| {
                let last = it.remove("chat/messages/001/00105.json");
                let Node::Blob(last) = last.node else { panic!() };
                let path = "chat/messages/001/00104.json";
                let both = [&it.bytes(path)[..], b"\n", &last].concat();
                it.of(path).node = Node::Blob(both);
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
            ("a mode with a zero", &|it| it.of("chat").mode = "040000"),
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

/// Trailers of commits could not hold white space at the end of a name once; the chat of such a snapshot is still the user's.
#[test]
fn a_name_that_a_commit_cut_short_is_told_and_comes_back() {
    let library = Library::new();
    let store = library.store();
    let mut forged = Forge::read(&store, &library.stored[1].id);
    forged.files(|manifest| {
        manifest["timeline"] = "chats/Mira/b\u{3000}".into();
        manifest["files"][0]["path"] = "chats/Mira/b\u{3000}.jsonl".into();
    });
    let id = forged.write(&store, None);
    let commit = library.store().reader().commit(ObjectId::from_hex(id.as_bytes()).unwrap());
    let snapshot = Snapshot::read(&commit.unwrap()).unwrap();
    let verdict = Validator::new(library.store().reader()).judge(&snapshot).unwrap();
    assert!(verdict.can_be_restored() && verdict.may_be_taken_in(), "{verdict:?}");
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
        &[("format 2", &|it| {
            it.manifest(|manifest| *manifest = json!({ "format": 2, "what": "nobody knows" }));
            it.root.push(file("future", b"more"));
            let below =
                Node::Tree(vec![entry("40000", "deeper", Node::Tree(vec![file("x", b"y")]))]);
            it.root.push(entry("40000", "unknown", below));
        })],
    );
}

/// A snapshot of a newer format is the user's, though this program cannot read it.
#[test]
fn what_is_newer_is_neither_forgotten_nor_collected() {
    let library = Library::new();
    let (odd, next) = library.forge(|it| {
        it.manifest(|manifest| manifest["format"] = 2.into());
        it.root.push(file("future", b"only here"));
    });
    let sandbox = &library.sandbox;
    sandbox.stvc(&["forget", "--keep-last", "1"]).exits(0);
    sandbox.stvc(&["gc", "--grace", "0s", "--keep-undo", "0s"]).exits(0);
    let ids = sandbox.snapshot_ids();
    assert!(ids.contains(&odd) && ids.contains(&next) && ids.contains(&library.stored[0].id));
    assert_eq!(sandbox.git(&["cat-file", "blob", &format!("{odd}:future")]), "only here");
    git(&sandbox.store(), &["fsck", "--strict"]);
}

/// A timeline whose newest snapshot, or whose only one, is odd.
#[test]
fn a_branch_that_ends_with_an_odd_snapshot_ends_with_the_one_before() {
    let library = Library::new();
    let sandbox = &library.sandbox;
    let store = library.store();
    let odd = |id: &str, parent: Option<&str>| {
        let mut forged = Forge::read(&store, id);
        forged.remove("snapshot.json");
        forged.write(&store, parent)
    };
    let newest = odd(&library.stored[2].id, Some(&library.stored[1].id));
    sandbox.git(&["update-ref", "refs/heads/chats/Mira/b", &newest]);
    let only = odd(sandbox.git(&["rev-parse", "chats/Mira/c"]).trim(), None);
    sandbox.git(&["update-ref", "refs/heads/chats/Mira/c", &only]);
    sandbox.git(&["update-ref", "refs/tags/good", &library.stored[0].id]);
    sandbox.git(&["update-ref", "refs/tags/bad", &newest]);
    for name in ["b.stvc", "mirror"] {
        let backup = sandbox.folder().join(name);
        sandbox.stvc(&["backup", text(&backup)]).exits(3);
        let (other, answer) = library.take_in(&backup);
        exits(&answer, 3, name);
        let told = answer.of_type("finding");
        let of = |code: &str| -> BTreeSet<_> {
            let of_code = told.iter().filter(|line| line["code"] == code);
            of_code.map(|line| line["subject"].as_str().unwrap().to_owned()).collect()
        };
        assert_eq!(of("snapshot-damaged"), BTreeSet::from([newest.clone(), only.clone()]));
        let left_out = ["bad", "chats/Mira/b", "chats/Mira/c"].map(str::to_owned);
        assert_eq!(of("ref-left-out"), BTreeSet::from(left_out));
        let heads = other.git(&["for-each-ref", "--format=%(objectname) %(refname)"]);
        assert!(heads.contains(&format!("{} refs/heads/chats/Mira/b", library.stored[1].id)));
        assert!(heads.contains(&format!("{} refs/tags/good", library.stored[0].id)));
        assert!(!heads.contains("refs/heads/chats/Mira/c") && !heads.contains("bad"), "{heads}");
        crate::common::sound(&other);
    }
}

/// Devices share a history, so nothing in it is written anew: a timeline with something odd stays where it is, on both sides, and the others go on.
#[test]
fn sync_leaves_what_is_odd_alone_and_goes_on_with_the_rest() {
    let odd: [Case<'_>; 2] = [
        ("damaged", &|it| drop(it.remove("snapshot.json"))),
        ("newer", &|it| it.manifest(|manifest| manifest["format"] = 2.into())),
    ];
    for (what, edit) in odd {
        let library = Library::new();
        let one = &library.sandbox;
        let shared = one.folder().join("shared");
        let shared = text(&shared);
        one.stvc(&["sync", shared]).exits(0);
        let other = Sandbox::empty();
        other.stvc(&["sync", shared]).exits(0);
        let b = other.read(B);

        let folder = Store::open(Path::new(shared)).unwrap();
        let mut forged = Forge::read(&folder, &library.stored[2].id);
        edit(&mut forged);
        let tip = forged.write(&folder, Some(&library.stored[2].id));
        let set = |name: &str, id: &str| git(Path::new(shared), &["update-ref", name, id]);
        set("refs/heads/chats/Mira/b", &tip);
        set("refs/tags/odd", &tip);
        one.append("chats/Mira/a.jsonl", &message("a", 77));
        exits(&calm(one.stvc(&["sync", shared])), 3, what);
        other.append(B, &message("b", 88));
        let answer = calm(other.json(&["sync", shared]));
        exits(&answer, 3, what);
        let told = answer.of_type("finding");
        let left = told.iter().filter(|line| line["code"] == "ref-left-out");
        let left: BTreeSet<_> = left.map(|line| line["subject"].as_str().unwrap()).collect();
        assert_eq!(left, BTreeSet::from(["chats/Mira/b", "odd"]), "{what}");
        assert!(told.iter().any(|line| line["subject"] == tip), "{what}: {told:?}");
        assert_eq!(answer.of_type("summary")[0]["left_there"], 2, "{what}");
        assert_eq!(other.read("chats/Mira/a.jsonl"), one.read("chats/Mira/a.jsonl"), "{what}");
        for name in ["chats/Mira/b", "odd"] {
            let there = git(Path::new(shared), &["rev-parse", name]);
            assert_eq!(there.trim_ascii_end(), tip.as_bytes(), "{what}: {name}");
        }
        assert_ne!(other.read(B), b, "{what}");

        // Once it is put right, all goes on as if nothing had been.
        set("refs/heads/chats/Mira/b", &library.stored[2].id);
        git(Path::new(shared), &["update-ref", "-d", "refs/tags/odd"]);
        other.stvc(&["sync", shared]).exits(0);
        one.stvc(&["sync", shared]).exits(0);
        assert_eq!(one.read(B), other.read(B), "{what}");
    }
}

/// A backup goes on where the last one left off, though a snapshot was left out.
#[test]
fn what_was_joined_up_goes_on_with_the_next_backup() {
    let mut library = Library::new();
    library.forge(|it| drop(it.remove("snapshot.json")));
    let mirror = library.sandbox.folder().join("mirror");
    library.sandbox.stvc(&["backup", text(&mirror)]).exits(3);
    let (other, answer) = library.take_in(&mirror);
    exits(&answer, 3, "the first");
    library.sandbox.wait(60);
    library.sandbox.append(B, &message("b", 300));
    library.sandbox.stvc(&["snapshot"]).exits(0);
    library.sandbox.stvc(&["backup", text(&mirror)]).exits(0);
    let file = library.sandbox.folder().join("b.stvc");
    library.sandbox.stvc(&["backup", text(&file)]).exits(3);
    for (backup, outcome) in [(&mirror, "forward"), (&file, "known")] {
        let answer = other.json(&["import", text(backup)]).exits(3);
        let lines = answer.of_type("taken_in");
        let line = lines.iter().find(|line| line["timeline"] == "chats/Mira/b").unwrap();
        assert_eq!(line["outcome"], outcome);
    }
    other.stvc(&["restore", "--all"]).exits(0);
    assert_eq!(other.read(B), library.sandbox.read(B));
    crate::common::sound(&other);
}

/// What is lost in the store costs the backup that and nothing else; and it does not take the place of one that may have it.
#[test]
fn a_store_that_lost_something_is_backed_up_without_it() {
    for lost in ["blob", "commit"] {
        let library = Library::new();
        let sandbox = &library.sandbox;
        let whole = sandbox.folder().join("whole.stvc");
        sandbox.stvc(&["backup", text(&whole)]).exits(0);
        let before = fs::read(&whole).unwrap();
        let name = match lost {
            "blob" => format!("{}:chat/messages/001/00105.json", library.stored[1].id),
            _ => library.stored[1].id.clone(),
        };
        let id = sandbox.git(&["rev-parse", &name]).trim().to_owned();
        // The message is in the newest snapshot, too; there it is another one.
        sandbox.write(B, String::from_utf8(sandbox.read(B)).unwrap().replace("b 201", "B 201"));
        sandbox.stvc(&["snapshot"]).exits(0);
        lose(&sandbox.store(), &id);
        let answer = calm(sandbox.stvc(&["backup", text(&whole)])).exits(4);
        assert!(answer.stderr.contains("damaged here"), "{}", answer.stderr);
        assert_eq!(fs::read(&whole).unwrap(), before);
        for name in ["rest.stvc", "mirror"] {
            let backup = sandbox.folder().join(name);
            let answer = calm(sandbox.json(&["backup", text(&backup)])).exits(3);
            let told = answer.of_type("finding");
            assert!(told.iter().any(|line| line["level"] == "error"), "{told:?}");
            let (other, answer) = library.take_in(&backup);
            exits(&answer, 3, lost);
            other.stvc(&["restore", "--all"]).exits(0);
            assert_eq!(other.read(B), sandbox.read(B), "{lost} {name}");
            assert_eq!(other.read("chats/Mira/a.jsonl"), sandbox.read("chats/Mira/a.jsonl"));
            crate::common::sound(&other);
        }
        // A backup that lets go of what is not here must know what is here.
        if lost == "commit" {
            sandbox.stvc(&["backup", text(&sandbox.folder().join("mirror")), "--prune"]).exits(1);
        }
    }
}

/// The only copy of a file that was overwritten is in no snapshot, and `check` looks at it all the same.
#[test]
fn what_only_undo_needs_is_checked() {
    let library = Library::new();
    let sandbox = &library.sandbox;
    let first = &library.stored[0].id;
    // The book here was never in a snapshot of its own.
    sandbox.write("worlds/Harbour.json", json!({ "entries": {}, "only": "here" }).to_string());
    sandbox.stvc(&["restore", first, "--only", "lorebook", "--overwrite"]).exits(0);
    assert_eq!(crate::common::check(sandbox).0, 0);
    let log = fs::read_to_string(sandbox.store().join("stvc/operations.jsonl")).unwrap();
    let lines = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let last = lines.rev().find(|line| line["number"].is_u64()).unwrap();
    let kept = &last["files"][0]["before"];
    let lost = match (kept["blob"].as_str(), kept["snapshot"].as_str()) {
        (Some(blob), _) => blob.to_owned(),
        (_, Some(id)) => {
            sandbox.git(&["rev-parse", &format!("{id}:lorebooks/Harbour/book.json")]).trim().into()
        }
        _ => panic!("{last}"),
    };
    lose(&sandbox.store(), &lost);
    let answer = calm(sandbox.json(&["check"])).exits(1);
    let told = answer.of_type("finding");
    let of = |code: &str| told.iter().filter(|line| line["code"] == code).count();
    assert!(of("kept-damaged") > 0, "{told:?}");
    assert!(told.iter().any(|line| line["subject"] == "worlds/Harbour.json"), "{told:?}");
    assert!(told.iter().any(|line| line["subject"] == lost.as_str()), "{told:?}");
    calm(sandbox.stvc(&["undo"])).exits(1);
}

/// A branch that somebody set back, though the log knows of a later snapshot.
#[test]
fn a_branch_that_was_set_back_is_noticed() {
    let library = Library::new();
    let sandbox = &library.sandbox;
    let warned = || {
        let found = sandbox.json(&["check"]).exits(0).of_type("finding");
        found.iter().filter(|line| line["code"] == "branch-set-back").count()
    };
    assert_eq!(warned(), 0);
    let branch = "refs/heads/chats/Mira/b";
    sandbox.git(&["update-ref", branch, &library.stored[1].id]);
    assert_eq!(warned(), 1);
    // Led onward by another git.
    let tree = format!("{}^{{tree}}", library.stored[2].id);
    let (body, newest) =
        (sandbox.git(&["log", "-1", "--format=%B", branch]), &library.stored[2].id);
    let arguments =
        ["-c", "user.name=a", "-c", "user.email=a@b", "commit-tree", &tree, "-p", newest];
    let onward = sandbox.git(&[&arguments[..], &["-m", body.trim()]].concat());
    sandbox.git(&["update-ref", branch, onward.trim()]);
    let found = sandbox.json(&["check"]).of_type("finding");
    assert!(found.iter().all(|line| line["code"] != "branch-set-back"), "{found:?}");
    // Taken back by stvc itself.
    sandbox.git(&["update-ref", branch, newest]);
    sandbox.stvc(&["undo"]).exits(0);
    sandbox.stvc(&["undo"]).exits(0);
    assert_eq!(warned(), 0);
}

/// Run the program with 2 GB of memory.
#[cfg(target_os = "linux")]
fn with_little_memory(sandbox: &Sandbox, arguments: &[&str]) -> Answer {
    calm(scripted(sandbox, "ulimit -v 2000000 || exit 99; exec \"$@\"", arguments))
}

/// A chat that is made of one large message very often is refused by its length, not by running out of memory.
#[test]
#[cfg(target_os = "linux")]
fn a_chat_of_many_gigabytes_takes_no_memory() {
    let library = Library::new();
    let mut pack = library.store().pack_writer();
    let large = Node::Object(pack.add(Kind::Blob, &vec![b'x'; 4 << 20]).unwrap());
    pack.finish().unwrap();
    for says in [None, Some(1000 * ((4_u64 << 20) + 1))] {
        let (bomb, _) = library.forge(|it| {
            let messages = it.at("chat/messages");
            messages.clear();
            for folder in 0..10 {
                let name = |n: usize| format!("{:05}.json", folder * 100 + n);
                let of_it = (0..100).map(|n| entry("100644", &name(n), large.clone())).collect();
                messages.push(entry("40000", &format!("{folder:03}"), Node::Tree(of_it)));
            }
            if let Some(bytes) = says {
                it.files(|manifest| manifest["files"][0]["bytes"] = bytes.into());
            }
        });
        for arguments in [&["check"][..], &["show", &bomb], &["restore", &bomb, "--overwrite"]] {
            let answer = with_little_memory(&library.sandbox, arguments);
            exits(&answer, 1, &format!("{arguments:?}"));
        }
        let backup = library.sandbox.folder().join(format!("{}.stvc", says.is_some()));
        exits(&with_little_memory(&library.sandbox, &["backup", text(&backup)]), 3, "backup");
        let other = Sandbox::empty();
        exits(&with_little_memory(&other, &["import", text(&backup)]), 3, "import");
        crate::common::sound(&other);
    }
}
