//! Requirements of docs/requirements.md that no other file is about, and that page held against the code.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};
use stvc::st;

use crate::common::recap_library::{Entry, Operation, RecapLibrary, object, pretty};
use crate::common::recap_story::{
    another_way, bound_book, entries, found, messages, metadata, state, story, told, untouched,
    versions,
};
use crate::common::{Sandbox, answer, assert_same, rust_files, sound};

/// Remove a chat with its lorebook and restore both.
#[track_caller]
fn lose_and_restore(sandbox: &Sandbox, library: &RecapLibrary) {
    let before = sandbox.files();
    fs::remove_file(sandbox.path(&library.chat_path())).unwrap();
    fs::remove_file(sandbox.path(&library.book_path())).unwrap();
    sandbox.stvc(&["restore", &library.chat_path()]).exits(0);
    assert_same(&sandbox.files(), &before);
}

#[test]
fn req_01_req_29_req_31_every_entry_is_kept_where_and_as_it_stands() {
    let sandbox = Sandbox::empty();
    let mut library = RecapLibrary::default();
    // Not in alphabetical order, some of them nothing at all, and some that no extension would make.
    library.entries.extend([
        Entry::new(12, "zebra-Last in the alphabet", "z"),
        Entry::new(13, "aardvark-First in the alphabet", "a"),
        Entry::new(14, "__index_characters", "[Characters: Mira]"),
        Entry::raw("15", "null"),
        Entry::raw("16", "0"),
        Entry::raw("17", "\"\""),
        Entry::raw("18", r#"{"uid":18,"comment":"half \ud83d","content":"x","n":1e400,"n":2}"#),
        Entry::raw("__proto__", "false"),
    ]);
    library.write(&sandbox);
    sandbox.stvc(&["snapshot"]).exits(0);
    lose_and_restore(&sandbox, &library);
    sandbox.stvc(&["restore", "Harbour", "--as", "Checkpoint"]).exits(0);
    let (original, clone) = (
        sandbox.read(&library.book_path()),
        sandbox.read(&bound_book(&sandbox, "chats/Mira/Checkpoint.jsonl")),
    );
    let list = entries(&original);
    assert_eq!(list.len(), 13);
    assert_eq!(list.iter().filter(|(_, _, value)| value == "null").count(), 1);
    for title in
        ["_registry_location", "_registry_character", "__index_characters", "__operation_queue"]
    {
        assert_eq!(list.iter().filter(|(_, found, _)| found == title).count(), 1, "{title}");
    }
    assert!(clone == original, "nothing is left out, nothing reordered");
}

#[test]
fn req_04_the_whole_recap_object_is_kept_with_all_its_versions() {
    let sandbox = Sandbox::empty();
    let mut library = story("Main", 4);
    let recap = library.recap.as_mut().unwrap();
    (recap.current, recap.versions) = (2, vec![(1, 10), (2, 20), (7, 40)]);
    recap.more.push(("of a later extension".into(), r#"{ "x":[1e3, "\u96e8"] }"#.into()));
    library.write(&sandbox);
    sandbox.stvc(&["snapshot"]).exits(0);
    lose_and_restore(&sandbox, &library);
    sandbox.stvc(&["restore", "Main", "--as", "Checkpoint"]).exits(0);
    let object = |chat: &[u8]| {
        let header = chat.split(|byte| *byte == b'\n').next().unwrap();
        let raw = st::Raw::parse(header).unwrap();
        let path = ["chat_metadata", "auto_recap_running_scene_recaps"];
        raw.path(&path).unwrap().as_str().to_owned()
    };
    // To the byte, but for the name of the chat, which must be the new one.
    let original = object(&sandbox.read(&library.chat_path()));
    let checkpoint = object(&sandbox.read("chats/Mira/Checkpoint.jsonl"));
    assert_eq!(checkpoint, original.replace(r#""chat_id":"Main""#, r#""chat_id":"Checkpoint""#));
    assert_eq!(versions(&sandbox.read("chats/Mira/Checkpoint.jsonl")), (2, vec![1, 2, 7]));
}

#[test]
fn req_08_req_16_a_restored_state_is_exactly_that_state() {
    let mut sandbox = Sandbox::empty();
    RecapLibrary::new("Mira", "Another chat").write(&sandbox);
    let mut states = Vec::new();
    for n in 1..=4 {
        let mut library = story("Main", n);
        // Metadata that comes, changes and goes: nothing of one state may be left in another.
        if n % 2 == 0 {
            library.more.push(("variables".into(), format!(r#"{{"mood":{n}}}"#)));
        } else {
            library.more.push(("note_prompt".into(), format!("\"state {n}\"")));
            library.combined = Some((format!("Until {n}."), n));
        }
        library.write(&sandbox);
        sandbox.stvc(&["snapshot", "Main", "--tag", &format!("state {n}")]).exits(0);
        states.push(sandbox.files());
        sandbox.wait(60);
    }
    for n in [1, 4, 2, 3, 1, 3, 4] {
        sandbox.stvc(&["restore", &format!("state {n}"), "--overwrite"]).exits(0);
        assert_same(&sandbox.files(), &states[n - 1]);
    }
    sandbox.stvc(&["check"]).exits(0);
}

#[test]
fn req_09_what_a_lorebook_has_beside_its_entries_is_kept() {
    let sandbox = Sandbox::empty();
    let library = RecapLibrary::default();
    let list: Vec<_> =
        library.entries.iter().map(|entry| (entry.key.clone(), entry.json.clone())).collect();
    let reordered = object(&list)
        .replace("\"order\":100", "\"order\":998")
        .replace("\"displayIndex\":", "\"displayIndex\":7");
    let book = pretty(
        &format!(
            r#"{{"name":"As it was called","entries":{reordered},"extensions":{{"x":[null,1.0]}},"originalData":{{"entries":[1]}},"scan_depth":3}}"#
        ),
        4,
    );
    library.write(&sandbox);
    sandbox.write(&library.book_path(), &book);
    sandbox.stvc(&["snapshot"]).exits(0);
    lose_and_restore(&sandbox, &library);
    sandbox.stvc(&["restore", "Harbour", "--as", "Checkpoint"]).exits(0);
    let clone = sandbox.read(&bound_book(&sandbox, "chats/Mira/Checkpoint.jsonl"));
    assert_eq!(String::from_utf8(clone).unwrap(), book);
}

#[test]
fn req_10_settings_of_the_program_are_not_captured() {
    let sandbox = Sandbox::of_fixture("1.19.0");
    sandbox.write("settings.json", r#"{"a":"secret of the settings"}"#);
    sandbox.stvc(&["snapshot"]).exits(0);
    for id in sandbox.snapshot_ids() {
        let shown = sandbox.json(&["show", &id]).exits(0).of_type("snapshot").remove(0);
        for file in shown["files"].as_array().unwrap() {
            let path = file["path"].as_str().unwrap();
            let folder = path.split('/').next().unwrap();
            assert!(["chats", "group chats", "groups", "worlds"].contains(&folder), "{path}");
        }
    }
    sandbox.write("settings.json", r#"{"a":"new settings"}"#);
    sandbox.append("chats/Mira Voss/The Tide Office — part 1 (雨).jsonl", r#"{"mes":"x"}"#);
    sandbox.stvc(&["restore", "Tide Office", "--overwrite"]).exits(0);
    assert_eq!(sandbox.read("settings.json"), br#"{"a":"new settings"}"#);
}

#[test]
fn req_11_a_checkpoint_is_judged_before_anything_is_written_and_then_told() {
    let sandbox = Sandbox::empty();
    let mut library =
        RecapLibrary { queue: Some(vec![Operation::new("pending")]), ..RecapLibrary::default() };
    library.write(&sandbox);
    let before = sandbox.files();
    sandbox.stvc(&["snapshot", "Harbour", "--at", "7"]).exits(4);
    sandbox.stvc(&["snapshot", "Harbour", "--at", "99", "--allow-active-queue"]).exits(4);
    assert!(!sandbox.store().exists());
    library.queue = Some(Vec::new());
    library.write(&sandbox);
    let answer = sandbox.json(&["snapshot", "Harbour", "--at", "7"]).exits(0);
    let taken = answer.of_type("snapshot").remove(0);
    assert_eq!((&taken["messages"], &taken["kind"]), (&json!(8), &json!("checkpoint")));
    assert!(answer.of_type("summary")[0]["bytes"].as_u64().unwrap() > 0);
    assert_eq!(state(&sandbox, "Harbour nights @7")["running_recap_version"], 1);
    // As a chat of its own: what is refused leaves no lorebook behind; what is made has its lorebook before its chat.
    sandbox.stvc(&["restore", "Harbour nights @7", "--as", "Harbour nights"]).exits(4);
    assert_eq!(sandbox.files().len(), before.len());
    let answer = sandbox.json(&["restore", "Harbour nights @7", "--as", "Checkpoint"]).exits(0);
    let files = answer.of_type("file");
    let paths: Vec<_> = files.iter().map(|file| file["path"].as_str().unwrap()).collect();
    assert_eq!(paths, ["worlds/z-AutoLB-Mira-Checkpoint.json", "chats/Mira/Checkpoint.jsonl"]);
    for file in &files {
        let bytes = sandbox.read(file["path"].as_str().unwrap());
        assert_eq!(file["bytes"], bytes.len());
        assert_eq!(file["blake3"], blake3::hash(&bytes).to_hex().as_str());
    }
    let restored = answer.of_type("restored").remove(0);
    assert_eq!(
        (&restored["running_recap_version"], &restored["running_recap_scene_count"]),
        (&json!(1), &json!(2))
    );
}

#[test]
fn req_17_what_is_broken_is_an_error_and_what_is_odd_a_warning() {
    let levels: BTreeMap<_, Vec<_>> = stvc::rules::rules()
        .map(|rule| (rule.code.as_str(), rule.levels.iter().map(|level| level.as_str()).collect()))
        .collect();
    for (code, expected) in [
        // Version mismatches, missing versions, a queue that is not empty, a message that is not there.
        ("recap-version-mismatch", &["error"][..]),
        ("recap-version-lost", &["error"]),
        ("message-not-found", &["error"]),
        ("lorebook-missing", &["error"]),
        ("uid-repeated", &["error"]),
        ("registry-unreadable", &["error"]),
        // Blocks, unless the user says otherwise.
        ("queue-active", &["error", "warning"]),
        // Names, counts, and what is optional; errors only for who is strict.
        ("lorebook-name-mismatch", &["warning"]),
        ("combined-recap-mismatch", &["warning"]),
        ("lorebook-shared", &["warning"]),
        ("scene-break-missing", &["warning", "error"]),
        ("scene-recap-missing", &["warning", "error"]),
        ("scene-lorebook-missing", &["warning", "error"]),
        ("running-recap-missing", &["warning", "error"]),
        ("scene-not-in-recap", &["warning", "error"]),
        ("checkpoint-state-missing", &["info"]),
        ("uid-gaps", &["info"]),
        ("settings-hash-differs", &["info"]),
    ] {
        assert_eq!(levels[code], expected, "{code}");
    }
    // A finding about stored bytes refuses nobody his own bytes: also with an error a restore is done.
    let sandbox = Sandbox::empty();
    let mut library = RecapLibrary::default();
    library.recap.as_mut().unwrap().current = 9;
    library.write(&sandbox);
    let answer = sandbox.json(&["snapshot"]).exits(0);
    assert_eq!(told(&answer), found(&[("recap-version-lost", "error")]));
    lose_and_restore(&sandbox, &library);
}

#[test]
fn req_18_a_lorebook_is_found_by_its_name_and_none_is_allowed() {
    let sandbox = Sandbox::empty();
    let bound = |json: &str| format!("{{\"chat_metadata\":{{{json}}}}}\n{{\"mes\":\"hi\"}}");
    for (name, member) in
        [("absent", ""), ("null", r#""world_info":null"#), ("empty", r#""world_info":"""#)]
    {
        sandbox.write(&format!("chats/A/{name}.jsonl"), bound(member));
    }
    sandbox.write("chats/A/bound.jsonl", bound(r#""world_info":"Lore 雨: the \"first\"?""#));
    sandbox.write("worlds/Lore 雨 the first.json", r#"{"entries":{"0":{"uid":0}}}"#);
    let answer = sandbox.json(&["snapshot"]).exits(0);
    assert_eq!(told(&answer), []);
    for line in answer.of_type("snapshot") {
        let id = line["id"].as_str().unwrap();
        let shown = sandbox.json(&["show", id]).exits(0).of_type("snapshot").remove(0);
        let files: Vec<_> =
            shown["files"].as_array().unwrap().iter().map(|file| file["path"].clone()).collect();
        if line["timeline"] == "chats/A/bound" {
            assert_eq!(files, ["chats/A/bound.jsonl", "worlds/Lore 雨 the first.json"]);
        } else {
            assert_eq!(files.len(), 1);
            assert_eq!(line["lorebook"], Value::Null);
        }
    }
    let answer = sandbox.stvc(&["restore", "A/null", "--as", "fork"]).exits(0);
    assert!(answer.stdout.contains("it has no lorebook"), "{}", answer.stdout);
    assert_eq!(metadata(&sandbox.read("chats/A/fork.jsonl"))["world_info"], Value::Null);
    assert_eq!(told(&sandbox.json(&["doctor"]).exits(0)), []);
}

#[test]
fn req_26_checkpoints_taken_at_once_do_not_get_in_each_others_way() {
    let sandbox = Sandbox::empty();
    story("Main", 5).write(&sandbox);
    sandbox.stvc(&["snapshot"]).exits(0);
    let before = sandbox.files();
    let run = |commands: &[Vec<String>]| -> Vec<i32> {
        let start = |arguments: &Vec<String>| {
            let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
            let mut command = sandbox.command(&arguments);
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
        };
        let children: Vec<_> = commands.iter().map(start).collect();
        let end = |child: std::process::Child| answer(child.wait_with_output().unwrap()).code;
        children.into_iter().map(end).collect()
    };
    let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
    let checkpoints: Vec<_> =
        (1..=6).map(|n| words(&format!("snapshot Main --at {} --tag CP{n}", 8 * n))).collect();
    assert_eq!(run(&checkpoints), [0; 6]);
    let tags = sandbox.json(&["tag"]).exits(0).of_type("tag");
    assert_eq!(tags.len(), 6);
    for n in 1..=6 {
        let shown =
            sandbox.json(&["show", &format!("CP{n}")]).exits(0).of_type("snapshot").remove(0);
        assert_eq!(shown["messages"], 8 * n + 1);
    }
    // Forks at once: each has its own lorebook, and a name is given away once.
    let forks: Vec<_> =
        (1..=6).map(|n| words(&format!("restore CP{n} --as Fork{}", n / 2))).collect();
    let mut codes = run(&forks);
    codes.sort_unstable();
    assert_eq!(codes, [0, 0, 0, 0, 4, 4]);
    untouched(&sandbox, &before);
    let books: BTreeSet<_> =
        (0..=3).map(|n| bound_book(&sandbox, &format!("chats/Mira/Fork{n}.jsonl"))).collect();
    assert_eq!(books.len(), 4);
    assert_eq!(sandbox.files().len(), before.len() + 8);
    sound(&sandbox);
}

/// A chat and its lorebook are saved again and again, the chat first: what is stored stood on the disk at one moment, or nothing is stored.
#[test]
fn req_27_a_chat_and_its_lorebook_are_of_one_moment() {
    const STATES: usize = 60;
    let sandbox = Sandbox::empty();
    // Long, so that there is time between reading the one and reading the other.
    let library = |n: usize| RecapLibrary {
        messages: 1500 + n,
        entries: vec![Entry::new(0, &format!("lore-{n}"), &"x".repeat(n))],
        cache: Vec::new(),
        ..RecapLibrary::default()
    };
    let bytes = |n: usize| (library(n).chat_bytes(), library(n).book_bytes());
    let states: Vec<_> = (0..STATES).map(bytes).collect();
    let (chat_path, book_path) = (library(0).chat_path(), library(0).book_path());
    let save = |path: &str, text: &str| {
        let temp = sandbox.path("saving.tmp");
        fs::write(&temp, text).unwrap();
        fs::rename(temp, sandbox.path(path)).unwrap();
    };
    library(0).write(&sandbox);
    let done = AtomicBool::new(false);
    let mut taken = Vec::new();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for (n, (chat, book)) in states.iter().enumerate().cycle().skip(1) {
                if done.load(Ordering::Relaxed) {
                    break;
                }
                save(&chat_path, chat);
                save(&book_path, book);
                // Now and then it rests.
                if n % 30 == 0 {
                    std::thread::sleep(std::time::Duration::from_millis(25));
                }
            }
        });
        for _ in 0..25 {
            let answer = sandbox.json(&["snapshot", "Harbour"]);
            match answer.code {
                0 => taken.push(answer.of_type("snapshot")[0]["id"].as_str().unwrap().to_owned()),
                1 => assert!(answer.stdout.contains("kept changing"), "{answer:?}"),
                _ => panic!("{answer:?}"),
            }
        }
        done.store(true, Ordering::Relaxed);
    });
    taken.push(
        sandbox.json(&["snapshot"]).exits(0).of_type("snapshot")[0]["id"]
            .as_str()
            .unwrap()
            .to_owned(),
    );
    taken.dedup();
    for (place, id) in taken.iter().enumerate() {
        let to = sandbox.folder().join(format!("look {place}"));
        sandbox.stvc(&["restore", id, "--to", to.to_str().unwrap()]).exits(0);
        let files = crate::common::files(&to);
        let (chat, book) = (&files[&chat_path], &files[&book_path]);
        let n = states.iter().position(|(_, saved)| saved.as_bytes() == book).unwrap();
        // The chat was saved before the lorebook: it is of the same save or of the next.
        let fits = [n, (n + 1) % STATES].iter().any(|n| states[*n].0.as_bytes() == chat);
        assert!(fits, "a chat of {} messages with the lorebook of save {n}", messages(chat));
    }
}

#[test]
fn req_32_that_sillytavern_must_be_reloaded_is_said() {
    let sandbox = Sandbox::empty();
    let library = RecapLibrary::default();
    library.write(&sandbox);
    sandbox.stvc(&["snapshot"]).exits(0);
    sandbox.append(&library.chat_path(), &library.message(12));
    let said = |arguments: &[&str]| {
        let answer = sandbox.json(arguments).exits(0);
        let mut findings = answer.of_type("finding");
        findings.retain(|finding| finding["code"] == "reload-sillytavern");
        assert!(
            findings
                .iter()
                .all(|finding| finding["level"] == "info" && finding["remedy"].is_string())
        );
        findings.len()
    };
    assert_eq!(said(&["restore", "Harbour", "--overwrite", "--dry-run"]), 0);
    assert_eq!(said(&["restore", "Harbour", "--to", "../look"]), 0);
    assert_eq!(said(&["restore", "Harbour", "--overwrite"]), 1);
    let answer = sandbox.stvc(&["undo"]).exits(0);
    assert!(answer.stdout.contains("reload its page"), "{}", answer.stdout);
    assert_eq!(said(&["restore", "Harbour", "--as", "Checkpoint"]), 1);
    assert_eq!(said(&["doctor"]), 0);
    fs::remove_file(sandbox.path(&bound_book(&sandbox, "chats/Mira/Checkpoint.jsonl"))).unwrap();
    assert_eq!(said(&["doctor", "--fix", "--yes"]), 1);
}

#[test]
fn req_44_checkpoints_can_be_told_apart_and_listed_and_their_tree_is_drawn() {
    let mut sandbox = Sandbox::empty();
    story("Main", 3).write(&sandbox);
    sandbox.stvc(&["snapshot"]).exits(0);
    sandbox.wait(60);
    sandbox.stvc(&["snapshot", "Main", "--scenes"]).exits(0);
    let tags = sandbox.stvc(&["tag"]).exits(0).stdout;
    for n in 1..=3 {
        assert!(tags.contains(&format!("Scene {n} - Scene {n}")), "{tags}");
    }
    sandbox.stvc(&["restore", "Scene 2 - Scene 2", "--as", "Another end"]).exits(0);
    // The clone's name has the chat's.
    assert_eq!(
        bound_book(&sandbox, "chats/Mira/Another end.jsonl"),
        "worlds/z-AutoLB-Mira-Another end.json"
    );
    let tree = sandbox.stvc(&["timelines", "--tree"]).exits(0).stdout;
    assert!(tree.contains("└─ after #20  Another end"), "{tree}");
    let graph = sandbox.stvc(&["log", "--graph"]).exits(0).stdout;
    assert!(graph.contains("Mira / Another end") && graph.contains("forked after #20"), "{graph}");
    let kinds: Vec<_> = sandbox
        .json(&["log"])
        .exits(0)
        .of_type("snapshot")
        .iter()
        .map(|line| line["kind"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(
        kinds.iter().filter(|kind| *kind == "checkpoint").count(),
        2,
        "the last scene ends where the chat does: {kinds:?}"
    );
}

#[test]
fn req_45_uids_from_0_and_uids_that_are_moments_are_both_keys() {
    let sandbox = Sandbox::empty();
    // Beside the queue's, which is a moment: the greatest that a 64-bit number holds.
    let mut list = vec![Entry::new(i64::MAX, "lore-far", "far")];
    list.extend((0..4).map(|uid| Entry::new(uid, &format!("lore-{uid}"), "x")));
    let library = RecapLibrary { entries: list, cache: Vec::new(), ..RecapLibrary::default() };
    library.write(&sandbox);
    assert_eq!(told(&sandbox.json(&["snapshot"]).exits(0)), []);
    let keys: Vec<_> =
        entries(&sandbox.read(&library.book_path())).into_iter().map(|(key, ..)| key).collect();
    let (max, queue) = (i64::MAX.to_string(), "1763632702906".to_owned());
    assert_eq!(keys, ["0", "1", "2", "3", &max, &queue]);
    for (key, entry) in st::entries(&sandbox.read(&library.book_path())) {
        assert_eq!(st::entry_uid(entry).map(|uid| uid.to_string()), Some(key.to_string_lossy()));
    }
    lose_and_restore(&sandbox, &library);
    // The change of one is told under its key.
    let book = String::from_utf8(sandbox.read(&library.book_path())).unwrap();
    sandbox.write(&library.book_path(), book.replace("\"far\"", "\"near\""));
    let changes = sandbox.json(&["diff", "Harbour"]).exits(0).of_type("change");
    assert_eq!(changes.len(), 1);
    assert_eq!((&changes[0]["uid"], &changes[0]["kind"]), (&json!(max), &json!("edited")));
}

#[test]
fn req_54_what_a_chat_is_called_does_not_make_it_a_fork() {
    let sandbox = Sandbox::empty();
    let main = RecapLibrary::new("Mira", "Main");
    main.write(&sandbox);
    let mut own_book = main.fork("A name of my own", 5);
    own_book.write(&sandbox);
    // From before `main_chat`: only the name says it, and what was said.
    own_book = main.fork("Main - Checkpoint #1", 7);
    own_book.main_chat = None;
    own_book.write(&sandbox);
    for name in ["Branch #5 - 2026-11-14@23h57m31s", "Main - Bookmark #2", "Checkpoint #1"] {
        let mut other = RecapLibrary::new("Mira", name);
        other.story = format!("another one, {name}");
        other.write(&sandbox);
    }
    sandbox.stvc(&["snapshot"]).exits(0);
    let parents: BTreeMap<_, _> = sandbox
        .json(&["timelines"])
        .exits(0)
        .of_type("timeline")
        .iter()
        .map(|line| {
            let name = line["timeline"].as_str().unwrap().trim_start_matches("chats/Mira/");
            (name.to_owned(), (line["parent"].clone(), line["fork_at"].clone()))
        })
        .collect();
    let main = json!("chats/Mira/Main");
    for (name, expected) in [
        ("Main", (Value::Null, Value::Null)),
        ("A name of my own", (main.clone(), json!(6))),
        ("Main - Checkpoint #1", (main, json!(8))),
        ("Branch #5 - 2026-11-14@23h57m31s", (Value::Null, Value::Null)),
        ("Main - Bookmark #2", (Value::Null, Value::Null)),
        ("Checkpoint #1", (Value::Null, Value::Null)),
    ] {
        assert_eq!(parents[name], expected, "{name}");
    }
}

#[test]
fn req_55_a_chat_is_its_header_and_its_messages() {
    let sandbox = Sandbox::empty();
    let library = RecapLibrary::default();
    library.write(&sandbox);
    let taken = sandbox.json(&["snapshot"]).exits(0).of_type("snapshot").remove(0);
    assert_eq!(taken["messages"], 12);
    let text = library.chat_bytes();
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(sandbox.git(&["show", "HEAD:chat/header.json"]), lines[0]);
    for n in [0, 7, 11] {
        let path = format!("HEAD:chat/messages/000/{n:05}.json");
        assert_eq!(sandbox.git(&["show", &path]), lines[n + 1]);
    }
    let stored = sandbox.git(&["ls-tree", "-r", "--name-only", "HEAD", "chat/messages"]);
    assert_eq!(stored.lines().count(), 12);
}

#[test]
fn req_58_each_side_goes_on_in_a_chain_of_its_own_from_where_they_parted() {
    let mut sandbox = Sandbox::empty();
    let (main, fork) = (
        |n| story("Main", n),
        |n| RecapLibrary { main_chat: Some("Main".into()), ..story("Fork", n) },
    );
    main(2).write(&sandbox);
    let parted = sandbox.json(&["snapshot"]).exits(0).of_type("snapshot").remove(0);
    sandbox.stvc(&["restore", "Main", "--as", "Fork"]).exits(0);
    for n in 3..=5 {
        sandbox.wait(60);
        main(n).write(&sandbox);
        let fork = fork(n);
        fork.write(&sandbox);
        sandbox.write(&fork.chat_path(), another_way(&fork, 20));
        assert_eq!(sandbox.json(&["snapshot"]).exits(0).of_type("snapshot").len(), 2);
    }
    let chain = |name: &str| {
        let ids = sandbox.git(&["log", "--format=%H", &format!("refs/heads/chats/Mira/{name}")]);
        ids.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    let (mine, other) = (chain("Main"), chain("Fork"));
    assert_eq!((mine.len(), other.len()), (4, 5));
    let base = sandbox.git(&["merge-base", &mine[0], &other[0]]);
    assert_eq!(base.trim(), parted["id"]);
    assert_eq!((Some(&mine[3]), Some(&other[4])), (mine.last(), other.last()));
    assert_eq!(mine.last(), other.last());
    // A chain never has a second parent: nothing is merged.
    let parents = sandbox.git(&["log", "--all", "--format=%P"]);
    assert!(parents.lines().all(|line| line.split(' ').count() <= 1), "{parents}");
}

#[test]
fn req_59_the_number_of_a_message_is_not_what_it_is() {
    let sandbox = Sandbox::empty();
    let library = RecapLibrary::default();
    library.write(&sandbox);
    sandbox.stvc(&["snapshot"]).exits(0);
    // One more at the very beginning: all numbers change, and one message is new.
    let text = library.chat_bytes();
    let (header, rest) = text.split_once('\n').unwrap();
    let new = r#"{"name":"Wren","is_user":true,"send_date":"2026-11-14T22:00:00.000Z","mes":"Before all that."}"#;
    sandbox.write(&library.chat_path(), format!("{header}\n{new}\n{rest}"));
    let changes = sandbox.json(&["diff", "Harbour"]).exits(0).of_type("change");
    assert_eq!(changes.len(), 1, "{changes:?}");
    assert_eq!((&changes[0]["kind"], &changes[0]["index"]), (&json!("added"), &json!(0)));
    // Message 7 of the one is not message 7 of the other.
    library.write(&sandbox);
    let fork = RecapLibrary { messages: 9, ..library.fork("Fork", 6) };
    sandbox.write(&fork.chat_path(), another_way(&fork, 5));
    sandbox.stvc(&["snapshot"]).exits(0);
    let answer =
        sandbox.json(&["diff", "Mira/Harbour nights...Mira/Fork", "--only", "chat"]).exits(0);
    assert_eq!(answer.of_type("comparison")[0]["shared"], 6);
    let changes = answer.of_type("change");
    let kinds = |kind: &str| changes.iter().filter(|change| change["kind"] == kind).count();
    assert!(changes.iter().all(|change| change["index"].as_u64().unwrap() >= 6), "{changes:?}");
    assert_eq!(kinds("added") + kinds("removed") + 2 * kinds("edited"), 6 + 3, "{changes:?}");
}

#[test]
fn req_60_a_recap_made_anew_in_one_chat_is_told_and_the_other_keeps_its_own() {
    let sandbox = Sandbox::empty();
    let mut main = RecapLibrary::default();
    main.write(&sandbox);
    sandbox.stvc(&["snapshot"]).exits(0);
    sandbox.stvc(&["restore", "Harbour", "--as", "Fork"]).exits(0);
    let fork = sandbox.read("chats/Mira/Fork.jsonl");
    let anew = r#"{"scene_name":"The quay","stage4":{"recap":"It went on."}}"#;
    let known = main.scenes[0].recap.clone();
    main.scenes[0].more.extend([
        ("scene_recap_versions".to_owned(), json!(["", known, anew]).to_string()),
        ("scene_recap_current_index".to_owned(), "2".to_owned()),
        ("scene_recap_memory".to_owned(), json!(anew).to_string()),
    ]);
    main.write(&sandbox);
    let since = sandbox.json(&["diff", "Mira/Harbour nights"]).exits(0);
    sandbox.stvc(&["snapshot", "Mira/Harbour nights", "--tag", "anew"]).exits(0);
    assert_eq!(sandbox.read("chats/Mira/Fork.jsonl"), fork);
    let between = sandbox.json(&["diff", "Mira/Fork", "anew"]).exits(0);
    for answer in [since, between] {
        let mut changes = answer.of_type("change");
        changes.retain(|change| change["part"] == "message");
        assert_eq!(changes.len(), 1, "{changes:?}");
        assert_eq!((&changes[0]["index"], &changes[0]["kind"]), (&json!(3), &json!("recap")));
        let fields = changes[0]["fields"].to_string();
        assert!(fields.contains("scene_recap_current_index"), "{fields}");
    }
}

#[test]
fn req_76_lines_that_sillytavern_loses_are_told_and_stored_as_they_are() {
    let whole = RecapLibrary {
        recap: None,
        book: None,
        attached: None,
        cache: Vec::new(),
        ..RecapLibrary::default()
    };
    let text = whole.chat_bytes();
    let (header, rest) = text.split_once('\n').unwrap();
    for (bytes, code, words) in [
        (format!("{text}\n{{\"mes\":\"torn"), "chat-line-broken", "line 14"),
        (text.replace("{\"name\":\"Wren\",\"is_user\":true,\"is_system\":false,\"send_date\":\"2026-11-14T23:00:01", "{name:\"2026-11-14T23:00:01"), "chat-line-broken", "line 3"),
        (format!("\u{feff}{text}"), "chat-bom", "byte order mark"),
        (format!("{}\n{rest}", &header[..40]), "chat-header-broken", "line 1"),
        (String::new(), "chat-empty", ""),
    ] {
        let sandbox = Sandbox::empty();
        sandbox.write(&whole.chat_path(), &bytes);
        let answer = sandbox.json(&["snapshot"]).exits(0);
        assert_eq!(told(&answer), found(&[(code, "warning")]));
        let finding = answer.of_type("finding").remove(0);
        assert!(finding["message"].as_str().unwrap().contains(words), "{finding}");
        fs::remove_file(sandbox.path(&whole.chat_path())).unwrap();
        let answer = sandbox.json(&["restore", "Harbour"]).exits(0);
        assert_eq!(told(&answer), found(&[(code, "warning")]));
        assert_eq!(sandbox.read(&whole.chat_path()), bytes.into_bytes());
    }
}

#[test]
fn req_77_snapshots_are_known_by_their_content_and_branches_share_what_they_have_in_common() {
    let take = |library: &RecapLibrary, wait: i64| {
        let mut sandbox = Sandbox::empty();
        sandbox.wait(wait);
        library.write(&sandbox);
        sandbox.stvc(&["snapshot"]).exits(0);
        let line = sandbox.json(&["log"]).exits(0).of_type("snapshot").remove(0);
        let tree = sandbox.git(&["rev-parse", "HEAD^{tree}"]);
        (line["content"].clone(), line["id"].clone(), tree)
    };
    // The same state is the same content and the same tree, whenever and wherever it is taken; a byte more is another.
    let library = story("Main", 20);
    let (content, id, tree) = take(&library, 0);
    let (again, other_id, same_tree) = take(&library, 3600);
    assert_eq!((&content, &tree), (&again, &same_tree));
    assert_ne!(id, other_id);
    let (other, ..) = take(&RecapLibrary { queue: None, ..library.clone() }, 0);
    assert_ne!(content, other);

    // 20 forks of 201 messages and 42 entries are stored as what differs: names, and little else.
    let mut sandbox = Sandbox::empty();
    library.write(&sandbox);
    sandbox.stvc(&["snapshot"]).exits(0);
    let objects = |sandbox: &Sandbox| {
        let list = sandbox.git(&["cat-file", "--batch-all-objects", "--batch-check=%(objectname)"]);
        list.lines().count()
    };
    let first = objects(&sandbox);
    assert!(first > 201 + 42);
    for n in 0..20 {
        sandbox.wait(60);
        sandbox.stvc(&["restore", "Mira/Main", "--as", &format!("Fork {n}")]).exits(0);
    }
    let each = (objects(&sandbox) - first) / 20;
    assert!(each <= 10, "{each} new objects a fork");
    // UIDs are intact in each, and each can be told from the other.
    let book = library.book_bytes().into_bytes();
    for n in 0..20 {
        assert_eq!(
            sandbox.read(&bound_book(&sandbox, &format!("chats/Mira/Fork {n}.jsonl"))),
            book
        );
    }
    sandbox.stvc(&["diff", "Mira/Fork 1", "Mira/Fork 2", "--exit-code"]).exits(1);
    sound(&sandbox);
}

// The page.

const PAGE: &str = "docs/requirements.md";

/// The lines of the page's table of requirements: number, and the cells.
fn rows() -> Vec<(u32, Vec<String>)> {
    let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(PAGE)).unwrap();
    let cells = |line: &str| {
        let inner = line.strip_prefix("| ")?.strip_suffix(" |")?;
        let cells: Vec<_> = inner.split(" | ").map(|cell| cell.trim().to_owned()).collect();
        Some((cells[0].parse().ok()?, cells))
    };
    page.lines().filter_map(cells).collect()
}

/// The tests that a cell names.
fn named(cell: &str) -> Vec<&str> {
    cell.split('`').skip(1).step_by(2).collect()
}

/// The names of all tests of the project.
fn tests() -> BTreeSet<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut names = BTreeSet::new();
    for file in ["src", "tests"].iter().flat_map(|folder| rust_files(&root.join(folder))) {
        let text = fs::read_to_string(file).unwrap();
        for rest in text.split("#[test]").skip(1) {
            let (_, rest) = rest.split_once("fn ").unwrap();
            let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap();
            names.insert(rest[..end].to_owned());
        }
    }
    names
}

/// The requirements that a test's name says it covers.
fn covered(test: &str) -> Vec<u32> {
    test.split("req_").skip(1).filter_map(|rest| rest.get(..2)?.parse().ok()).collect()
}

#[test]
fn the_page_has_every_requirement_once_and_names_tests_that_exist() {
    let rows = rows();
    let numbers: Vec<_> = rows.iter().map(|(number, _)| *number).collect();
    assert_eq!(numbers, (1..=77).collect::<Vec<_>>());
    let tests = tests();
    assert!(tests.len() > 200, "the test finds no tests any more");
    for (number, cells) in &rows {
        assert_eq!(cells.len(), 5, "{PAGE}, row {number}: a cell too many or too few");
        for name in named(&cells[4]) {
            assert!(tests.contains(name), "{PAGE}, row {number}: there is no test {name}");
        }
        // A row without a test says why.
        assert!(
            !named(&cells[4]).is_empty() || cells[4].starts_with("none: "),
            "{PAGE}, row {number}: no test and no reason"
        );
    }
}

#[test]
fn the_page_names_every_test_that_covers_a_requirement() {
    let rows: BTreeMap<_, _> = rows().into_iter().collect();
    let mut missing = Vec::new();
    for test in tests() {
        for number in covered(&test) {
            let row =
                rows.get(&number).unwrap_or_else(|| panic!("{test}: there is no row {number}"));
            if !named(&row[4]).contains(&test.as_str()) {
                missing.push(format!("row {number}: `{test}`"));
            }
        }
        // The design documents' own tests: each is a requirement somewhere.
        let own = ["s0_", "s1_", "s2_", "s3_"].iter().any(|prefix| test.starts_with(prefix));
        if own && !rows.values().any(|row| named(&row[4]).contains(&test.as_str())) {
            missing.push(format!("no row: `{test}`"));
        }
    }
    assert!(missing.is_empty(), "not in {PAGE}:\n{}", missing.join("\n"));
}
