//! Backups: everything comes back byte for byte, and what is not a sound backup changes nothing.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use stvc::archive::backup::{Decoder, Passphrase, unseal};
use stvc::engine::copies::CopyPlace;
use stvc::progress::Silent;
use stvc::store::ObjectId;
use stvc::verbs::import::stvc_backup::{Options, take_in};

use crate::common::backups::{back_up, drill_with, small};
use crate::common::forged_backup::{Forged, decode, entry, forge, forge_as_it_is, header, sealed};
use crate::common::recap_library::RecapLibrary;
use crate::common::{
    A, Sandbox, assert_same, calm, chat, files, git, limited, message, sound, text, tree,
};

/// Back up, lose the library and the store, take the backup in, restore: every byte is there again.
fn drill(sandbox: &Sandbox) {
    drill_with(sandbox, back_up);
}

#[test]
fn a_lost_library_comes_back_byte_for_byte() {
    for fixture in ["1.19.0", "1.12.6", "odd"] {
        drill(&Sandbox::of_fixture(fixture));
    }
}

#[test]
fn a_lost_library_of_auto_recap_comes_back_byte_for_byte() {
    let sandbox = Sandbox::empty();
    let library = RecapLibrary::default();
    library.write(&sandbox);
    library.fork("Harbour days", 7).write(&sandbox);
    drill(&sandbox);
}

#[test]
#[cfg(unix)]
fn a_backup_is_its_owners_alone() {
    use std::os::unix::fs::PermissionsExt;
    let mode = fs::metadata(back_up(&small())).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn every_flipped_bit_and_every_missing_end_is_noticed() {
    let bytes = fs::read(back_up(&small())).unwrap();
    decode(&bytes).unwrap();
    for at in 0..bytes.len() {
        for bit in 0..8 {
            let mut flipped = bytes.clone();
            flipped[at] ^= 1 << bit;
            assert!(decode(&flipped).is_err(), "bit {bit} of byte {at}");
        }
        assert!(decode(&bytes[..at]).is_err(), "cut at {at}");
    }
    let longer = [&bytes[..], b"\0"].concat();
    assert!(decode(&longer).unwrap_err().contains("follows"));
}

/// Taking this in fails with these words, and not a byte changes.
#[track_caller]
fn refused(sandbox: &Sandbox, bytes: &[u8], words: &str) {
    let outside = tempfile::tempdir().unwrap();
    let source = outside.path().join("b.stvc");
    fs::write(&source, bytes).unwrap();
    let before = tree(sandbox.folder());
    let options = Options {
        source: CopyPlace::File(source),
        passphrase: None,
        asks: false,
        closed: Default::default(),
        dry_run: false,
    };
    let error = match take_in(&sandbox.workspace(), &options, &mut Silent) {
        Err(error) => error.to_string(),
        Ok(_) => panic!("it was taken in; {words} was expected"),
    };
    assert!(error.contains(words), "{error}");
    assert!(tree(sandbox.folder()) == before, "something changed: {error}");
}

#[test]
fn a_damaged_backup_changes_nothing() {
    let bytes = fs::read(back_up(&small())).unwrap();
    let there = small();
    let not_there = Sandbox::empty();
    for at in (0..bytes.len()).step_by(5) {
        let mut flipped = bytes.clone();
        flipped[at] ^= 0x10;
        refused(if at % 2 == 0 { &there } else { &not_there }, &flipped, "b.stvc");
        refused(if at % 2 == 0 { &not_there } else { &there }, &bytes[..at], "b.stvc");
    }
    refused(&there, b"", "no backup of stvc's");
    refused(&there, b"PK\x03\x04something else", "no backup of stvc's");
    refused(&there, b"stvc backup 2\n{}\n", "format 2");
}

#[test]
fn a_bomb_is_refused_before_it_goes_off() {
    let sandbox = small();
    let id = "1".repeat(40);
    let refs = [("refs/heads/chats/Mira/a", id.as_str())];
    // An object of a terabyte, of which nothing comes.
    let mut content = vec![3];
    content.extend([0x80, 0x80, 0x80, 0x80, 0x80, 0x20]);
    let frame = zstd::encode_all(&content[..], 3).unwrap();
    refused(&sandbox, &sealed(&header(1, &refs), &frame), "longer than 512 MiB");
    // A frame that wants 2 GB of memory to be read.
    let mut encoder = zstd::Encoder::new(Vec::new(), 1).unwrap();
    encoder.window_log(31).unwrap();
    encoder.write_all(&content).unwrap();
    refused(&sandbox, &sealed(&header(1, &refs), &encoder.finish().unwrap()), "damaged");
    // More objects than the header says.
    let blobs: Vec<_> = (0..50_u8).map(|n| [n]).collect();
    let records: Vec<_> = blobs.iter().map(|blob| (3, &blob[..])).collect();
    refused(&sandbox, &forge(&header(3, &refs), &records), "more objects than its header says");
    // A header without end.
    let endless = [b"stvc backup 1\n".to_vec(), vec![b' '; 65 << 20]].concat();
    refused(&sandbox, &endless, "its header has no end");
    // Many zeros that nothing refers to.
    let zeros = vec![0; 8 << 20];
    refused(&sandbox, &forge(&header(1, &refs), &[(3, &zeros)]), "which others refer to");
}

const BRANCH: &str = "refs/heads/chats/Mira/a";

#[test]
fn what_is_forged_well_is_taken_in() {
    let sandbox = Sandbox::empty();
    let source = sandbox.folder().join("forged.stvc");
    fs::write(&source, Forged::new().file(BRANCH)).unwrap();
    sandbox.stvc(&["import", text(&source)]).exits(0);
    sound(&sandbox);
}

#[test]
fn a_backup_leads_no_ref_that_is_not_ours() {
    let sandbox = small();
    for name in [
        "HEAD",
        "refs/stvc/kept/x",
        "refs/notes/x",
        "refs/heads/../../x",
        "refs/heads/a..b",
        "refs/heads/",
        "config",
    ] {
        refused(&sandbox, &Forged::new().file(name), "the ref ");
    }
}

#[test]
fn a_tree_that_is_not_safe_everywhere_is_refused() {
    let sandbox = small();
    for name in ["..", ".", ".git", ".GIT", "git~1", "\u{200c}.git", "a\\b", "con"] {
        let mut forged = Forged::new();
        let evil = forged.add(3, b"evil".to_vec());
        // In git's order, so that the name alone is wrong.
        let dots = entry("100644", name, &evil);
        let root = if name < "chat" {
            [dots, forged.root()].concat()
        } else if name < "snapshot.json" {
            let at = forged.root().windows(13).position(|w| w == b"snapshot.json").unwrap() - 7;
            [&forged.root()[..at], &dots, &forged.root()[at..]].concat()
        } else {
            [forged.root(), dots].concat()
        };
        refused(&sandbox, &forged.with_root(root).file(BRANCH), "holds what no backup");
    }
    // Links, submodules, programs, an entry twice, in another order; a tree where a file belongs.
    let forged = Forged::new();
    let (root, chat) = (forged.root(), {
        let at = forged.root().windows(5).position(|w| w == b"chat\0").unwrap() + 5;
        ObjectId::try_from(&forged.root()[at..at + 20]).unwrap()
    });
    let begin = root.windows(10).position(|w| w == b"40000 chat").unwrap();
    let of_chat = &root[begin..begin + 31];
    let rest = [&root[..begin], &root[begin + 31..]].concat();
    for bad in [
        [&entry("120000", "chat", &chat)[..], &rest].concat(),
        [&entry("160000", "chat", &chat)[..], &rest].concat(),
        [&entry("100755", "chat", &chat)[..], &rest].concat(),
        [&entry("100644", "chat", &chat)[..], &rest].concat(),
        [&entry("040000", "chat", &chat)[..], &rest].concat(),
        [of_chat, of_chat, &rest].concat(),
        [&rest[..], of_chat].concat(),
        rest.clone(),
        Vec::new(),
    ] {
        refused(&sandbox, &Forged::new().with_root(bad).file(BRANCH), "holds what no backup");
    }
}

#[test]
fn a_manifest_that_lies_is_refused() {
    let sandbox = small();
    for path in ["../../evil", "/evil", "secrets.json", ".stvc/config", "worlds/x.json"] {
        let forged = Forged::new().with_manifest(|manifest| {
            manifest["files"][0]["path"] = path.into();
        });
        refused(&sandbox, &forged.file(BRANCH), "holds what no backup");
    }
    let zeros = "0".repeat(64);
    let edits: [&dyn Fn(&mut Value); 5] = [
        &|manifest| manifest["content"] = zeros.clone().into(),
        &|manifest| manifest["files"][0]["blake3"] = zeros.clone().into(),
        &|manifest| manifest["files"][0]["bytes"] = 7.into(),
        &|manifest| manifest["timeline"] = "chats/Mira/b".into(),
        &|manifest| manifest["files"] = json!([]),
    ];
    for edit in edits {
        let forged = Forged::new().with_manifest(edit);
        refused(&sandbox, &forged.file(BRANCH), "holds what no backup");
    }
}

#[test]
fn objects_that_are_missing_or_too_many_or_no_snapshots_are_refused() {
    let sandbox = small();
    let mut forged = Forged::new();
    forged.add(3, b"nobody's".to_vec());
    refused(&sandbox, &forged.file(BRANCH), "objects that no snapshot has");
    let all: Vec<_> = Forged::new().objects.keys().copied().collect();
    for id in all {
        let mut forged = Forged::new();
        forged.objects.remove(&id);
        refused(&sandbox, &forged.file(BRANCH), "holds what no backup");
    }
    // The same object twice.
    let forged = Forged::new();
    let mut records: Vec<_> =
        forged.objects.values().map(|(kind, bytes)| (*kind, &bytes[..])).collect();
    records.push(records[0]);
    let head = header(records.len(), &[(BRANCH, &forged.commit.to_string())]);
    refused(&sandbox, &forge(&head, &records), "twice");
    // A commit that is no snapshot, and no commit at all.
    let mut forged = Forged::new();
    let (_, commit) = forged.objects.remove(&forged.commit).unwrap();
    let commit = String::from_utf8(commit).unwrap();
    forged.commit = forged.add(1, commit.replace("Stvc-Content", "Content").into_bytes());
    refused(&sandbox, &forged.file(BRANCH), "no snapshot");
    let mut forged = Forged::new();
    forged.objects.remove(&forged.commit);
    forged.commit = forged.add(1, b"tree of nothing".to_vec());
    refused(&sandbox, &forged.file(BRANCH), "holds what no backup");
}

/// What the header says is held against what comes.
#[test]
fn a_header_that_says_something_else_is_refused() {
    let sandbox = small();
    let forged = Forged::new();
    let records: Vec<_> =
        forged.objects.values().map(|(kind, bytes)| (*kind, &bytes[..])).collect();
    let right = header(records.len(), &[(BRANCH, &forged.commit.to_string())]);
    let wrong = [
        ("snapshots", json!(2), "counts are wrong"),
        ("objects", json!(records.len() + 1), "counts are wrong"),
        ("taken", json!("some day"), "no time"),
        ("timelines", json!(["Mira"]), "its header"),
        ("whole", json!("yes"), "its header"),
    ];
    for (field, value, words) in wrong {
        let mut header = right.clone();
        header[field] = value;
        refused(&sandbox, &forge_as_it_is(&header, &records), words);
    }
}

#[test]
fn two_stores_that_moved_apart_stand_side_by_side() {
    let mut one = small();
    one.stvc(&["tag", "mark", "Mira/a"]).exits(0);
    let backup = back_up(&one);
    let mut other = Sandbox::empty();
    other.stvc(&["import", text(&backup)]).exits(0);
    other.stvc(&["restore", "--all"]).exits(0);
    assert_eq!(other.read(A), one.read(A));
    // Ahead there: it follows. As far or less: nothing.
    one.wait(60);
    one.append(A, &message("one", 3));
    one.stvc(&["snapshot"]).exits(0);
    let backup = back_up(&one);
    let dry = other.json(&["import", text(&backup), "--dry-run"]).exits(0);
    let answer = other.json(&["import", text(&backup)]).exits(0);
    assert_eq!(dry.of_type("taken_in"), answer.of_type("taken_in"));
    assert_eq!(answer.of_type("taken_in")[0]["outcome"], "forward");
    assert_eq!(other.snapshot_ids(), one.snapshot_ids());
    // Its file follows: left as it was, it would be taken for something newer.
    assert_eq!(other.read(A), one.read(A));
    assert_eq!(other.json(&["snapshot"]).exits(0).of_type("snapshot")[0]["unchanged"], true);
    let again = other.json(&["import", text(&backup)]).exits(0);
    assert_eq!(again.of_type("taken_in")[0]["outcome"], "known");
    // Each goes on by itself.
    other.stvc(&["restore", "Mira/a", "--overwrite"]).exits(0);
    for (sandbox, words) in [(&mut one, "here"), (&mut other, "there")] {
        sandbox.wait(60);
        sandbox.append(A, &message(words, 4));
        sandbox.stvc(&["snapshot"]).exits(0);
        sandbox.stvc(&["tag", "--delete", "mark"]).exits(0);
        sandbox.stvc(&["tag", "mark", "Mira/a"]).exits(0);
    }
    let backup = back_up(&one);
    let (before, ids) = (other.files(), other.snapshot_ids());
    let answer = other.json(&["import", text(&backup)]).exits(0);
    let line = answer.of_type("taken_in").remove(0);
    assert_eq!(line["outcome"], "beside");
    assert_eq!(line["name"], "chats/Mira/a (from backup 2026-11-14)");
    assert_eq!(answer.of_type("tag")[0]["name"], "mark (2)");
    assert_same(&other.files(), &before);
    assert!(ids.iter().all(|id| other.snapshot_ids().contains(id)));
    let head = |name: &str| other.json(&["show", name]).exits(0).of_type("snapshot").remove(0);
    assert_eq!(head("chats/Mira/a")["id"], ids[0]);
    let known = other.json(&["import", text(&backup)]).exits(0);
    assert_eq!(known.of_type("taken_in")[0]["outcome"], "known");
    sound(&other);
    // The other side's words come back under the new name, and all of it can be taken back.
    let to = other.folder().join("beside");
    let name = "a (from backup 2026-11-14)";
    other.stvc(&["restore", name, "--to", text(&to)]).exits(0);
    let file = to.join("chats/Mira").join(format!("{name}.jsonl"));
    assert_eq!(fs::read(file).unwrap(), one.read(A));
    other.stvc(&["undo"]).exits(0);
    other.stvc(&["show", name]).exits(1);
    assert_eq!(other.snapshot_ids(), ids);
    sound(&other);
}

/// What is on the disk is older than the backup, or nobody can tell: it stays, and so does its timeline.
#[test]
fn a_file_that_does_not_go_on_from_the_backup_is_not_taken_for_newer() {
    let one = small();
    let old = one.read(A);
    one.append(A, &message("one", 3));
    one.stvc(&["snapshot"]).exits(0);
    let backup = back_up(&one);
    let newest = one.read(A);
    let other = |chat: &[u8]| {
        let other = Sandbox::empty();
        other.write(A, chat);
        let answer = other.json(&["import", text(&backup)]).exits(0);
        assert_eq!(other.read(A), chat);
        other.stvc(&["snapshot"]).exits(0);
        let outcome = answer.of_type("taken_in")[0]["outcome"].as_str().unwrap().to_owned();
        let heads = other.json(&["timelines"]).exits(0).of_type("timeline").len();
        (outcome, heads)
    };
    assert_eq!(other(&old), ("beside".into(), 2));
    assert_eq!(other(&newest), ("new".into(), 1));
    let goes_on = [&newest, format!("\n{}", message("one", 4)).as_bytes()].concat();
    assert_eq!(other(&goes_on), ("new".into(), 1));
    // A chat with words that no snapshot has.
    let changed = [&old, format!("\n{}", message("other", 3)).as_bytes()].concat();
    assert_eq!(other(&changed), ("beside".into(), 2));
}

#[test]
fn some_timelines_are_backed_up_with_their_tags_alone() {
    let sandbox = Sandbox::empty();
    for name in ["a", "b"] {
        sandbox.write(&format!("chats/Mira/{name}.jsonl"), chat(name, 3, None));
    }
    sandbox.stvc(&["snapshot"]).exits(0);
    sandbox.stvc(&["tag", "of a", "Mira/a"]).exits(0);
    sandbox.stvc(&["tag", "of b", "Mira/b"]).exits(0);
    let path = sandbox.folder().join("some.stvc");
    sandbox.stvc(&["backup", text(&path), "Mira/a"]).exits(0);
    let log = sandbox.json(&["--store", text(&path), "log"]).exits(0).of_type("snapshot");
    assert_eq!(log.len(), 1);
    assert_eq!((&log[0]["timeline"], &log[0]["tags"]), (&"chats/Mira/a".into(), &json!(["of a"])));
}

#[test]
fn a_backup_can_be_looked_at_and_not_written_to() {
    let sandbox = small();
    let path = back_up(&sandbox);
    let log = sandbox.json(&["log"]).exits(0).stdout;
    let elsewhere = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| {
        let mut command = sandbox.command(&[&["--store", text(&path)], arguments].concat());
        crate::common::answer(command.current_dir(elsewhere.path()).output().unwrap())
    };
    assert_eq!(run(&["--json", "log"]).exits(0).stdout, log);
    run(&["show", "Mira/a"]).exits(0);
    run(&["diff", "Mira/a~1", "Mira/a"]).exits(0);
    run(&["stats"]).exits(0);
    run(&["check"]).exits(0);
    let to = elsewhere.path().join("out");
    run(&["restore", "Mira/a", "--to", text(&to)]).exits(0);
    assert_eq!(fs::read(to.join(A)).unwrap(), sandbox.read(A));
    let before = fs::read(&path).unwrap();
    for arguments in [&["gc"][..], &["snapshot"], &["tag", "x", "Mira/a"], &["restore", "Mira/a"]] {
        let answer = run(arguments).exits(2);
        assert!(answer.stderr.contains("is a backup, not a store"), "{}", answer.stderr);
    }
    assert_eq!(fs::read(&path).unwrap(), before);
    sandbox.stvc(&["check", text(&path)]).exits(0);
    sandbox.stvc(&["check", text(&sandbox.path(A))]).exits(1);
}

#[test]
fn standard_output_takes_a_backup_and_nothing_else() {
    let sandbox = small();
    let output = sandbox.command(&["backup", "-"]).output().unwrap();
    assert!(output.status.success());
    decode(&output.stdout).unwrap();
    let words = String::from_utf8(output.stderr).unwrap();
    assert!(words.contains("Nothing could be read back"), "{words}");
    sandbox.json(&["backup", "-"]).exits(2);
}

#[test]
fn an_encrypted_backup_opens_with_its_passphrase_alone() {
    let sandbox = small();
    let secret = sandbox.folder().join("secret");
    fs::write(&secret, "correct horse\n").unwrap();
    let path = sandbox.folder().join("e.stvc");
    let with = ["--passphrase-file", text(&secret)];
    let answer = sandbox.stvc(&[&["backup", text(&path), "--encrypt"][..], &with].concat());
    answer.exits(0);
    let bytes = fs::read(&path).unwrap();
    assert!(bytes.starts_with(b"age-encryption.org/v1\n"));
    assert!(!bytes.windows(4).any(|w| w == b"Mira"), "a name is readable");
    let here = Sandbox::empty();
    let answer = here.stvc(&["import", text(&path)]).exits(1);
    assert!(answer.stderr.contains("no terminal to ask on"), "{}", answer.stderr);
    let wrong = here.stvc(&["--passphrase-command", "echo wrong", "import", text(&path)]).exits(1);
    assert!(wrong.stderr.contains("passphrase is wrong"), "{}", wrong.stderr);
    assert!(!here.store().exists());
    let given = "printf 'correct horse\\nand more\\n'";
    here.stvc(&["--passphrase-command", given, "import", text(&path)]).exits(0);
    assert_eq!(here.snapshot_ids(), sandbox.snapshot_ids());
    let log = fs::read_to_string(here.store().join("stvc/operations.jsonl")).unwrap();
    assert!(!log.contains("\"correct horse\""));

    let passphrase = Passphrase::new("correct horse".into()).unwrap();
    let open = |bytes: &[u8]| {
        let input = unseal(bytes, Some(&passphrase)).map_err(|error| error.to_string())?;
        let mut decoder = Decoder::new(input).map_err(|error| error.to_string())?;
        while decoder.next_object().map_err(|error| error.to_string())?.is_some() {}
        Ok::<_, String>(())
    };
    open(&bytes).unwrap();
    // Each costs a second by design: some in age's lines, some in the content, the last byte.
    let body = bytes.windows(5).position(|w| w == b"\n--- ").unwrap();
    for at in [3, 30, 50, body - 3, body + 10, body + 50, bytes.len() / 2, bytes.len() - 1] {
        let mut flipped = bytes.clone();
        flipped[at] ^= 1;
        assert!(open(&flipped).is_err(), "byte {at}");
    }
    for at in [0, 20, body, body + 60, bytes.len() - 1] {
        assert!(open(&bytes[..at]).is_err(), "cut at {at}");
    }
}

#[test]
fn a_file_is_replaced_only_if_nothing_is_lost_by_it() {
    let mut sandbox = small();
    let path = back_up(&sandbox);
    sandbox.wait(60);
    sandbox.append(A, &message("a", 3));
    sandbox.stvc(&["snapshot"]).exits(0);
    back_up(&sandbox);
    let newer = fs::read(&path).unwrap();
    // A store that was lost and begun anew.
    fs::remove_dir_all(sandbox.store()).unwrap();
    sandbox.stvc(&["snapshot"]).exits(0);
    let answer = sandbox.stvc(&["backup", text(&path)]).exits(4);
    assert!(answer.stderr.contains("holds snapshots which"), "{}", answer.stderr);
    assert_eq!(fs::read(&path).unwrap(), newer);
    sandbox.stvc(&["backup", text(&path), "--overwrite"]).exits(0);
    assert_ne!(fs::read(&path).unwrap(), newer);
    let other = sandbox.folder().join("letter.stvc");
    fs::write(&other, "Dear Mira").unwrap();
    for more in [&[][..], &["--overwrite"]] {
        sandbox.stvc(&[&["backup", text(&other)], more].concat()).exits(4);
    }
    assert_eq!(fs::read(&other).unwrap(), b"Dear Mira");
}

fn leftovers(dir: &Path) -> Vec<String> {
    let names = fs::read_dir(dir).unwrap();
    let names = names.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned());
    names.filter(|name| name.contains("tmp") || name.contains("incoming")).collect()
}

#[test]
#[cfg(unix)]
fn a_full_disk_leaves_no_file_and_changes_nothing() {
    let sandbox = Sandbox::empty();
    sandbox.write(A, chat("a", 400, None));
    sandbox.stvc(&["snapshot"]).exits(0);
    let path = sandbox.folder().join("b.stvc");
    let answer = calm(limited(&sandbox, 8, &["backup", text(&path)])).exits(1);
    assert!(answer.stderr.contains("b.stvc"), "{}", answer.stderr);
    assert!(!path.exists());
    assert_eq!(leftovers(sandbox.folder()), [""; 0]);
    sandbox.stvc(&["backup", text(&path)]).exits(0);
    let other = small();
    let before = tree(other.folder());
    calm(limited(&other, 8, &["import", text(&path)])).exits(1);
    assert!(tree(other.folder()) == before);
    other.stvc(&["import", text(&path)]).exits(0);
}

#[test]
fn a_backup_that_is_killed_leaves_no_half_file() {
    let sandbox = Sandbox::empty();
    for n in 0..6 {
        sandbox.write(&format!("chats/Mira/{n}.jsonl"), chat(&format!("chat {n}"), 200, None));
    }
    sandbox.stvc(&["snapshot"]).exits(0);
    let path = sandbox.folder().join("b.stvc");
    let begin = Instant::now();
    sandbox.stvc(&["backup", text(&path)]).exits(0);
    let whole = begin.elapsed();
    for kill in 0..12_u32 {
        let _ = fs::remove_file(&path);
        let mut command = sandbox.command(&["backup", text(&path)]);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep((whole * kill / 12).min(Duration::from_secs(5)));
        child.kill().unwrap();
        child.wait().unwrap();
        if path.exists() {
            decode(&fs::read(&path).unwrap()).unwrap();
        }
    }
    sandbox.stvc(&["backup", text(&path), "--overwrite"]).exits(0);
    sound(&sandbox);
}

#[test]
fn the_last_backup_is_remembered_and_mentioned_when_it_is_old() {
    let mut sandbox = small();
    let none = sandbox.stvc(&["backup", "--last"]).exits(0);
    assert!(none.stdout.contains("No backup was taken yet"), "{}", none.stdout);
    let path = back_up(&sandbox);
    sandbox.wait(20 * 86_400);
    let notes = |sandbox: &Sandbox| {
        let findings = sandbox.json(&["status"]).exits(0).of_type("finding");
        findings.into_iter().filter(|line| line["code"] == "backup-old").count()
    };
    assert_eq!(notes(&sandbox), 0, "nothing came since");
    sandbox.append(A, &message("a", 3));
    sandbox.stvc(&["snapshot"]).exits(0);
    assert_eq!(notes(&sandbox), 1);
    let last = sandbox.json(&["backup", "--last", text(&path)]).exits(0).of_type("copy").remove(0);
    assert_eq!((&last["snapshots_since"], &last["timelines_since"]), (&1.into(), &1.into()));
    assert_eq!((&last["kind"], &last["whole"]), (&"file".into(), &true.into()));
    assert!(sandbox.json(&["backup", "--last", "x.stvc"]).exits(0).of_type("copy").is_empty());
    back_up(&sandbox);
    assert_eq!(notes(&sandbox), 0);
}

#[test]
fn restoring_everything_keeps_what_is_in_the_way() {
    let mut sandbox = Sandbox::empty();
    let book =
        |words: &str| json!({ "entries": { "0": { "uid": 0, "content": words } } }).to_string();
    sandbox.write("worlds/Harbour.json", book("old"));
    for name in ["a", "b", "c"] {
        sandbox.write(&format!("chats/Mira/{name}.jsonl"), chat(name, 3, Some("Harbour")));
    }
    sandbox.stvc(&["snapshot"]).exits(0);
    sandbox.wait(60);
    // The chat that is gone has the lorebook of then.
    fs::remove_file(sandbox.path("chats/Mira/c.jsonl")).unwrap();
    sandbox.write("worlds/Harbour.json", book("new"));
    sandbox.stvc(&["snapshot"]).exits(0);
    let before = sandbox.files();
    fs::remove_file(sandbox.path("chats/Mira/b.jsonl")).unwrap();
    sandbox.append(A, &message("mine", 9));
    let mine = sandbox.read(A);
    let answer = sandbox.json(&["restore", "--all"]).exits(3);
    assert_eq!(answer.of_type("failed")[0]["timeline"], "chats/Mira/a");
    let codes = answer.of_type("finding");
    assert!(codes.iter().any(|line| line["code"] == "lorebook-newer"), "{codes:?}");
    assert_eq!(sandbox.read(A), mine);
    assert_eq!(sandbox.read("worlds/Harbour.json"), book("new").into_bytes());
    assert_eq!(sandbox.read("chats/Mira/b.jsonl"), before["chats/Mira/b.jsonl"]);
    assert!(sandbox.path("chats/Mira/c.jsonl").exists());
    sandbox.stvc(&["restore", "--all", "--overwrite"]).exits(0);
    assert_eq!(sandbox.read(A), before[A]);
    sandbox.stvc(&["restore"]).exits(2);
    sandbox.stvc(&["restore", "--all", "x"]).exits(2);
}

#[test]
fn a_backup_is_smaller_than_the_store_after_gc() {
    let mut sandbox = Sandbox::empty();
    let mut library = RecapLibrary::default();
    for messages in (12..132).step_by(12) {
        library.messages = messages;
        library.write(&sandbox);
        sandbox.stvc(&["snapshot"]).exits(0);
        sandbox.wait(60);
    }
    let backup = fs::metadata(back_up(&sandbox)).unwrap().len();
    sandbox.stvc(&["gc", "--grace", "0s"]).exits(0);
    let pack = files(&sandbox.store().join("objects"));
    let store: usize = pack.values().map(Vec::len).sum();
    let ratio = backup as f64 / store as f64;
    println!("{backup} bytes for {store} in the store: {ratio:.2}");
    assert!(ratio < 0.8, "{ratio}");
    git(&sandbox.store(), &["fsck", "--strict"]);
}

/// The command that prints a passphrase often has it in it; the log goes into every copy of the store's folder, and anybody may read who holds the lock.
#[test]
fn the_command_that_prints_a_passphrase_stands_in_no_log() {
    let there = small();
    let path = there.folder().join("copy.stvc");
    let printed = "echo correct horse";
    let backup = ["backup", text(&path), "--passphrase-command", printed];
    there.stvc(&backup).exits(0);
    for arguments in [
        vec!["--passphrase-command".to_owned(), printed.to_owned()],
        vec![format!("--passphrase-command={printed}")],
    ] {
        let here = Sandbox::empty();
        let mut all: Vec<_> = arguments.iter().map(String::as_str).collect();
        all.extend(["import", text(&path)]);
        here.stvc(&all).exits(0);
        let log = fs::read_to_string(here.store().join("stvc/operations.jsonl")).unwrap();
        assert!(log.contains("import") && log.contains("***"), "{log}");
        assert!(!log.contains("horse"), "{log}");
        let said = here.stvc(&["operations"]).exits(0).stdout;
        assert!(!said.contains("horse"), "{said}");
    }
}
