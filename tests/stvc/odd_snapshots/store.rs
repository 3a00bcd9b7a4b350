//! Odd things in a store, as its own commands see them.

use std::fs;

use serde_json::{Value, json};
use stvc::store::Kind;

use super::exits;
use crate::common::forged_snapshot::{Library, Node, entry, file};
#[cfg(target_os = "linux")]
use crate::common::scripted;
use crate::common::{Answer, Sandbox, calm, check, git, lose, sound, text};

/// A snapshot of a newer format is the user's, though this program cannot read it.
#[test]
fn what_is_newer_is_neither_forgotten_nor_collected() {
    let library = Library::new();
    let (odd, next) = library.forge(|it| {
        it.manifest(|manifest| manifest["format"] = 3.into());
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

/// The only copy of a file that was overwritten is in no snapshot, and `check` looks at it all the same.
#[test]
fn what_only_undo_needs_is_checked() {
    let library = Library::new();
    let sandbox = &library.sandbox;
    let first = &library.stored[0].id;
    // The book here was never in a snapshot of its own.
    sandbox.write("worlds/Harbour.json", json!({ "entries": {}, "only": "here" }).to_string());
    sandbox.stvc(&["restore", first, "--only", "lorebook", "--overwrite"]).exits(0);
    assert_eq!(check(sandbox).0, 0);
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
        sound(&other);
    }
}
