//! Checkpoints: when one may be created, which state it records, and what a restore verifies.

use std::fs;
use std::time::Duration;

use serde_json::Value;

use crate::common::forged_snapshot::ForgedSnapshot;
use crate::common::recap_library::{Operation, Recap, RecapLibrary};
use crate::common::recap_story::{codes_and_levels, expected_findings, recorded_state};
use crate::common::{Answer, Sandbox, assert_same};

fn with_queue(statuses: &[&str]) -> (Sandbox, RecapLibrary) {
    let sandbox = Sandbox::empty();
    let library = RecapLibrary {
        queue: Some(statuses.iter().map(|status| Operation::new(status)).collect()),
        ..RecapLibrary::default()
    };
    library.write(&sandbox);
    (sandbox, library)
}

fn codes(answer: &Answer) -> Vec<String> {
    let findings = answer.of_type("finding");
    let findings = findings.iter().filter(|finding| finding["level"] != "info");
    findings.map(|finding| finding["code"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn req_02_snapshot_is_refused_while_the_queue_is_active() {
    for status in ["pending", "in_progress", "retrying"] {
        for arguments in [&["snapshot", "Harbour"][..], &["snapshot", "Harbour", "--at", "3"]] {
            let (sandbox, _) = with_queue(&[status]);
            let before = sandbox.files();
            let answer = sandbox.stvc(arguments).exits(4);
            let words =
                "Cannot create checkpoint: 1 operation in queue. Please wait for queue to finish.";
            assert!(answer.stderr.contains(words), "{}", answer.stderr);
            assert!(answer.stderr.contains("--wait"), "{}", answer.stderr);
            assert_same(&sandbox.files(), &before);
            assert!(!sandbox.store().exists(), "a store was made for nothing");
        }
    }
    let (sandbox, _) = with_queue(&["completed", "failed", "cancelled"]);
    sandbox.stvc(&["snapshot", "Harbour"]).exits(0);
}

#[test]
fn req_02_refusal_prints_error_and_finding() {
    let (sandbox, _) = with_queue(&["pending", "pending", "retrying"]);
    let answer = sandbox.json(&["snapshot", "Harbour"]).exits(4);
    let finding = answer.of_type("finding").remove(0);
    assert_eq!(
        (finding["code"].as_str(), finding["level"].as_str()),
        (Some("queue-active"), Some("error"))
    );
    let error = answer.of_type("error").remove(0);
    assert_eq!(error["exit"], 4);
    assert!(
        error["message"]
            .as_str()
            .unwrap()
            .contains("Queue is not empty (2 pending, 0 in progress, 1 retrying)")
    );
    let dry = sandbox.json(&["snapshot", "Harbour", "--dry-run"]).exits(4);
    assert_eq!(codes(&dry), ["queue-active"]);
}

#[test]
fn req_02_snapshot_records_that_an_active_queue_was_allowed() {
    let (sandbox, _) = with_queue(&["pending", "in_progress"]);
    let answer = sandbox.json(&["snapshot", "Harbour", "--allow-active-queue"]).exits(0);
    assert_eq!(codes(&answer), ["queue-active"]);
    assert_eq!(answer.of_type("finding")[0]["level"], "warning");
    let state = recorded_state(&sandbox, "Harbour");
    assert_eq!(state["queue_was_empty"], false);
    assert_eq!(state["active_operations"], 2);
    assert!(
        sandbox
            .stvc(&["show", "Harbour"])
            .exits(0)
            .stdout
            .contains("2 operations pending when this snapshot was created")
    );
    assert!(
        sandbox.git(&["show", "HEAD:snapshot.json"]).contains("\"queue_was_empty\": false"),
        "anybody can read it"
    );
}

#[test]
fn req_67_queue_operation_on_a_later_message_prevents_a_checkpoint() {
    let sandbox = Sandbox::empty();
    let library = RecapLibrary {
        queue: Some(vec![Operation::new("pending").about(11)]),
        ..RecapLibrary::default()
    };
    library.write(&sandbox);
    sandbox.stvc(&["snapshot", "Harbour", "--at", "5"]).exits(4);
}

#[test]
fn req_02_snapshot_of_all_stores_timelines_that_are_ready() {
    let (sandbox, _) = with_queue(&["pending"]);
    RecapLibrary::new("Ann", "Other story").write(&sandbox);
    let answer = sandbox.json(&["snapshot"]).exits(3);
    let taken = answer.chat_lines("snapshot");
    assert_eq!(taken.len(), 1);
    assert_eq!(taken[0]["timeline"], "chats/Ann/Other story");
    // The busy lorebook itself is not reported in addition to the chat.
    assert_eq!(codes(&answer), ["queue-active"]);
    let summary = answer.of_type("summary").remove(0);
    assert_eq!((&summary["taken"], &summary["refused"]), (&2.into(), &1.into()));
    // The other timelines are unchanged; only the busy one is refused again.
    sandbox.stvc(&["snapshot"]).exits(3);
}

#[test]
fn req_03_snapshot_waits_for_the_queue() {
    let (sandbox, library) = with_queue(&["pending"]);
    sandbox.stvc(&["snapshot", "Harbour", "--wait", "0.3"]).exits(4);
    let calm = RecapLibrary { queue: Some(Vec::new()), ..library };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(700));
            calm.write(&sandbox);
        });
        sandbox.stvc(&["snapshot", "Harbour", "--wait"]).exits(0);
    });
    assert_eq!(recorded_state(&sandbox, "Harbour")["queue_was_empty"], true);
    sandbox.stvc(&["snapshot", "--wait", "Harbour"]).exits(2);
}

#[test]
fn req_33_checkpoint_at_a_missing_message_is_refused() {
    let sandbox = Sandbox::empty();
    RecapLibrary::default().write(&sandbox);
    let answer = sandbox.stvc(&["snapshot", "Harbour", "--at", "12"]).exits(4);
    assert!(answer.stderr.contains("Message not found"), "{}", answer.stderr);
    assert!(!sandbox.store().exists());
}

#[test]
fn req_34_scene_that_is_not_ready_is_a_warning() {
    let sandbox = Sandbox::empty();
    RecapLibrary::default().write(&sandbox);
    // A complete scene in the running recap has no finding.
    assert!(codes(&sandbox.json(&["snapshot", "Harbour", "--at", "7"]).exits(0)).is_empty());
    let answer = sandbox.json(&["snapshot", "Harbour", "--at", "5"]).exits(0);
    assert_eq!(codes(&answer), ["scene-break-missing", "scene-recap-missing", "recap-from-future"],);
    assert!(answer.of_type("finding").iter().all(|finding| finding["level"] != "error"));
    let recorded = recorded_state(&sandbox, "Harbour nights @5")["warnings"].clone();
    assert_eq!(
        recorded,
        serde_json::json!(["scene-break-missing", "scene-recap-missing", "recap-from-future"])
    );

    let bare = RecapLibrary { recap: None, ..RecapLibrary::new("Ann", "No recap") };
    bare.write(&sandbox);
    let answer = sandbox.json(&["snapshot", "No recap", "--at", "7"]).exits(0);
    assert_eq!(codes(&answer), ["running-recap-missing", "scene-not-in-recap"]);
}

#[test]
fn library_without_the_extension_gets_no_scene_warnings() {
    let sandbox = Sandbox::empty();
    sandbox
        .write("chats/Ann/Plain.jsonl", "{\"chat_metadata\":{}}\n{\"mes\":\"a\"}\n{\"mes\":\"b\"}");
    assert!(codes(&sandbox.json(&["snapshot", "Plain", "--at", "0"]).exits(0)).is_empty());
    assert!(codes(&sandbox.json(&["snapshot", "Plain"]).exits(0)).is_empty());
    assert!(recorded_state(&sandbox, "Plain").is_null());
}

#[test]
fn req_35_scene_without_lorebook_entries_is_a_warning() {
    let sandbox = Sandbox::empty();
    let mut library = RecapLibrary::default();
    library.scenes[1].activated = 0;
    library.write(&sandbox);
    let answer = sandbox.json(&["snapshot", "Harbour", "--at", "7"]).exits(0);
    assert_eq!(codes(&answer), ["scene-lorebook-missing"]);
    let mut library = RecapLibrary::new("Ann", "No notes");
    library.scenes[1].entries.clear();
    library.write(&sandbox);
    assert_eq!(
        codes(&sandbox.json(&["snapshot", "No notes", "--at", "7"]).exits(0)),
        ["scene-lorebook-missing"]
    );
}

#[test]
fn req_36_scene_missing_from_the_running_recap_is_a_warning() {
    let sandbox = Sandbox::empty();
    let library = RecapLibrary {
        recap: Some(Recap {
            chat_id: Some("Harbour nights".into()),
            current: 0,
            versions: vec![(0, 3)],
            more: Vec::new(),
        }),
        ..RecapLibrary::default()
    };
    library.write(&sandbox);
    assert_eq!(
        codes(&sandbox.json(&["snapshot", "Harbour", "--at", "7"]).exits(0)),
        ["scene-not-in-recap"]
    );
    assert!(codes(&sandbox.json(&["snapshot", "Harbour", "--at", "3"]).exits(0)).is_empty());
}

#[test]
fn req_37_strict_mode_refuses_with_the_extensions_messages() {
    let sandbox = Sandbox::empty();
    let mut library = RecapLibrary::default();
    library.scenes[1].activated = 0;
    library.write(&sandbox);
    let refused =
        |at: &str| sandbox.stvc(&["snapshot", "Harbour", "--at", at, "--strict"]).exits(4).stderr;
    assert!(refused("5").contains("Message does not have a scene break"));
    assert!(refused("7").contains("Scene break does not have a completed lorebook entry"));
    assert!(refused("99").contains("Message not found"));
    assert!(!sandbox.store().exists());
    sandbox.stvc(&["snapshot", "Harbour", "--at", "3", "--strict"]).exits(0);

    let library = RecapLibrary { recap: None, ..RecapLibrary::new("Ann", "Late") };
    library.write(&sandbox);
    let answer = sandbox.stvc(&["snapshot", "Late", "--at", "7", "--strict"]).exits(4);
    assert!(answer.stderr.contains("Scene has not been included in the running recap yet"));
    let library = RecapLibrary {
        queue: Some(vec![Operation::new("pending"), Operation::new("pending")]),
        ..RecapLibrary::new("Ann", "Busy")
    };
    library.write(&sandbox);
    let answer = sandbox.stvc(&["snapshot", "Busy", "--at", "7", "--strict"]).exits(4);
    assert!(answer.stderr.contains("Queue is not empty (2 pending, 0 in progress)"));
}

/// Strict mode refuses for five reasons; everything else stays a warning.
#[test]
fn req_37_strict_mode_refuses_only_for_five_reasons() {
    let sandbox = Sandbox::empty();
    let mut library = RecapLibrary::default();
    library.scenes[1].recap = String::new();
    library.write(&sandbox);
    let answer = sandbox.json(&["snapshot", "Harbour", "--at", "7", "--strict"]).exits(0);
    assert_eq!(codes(&answer)[0], "scene-recap-missing");
    // A missing running recap is not a separate reason: the scene is missing from it.
    let library = RecapLibrary { recap: None, ..RecapLibrary::new("Ann", "Late") };
    library.write(&sandbox);
    let answer = sandbox.json(&["snapshot", "Late", "--at", "7", "--strict"]).exits(4);
    assert_eq!(codes(&answer), ["scene-not-in-recap"]);
    // A chat without messages has no message for a checkpoint.
    sandbox.write("chats/Ann/Nothing.jsonl", "{\"chat_metadata\":{}}");
    let answer = sandbox.json(&["snapshot", "Nothing", "--strict"]).exits(4);
    assert_eq!(codes(&answer), ["message-not-found"]);
    sandbox.stvc(&["snapshot", "Nothing"]).exits(0);
}

#[test]
fn req_42_options_require_scene_breaks_and_hide_warnings() {
    let sandbox = Sandbox::empty();
    let mut library = RecapLibrary::default();
    library.scenes[1].activated = 0;
    library.write(&sandbox);
    let take = |more: &[&str]| sandbox.json(&[&["snapshot", "Harbour"], more].concat());
    for point in [&["--at", "5"][..], &[]] {
        let refused = take(&[point, &["--require-scene-break"]].concat()).exits(4);
        assert_eq!(codes(&refused), ["scene-break-missing"]);
        assert_eq!(refused.of_type("finding")[0]["level"], "error");
    }
    assert!(!sandbox.store().exists());
    // Other warnings stay.
    let answer = take(&["--at", "7", "--require-scene-break"]).exits(0);
    assert_eq!(codes(&answer), ["scene-lorebook-missing"]);
    // Hidden but recorded.
    let answer = take(&["--at", "5", "--no-scene-warnings"]).exits(0);
    assert_eq!(codes(&answer), ["recap-from-future"]);
    let recorded = recorded_state(&sandbox, "Harbour nights @5")["warnings"].clone();
    assert_eq!(
        recorded,
        serde_json::json!(["scene-break-missing", "scene-recap-missing", "recap-from-future"])
    );
}

#[test]
fn req_38_checkpoint_records_recap_state() {
    let sandbox = Sandbox::empty();
    let library =
        RecapLibrary { combined: Some(("All of it.".into(), 100)), ..RecapLibrary::default() };
    library.write(&sandbox);
    sandbox.stvc(&["snapshot", "Harbour", "--at", "7"]).exits(0);
    let state = recorded_state(&sandbox, "Harbour nights @7");
    let expected = serde_json::json!({
        "version": 2, "message_id": 7, "chat_id": "Harbour nights", "queue_was_empty": true,
        "has_scene_break": true, "has_scene_recap": true, "has_running_recap": true,
        "original_lorebook_name": library.book.clone().unwrap(),
        "running_recap_version": 1, "running_recap_scene_count": 2, "running_recap_versions": [0, 1],
        "combined_recap_message_count": 100, "combined_recap_timestamp": 1_763_632_702_000_i64,
        "combined_recap_content": blake3::hash(b"All of it.").to_hex().to_string(),
        "scene_break_name": "The ferry",
        "scene_recap": blake3::hash(library.scenes[1].recap.as_bytes()).to_hex().to_string(),
        // The recap covers more messages than the checkpoint has.
        "warnings": ["recap-from-future"],
    });
    assert_eq!(state, expected);
    // Version 0 is a version; a chat without a recap has none.
    let mut first = RecapLibrary::new("Mira", "First");
    let recap = first.recap.as_mut().unwrap();
    (recap.current, recap.versions) = (0, vec![(0, 3)]);
    first.write(&sandbox);
    RecapLibrary { recap: None, ..RecapLibrary::new("Mira", "None") }.write(&sandbox);
    sandbox.stvc(&["snapshot"]).exits(0);
    for (name, has_recap, version) in
        [("Mira/First", true, Value::from(0)), ("Mira/None", false, Value::Null)]
    {
        let state = recorded_state(&sandbox, name);
        assert_eq!(state["has_running_recap"], has_recap, "{name}");
        assert_eq!(state["running_recap_version"], version, "{name}");
    }
}

#[test]
fn req_42_scenes_option_creates_a_checkpoint_per_scene() {
    let sandbox = Sandbox::empty();
    let mut library = RecapLibrary::default();
    library.write(&sandbox);
    let answer = sandbox.json(&["snapshot", "--scenes", "Harbour"]).exits(0);
    let tags = |answer: &Answer| -> Vec<String> {
        let tags = answer
            .of_type("snapshot")
            .into_iter()
            .map(|line| line["tags"][0].as_str().unwrap().to_owned());
        tags.collect()
    };
    assert_eq!(tags(&answer), ["Scene 1 - The quay", "Scene 2 - The ferry"]);
    let messages: Vec<_> =
        answer.of_type("snapshot").iter().map(|line| line["messages"].clone()).collect();
    assert_eq!(messages, [4, 8]);
    // The lorebook changes: existing checkpoints keep their state, and a new scene gets one.
    library.entries.push(crate::common::recap_library::Entry::new(9, "item-Bell", "It rings."));
    library.messages = 14;
    let scene = crate::common::recap_library::Scene::new(12, "The bell", library.entries.clone());
    library.scenes.push(scene);
    library.write(&sandbox);
    let again = sandbox
        .json(&["snapshot", "--scenes", "Harbour", "--name", "{chat}/{message} {scene_name}"])
        .exits(0);
    let new: Vec<_> =
        again.of_type("snapshot").into_iter().filter(|line| line["unchanged"] == false).collect();
    assert_eq!(new.len(), 1);
    assert_eq!(new[0]["tags"], serde_json::json!(["Harbour nights/12 The bell"]));
    assert_eq!(new[0]["kind"], "checkpoint");
    sandbox.git(&["fsck", "--strict"]);

    let nothing = sandbox.json(&["snapshot", "--scenes", "--dry-run"]).exits(0);
    assert!(nothing.of_type("plan").is_empty());
    let busy = RecapLibrary {
        queue: Some(vec![Operation::new("pending")]),
        ..RecapLibrary::new("Ann", "Busy")
    };
    busy.write(&sandbox);
    sandbox.stvc(&["snapshot", "--scenes", "Busy"]).exits(4);
}

#[test]
fn req_05_req_07_req_15_restore_verifies_recorded_recap_state() {
    let sandbox = Sandbox::empty();
    let mut library =
        RecapLibrary { combined: Some(("All.".into(), 99)), ..RecapLibrary::default() };
    let noted = r#"{"version":2,"running_recap_version":5,"combined_recap_message_count":100,"cloned_lorebook_name":"Another"}"#;
    library.more.push(("auto_recap_checkpoint_state".into(), noted.into()));
    library.write(&sandbox);
    sandbox.stvc(&["snapshot"]).exits(0);
    std::fs::remove_file(sandbox.path(&library.chat_path())).unwrap();
    let answer = sandbox.json(&["restore", "Harbour"]).exits(0);
    let found: Vec<_> = answer
        .of_type("finding")
        .into_iter()
        .filter(|finding| finding["level"] != "info")
        .collect();
    let of = |code: &str| {
        found
            .iter()
            .find(|finding| finding["code"] == code)
            .unwrap_or_else(|| panic!("{code}: {found:?}"))
    };
    assert_eq!(of("recap-version-mismatch")["level"], "error");
    assert_eq!(of("combined-recap-mismatch")["level"], "warning");
    assert_eq!(of("lorebook-name-mismatch")["level"], "warning");
    assert_eq!(found.len(), 3, "{found:?}");
    for (code, words) in [
        ("recap-version-mismatch", "expected v5 as the extension recorded, got v1"),
        ("combined-recap-mismatch", "expected 100 as the extension recorded, got 99"),
        ("lorebook-name-mismatch", "this checkpoint may not have proper isolation"),
    ] {
        let message = of(code)["message"].as_str().unwrap();
        assert!(message.contains(words), "{message}");
    }
    // The files are restored despite the finding.
    assert_eq!(sandbox.read(&library.chat_path()), library.chat_bytes().into_bytes());
    // Errors and warnings are printed to stderr.
    let stderr = sandbox.stvc(&["restore", "Harbour", "--to", "../look"]).exits(0).stderr;
    for line in ["error: Running recap version mismatch", "warning: Combined recap message count"] {
        let (level, words) = line.split_once(' ').unwrap();
        let is_told = |line: &str| line.starts_with(level) && line.contains(words);
        assert!(stderr.lines().any(is_told), "{line}: {stderr}");
    }
}

#[test]
fn req_07_req_14_req_15_restore_compares_only_recorded_values() {
    let full = r#"{"version":2,"running_recap_version":1,"combined_recap_message_count":100,"cloned_lorebook_name":"z-AutoLB-Mira-Harbour nights"}"#;
    let no_count = r#"{"version":2,"combined_recap_message_count":0}"#;
    let combined = || Some(("All.".to_owned(), 100));
    for (noted, combined) in
        [(full, combined()), (full, None), (no_count, combined()), ("null", combined())]
    {
        let sandbox = Sandbox::empty();
        let mut library = RecapLibrary { combined, ..RecapLibrary::default() };
        library.more.push(("auto_recap_checkpoint_state".into(), noted.into()));
        library.write(&sandbox);
        sandbox.stvc(&["snapshot"]).exits(0);
        fs::remove_file(sandbox.path(&library.chat_path())).unwrap();
        assert_eq!(
            codes_and_levels(&sandbox.json(&["restore", "Harbour"]).exits(0)),
            [],
            "{noted}"
        );
    }
}

#[test]
fn req_05_missing_recap_version_is_a_finding() {
    let sandbox = Sandbox::empty();
    let mut library = RecapLibrary::default();
    library.recap.as_mut().unwrap().current = 7;
    library.write(&sandbox);
    sandbox.stvc(&["snapshot"]).exits(0);
    for arguments in [&["restore", "Harbour", "--dry-run"][..], &["show", "Harbour"]] {
        let answer = sandbox.json(arguments).exits(0);
        let lost = answer
            .of_type("finding")
            .into_iter()
            .find(|finding| finding["code"] == "recap-version-lost");
        assert_eq!(lost.unwrap()["level"], "error");
    }
}

#[test]
fn req_12_restore_prints_a_readable_report() {
    let mut sandbox = Sandbox::empty();
    let library = RecapLibrary { combined: Some(("All.".into(), 100)), ..RecapLibrary::default() };
    library.write(&sandbox);
    sandbox.stvc(&["snapshot", "Harbour", "--at", "7", "--tag", "The ferry leaves"]).exits(0);
    sandbox.wait(3600);
    let answer = sandbox.stvc(&["restore", "The ferry leaves", "--to", "../look"]).exits(0);
    insta::assert_snapshot!(answer.stdout.lines().skip(3).collect::<Vec<_>>().join("\n"), @"
    Checkpoint:     The ferry leaves
    Running recap:  v1 (2 scenes)
    Combined recap: 100 messages
    Lorebook:       5 entries
    Created:        2026-11-14 23:46:40 +0000 (1 hour ago)
    ");
    let line = sandbox
        .json(&["restore", "The ferry leaves", "--dry-run", "--as", "x"])
        .exits(0)
        .of_type("restored")
        .remove(0);
    assert_eq!(line["name"], "The ferry leaves");
    assert_eq!(line["running_recap_version"], 1);
    assert_eq!(line["running_recap_scene_count"], 2);
    assert_eq!(line["combined_recap_message_count"], 100);
    assert_eq!(line["taken"], "2026-11-14T23:46:40Z");
    // The name is recorded without the extension too.
    sandbox.write("chats/Ann/Plain.jsonl", "{\"chat_metadata\":{}}\n{\"mes\":\"a\"}");
    sandbox.stvc(&["snapshot", "Plain", "--tag", "Before the storm"]).exits(0);
    let answer = sandbox.stvc(&["restore", "Before the storm", "--to", "../plain"]).exits(0);
    insta::assert_snapshot!(answer.stdout.lines().skip(2).collect::<Vec<_>>().join("\n"), @"
    Checkpoint:     Before the storm
    Created:        2026-11-15 00:46:40 +0000 (just now)
    ");
}

#[test]
fn req_14_snapshot_without_recorded_state_is_restored() {
    let sandbox = Sandbox::empty();
    let library = RecapLibrary { combined: Some(("All.".into(), 100)), ..RecapLibrary::default() };
    library.write(&sandbox);
    sandbox.stvc(&["snapshot"]).exits(0);
    let head = sandbox.snapshot_ids().remove(0);
    let store = stvc::internals::store::Store::open(&sandbox.store()).unwrap();
    let forged = |edit: &dyn Fn(&mut Value)| {
        let mut forge = ForgedSnapshot::read(&store, &head);
        forge.edit_manifest(edit);
        forge.write(&store, None)
    };
    let restore = |id: &str| {
        fs::remove_file(sandbox.path(&library.chat_path())).unwrap();
        let answer = sandbox.json(&["restore", id]).exits(0);
        assert_eq!(sandbox.read(&library.chat_path()), library.chat_bytes().into_bytes());
        codes_and_levels(&answer)
    };
    assert_eq!(restore(&head), []);
    // A different record is reported; without a record there is nothing to compare.
    let other = forged(&|manifest| manifest["checkpoint"]["running_recap_version"] = 0.into());
    assert_eq!(restore(&other), expected_findings(&[("recap-version-mismatch", "error")]));
    let legacy = forged(&|manifest| {
        manifest.as_object_mut().unwrap().remove("checkpoint").unwrap();
    });
    assert_eq!(restore(&legacy), expected_findings(&[("checkpoint-state-missing", "info")]));
}

#[test]
fn req_06_req_60_recaps_of_two_forks_stay_independent() {
    // A checkpoint of the main chat at v5, which then reaches v10; the fork reaches v8.
    let mut sandbox = Sandbox::empty();
    let recap = |chat: &str, current: i64| Recap {
        chat_id: Some(chat.into()),
        current,
        versions: (0..=current).map(|n| (n, 3)).collect(),
        more: Vec::new(),
    };
    let at = |chat: &str, current| RecapLibrary {
        recap: Some(recap(chat, current)),
        ..RecapLibrary::new("Mira", chat)
    };
    let main = at("Main", 5);
    main.write(&sandbox);
    sandbox.stvc(&["snapshot", "Main", "--tag", "v5"]).exits(0);
    sandbox.wait(10);
    sandbox.stvc(&["restore", "v5", "--as", "Fork"]).exits(0);
    let forked_book = sandbox
        .files()
        .keys()
        .find(|path| path.contains("Fork.json") && !path.contains("jsonl"))
        .unwrap()
        .clone();
    at("Main", 10).write(&sandbox);
    sandbox.stvc(&["snapshot", "Main"]).exits(0);
    let mut fork = String::from_utf8(sandbox.read("chats/Mira/Fork.jsonl")).unwrap();
    fork = fork.replace("\"current_version\":5", "\"current_version\":8");
    sandbox.write("chats/Mira/Fork.jsonl", &fork);
    sandbox.wait(10);
    sandbox.stvc(&["snapshot", "Fork"]).exits(0);
    let main_now = sandbox.read("chats/Mira/Main.jsonl");
    let book_now = sandbox.read(&main.book_path());
    assert_eq!(recorded_state(&sandbox, "Main")["running_recap_version"], 10);
    assert_eq!(recorded_state(&sandbox, "chats/Mira/Fork")["running_recap_version"], 8);
    assert_eq!(recorded_state(&sandbox, "v5")["running_recap_version"], 5);
    // Restoring one does not change a byte of the other.
    sandbox.stvc(&["restore", "chats/Mira/Fork~1", "--overwrite"]).exits(0);
    assert_eq!(sandbox.read("chats/Mira/Main.jsonl"), main_now);
    assert_eq!(sandbox.read(&main.book_path()), book_now);
    let forked = sandbox.read("chats/Mira/Fork.jsonl");
    let book = sandbox.read(&forked_book);
    sandbox.stvc(&["restore", "v5", "--overwrite"]).exits(0);
    assert_eq!(sandbox.read("chats/Mira/Fork.jsonl"), forked);
    assert_eq!(sandbox.read(&forked_book), book);
    assert_eq!(sandbox.read("chats/Mira/Main.jsonl"), main.chat_bytes().into_bytes());
}

#[test]
fn req_33_trailing_newline_is_not_a_message() {
    let sandbox = Sandbox::empty();
    sandbox
        .write("chats/Ann/Nl.jsonl", "{\"chat_metadata\":{}}\n{\"mes\":\"a\"}\n{\"mes\":\"b\"}\n");
    let answer = sandbox.stvc(&["snapshot", "Nl", "--at", "2"]).exits(4);
    assert!(answer.stderr.contains("its last one is 1"), "{}", answer.stderr);
    sandbox.stvc(&["reconstruct", "Nl", "--at", "2"]).exits(4);
    sandbox.stvc(&["snapshot", "Nl", "--at", "1"]).exits(0);
}

#[test]
fn req_37_strict_mode_refuses_an_unchanged_timeline_too() {
    let sandbox = Sandbox::empty();
    let library = RecapLibrary { recap: None, ..RecapLibrary::default() };
    library.write(&sandbox);
    sandbox.stvc(&["snapshot"]).exits(0);
    sandbox.stvc(&["snapshot", "Harbour", "--strict"]).exits(4);
    sandbox.stvc(&["snapshot", "Harbour", "--strict", "--dry-run"]).exits(4);
    sandbox.stvc(&["snapshot", "Harbour", "--tag", "fine"]).exits(0);
    let (sandbox, _) = with_queue(&["pending"]);
    sandbox.stvc(&["snapshot", "--allow-active-queue"]).exits(0);
    sandbox.stvc(&["snapshot"]).exits(0);
    sandbox.stvc(&["snapshot", "Harbour", "--tag", "meant"]).exits(4);
}

#[test]
fn req_42_scenes_of_a_renamed_chat_keep_their_checkpoints() {
    let mut sandbox = Sandbox::empty();
    RecapLibrary::default().write(&sandbox);
    sandbox.stvc(&["snapshot"]).exits(0);
    sandbox.stvc(&["snapshot", "Harbour", "--scenes"]).exits(0);
    std::fs::rename(
        sandbox.path("chats/Mira/Harbour nights.jsonl"),
        sandbox.path("chats/Mira/Renamed.jsonl"),
    )
    .unwrap();
    sandbox.wait(60);
    sandbox.stvc(&["snapshot"]).exits(0);
    let again = sandbox.json(&["snapshot", "Renamed", "--scenes"]).exits(0);
    assert_eq!(again.of_type("summary")[0]["taken"], 0);
}

#[test]
fn checkpoint_before_the_first_snapshot_does_not_create_a_fork() {
    let mut sandbox = Sandbox::empty();
    RecapLibrary::default().write(&sandbox);
    sandbox.stvc(&["snapshot", "Harbour", "--at", "7", "--tag", "CP"]).exits(0);
    sandbox.wait(60);
    sandbox.stvc(&["snapshot"]).exits(0);
    let timeline = sandbox.json(&["timelines"]).exits(0).of_type("timeline").remove(0);
    assert!(timeline["parent"].is_null() && timeline["fork_at"].is_null(), "{timeline}");
}
