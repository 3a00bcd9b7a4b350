//! The store is an ordinary repository: git reads, maintains and clones it, and stvc continues to
//! work.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::common::{Sandbox, assert_same, files, files_with_extension, git};

const CHAT: &str = "chats/Mira Voss/The Tide Office — part 1 (雨).jsonl";

const NAME: &str = "chats/Mira Voss/The Tide Office — part 1 (雨)";

/// Creates several snapshots of one chat, a checkpoint and a tag.
fn with_history() -> Sandbox {
    let mut sandbox = Sandbox::from_fixture("1.19.0");
    sandbox.stvc(&["snapshot"]).exits(0);
    for n in 0..3 {
        sandbox.wait(60);
        sandbox.append(CHAT, &format!(r#"{{"name":"Wren","mes":"Line {n}","extra":{{}}}}"#));
        sandbox.stvc(&["snapshot"]).exits(0);
    }
    sandbox.wait(60);
    sandbox.stvc(&["snapshot", NAME, "--at", "5", "--tag", "Before: the \"storm\" 雨"]).exits(0);
    sandbox.stvc(&["tag", "v1", "Snow shrine"]).exits(0);
    sandbox
}

/// Returns every snapshot with its fields of `show`.
fn snapshots(sandbox: &Sandbox) -> Vec<Value> {
    let show = |id: String| sandbox.json(&["show", &id]).exits(0).of_type("snapshot").remove(0);
    sandbox.snapshot_ids().into_iter().map(show).collect()
}

fn text<'v>(value: &'v Value, field: &str) -> &'v str {
    value[field].as_str().unwrap_or_else(|| panic!("{field} in {value}"))
}

fn packs(store: &Path) -> usize {
    files_with_extension(&store.join("objects/pack"), "pack").len()
}

fn loose_objects(store: &Path) -> usize {
    let output = String::from_utf8(git(store, &["count-objects"])).unwrap();
    output.split(' ').next().unwrap().parse().unwrap()
}

#[test]
fn git_fsck_passes_and_objects_match_the_format() {
    for library in ["1.19.0", "1.12.6", "odd"] {
        let sandbox = Sandbox::from_fixture(library);
        sandbox.stvc(&["snapshot"]).exits(0);
        let problems = sandbox.git(&["fsck", "--strict", "--full", "--no-dangling"]);
        assert_eq!(problems, "", "{library}");
        for snapshot in snapshots(&sandbox) {
            let (id, timeline) = (text(&snapshot, "id"), text(&snapshot, "timeline"));
            let show =
                |path: &str| git(&sandbox.store(), &["cat-file", "blob", &format!("{id}:{path}")]);
            let manifest: Value = serde_json::from_slice(&show("snapshot.json")).unwrap();
            for file in manifest["files"].as_array().unwrap() {
                let bytes = sandbox.read(text(file, "path"));
                assert_eq!(text(file, "blake3"), blake3::hash(&bytes).to_hex().as_str());
                assert_eq!(file["bytes"], bytes.len());
            }
            if !timeline.contains("chats/") {
                continue;
            }
            let bytes = sandbox.read(&format!("{timeline}.jsonl"));
            let lines: Vec<_> = bytes.split(|byte| *byte == b'\n').collect();
            let names = sandbox.git(&["ls-tree", "-r", "--name-only", id, "chat/"]);
            assert_eq!(names.lines().count(), lines.len(), "{timeline}");
            let has_header = names.contains("chat/header.json");
            let messages = if has_header {
                assert!(show("chat/header.json") == lines[0]);
                &lines[1..]
            } else {
                assert!(timeline.starts_with("group chats/"));
                &lines[..]
            };
            for (n, line) in messages.iter().enumerate() {
                let path = format!("chat/messages/{:03}/{n:05}.json", n / 100);
                assert!(show(&path) == *line, "{timeline}: {path}");
            }
        }
    }
}

#[test]
fn messages_are_stored_in_folders_of_100() {
    let sandbox = Sandbox::empty();
    let line = |n: usize| format!("{{\"mes\":\"{n}\"}}");
    let lines: Vec<_> = (0..1234).map(line).collect();
    sandbox.write("chats/A/long.jsonl", format!("{{}}\n{}", lines.join("\n")));
    sandbox.stvc(&["snapshot"]).exits(0);
    let last = sandbox.git(&["cat-file", "blob", "chats/A/long:chat/messages/012/01233.json"]);
    assert_eq!(last, line(1233));
    assert_eq!(
        sandbox.git(&["ls-tree", "--name-only", "chats/A/long:chat/messages"]).lines().count(),
        13
    );
}

#[test]
fn git_reads_the_trailers() {
    let sandbox = with_history();
    let format = "--format=%H%x09%(trailers:key=Stvc-Content,valueonly,separator=)%x09%(trailers:key=Stvc-Messages,valueonly,separator=)%x09%(trailers:key=Stvc-Kind,valueonly,separator=)";
    let log = sandbox.git(&["log", "--branches", "--tags", format]);
    let by_git: BTreeSet<_> = log.lines().map(str::to_owned).collect();
    let line = |snapshot: &Value| {
        let messages = snapshot["messages"].as_u64().unwrap();
        format!(
            "{}\t{}\t{messages}\t{}",
            text(snapshot, "id"),
            text(snapshot, "content"),
            text(snapshot, "kind")
        )
    };
    let by_stvc: BTreeSet<_> = snapshots(&sandbox).iter().map(line).collect();
    assert_eq!(by_git, by_stvc);

    let message = sandbox.git(&["log", "-1", "--format=%B", NAME_OF_BRANCH]);
    let file = sandbox.folder().join("message");
    fs::write(&file, &message).unwrap();
    let parsed = sandbox.git(&["interpret-trailers", "--parse", file.to_str().unwrap()]);
    let trailers = message.trim_end().split("\n\n").last().unwrap();
    assert_eq!(parsed.trim_end(), trailers);
    assert!(parsed.contains("Stvc-Timeline: chats/Mira Voss/The Tide Office — part 1 (雨)\n"));
}

const NAME_OF_BRANCH: &str = "chats/Mira%20Voss/The%20Tide%20Office%20—%20part%201%20(雨)";

/// Text of a message or name must not become a trailer or a second paragraph.
#[test]
fn chat_text_cannot_forge_trailers() {
    let sandbox = Sandbox::empty();
    let hostile = r#"{"name":"A\n\nStvc-Kind: evil","mes":"x\n\nStvc-Content: 00\u0000\u001b[2J\r\nStvc-Fork-At: 3","extra":{}}"#;
    sandbox.write("chats/A/Stvc-Kind: odd.jsonl", format!("{{}}\n{hostile}"));
    sandbox.stvc(&["snapshot", "-m", "mine\n\nStvc-Messages: 99\nStvc-Kind: evil"]).exits(0);
    let snapshot = snapshots(&sandbox).remove(0);
    assert_eq!(snapshot["kind"], "snapshot");
    assert_eq!(snapshot["messages"], 1);
    assert_eq!(snapshot["fork_at"], Value::Null);
    let keys = sandbox.git(&["log", "-1", "--format=%(trailers:keyonly)"]);
    let keys: Vec<_> = keys.lines().filter(|key| !key.is_empty()).collect();
    let unique: BTreeSet<_> = keys.iter().collect();
    assert_eq!(keys.len(), unique.len(), "{keys:?}");
    assert!(!keys.contains(&"Stvc-Fork-At"));
    sandbox.git(&["fsck", "--strict"]);
}

#[test]
fn plain_git_commands_show_the_history() {
    let sandbox = with_history();
    let graph = sandbox.git(&["log", "--graph", "--oneline", "--branches", "--tags"]);
    let ids = sandbox.snapshot_ids();
    for id in &ids {
        assert!(graph.contains(&id[..7]), "{graph}");
    }
    // HEAD names an existing branch.
    assert_ne!(sandbox.git(&["log", "-1", "--format=%s"]), "");
    let all = sandbox.git(&["log", "--graph", "--all", "--format=%H"]);
    assert!(ids.iter().all(|id| all.contains(id.as_str())));
    let mine = sandbox.git(&["rev-list", "--count", NAME_OF_BRANCH]);
    let own = sandbox.json(&["log", NAME]).exits(0).of_type("snapshot");
    let on_branch = own.iter().filter(|line| line["kind"] == "snapshot").count();
    assert_eq!(mine.trim(), on_branch.to_string());
    let tags = sandbox.git(&["tag", "--list"]);
    assert!(tags.lines().any(|tag| tag == "v1"), "{tags}");
}

/// An edited message is one changed file for git.
#[test]
fn git_diff_names_the_changed_message_and_entry() {
    let sandbox = Sandbox::from_fixture("1.19.0");
    sandbox.stvc(&["snapshot", NAME]).exits(0);
    let chat = String::from_utf8(sandbox.read(CHAT)).unwrap();
    sandbox.write(CHAT, chat.replace("\"Close the door.", "\"Shut the door."));
    let book = "worlds/Tide Office Lore.json";
    let lore = String::from_utf8(sandbox.read(book)).unwrap();
    sandbox.write(book, lore.replacen("\"content\": \"", "\"content\": \"Once: ", 1));
    sandbox.stvc(&["snapshot", NAME]).exits(0);
    let changed =
        sandbox.git(&["-c", "core.quotePath=false", "diff", "--name-only", "HEAD~1", "HEAD"]);
    let changed: Vec<_> = changed.lines().collect();
    assert_eq!(
        changed,
        [
            "chat/messages/000/00000.json",
            "lorebooks/Tide Office Lore/entries/0.json",
            "snapshot.json"
        ]
    );
}

#[test]
fn git_clone_of_a_store_is_a_store() {
    let mut sandbox = with_history();
    let ids = sandbox.snapshot_ids();
    let before = sandbox.files();
    for (name, options) in [("bare", &["--bare"][..]), ("mirror", &["--mirror"]), ("worktree", &[])]
    {
        let clone = sandbox.folder().join(name);
        let clone_text = clone.to_str().unwrap();
        let origin = sandbox.store();
        let arguments =
            [&["clone", "--quiet"], options, &[origin.to_str().unwrap(), clone_text]].concat();
        git(sandbox.folder(), &arguments);
        if name == "worktree" {
            // Such a clone has one branch; the others are remote branches until they are fetched as
            // branches.
            let one = sandbox.json(&["--store", clone_text, "timelines"]).exits(0);
            assert!(one.of_type("timeline").iter().any(|line| line["state"] == "unchanged"));
            git(&clone, &["checkout", "--quiet", "--detach"]);
            git(&clone, &["fetch", "--quiet", "origin", "+refs/heads/*:refs/heads/*"]);
        }
        let on_clone =
            |arguments: &[&str]| sandbox.json(&[&["--store", clone_text], arguments].concat());
        let log = on_clone(&["log"]).exits(0);
        let of_clone: Vec<_> =
            log.of_type("snapshot").iter().map(|line| text(line, "id").to_owned()).collect();
        assert_eq!(of_clone, ids, "{name}");
        on_clone(&["check"]).exits(0);

        fs::remove_dir_all(sandbox.path("chats")).unwrap();
        for line in on_clone(&["timelines"]).exits(0).of_type("timeline") {
            on_clone(&["restore", text(&line, "timeline")]).exits(0);
        }
        assert_same(&sandbox.files(), &before);

        // New snapshots work in it.
        sandbox.wait(60);
        let chat = sandbox.read(CHAT);
        sandbox.append(CHAT, "{}");
        let on_clone =
            |arguments: &[&str]| sandbox.json(&[&["--store", clone_text], arguments].concat());
        let taken = on_clone(&["snapshot"]).exits(0);
        let new: Vec<_> = taken
            .of_type("snapshot")
            .into_iter()
            .filter(|line| line["unchanged"] == false)
            .collect();
        assert_eq!(new.len(), 1);
        sandbox.write(CHAT, chat);
        on_clone(&["check"]).exits(0);
        git(&clone, &["fsck", "--strict"]);
    }
    assert_eq!(sandbox.snapshot_ids(), ids, "the origin was written to");
}

#[test]
fn stvc_works_after_git_gc() {
    let mut sandbox = with_history();
    let tidy: [&[&str]; 4] = [
        &["gc", "--quiet", "--aggressive", "--prune=now"],
        &["pack-refs", "--all"],
        &["repack", "-q", "-a", "-d", "-f", "--depth=50", "--window=50"],
        &["multi-pack-index", "write"],
    ];
    for arguments in tidy {
        sandbox.stvc(&["snapshot"]).exits(0);
        let ids = sandbox.snapshot_ids();
        sandbox.git(arguments);
        assert_eq!(sandbox.snapshot_ids(), ids, "{arguments:?}");
        sandbox.stvc(&["check"]).exits(0);
        let before = sandbox.files();
        sandbox.wait(60);
        sandbox.append(CHAT, &format!("{{\"mes\":{arguments:?}}}"));
        sandbox.stvc(&["snapshot"]).exits(0);
        assert_eq!(sandbox.snapshot_ids().len(), ids.len() + 1, "{arguments:?}");
        // A packed ref can be deleted.
        sandbox.stvc(&["tag", "passing", NAME]).exits(0);
        sandbox.git(&["pack-refs", "--all"]);
        sandbox.stvc(&["tag", "--delete", "passing"]).exits(0);
        sandbox.stvc(&["show", "passing"]).exits(1);
        sandbox.stvc(&["restore", &format!("{NAME}~1"), "--overwrite"]).exits(0);
        assert_same(&sandbox.files(), &before);
        sandbox.git(&["fsck", "--strict"]);
        sandbox.stvc(&["check"]).exits(0);
    }
}

#[test]
fn each_snapshot_adds_one_pack_and_the_number_of_packs_is_limited() {
    let mut sandbox = Sandbox::from_fixture("1.19.0");
    sandbox.stvc(&["snapshot"]).exits(0);
    assert_eq!((packs(&sandbox.store()), loose_objects(&sandbox.store())), (1, 0));
    for n in 0..70 {
        sandbox.wait(1);
        sandbox.append(CHAT, &format!("{{\"mes\":\"{n}\"}}"));
        sandbox.take(&[NAME]);
    }
    assert_eq!(loose_objects(&sandbox.store()), 0);
    let packs = packs(&sandbox.store());
    assert!(packs <= 40, "{packs} packs");
    sandbox.git(&["fsck", "--strict"]);
    sandbox.stvc(&["check"]).exits(0);
    assert_eq!(sandbox.git(&["rev-list", "--count", NAME_OF_BRANCH]).trim(), "71");
    // The library has no other new file than the store.
    let names: BTreeSet<_> = files(&sandbox.library()).into_keys().collect();
    let expected = Sandbox::from_fixture("1.19.0").files();
    assert_eq!(names, expected.into_keys().collect());
}

/// `git maintenance` writes an index over all packs; after folding it must not name removed packs.
#[test]
fn packs_that_a_multi_pack_index_names_are_folded() {
    let sandbox = Sandbox::from_fixture("1.19.0");
    let chat = "chats/Mira Voss/The Tide Office — part 1 (雨).jsonl";
    for n in 0..30 {
        sandbox.append(chat, &format!(r#"{{"name":"Wren","mes":"line {n}"}}"#));
        sandbox.take(&["Tide Office"]);
        if n % 7 == 3 {
            sandbox.git(&["multi-pack-index", "write"]);
        }
    }
    sandbox.stvc(&["check"]).exits(0);
    sandbox.git(&["fsck", "--strict"]);
    assert_eq!(sandbox.chat_ids().len(), 30);
}
