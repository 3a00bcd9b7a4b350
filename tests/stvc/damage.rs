//! A store that was hurt: every kind of file in it deleted, cut short or with one byte flipped. `check` must say so, whatever
//! was not hurt must come back, and nothing may panic.

use std::path::Path;

use crate::common::{
    A, Harm, Sandbox, Stored, Three, calm, chat, check, git, hurt, len, message, unpack_all,
};

/// `check` finds the file, names the middle snapshot if and only if it does not come back, and the others do come back.
#[track_caller]
fn look_at_hurt_pack(three: &Three, file: &Path, harm: Harm) {
    let (code, words) = check(&three.sandbox);
    let stem = file.file_stem().unwrap().to_str().unwrap();
    assert_eq!(code, 1, "{harm:?}: {words}");
    assert!(words.contains(stem), "{harm:?}: {words}");
    three.others_come_back();
    let hurt = &three.stored[1];
    let named = words.contains(&hurt.id) || words.contains("refs/heads/chats/Mira/b");
    assert_eq!(!named, hurt.comes_back(&three.sandbox), "{harm:?}: {words}");
    for other in [&three.stored[0], &three.stored[2]] {
        assert!(!words.contains(&other.id), "{harm:?}: {words}");
    }
}

#[test]
fn a_byte_flipped_anywhere_in_a_pack_is_found() {
    let three = Three::new();
    let pack = &three.packs[1];
    for at in (0..len(pack)).step_by(29) {
        let harm = Harm::Flipped(at);
        hurt(pack, harm, || look_at_hurt_pack(&three, pack, harm));
    }
    for at in (0..len(pack)).step_by(307) {
        hurt(pack, Harm::Flipped(at), || three.nothing_panics());
    }
    assert_eq!(check(&three.sandbox), (0, String::new()));
}

#[test]
fn a_byte_flipped_anywhere_in_an_index_is_found() {
    let three = Three::new();
    let index = three.packs[1].with_extension("idx");
    for at in (0..len(&index)).step_by(41) {
        let harm = Harm::Flipped(at);
        hurt(&index, harm, || look_at_hurt_pack(&three, &index, harm));
    }
    for at in (0..len(&index)).step_by(307) {
        hurt(&index, Harm::Flipped(at), || three.nothing_panics());
    }
    assert_eq!(check(&three.sandbox), (0, String::new()));
}

#[test]
fn a_pack_or_index_that_is_gone_or_cut_short_is_found() {
    let three = Three::new();
    for file in [three.packs[1].clone(), three.packs[1].with_extension("idx")] {
        let whole = len(&file);
        let mut harms = vec![Harm::Deleted];
        harms.extend([0, 3, 12, 31, 32, 200, whole / 2, whole - 20, whole - 1].map(Harm::CutTo));
        for harm in harms {
            hurt(&file, harm, || {
                look_at_hurt_pack(&three, &file, harm);
                three.nothing_panics();
            });
        }
    }
    assert_eq!(check(&three.sandbox), (0, String::new()));
}

/// A new snapshot of whole files while the pack that held them is hurt in this way.
fn goes_on_after(extension: &str, harm: impl Fn(usize) -> Harm) {
    let three = Three::new();
    let file = three.packs[1].with_extension(extension);
    hurt(&file, harm(len(&file)), || {
        assert_eq!(check(&three.sandbox).0, 1);
        three.goes_on();
    });
}

#[test]
fn a_new_snapshot_after_a_pack_is_gone_comes_back() {
    goes_on_after("pack", |_| Harm::Deleted);
    goes_on_after("idx", |_| Harm::Deleted);
    goes_on_after("idx", |length| Harm::CutTo(length / 2));
}

/// What `check` advises about a damaged newest snapshot: take a new one while the files are there.
#[test]
fn a_new_snapshot_after_a_pack_is_damaged_comes_back() {
    goes_on_after("pack", |length| Harm::CutTo(length / 2));
    goes_on_after("pack", |_| Harm::CutTo(0));
    goes_on_after("pack", |_| Harm::Flipped(60));
}

/// Damage to what the newest snapshot shares with the next one must not keep the next one from being taken.
#[test]
fn a_chat_that_went_on_is_stored_whatever_was_damaged() {
    let three = Three::new();
    let pack = &three.packs[1];
    for at in (12..len(pack) - 20).step_by(131) {
        let three = Three::new();
        let pack = &three.packs[1];
        hurt(pack, Harm::Flipped(at), || {
            check(&three.sandbox);
            three.sandbox.append("chats/Mira/b.jsonl", &message("b", 70));
            calm(three.sandbox.stvc(&["snapshot"])).exits(0);
            Stored::take(&three.sandbox, "chats/Mira/b.jsonl").must_come_back(&three.sandbox);
        });
    }
}

/// A folder of messages that did not change is stored again if one of its messages is lost.
#[test]
fn new_snapshot_of_a_long_chat_stores_lost_messages_again() {
    let sandbox = Sandbox::empty();
    sandbox.write(A, chat("a", 150, None));
    Stored::take(&sandbox, A);
    unpack_all(&sandbox.store());
    let id = sandbox.git(&["rev-parse", "refs/heads/chats/Mira/a:chat/messages/000/00005.json"]);
    let id = id.trim();
    let file = sandbox.store().join("objects").join(&id[..2]).join(&id[2..]);
    hurt(&file, Harm::Deleted, || {
        assert_eq!(check(&sandbox).0, 1);
        sandbox.append(A, &message("a", 150));
        Stored::take(&sandbox, A).must_come_back(&sandbox);
    });
}

#[test]
fn damaged_loose_objects_are_found() {
    let three = Three::new();
    let store = three.sandbox.store();
    unpack_all(&store);
    assert_eq!(check(&three.sandbox), (0, String::new()));
    let of_b = git(&store, &["rev-list", "--objects", "--no-object-names", &three.stored[1].id]);
    let elsewhere = git(
        &store,
        &["rev-list", "--objects", "--no-object-names", &three.stored[0].id, &three.stored[2].id],
    );
    let elsewhere = String::from_utf8(elsewhere).unwrap();
    let of_b = String::from_utf8(of_b).unwrap();
    let own: Vec<_> = of_b.lines().filter(|id| !elsewhere.contains(id)).collect();
    assert!(own.len() > 10);
    for id in own {
        let file = store.join("objects").join(&id[..2]).join(&id[2..]);
        let length = len(&file);
        for harm in [Harm::Deleted, Harm::CutTo(length / 2), Harm::Flipped(length / 2)] {
            hurt(&file, harm, || {
                let (code, words) = check(&three.sandbox);
                assert_eq!(code, 1, "{harm:?} {id}: {words}");
                assert!(words.contains(id), "{harm:?} {id}: {words}");
                let hurt = &three.stored[1];
                assert!(words.contains(&hurt.id), "{harm:?} {id}: {words}");
                assert!(!hurt.comes_back(&three.sandbox), "{harm:?} {id}");
            });
        }
        hurt(&file, Harm::CutTo(length / 2), || {
            three.others_come_back();
            calm(three.sandbox.stvc(&["log"]));
            calm(three.sandbox.stvc(&["status"]));
            calm(three.sandbox.stvc(&["show", &three.stored[1].id]));
        });
    }
    assert_eq!(check(&three.sandbox), (0, String::new()));
}
