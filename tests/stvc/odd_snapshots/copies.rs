//! Odd snapshots on the way to a backup or another device.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use stvc::store::Store;

use super::{Case, exits};
use crate::common::forged_snapshot::{Forge, Library};
use crate::common::{B, Sandbox, calm, git, lose, message, sound, text};

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
        sandbox.stvc(&["backup", text(&backup), "--no-snapshot"]).exits(3);
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
        sound(&other);
    }
}

/// Devices share a history, so nothing in it is written anew: a timeline with something odd stays where it is, on both sides, and the others go on.
#[test]
fn sync_leaves_what_is_odd_alone_and_goes_on_with_the_rest() {
    let odd: [Case<'_>; 2] = [
        ("damaged", &|it| drop(it.remove("snapshot.json"))),
        ("newer", &|it| it.manifest(|manifest| manifest["format"] = 3.into())),
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
    sound(&other);
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
            sound(&other);
        }
        // A backup that lets go of what is not here must know what is here.
        if lost == "commit" {
            sandbox.stvc(&["backup", text(&sandbox.folder().join("mirror")), "--prune"]).exits(1);
        }
    }
}
