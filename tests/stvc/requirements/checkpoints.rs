//! Creation of checkpoints and its output.

use std::collections::BTreeSet;
use std::fs;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::json;

use super::lose_and_restore;
use crate::common::recap_library::{Entry, Operation, RecapLibrary};
use crate::common::recap_story::{
    assert_unchanged, bound_book, codes_and_levels, count_messages, expected_findings,
    recorded_state, story,
};
use crate::common::{Sandbox, answer, assert_valid, files, is_emulated, skip_on_this_machine};

#[test]
fn req_11_checkpoint_is_checked_before_anything_is_written() {
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
    assert_eq!(recorded_state(&sandbox, "Harbour nights @7")["running_recap_version"], 1);
    // A refused copy leaves no lorebook; a new one writes its lorebook before its chat.
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
fn req_17_broken_data_is_an_error_and_unusual_data_a_warning() {
    // Findings of snapshot and restore.
    type Change<'a> = &'a dyn Fn(&mut RecapLibrary);
    let with = |change: Change<'_>, arguments: &[&str]| {
        let sandbox = Sandbox::empty();
        let mut library = RecapLibrary::default();
        change(&mut library);
        library.write(&sandbox);
        let answer = sandbox.json(&[&["snapshot", "Harbour"], arguments].concat());
        let mut findings = codes_and_levels(&answer);
        if answer.code == 0 && !arguments.contains(&"--at") {
            findings.extend(codes_and_levels(
                &sandbox.json(&["restore", "Harbour", "--overwrite"]).exits(0),
            ));
        }
        findings
    };
    let (at_7, at_5, none) = (&["--at", "7"][..], &["--at", "5"][..], &[][..]);
    let noted = |json: &str| ("auto_recap_checkpoint_state".to_owned(), json.to_owned());
    let no_recap: Change<'_> = &|library| library.recap = None;
    let idle: Change<'_> = &|library| library.scenes[1].activated = 0;
    let busy: Change<'_> = &|library| library.queue = Some(vec![Operation::new("pending")]);
    let cases: &[(&str, &str, Change<'_>, &[&str])] = &[
        // Version mismatches, missing versions, an active queue, a missing message.
        (
            "recap-version-mismatch",
            "error",
            &|library| library.more.push(noted(r#"{"running_recap_version":7}"#)),
            none,
        ),
        (
            "recap-version-lost",
            "error",
            &|library| library.recap.as_mut().unwrap().current = 9,
            none,
        ),
        ("message-not-found", "error", &|_| {}, &["--at", "99"]),
        (
            "uid-repeated",
            "error",
            &|library| library.entries.push(Entry::raw("9", r#"{"uid":5}"#)),
            none,
        ),
        (
            "registry-unreadable",
            "error",
            &|library| library.entries[3] = Entry::registry_of(6, "character", "once"),
            none,
        ),
        // Refused unless overridden.
        ("queue-active", "error", busy, none),
        ("queue-active", "warning", busy, &["--allow-active-queue"]),
        // Names, counts and optional data; errors only in strict mode.
        (
            "lorebook-name-mismatch",
            "warning",
            &|library| library.more.push(noted(r#"{"cloned_lorebook_name":"x"}"#)),
            none,
        ),
        (
            "combined-recap-mismatch",
            "warning",
            &|library| {
                library.combined = Some(("All.".into(), 5));
                library.more.push(noted(r#"{"combined_recap_message_count":7}"#));
            },
            none,
        ),
        ("scene-break-missing", "warning", &|_| {}, at_5),
        ("scene-break-missing", "error", &|_| {}, &["--at", "5", "--strict"]),
        ("scene-recap-missing", "warning", &|_| {}, at_5),
        ("scene-lorebook-missing", "warning", idle, at_7),
        ("scene-lorebook-missing", "error", idle, &["--at", "7", "--strict"]),
        ("running-recap-missing", "warning", no_recap, at_7),
        ("scene-not-in-recap", "warning", no_recap, at_7),
        ("scene-not-in-recap", "error", no_recap, &["--at", "7", "--strict"]),
        (
            "lorebook-name-unexpected",
            "info",
            &|library| {
                (library.book, library.attached) = (Some("My lore".into()), Some("My lore".into()));
            },
            none,
        ),
    ];
    for (code, level, change, arguments) in cases {
        let findings = with(*change, arguments);
        let levels: Vec<_> = findings.iter().filter(|(found, _)| found == code).collect();
        assert!(!levels.is_empty(), "{code}: {findings:?}");
        assert!(levels.iter().all(|(_, found)| found == level), "{code}: {findings:?}");
    }
    // Between chats.
    let sandbox = Sandbox::empty();
    let hash = |hash: &str| ("auto_recap".to_owned(), format!(r#"{{"settings_hash":"{hash}"}}"#));
    let mut main = RecapLibrary::default();
    main.more.push(hash("a"));
    main.write(&sandbox);
    RecapLibrary { more: vec![hash("b")], ..main.fork("Fork", 7) }.write(&sandbox);
    let findings = codes_and_levels(&sandbox.json(&["doctor"]).exits(0));
    for expected in
        expected_findings(&[("lorebook-shared", "warning"), ("settings-hash-differs", "info")])
    {
        assert!(findings.contains(&expected), "{findings:?}");
    }
    fs::remove_file(sandbox.path(&main.book_path())).unwrap();
    for command in [&["doctor"][..], &["status"]] {
        let findings = codes_and_levels(&sandbox.json(command));
        let missing = findings.into_iter().filter(|(code, _)| code == "lorebook-missing");
        assert_eq!(
            missing.collect::<Vec<_>>(),
            expected_findings(&[("lorebook-missing", "error"); 2])
        );
    }
    // A finding never prevents a restore of stored bytes, even if it is an error.
    let sandbox = Sandbox::empty();
    let mut library = RecapLibrary::default();
    library.recap.as_mut().unwrap().current = 9;
    library.write(&sandbox);
    let answer = sandbox.json(&["snapshot"]).exits(0);
    assert_eq!(codes_and_levels(&answer), expected_findings(&[("recap-version-lost", "error")]));
    lose_and_restore(&sandbox, &library);
}

#[test]
fn req_26_concurrent_checkpoints_do_not_interfere() {
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
    // Concurrent forks: each has its own lorebook, and a name is used once.
    let forks: Vec<_> =
        (1..=6).map(|n| words(&format!("restore CP{n} --as Fork{}", n / 2))).collect();
    let mut codes = run(&forks);
    codes.sort_unstable();
    assert_eq!(codes, [0, 0, 0, 0, 4, 4]);
    assert_unchanged(&sandbox, &before);
    let books: BTreeSet<_> =
        (0..=3).map(|n| bound_book(&sandbox, &format!("chats/Mira/Fork{n}.jsonl"))).collect();
    assert_eq!(books.len(), 4);
    assert_eq!(sandbox.files().len(), before.len() + 8);
    assert_valid(&sandbox);
}

/// Chat and lorebook are saved repeatedly, the chat first. A snapshot contains a pair that was on
/// disk at one time, or no snapshot is created.
#[test]
fn req_27_chat_and_lorebook_are_captured_together() {
    if cfg!(windows) && is_emulated() {
        return skip_on_this_machine("under Wine nobody saves a file that is being read");
    }
    const STATES: usize = 60;
    let sandbox = Sandbox::empty();
    // Long, so that there is time between the two reads.
    let library = |n: usize| RecapLibrary {
        messages: 1500 + n,
        entries: vec![Entry::new(0, &format!("lore-{n}"), &"x".repeat(n))],
        cache: Vec::new(),
        ..RecapLibrary::default()
    };
    let bytes = |n: usize| (library(n).chat_bytes(), library(n).book_bytes());
    let states: Vec<_> = (0..STATES).map(bytes).collect();
    let (chat_path, book_path) = (library(0).chat_path(), library(0).book_path());
    let save = |path: &str, text: &str| sandbox.save(path, text);
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
                // Pauses from time to time.
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
        let files = files(&to);
        let (chat, book) = (&files[&chat_path], &files[&book_path]);
        let n = states.iter().position(|(_, saved)| saved.as_bytes() == book).unwrap();
        // The chat was saved before the lorebook, so it is of the same save or of the next.
        let fits = [n, (n + 1) % STATES].iter().any(|n| states[*n].0.as_bytes() == chat);
        assert!(fits, "a chat of {} messages with the lorebook of save {n}", count_messages(chat));
    }
}

#[test]
fn req_32_restore_prints_a_reload_reminder() {
    let sandbox = Sandbox::empty();
    let library = RecapLibrary::default();
    library.write(&sandbox);
    sandbox.stvc(&["snapshot"]).exits(0);
    sandbox.append(&library.chat_path(), &library.message(12));
    let reminders = |arguments: &[&str]| {
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
    assert_eq!(reminders(&["restore", "Harbour", "--overwrite", "--dry-run"]), 0);
    assert_eq!(reminders(&["restore", "Harbour", "--to", "../look"]), 0);
    assert_eq!(reminders(&["restore", "Harbour", "--overwrite"]), 1);
    let answer = sandbox.stvc(&["undo"]).exits(0);
    assert!(answer.stdout.contains("reload SillyTavern's page"), "{}", answer.stdout);
    assert_eq!(reminders(&["restore", "Harbour", "--as", "Checkpoint"]), 1);
    assert_eq!(reminders(&["doctor"]), 0);
    fs::remove_file(sandbox.path(&bound_book(&sandbox, "chats/Mira/Checkpoint.jsonl"))).unwrap();
    assert_eq!(reminders(&["doctor", "--fix", "--yes"]), 1);
}

#[test]
fn req_44_checkpoints_are_listed_and_drawn_as_a_tree() {
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
    // The clone's name contains the chat's.
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
