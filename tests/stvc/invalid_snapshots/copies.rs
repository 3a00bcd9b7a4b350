//! Invalid snapshots in backups and sync.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use stvc::internals::store::Store;

use super::{Case, exits};
use crate::common::forged_snapshot::{ForgedSnapshot, Library};
use crate::common::{B, Sandbox, assert_no_panic, assert_valid, delete_object, git, message, text};

/// A timeline whose latest, or only, snapshot is invalid.
#[test]
fn backup_of_a_branch_ends_before_its_invalid_latest_snapshot() {
    let library = Library::new();
    let sandbox = &library.sandbox;
    let store = library.store();
    let odd = |id: &str, parent: Option<&str>| {
        let mut forged = ForgedSnapshot::read(&store, id);
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
        sandbox.stvc(&["backup", text(&backup), "--no-snapshot"]).exits(3);
        let (other, answer) = library.import_into_empty(&backup);
        exits(&answer, 3, name);
        let findings = answer.of_type("finding");
        let of = |code: &str| -> BTreeSet<_> {
            let of_code = findings.iter().filter(|line| line["code"] == code);
            of_code.map(|line| line["subject"].as_str().unwrap().to_owned()).collect()
        };
        assert_eq!(of("snapshot-damaged"), BTreeSet::from([newest.clone(), only.clone()]));
        let left_out = ["bad", "chats/Mira/b", "chats/Mira/c"].map(str::to_owned);
        assert_eq!(of("ref-left-out"), BTreeSet::from(left_out));
        let heads = other.git(&["for-each-ref", "--format=%(objectname) %(refname)"]);
        assert!(heads.contains(&format!("{} refs/heads/chats/Mira/b", library.stored[1].id)));
        assert!(heads.contains(&format!("{} refs/tags/good", library.stored[0].id)));
        assert!(!heads.contains("refs/heads/chats/Mira/c") && !heads.contains("bad"), "{heads}");
        assert_valid(&other);
    }
}

/// Devices share a history, so sync rewrites nothing: a timeline with an invalid snapshot stays
/// unchanged on both sides, and the others are synced.
#[test]
fn sync_skips_invalid_timelines() {
    let odd: [Case<'_>; 2] = [
        ("damaged", &|it| drop(it.remove("snapshot.json"))),
        ("newer", &|it| it.edit_manifest(|manifest| manifest["format"] = 3.into())),
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
        let mut forged = ForgedSnapshot::read(&folder, &library.stored[2].id);
        edit(&mut forged);
        let tip = forged.write(&folder, Some(&library.stored[2].id));
        let set = |name: &str, id: &str| git(Path::new(shared), &["update-ref", name, id]);
        set("refs/heads/chats/Mira/b", &tip);
        set("refs/tags/odd", &tip);
        one.append("chats/Mira/a.jsonl", &message("a", 77));
        exits(&assert_no_panic(one.stvc(&["sync", shared])), 3, what);
        other.append(B, &message("b", 88));
        let answer = assert_no_panic(other.json(&["sync", shared]));
        exits(&answer, 3, what);
        let findings = answer.of_type("finding");
        let left = findings.iter().filter(|line| line["code"] == "ref-left-out");
        let left: BTreeSet<_> = left.map(|line| line["subject"].as_str().unwrap()).collect();
        assert_eq!(left, BTreeSet::from(["chats/Mira/b", "odd"]), "{what}");
        assert!(findings.iter().any(|line| line["subject"] == tip), "{what}: {findings:?}");
        assert_eq!(answer.of_type("summary")[0]["not_received"], 2, "{what}");
        assert_eq!(other.read("chats/Mira/a.jsonl"), one.read("chats/Mira/a.jsonl"), "{what}");
        for name in ["chats/Mira/b", "odd"] {
            let there = git(Path::new(shared), &["rev-parse", name]);
            assert_eq!(there.trim_ascii_end(), tip.as_bytes(), "{what}: {name}");
        }
        assert_ne!(other.read(B), b, "{what}");

        // After the correction everything is synced.
        set("refs/heads/chats/Mira/b", &library.stored[2].id);
        git(Path::new(shared), &["update-ref", "-d", "refs/tags/odd"]);
        other.stvc(&["sync", shared]).exits(0);
        one.stvc(&["sync", shared]).exits(0);
        assert_eq!(one.read(B), other.read(B), "{what}");
    }
}

/// A backup continues the last one, although a snapshot was left out.
#[test]
fn next_backup_continues_a_history_with_an_omitted_snapshot() {
    let mut library = Library::new();
    library.forge_middle(|it| drop(it.remove("snapshot.json")));
    let mirror = library.sandbox.folder().join("mirror");
    library.sandbox.stvc(&["backup", text(&mirror)]).exits(3);
    let (other, answer) = library.import_into_empty(&mirror);
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
    assert_valid(&other);
}

/// Lost objects are left out of a backup, and it does not replace one that may have them.
#[test]
fn store_with_lost_objects_is_backed_up_without_them() {
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
        // Change the message in the latest snapshot too.
        sandbox.write(B, String::from_utf8(sandbox.read(B)).unwrap().replace("b 201", "B 201"));
        sandbox.stvc(&["snapshot"]).exits(0);
        delete_object(&sandbox.store(), &id);
        let answer = assert_no_panic(sandbox.stvc(&["backup", text(&whole)])).exits(4);
        assert!(
            answer
                .stderr
                .contains("may have valid copies of snapshots that are damaged in this store"),
            "{}",
            answer.stderr
        );
        assert_eq!(fs::read(&whole).unwrap(), before);
        for name in ["rest.stvc", "mirror"] {
            let backup = sandbox.folder().join(name);
            let answer = assert_no_panic(sandbox.json(&["backup", text(&backup)])).exits(3);
            let findings = answer.of_type("finding");
            assert!(findings.iter().any(|line| line["level"] == "error"), "{findings:?}");
            let (other, answer) = library.import_into_empty(&backup);
            exits(&answer, 3, lost);
            other.stvc(&["restore", "--all"]).exits(0);
            assert_eq!(other.read(B), sandbox.read(B), "{lost} {name}");
            assert_eq!(other.read("chats/Mira/a.jsonl"), sandbox.read("chats/Mira/a.jsonl"));
            assert_valid(&other);
        }
        // `--prune` needs to know what the store has.
        if lost == "commit" {
            sandbox.stvc(&["backup", text(&sandbox.folder().join("mirror")), "--prune"]).exits(1);
        }
    }
}
