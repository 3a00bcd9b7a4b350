//! Automatic folding of packs after saves keeps a store small.

use std::fs;
use std::path::Path;

use super::{
    Lived, assert_has, assert_nothing_unreachable, files, gc, pack_dir, packs, states, verify_packs,
};
use crate::common::{
    A, Sandbox, Stored, assert_valid, chat, copy_folder, files_with_extension, fsck, make_writable,
    message,
};

fn bytes(store: &Path) -> u64 {
    let packs = files_with_extension(&store.join("objects/pack"), "pack");
    packs.iter().map(|pack| fs::metadata(pack).unwrap().len()).sum()
}

/// Copies the store and packs it with git.
fn packed_copy(sandbox: &Sandbox) -> u64 {
    let copied = sandbox.folder().join("copy of the store");
    copy_folder(&sandbox.store(), &copied);
    sandbox.stvc(&["--store", copied.to_str().unwrap(), "gc", "--grace", "0s"]).exits(0);
    bytes(&copied)
}

#[test]
fn packs_are_folded_automatically() {
    let mut lived = Lived::new(22);
    let sandbox = &lived.sandbox;
    let store = sandbox.store();
    assert!(packs(sandbox).len() <= 20, "{}", packs(sandbox).len());
    let verified = verify_packs(&store);
    assert!(verified.deltas > 50, "{}", verified.deltas);
    assert!(verified.longest_chain <= 33, "{}", verified.longest_chain);
    fsck(sandbox);
    assert_nothing_unreachable(&store);
    assert_valid(sandbox);
    let (now, best) = (bytes(&store), packed_copy(sandbox));
    assert!(now * 10 <= best * 14, "{now} bytes, where {best} would do");

    // `gc` reads folded packs.
    let former = states(sandbox);
    let summary = gc(sandbox, &[]);
    assert_eq!((&summary["dropped"], &summary["spared"]), (&0.into(), &0.into()));
    assert_has(sandbox, &former);
    // Saves continue after `gc`, and the next `gc` packs all of it.
    for round in 0..6 {
        lived.go_on(100 + round);
    }
    let sandbox = &lived.sandbox;
    fsck(sandbox);
    assert_nothing_unreachable(&store);
    assert_has(sandbox, &former);
    let summary = gc(sandbox, &[]);
    assert_eq!((&summary["dropped"], &summary["spared"]), (&0.into(), &0.into()));
    assert_eq!(packs(sandbox).len(), 1);
    assert_has(sandbox, &former);
}

/// Creates a chat with so many saves that the next ones fold packs.
fn chat_before_folding() -> (Sandbox, Vec<Stored>) {
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

/// A crash after the new pack is written and before the old ones are removed.
#[test]
fn packs_with_duplicate_objects_are_folded_correctly() {
    let (sandbox, mut stored) = chat_before_folding();
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
        // Without the list of folded packs.
        if round == 0 {
            fs::remove_file(sandbox.store().join("stvc/packed")).unwrap();
        }
        stored.push(save(&sandbox, stored.len()));
        assert_valid(&sandbox);
        fsck(&sandbox);
        stored.iter().for_each(|stored| stored.assert_restores(&sandbox));
    }
    gc(&sandbox, &["--grace", "0s"]);
    assert_nothing_unreachable(&sandbox.store());
    stored.iter().for_each(|stored| stored.assert_restores(&sandbox));
}

#[test]
fn damaged_packs_and_packs_with_a_keep_file_are_not_folded() {
    let (sandbox, mut stored) = chat_before_folding();
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
    let lost = stored.iter().filter(|stored| !stored.restores(&sandbox)).count();
    assert!(lost < stored.len(), "{lost}");
    stored.last().unwrap().assert_restores(&sandbox);
}
