//! Invalid objects in a store, seen by its own commands.

use std::fs;

use serde_json::{Value, json};
use stvc::internals::store::Kind;

use super::exits;
use crate::common::forged_snapshot::{Library, Node, entry, file};
#[cfg(target_os = "linux")]
use crate::common::run_in_shell;
use crate::common::{
    Answer, Sandbox, assert_no_panic, assert_valid, check, delete_object, git, text,
};

/// A snapshot of a newer format is kept, although this program cannot read it.
#[test]
fn snapshots_of_a_newer_format_are_kept() {
    let library = Library::new();
    let (odd, next) = library.forge_middle(|it| {
        it.edit_manifest(|manifest| manifest["format"] = 3.into());
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

/// The only copy of an overwritten file is in no snapshot, and `check` verifies it.
#[test]
fn check_verifies_data_that_only_undo_needs() {
    let library = Library::new();
    let sandbox = &library.sandbox;
    let first = &library.stored[0].id;
    // This book was never in a snapshot.
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
    delete_object(&sandbox.store(), &lost);
    let answer = assert_no_panic(sandbox.json(&["check"])).exits(1);
    let findings = answer.of_type("finding");
    let of = |code: &str| findings.iter().filter(|line| line["code"] == code).count();
    assert!(of("kept-damaged") > 0, "{findings:?}");
    assert!(findings.iter().any(|line| line["subject"] == "worlds/Harbour.json"), "{findings:?}");
    assert!(findings.iter().any(|line| line["subject"] == lost.as_str()), "{findings:?}");
    assert_no_panic(sandbox.stvc(&["undo"])).exits(1);
}

/// The branch was moved back, although the log has a later snapshot.
#[test]
fn check_reports_a_branch_moved_to_an_earlier_snapshot() {
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
    // Moved forward by git.
    let tree = format!("{}^{{tree}}", library.stored[2].id);
    let (body, newest) =
        (sandbox.git(&["log", "-1", "--format=%B", branch]), &library.stored[2].id);
    let arguments =
        ["-c", "user.name=a", "-c", "user.email=a@b", "commit-tree", &tree, "-p", newest];
    let onward = sandbox.git(&[&arguments[..], &["-m", body.trim()]].concat());
    sandbox.git(&["update-ref", branch, onward.trim()]);
    let found = sandbox.json(&["check"]).of_type("finding");
    assert!(found.iter().all(|line| line["code"] != "branch-set-back"), "{found:?}");
    // Undone by stvc.
    sandbox.git(&["update-ref", branch, newest]);
    sandbox.stvc(&["undo"]).exits(0);
    sandbox.stvc(&["undo"]).exits(0);
    assert_eq!(warned(), 0);
}

/// Runs the program with 2 GB of memory.
#[cfg(target_os = "linux")]
fn with_little_memory(sandbox: &Sandbox, arguments: &[&str]) -> Answer {
    assert_no_panic(run_in_shell(sandbox, "ulimit -v 2000000 || exit 99; exec \"$@\"", arguments))
}

/// A chat that repeats one large message is refused by its length before memory runs out.
#[test]
#[cfg(target_os = "linux")]
fn oversized_chat_is_refused_before_memory_runs_out() {
    let library = Library::new();
    let mut pack = library.store().pack_writer();
    let large = Node::Object(pack.add(Kind::Blob, &vec![b'x'; 4 << 20]).unwrap());
    pack.finish().unwrap();
    for says in [None, Some(1000 * ((4_u64 << 20) + 1))] {
        let (bomb, _) = library.forge_middle(|it| {
            let messages = it.folder_at("chat/messages");
            messages.clear();
            for folder in 0..10 {
                let name = |n: usize| format!("{:05}.json", folder * 100 + n);
                let of_it = (0..100).map(|n| entry("100644", &name(n), large.clone())).collect();
                messages.push(entry("40000", &format!("{folder:03}"), Node::Tree(of_it)));
            }
            if let Some(bytes) = says {
                it.edit_files(|manifest| manifest["files"][0]["bytes"] = bytes.into());
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
        assert_valid(&other);
    }
}
