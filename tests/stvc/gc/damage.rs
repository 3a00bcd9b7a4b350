//! `gc` on a damaged store reports it and drops nothing.

use std::fs;
use std::path::Path;

use super::{At, gc, pack_dir, packs, three};
use crate::common::{
    A, Damage, Sandbox, Stored, assert_no_panic, assert_same, assert_valid, chat, check,
    copy_folder, damage_file, file_size, files, message,
};

/// Damages one file of a copy and returns the answer of `gc`. Nothing may change unless everything
/// was readable, and snapshots in other packs (`elsewhere`) must restore.
#[track_caller]
fn gc_of_hurt(
    sandbox: &Sandbox,
    stored: &[Stored],
    elsewhere: &[usize],
    file: &Path,
    damage: Damage,
) -> i32 {
    let hurt = Sandbox::empty();
    copy_folder(&sandbox.library(), &hurt.library());
    let file = hurt.library().join(file.strip_prefix(sandbox.library()).unwrap());
    damage_file(&file, damage);
    let before = files(&hurt.store());
    let answer = assert_no_panic(hurt.stvc(&["gc", "--grace", "0s"]));
    if answer.code == 0 {
        // The damaged bytes were not needed, such as a checksum.
        assert_valid(&hurt);
        stored.iter().for_each(|stored| stored.assert_restores(&hurt));
    } else {
        assert_eq!(answer.code, 1, "{damage:?}: {answer:?}");
        assert!(answer.stderr.starts_with("error: "), "{damage:?}: {}", answer.stderr);
        assert_same(&files(&hurt.store()), &before);
        elsewhere.iter().for_each(|n| stored[*n].assert_restores(&hurt));
    }
    answer.code
}

#[test]
fn gc_reports_a_damaged_pack_and_drops_nothing() {
    let (sandbox, stored, order) = three();
    let pack = &order[1];
    let index = pack.with_extension("idx");
    let refused = |file: &Path, damage| gc_of_hurt(&sandbox, &stored, &[0, 2], file, damage) == 1;
    let (mut data, mut tried) = (0, 0);
    for at in (12..file_size(pack) - 20).step_by(41) {
        data += usize::from(refused(pack, Damage::Flipped(at)));
        tried += 1;
    }
    assert!(data * 10 > tried * 9, "{data} of {tried}");
    for at in [0, 4, 7, 8, 11, file_size(pack) - 20, file_size(pack) - 1] {
        refused(pack, Damage::Flipped(at));
    }
    for length in [0, 12, 31, file_size(pack) / 2, file_size(pack) - 40] {
        assert!(refused(pack, Damage::CutTo(length)), "{length}");
    }
    assert!(refused(pack, Damage::Deleted));
    for at in (0..file_size(&index)).step_by(97) {
        refused(&index, Damage::Flipped(at));
    }
    for length in [0, 8, 1000, file_size(&index) / 2] {
        assert!(refused(&index, Damage::CutTo(length)), "{length}");
    }
    assert!(refused(&index, Damage::Deleted));
}

/// A pack that `gc` wrote, with one more object to pack.
#[test]
fn damage_in_a_gc_pack_is_reported_by_the_next_gc() {
    let (sandbox, stored, _) = three();
    gc(&sandbox, &[]);
    let pack = packs(&sandbox).remove(0);
    sandbox.write("chats/Mira/d.jsonl", chat("d", 4, None));
    sandbox.stvc(&["snapshot"]).exits(0);
    let mut refused = 0;
    for at in (0..file_size(&pack)).step_by(53) {
        let code = gc_of_hurt(&sandbox, &stored, &[], &pack, Damage::Flipped(at));
        refused += usize::from(code == 1);
    }
    assert!(refused > file_size(&pack) / 53 / 2, "{refused}");
}

/// The log of a damaged store is needed to find former branches.
#[test]
fn gc_expires_nothing_in_a_damaged_store() {
    let (mut sandbox, stored, order) = three();
    sandbox.wait(60);
    sandbox.append(A, &message("a", 70));
    Stored::take(&sandbox, A);
    sandbox.stvc(&["undo"]).exits(0);
    sandbox.wait(60);
    let mut bytes = fs::read(&order[1]).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0x15;
    fs::write(&order[1], bytes).unwrap();
    let before = files(&sandbox.store());
    assert_no_panic(sandbox.stvc(&["gc", "--grace", "0s", "--keep-undo", "0s"])).exits(1);
    assert_same(&files(&sandbox.store()), &before);
    stored[0].assert_restores(&sandbox);
}

/// `check` advises: while the files exist, a new snapshot repairs the store; then it can be packed.
#[test]
fn gc_packs_a_repaired_store() {
    let (sandbox, stored, order) = three();
    let index = order[1].with_extension("idx");
    let listing = sandbox.git(&["verify-pack", "-v", index.to_str().unwrap()]);
    let blobs = listing.lines().filter_map(|line| {
        let words: Vec<_> = line.split_whitespace().collect();
        (words.get(1) == Some(&"blob")).then(|| words[4].parse::<usize>().unwrap())
    });
    let mut mended = 0;
    for offset in blobs {
        let hurt = Sandbox::empty();
        copy_folder(&sandbox.library(), &hurt.library());
        let pack = pack_dir(&hurt).join(order[1].file_name().unwrap());
        let mut bytes = fs::read(&pack).unwrap();
        bytes[offset + 6] ^= 0x15;
        fs::write(&pack, bytes).unwrap();
        assert_no_panic(hurt.stvc(&["gc"])).exits(1);
        assert_eq!(check(&hurt).0, 1);
        hurt.stvc(&["snapshot"]).exits(0);
        if assert_no_panic(hurt.stvc(&["gc", "--grace", "0s"])).code == 0 {
            mended += 1;
            assert_eq!(packs(&hurt).len(), 1);
            assert_valid(&hurt);
            stored.iter().for_each(|stored| stored.assert_restores(&hurt));
        }
    }
    // A snapshot cannot repair the manifest, but everything that is in the files.
    assert!(mended >= 6, "{mended}");
}

/// The disk returns other bytes than were written: the old packs must still exist when `gc`
/// notices.
// Windows lets nobody write to a file that is mapped.
#[cfg(unix)]
#[test]
fn new_pack_is_verified_before_old_packs_are_removed() {
    let sandbox = Sandbox::empty();
    let mut stored = Vec::new();
    for messages in [40, 41, 42] {
        sandbox.write(A, chat("a", messages, None));
        stored.push(Stored::take(&sandbox, A));
    }
    let before = packs(&sandbox);
    let mut hurt = Vec::new();
    let act = Box::new(|| {
        for pack in packs(&sandbox).into_iter().filter(|pack| !before.contains(pack)) {
            let mut bytes = fs::read(&pack).unwrap();
            let middle = bytes.len() / 2;
            bytes[middle] ^= 0x55;
            fs::write(&pack, bytes).unwrap();
            hurt.push(pack);
        }
    });
    let options = stvc::verbs::gc::Options::default();
    let mut monitor = At { what: "reading objects", act };
    let done = stvc::verbs::gc::gc(&sandbox.workspace(), &options, &mut monitor);
    drop(monitor);
    assert_eq!(hurt.len(), 1, "the new pack is read back");
    let error = done.err().expect("it is not what was written").to_string();
    assert!(error.contains("it differs from the data that was written: object "), "{error}");
    assert_eq!(packs(&sandbox), before, "the old packs are there, and the new one is gone");
    for stored in &stored {
        stored.assert_restores(&sandbox);
    }
    assert_valid(&sandbox);
    gc(&sandbox, &[]);
    assert_valid(&sandbox);
}
