//! A damaged store: `gc` says so and drops nothing.

use std::fs;
use std::path::Path;

use super::{At, gc, pack_dir, packs, three};
use crate::common::{
    A, Harm, Sandbox, Stored, assert_same, calm, chat, check, copy, files, hurt_for_good, len,
    message, sound,
};

/// Hurt one file of a copy; what `gc` says of it. Nothing may change unless all of it could be read, and what stands in other packs (`elsewhere`) must come back in any case.
#[track_caller]
fn gc_of_hurt(
    sandbox: &Sandbox,
    stored: &[Stored],
    elsewhere: &[usize],
    file: &Path,
    harm: Harm,
) -> i32 {
    let hurt = Sandbox::empty();
    copy(&sandbox.library(), &hurt.library());
    let file = hurt.library().join(file.strip_prefix(sandbox.library()).unwrap());
    hurt_for_good(&file, harm);
    let before = files(&hurt.store());
    let answer = calm(hurt.stvc(&["gc", "--grace", "0s"]));
    if answer.code == 0 {
        // What was hurt was nothing that anybody needs, such as a checksum.
        sound(&hurt);
        stored.iter().for_each(|stored| stored.must_come_back(&hurt));
    } else {
        assert_eq!(answer.code, 1, "{harm:?}: {answer:?}");
        assert!(answer.stderr.starts_with("error: "), "{harm:?}: {}", answer.stderr);
        assert_same(&files(&hurt.store()), &before);
        elsewhere.iter().for_each(|n| stored[*n].must_come_back(&hurt));
    }
    answer.code
}

#[test]
fn a_damaged_pack_is_said_and_nothing_is_dropped() {
    let (sandbox, stored, order) = three();
    let pack = &order[1];
    let index = pack.with_extension("idx");
    let refused = |file: &Path, harm| gc_of_hurt(&sandbox, &stored, &[0, 2], file, harm) == 1;
    let (mut data, mut tried) = (0, 0);
    for at in (12..len(pack) - 20).step_by(41) {
        data += usize::from(refused(pack, Harm::Flipped(at)));
        tried += 1;
    }
    assert!(data * 10 > tried * 9, "{data} of {tried}");
    for at in [0, 4, 7, 8, 11, len(pack) - 20, len(pack) - 1] {
        refused(pack, Harm::Flipped(at));
    }
    for length in [0, 12, 31, len(pack) / 2, len(pack) - 40] {
        assert!(refused(pack, Harm::CutTo(length)), "{length}");
    }
    assert!(refused(pack, Harm::Deleted));
    for at in (0..len(&index)).step_by(97) {
        refused(&index, Harm::Flipped(at));
    }
    for length in [0, 8, 1000, len(&index) / 2] {
        assert!(refused(&index, Harm::CutTo(length)), "{length}");
    }
    assert!(refused(&index, Harm::Deleted));
}

/// The same for the pack that `gc` made, with one thing more to pack.
#[test]
fn damage_to_a_pack_of_gc_is_said_by_the_next() {
    let (sandbox, stored, _) = three();
    gc(&sandbox, &[]);
    let pack = packs(&sandbox).remove(0);
    sandbox.write("chats/Mira/d.jsonl", chat("d", 4, None));
    sandbox.stvc(&["snapshot"]).exits(0);
    let mut refused = 0;
    for at in (0..len(&pack)).step_by(53) {
        let code = gc_of_hurt(&sandbox, &stored, &[], &pack, Harm::Flipped(at));
        refused += usize::from(code == 1);
    }
    assert!(refused > len(&pack) / 53 / 2, "{refused}");
}

/// A damaged store forgets no operation either: the log says where branches were.
#[test]
fn a_damaged_store_expires_nothing() {
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
    calm(sandbox.stvc(&["gc", "--grace", "0s", "--keep-undo", "0s"])).exits(1);
    assert_same(&files(&sandbox.store()), &before);
    stored[0].must_come_back(&sandbox);
}

/// What `check` advises: the files are there, so a new snapshot mends the store; then it can be packed.
#[test]
fn a_mended_store_is_packed() {
    let (sandbox, stored, order) = three();
    let index = order[1].with_extension("idx");
    let said = sandbox.git(&["verify-pack", "-v", index.to_str().unwrap()]);
    let blobs = said.lines().filter_map(|line| {
        let words: Vec<_> = line.split_whitespace().collect();
        (words.get(1) == Some(&"blob")).then(|| words[4].parse::<usize>().unwrap())
    });
    let mut mended = 0;
    for offset in blobs {
        let hurt = Sandbox::empty();
        copy(&sandbox.library(), &hurt.library());
        let pack = pack_dir(&hurt).join(order[1].file_name().unwrap());
        let mut bytes = fs::read(&pack).unwrap();
        bytes[offset + 6] ^= 0x15;
        fs::write(&pack, bytes).unwrap();
        calm(hurt.stvc(&["gc"])).exits(1);
        assert_eq!(check(&hurt).0, 1);
        hurt.stvc(&["snapshot"]).exits(0);
        if calm(hurt.stvc(&["gc", "--grace", "0s"])).code == 0 {
            mended += 1;
            assert_eq!(packs(&hurt).len(), 1);
            sound(&hurt);
            stored.iter().for_each(|stored| stored.must_come_back(&hurt));
        }
    }
    // The manifest is not in the files; whatever is, is mended.
    assert!(mended >= 6, "{mended}");
}

/// The disk gives back something else than was written to it: the old packs must still be there when that is seen.
// Windows lets nobody write to a file that is mapped.
#[cfg(unix)]
#[test]
fn what_was_packed_is_read_back_before_the_old_packs_go() {
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
    assert!(error.contains("read back"), "{error}");
    assert_eq!(packs(&sandbox), before, "the old packs are there, and the new one is gone");
    for stored in &stored {
        stored.must_come_back(&sandbox);
    }
    sound(&sandbox);
    gc(&sandbox, &[]);
    sound(&sandbox);
}
