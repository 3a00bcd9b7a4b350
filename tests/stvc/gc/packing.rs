//! Packing: one pack that git reads, with every byte unchanged.

use std::collections::BTreeSet;
use std::fs;

use super::{
    DAY, Lived, assert_has, assert_nothing_unreachable, exists, gc, objects_by_git, packs, states,
    stray, three, verify_packs,
};
use crate::common::{
    A, Answer, Sandbox, Stored, assert_no_panic, assert_same, assert_valid, chat, files, fsck, git,
    unpack,
};

#[test]
fn gc_writes_one_pack_that_git_reads() {
    let mut lived = Lived::new(9);
    let outputs = |sandbox: &Sandbox| {
        let ids = sandbox.snapshot_ids();
        [
            sandbox.json(&["log"]).exits(0).stdout,
            sandbox.json(&["timelines"]).exits(0).stdout,
            sandbox.json(&["diff", &ids[1]]).exits(0).stdout,
            sandbox.json(&["diff", &ids[0], &ids[ids.len() - 1]]).exits(0).stdout,
            sandbox.json(&["search", "harbour"]).exits(0).stdout,
            sandbox.stvc(&["log", "--graph"]).exits(0).stdout,
        ]
    };
    for again in 0..2_u64 {
        let sandbox = &lived.sandbox;
        let (former, words) = (states(sandbox), outputs(sandbox));
        assert!(former.len() > 30, "{}", former.len());
        let objects = objects_by_git(&sandbox.store());
        let packs_before = packs(sandbox).len();

        let summary = gc(sandbox, &[]);
        assert_eq!(packs(sandbox).len(), 1);
        assert_eq!(summary["packs_before"], packs_before);
        assert_eq!(
            (&summary["changed"], &summary["dropped"], &summary["spared"], &summary["expired"]),
            (&true.into(), &0.into(), &0.into(), &0.into())
        );
        let bytes = |field: &str| summary[field].as_u64().unwrap();
        assert!(bytes("bytes_after") < bytes("bytes_before"));

        fsck(sandbox);
        let verified = verify_packs(&sandbox.store());
        assert!(verified.longest_chain <= 33, "{}", verified.longest_chain);
        assert_eq!(summary["deltas"], verified.deltas);
        assert!(verified.deltas > objects.len() / 2);
        assert_nothing_unreachable(&sandbox.store());
        let packed = objects_by_git(&sandbox.store());
        let same = objects.iter().filter(|(id, object)| packed.get(*id) == Some(object)).count();
        // Former bases of deltas may be dropped.
        let kept = summary["objects"].as_u64().unwrap() as usize;
        assert!(same >= kept, "{same} of {kept}");

        assert_has(sandbox, &former);
        assert_eq!(outputs(sandbox), words);
        assert_valid(sandbox);

        let before = files(&sandbox.store());
        let summary = gc(sandbox, &[]);
        assert_eq!(summary["changed"], false);
        assert_same(&files(&sandbox.store()), &before);
        let words = sandbox.stvc(&["gc"]).exits(0).stdout;
        assert!(words.contains("Nothing to do"), "{words}");

        // Every command still works.
        lived.go_on(100 + again as usize);
        let sandbox = &lived.sandbox;
        let newest = sandbox.snapshot_ids();
        sandbox.stvc(&["undo"]).exits(0);
        assert!(sandbox.snapshot_ids().len() < newest.len());
        lived.go_on(200 + again as usize);
        assert_valid(&lived.sandbox);
    }
}

#[test]
fn gc_and_git_gc_work_on_each_others_packs() {
    let mut lived = Lived::new(3);
    let tidy: [&[&str]; 5] = [
        &["gc", "--quiet", "--prune=now"],
        &["repack", "-q", "-adf"],
        // Without pruning: unreachable objects, including volumes, stay in separate packs or loose.
        &["gc", "--quiet"],
        &["repack", "-q", "-A", "-d", "-f"],
        &["multi-pack-index", "write"],
    ];
    for (n, arguments) in tidy.into_iter().enumerate() {
        let sandbox = &lived.sandbox;
        gc(sandbox, &[]);
        let former = states(sandbox);
        sandbox.git(arguments);
        assert_valid(sandbox);
        lived.go_on(300 + n);
        let sandbox = &lived.sandbox;
        let summary = gc(sandbox, &[]);
        assert_eq!(
            (&summary["dropped"], &summary["spared"]),
            (&0.into(), &0.into()),
            "{arguments:?}"
        );
        assert_eq!(packs(sandbox).len(), 1, "{arguments:?}");
        assert_eq!(loose(sandbox), 0);
        assert_nothing_unreachable(&sandbox.store());
        assert_has(sandbox, &former);
    }
    let sandbox = &lived.sandbox;
    let former = states(sandbox);
    let clone = sandbox.folder().join("clone");
    let clone_text = clone.to_str().unwrap();
    let origin = sandbox.store();
    let options = ["clone", "--quiet", "--mirror", origin.to_str().unwrap(), clone_text];
    git(sandbox.folder(), &options);
    sandbox.stvc(&["--store", clone_text, "gc"]).exits(0);
    sandbox.stvc(&["--store", clone_text, "check"]).exits(0);
    git(&clone, &["fsck", "--strict"]);
    let log = sandbox.json(&["--store", clone_text, "log"]).exits(0).of_type("snapshot");
    let ids: BTreeSet<_> = log.iter().map(|line| line["id"].as_str().unwrap().to_owned()).collect();
    assert_eq!(ids, former.keys().cloned().collect());
    assert_has(sandbox, &former);
}

fn loose(sandbox: &Sandbox) -> usize {
    let counts = sandbox.git(&["count-objects"]);
    counts.split(' ').next().unwrap().parse().unwrap()
}

#[test]
fn packs_with_a_keep_file_stay_and_loose_objects_are_packed() {
    let (sandbox, stored, order) = three();
    let keep = order[0].with_extension("keep");
    fs::write(&keep, "somebody's\n").unwrap();
    let kept = fs::read(&order[0]).unwrap();
    // All objects of the second pack, loose.
    unpack(&sandbox.store(), &order[1]);
    let before = loose(&sandbox);
    assert!(before > 8);
    stored.iter().for_each(|stored| stored.assert_restores(&sandbox));
    let summary = gc(&sandbox, &["--grace", "0s"]);
    assert_eq!(summary["loose_before"], before);
    assert_eq!(loose(&sandbox), 0);
    assert_eq!(fs::read(&order[0]).unwrap(), kept);
    assert!(keep.exists() && order[0].with_extension("idx").exists());
    assert_eq!(packs(&sandbox).len(), 2);
    stored.iter().for_each(|stored| stored.assert_restores(&sandbox));
    assert_valid(&sandbox);
    fs::remove_file(&keep).unwrap();
    gc(&sandbox, &[]);
    assert_eq!(packs(&sandbox).len(), 1);
    stored.iter().for_each(|stored| stored.assert_restores(&sandbox));
    assert_valid(&sandbox);
}

/// Packs that stay must not make every later `gc` rewrite everything.
#[test]
fn gc_with_nothing_to_do_rewrites_no_pack() {
    let (sandbox, _, _) = three();
    stray(&sandbox, "young", 60);
    gc(&sandbox, &[]);
    assert_eq!(gc(&sandbox, &[])["changed"], false, "a young loose object");
    let (sandbox, _, order) = three();
    fs::write(order[0].with_extension("keep"), "").unwrap();
    gc(&sandbox, &[]);
    assert_eq!(gc(&sandbox, &[])["changed"], false, "a kept pack");
}

/// A user ran git on the store: an annotated tag, a ref to an object that is not a commit, and
/// another `HEAD`.
#[test]
fn objects_reachable_from_git_refs_stay() {
    let (sandbox, stored, _) = three();
    let commit = &stored[0].id;
    let me = ["-c", "user.name=a", "-c", "user.email=a@b"];
    sandbox.git(&[&me[..], &["tag", "-a", "signed", "-m", "words", commit]].concat());
    let blob = stray(&sandbox, "a blob", 60);
    sandbox.git(&["update-ref", "refs/notes/mine", &blob]);
    let tree = sandbox.git(&["rev-parse", &format!("{commit}^{{tree}}")]);
    sandbox.git(&["update-ref", "refs/tags/a-tree", tree.trim()]);
    let lone = sandbox.git(&[&me[..], &["commit-tree", "-m", "x", tree.trim()]].concat());
    fs::write(sandbox.store().join("HEAD"), &lone).unwrap();
    gc(&sandbox, &["--grace", "0s"]);
    assert_eq!(sandbox.git(&["cat-file", "-t", "signed"]).trim(), "tag");
    for id in [&blob, tree.trim(), lone.trim()] {
        assert!(exists(&sandbox, id), "{id}");
    }
    fsck(&sandbox);
    stored.iter().for_each(|stored| stored.assert_restores(&sandbox));
}

/// The commit graph of `git gc` must not name dropped commits.
#[test]
fn commit_graph_does_not_list_dropped_commits() {
    let mut sandbox = Sandbox::empty();
    for n in 0..3 {
        sandbox.write(A, chat("a", 5 + n, None));
        Stored::take(&sandbox, A);
        sandbox.wait(60);
    }
    sandbox.stvc(&["undo"]).exits(0);
    sandbox.wait(60);
    sandbox.stvc(&["tag", "here", "Mira/a"]).exits(0);
    sandbox.git(&["gc", "--quiet"]);
    sandbox.wait(60);
    assert!(gc(&sandbox, &["--keep-undo", "0s", "--grace", "0s"])["dropped"].as_u64().unwrap() > 0);
    fsck(&sandbox);
    sandbox.git(&["commit-graph", "verify"]);
}

#[test]
fn gc_dry_run_writes_nothing_and_prints_documented_summary() {
    let (mut sandbox, _, _) = three();
    stray(&sandbox, "old", 15 * DAY);
    sandbox.wait(100 * DAY as i64);
    let before = files(&sandbox.store());
    let planned = gc(&sandbox, &["--dry-run"]);
    assert_same(&files(&sandbox.store()), &before);
    let words = sandbox.stvc(&["gc", "--dry-run"]).exits(0).stdout;
    assert!(words.contains("3 packs") && words.contains("would"), "{words}");
    assert_same(&files(&sandbox.store()), &before);
    let done = gc(&sandbox, &[]);
    for field in ["packs_before", "loose_before", "bytes_before", "dropped", "spared", "expired"] {
        assert_eq!(planned[field], done[field], "{field}");
    }
    assert_eq!((&planned["changed"], &planned["dry_run"]), (&false.into(), &true.into()));
    assert_eq!((&done["changed"], &done["dry_run"]), (&true.into(), &false.into()));
    assert_eq!((&done["packs_before"], &done["loose_before"]), (&3.into(), &1.into()));
    assert_eq!((&done["dropped"], &done["expired"]), (&1.into(), &3.into()));

    let documented = include_str!("../../../docs/json.md");
    let (_, fields) = documented.split_once("; `gc` ").unwrap();
    let fields: BTreeSet<_> = fields
        .split(';')
        .next()
        .unwrap()
        .split('`')
        .skip(1)
        .step_by(2)
        .map(str::to_owned)
        .collect();
    let printed: BTreeSet<_> = done.as_object().unwrap().keys().cloned().collect();
    let always = ["type", "command", "ok"].map(str::to_owned);
    assert_eq!(printed, fields.into_iter().chain(always).collect());
}

#[test]
fn empty_store_can_be_packed() {
    let sandbox = Sandbox::empty();
    let refused: Answer = assert_no_panic(sandbox.stvc(&["gc"]));
    assert_ne!(refused.code, 0, "there is no store");
    assert!(!sandbox.store().exists());
    sandbox.stvc(&["init"]).exits(0);
    let summary = gc(&sandbox, &["--grace", "0s"]);
    assert_eq!((&summary["changed"], &summary["objects"]), (&false.into(), &0.into()));
    sandbox.write(A, chat("a", 1, None));
    let stored = Stored::take(&sandbox, A);
    gc(&sandbox, &[]);
    stored.assert_restores(&sandbox);
    assert_valid(&sandbox);
}
