//! A damaged store: every kind of file is deleted, truncated or has one flipped byte. `check` must
//! report it, undamaged snapshots must restore, and nothing may panic.

use std::path::Path;

use crate::common::{
    A, Damage, Sandbox, Stored, ThreeTimelines, assert_no_panic, chat, check, file_size, git,
    message, unpack_all, with_damage,
};

/// Asserts that `check` finds the file, that it names the middle snapshot exactly if it does not
/// restore, and that the others restore.
#[track_caller]
fn look_at_hurt_pack(three: &ThreeTimelines, file: &Path, damage: Damage) {
    let (code, words) = check(&three.sandbox);
    let stem = file.file_stem().unwrap().to_str().unwrap();
    assert_eq!(code, 1, "{damage:?}: {words}");
    assert!(words.contains(stem), "{damage:?}: {words}");
    three.assert_others_restore();
    let hurt = &three.stored[1];
    let named = words.contains(&hurt.id) || words.contains("refs/heads/chats/Mira/b");
    assert_eq!(!named, hurt.restores(&three.sandbox), "{damage:?}: {words}");
    for other in [&three.stored[0], &three.stored[2]] {
        assert!(!words.contains(&other.id), "{damage:?}: {words}");
    }
}

#[test]
fn every_flipped_byte_in_a_pack_is_found() {
    let three = ThreeTimelines::new();
    let pack = &three.packs[1];
    for at in (0..file_size(pack)).step_by(29) {
        let damage = Damage::Flipped(at);
        with_damage(pack, damage, || look_at_hurt_pack(&three, pack, damage));
    }
    for at in (0..file_size(pack)).step_by(307) {
        with_damage(pack, Damage::Flipped(at), || three.assert_no_command_panics());
    }
    assert_eq!(check(&three.sandbox), (0, String::new()));
}

#[test]
fn every_flipped_byte_in_an_index_is_found() {
    let three = ThreeTimelines::new();
    let index = three.packs[1].with_extension("idx");
    for at in (0..file_size(&index)).step_by(41) {
        let damage = Damage::Flipped(at);
        with_damage(&index, damage, || look_at_hurt_pack(&three, &index, damage));
    }
    for at in (0..file_size(&index)).step_by(307) {
        with_damage(&index, Damage::Flipped(at), || three.assert_no_command_panics());
    }
    assert_eq!(check(&three.sandbox), (0, String::new()));
}

#[test]
fn missing_or_truncated_pack_or_index_is_found() {
    let three = ThreeTimelines::new();
    for file in [three.packs[1].clone(), three.packs[1].with_extension("idx")] {
        let whole = file_size(&file);
        let mut harms = vec![Damage::Deleted];
        harms.extend([0, 3, 12, 31, 32, 200, whole / 2, whole - 20, whole - 1].map(Damage::CutTo));
        for damage in harms {
            with_damage(&file, damage, || {
                look_at_hurt_pack(&three, &file, damage);
                three.assert_no_command_panics();
            });
        }
    }
    assert_eq!(check(&three.sandbox), (0, String::new()));
}

/// Takes a snapshot of unchanged files while their pack is damaged.
fn assert_snapshot_after_damage(extension: &str, damage: impl Fn(usize) -> Damage) {
    let three = ThreeTimelines::new();
    let file = three.packs[1].with_extension(extension);
    with_damage(&file, damage(file_size(&file)), || {
        assert_eq!(check(&three.sandbox).0, 1);
        three.assert_new_snapshots_work();
    });
}

#[test]
fn new_snapshot_created_after_a_pack_was_lost_can_be_restored() {
    assert_snapshot_after_damage("pack", |_| Damage::Deleted);
    assert_snapshot_after_damage("idx", |_| Damage::Deleted);
    assert_snapshot_after_damage("idx", |length| Damage::CutTo(length / 2));
}

/// `check` advises to take a new snapshot while the files exist.
#[test]
fn new_snapshot_created_after_a_pack_was_damaged_can_be_restored() {
    assert_snapshot_after_damage("pack", |length| Damage::CutTo(length / 2));
    assert_snapshot_after_damage("pack", |_| Damage::CutTo(0));
    assert_snapshot_after_damage("pack", |_| Damage::Flipped(60));
}

/// Damage to objects of the latest snapshot must not prevent the next one.
#[test]
fn grown_chat_is_stored_despite_damaged_history() {
    let three = ThreeTimelines::new();
    let pack = &three.packs[1];
    for at in (12..file_size(pack) - 20).step_by(131) {
        let three = ThreeTimelines::new();
        let pack = &three.packs[1];
        with_damage(pack, Damage::Flipped(at), || {
            check(&three.sandbox);
            three.sandbox.append("chats/Mira/b.jsonl", &message("b", 70));
            assert_no_panic(three.sandbox.stvc(&["snapshot"])).exits(0);
            Stored::take(&three.sandbox, "chats/Mira/b.jsonl").assert_restores(&three.sandbox);
        });
    }
}

/// A folder of unchanged messages is stored again if one of them is lost.
#[test]
fn new_snapshot_of_a_long_chat_stores_lost_messages_again() {
    let sandbox = Sandbox::empty();
    sandbox.write(A, chat("a", 150, None));
    Stored::take(&sandbox, A);
    unpack_all(&sandbox.store());
    let id = sandbox.git(&["rev-parse", "refs/heads/chats/Mira/a:chat/messages/000/00005.json"]);
    let id = id.trim();
    let file = sandbox.store().join("objects").join(&id[..2]).join(&id[2..]);
    with_damage(&file, Damage::Deleted, || {
        assert_eq!(check(&sandbox).0, 1);
        sandbox.append(A, &message("a", 150));
        Stored::take(&sandbox, A).assert_restores(&sandbox);
    });
}

#[test]
fn damaged_loose_objects_are_found() {
    let three = ThreeTimelines::new();
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
        let length = file_size(&file);
        for damage in [Damage::Deleted, Damage::CutTo(length / 2), Damage::Flipped(length / 2)] {
            with_damage(&file, damage, || {
                let (code, words) = check(&three.sandbox);
                assert_eq!(code, 1, "{damage:?} {id}: {words}");
                assert!(words.contains(id), "{damage:?} {id}: {words}");
                let hurt = &three.stored[1];
                assert!(words.contains(&hurt.id), "{damage:?} {id}: {words}");
                assert!(!hurt.restores(&three.sandbox), "{damage:?} {id}");
            });
        }
        with_damage(&file, Damage::CutTo(length / 2), || {
            three.assert_others_restore();
            assert_no_panic(three.sandbox.stvc(&["log"]));
            assert_no_panic(three.sandbox.stvc(&["status"]));
            assert_no_panic(three.sandbox.stvc(&["show", &three.stored[1].id]));
        });
    }
    assert_eq!(check(&three.sandbox), (0, String::new()));
}
