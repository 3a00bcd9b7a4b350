//! What keeps a store small and its packs few though nobody asks: the small steps after a save.

use std::fs;
use std::path::Path;

use super::{
    Lived, files, gc, must_have, nothing_left_over, pack_dir, packs, states, verify_packs,
};
use crate::common::{
    A, Sandbox, Stored, chat, copy, files_of, fsck, make_writable, message, sound,
};

fn bytes(store: &Path) -> u64 {
    let packs = files_of(&store.join("objects/pack"), "pack");
    packs.iter().map(|pack| fs::metadata(pack).unwrap().len()).sum()
}

/// A copy of the store, packed as well as can be.
fn packed_copy(sandbox: &Sandbox) -> u64 {
    let copied = sandbox.folder().join("copy of the store");
    copy(&sandbox.store(), &copied);
    sandbox.stvc(&["--store", copied.to_str().unwrap(), "gc", "--grace", "0s"]).exits(0);
    bytes(&copied)
}

#[test]
fn a_store_is_small_without_being_asked() {
    let mut lived = Lived::new(22);
    let sandbox = &lived.sandbox;
    let store = sandbox.store();
    assert!(packs(sandbox).len() <= 20, "{}", packs(sandbox).len());
    let verified = verify_packs(&store);
    assert!(verified.deltas > 50, "{}", verified.deltas);
    assert!(verified.longest_chain <= 33, "{}", verified.longest_chain);
    fsck(sandbox);
    nothing_left_over(&store);
    sound(sandbox);
    let (now, best) = (bytes(&store), packed_copy(sandbox));
    assert!(now * 10 <= best * 14, "{now} bytes, where {best} would do");

    // And gc knows what is in there.
    let former = states(sandbox);
    let summary = gc(sandbox, &[]);
    assert_eq!((&summary["dropped"], &summary["spared"]), (&0.into(), &0.into()));
    must_have(sandbox, &former);
    // What gc made is built on, and the next gc tells apart what is whose.
    for round in 0..6 {
        lived.go_on(100 + round);
    }
    let sandbox = &lived.sandbox;
    fsck(sandbox);
    nothing_left_over(&store);
    must_have(sandbox, &former);
    let summary = gc(sandbox, &[]);
    assert_eq!((&summary["dropped"], &summary["spared"]), (&0.into(), &0.into()));
    assert_eq!(packs(sandbox).len(), 1);
    must_have(sandbox, &former);
}

/// A chat that was saved so often that the next saves fold packs.
fn nearly_folded() -> (Sandbox, Vec<Stored>) {
    let sandbox = Sandbox::empty();
    sandbox.write(A, chat("a", 30, None));
    let mut stored = vec![Stored::take(&sandbox, A)];
    while packs(&sandbox).len() < 20 {
        stored.push(save(&sandbox, stored.len()));
    }
    (sandbox, stored)
}

fn save(sandbox: &Sandbox, n: usize) -> Stored {
    sandbox.append(A, &message("a", 100 + n));
    Stored::take(sandbox, A)
}

/// A crash after the new pack and before the old ones are gone.
#[test]
fn what_is_there_twice_is_folded_once() {
    let (sandbox, mut stored) = nearly_folded();
    for round in 0..2 {
        let mut before = files(&pack_dir(&sandbox));
        loop {
            stored.push(save(&sandbox, stored.len()));
            let now = files(&pack_dir(&sandbox));
            if now.len() < before.len() {
                break;
            }
            before = now;
        }
        for (name, bytes) in before {
            let path = pack_dir(&sandbox).join(name);
            if !path.exists() {
                fs::write(path, bytes).unwrap();
            }
        }
        // Without the list of them.
        if round == 0 {
            fs::remove_file(sandbox.store().join("stvc/packed")).unwrap();
        }
        stored.push(save(&sandbox, stored.len()));
        sound(&sandbox);
        fsck(&sandbox);
        stored.iter().for_each(|stored| stored.must_come_back(&sandbox));
    }
    gc(&sandbox, &["--grace", "0s"]);
    nothing_left_over(&sandbox.store());
    stored.iter().for_each(|stored| stored.must_come_back(&sandbox));
}

#[test]
fn a_damaged_pack_and_one_that_shall_stay_are_left_alone() {
    let (sandbox, mut stored) = nearly_folded();
    let list = packs(&sandbox);
    let (damaged, kept) = (&list[3], &list[5]);
    let mut bytes = fs::read(damaged).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    make_writable(damaged);
    fs::write(damaged, &bytes).unwrap();
    fs::write(kept.with_extension("keep"), "").unwrap();
    let former = files(&pack_dir(&sandbox));
    for _ in 0..5 {
        stored.push(save(&sandbox, stored.len()));
    }
    assert!(packs(&sandbox).len() < 20);
    let now = files(&pack_dir(&sandbox));
    for pack in [damaged, kept] {
        for path in [pack.clone(), pack.with_extension("idx")] {
            let name = path.file_name().unwrap().to_str().unwrap();
            assert!(now[name] == former[name], "{name}");
        }
    }
    let lost = stored.iter().filter(|stored| !stored.comes_back(&sandbox)).count();
    assert!(lost < stored.len(), "{lost}");
    stored.last().unwrap().must_come_back(&sandbox);
}
