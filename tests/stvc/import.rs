//! SillyTavern's own backups become the history of the right timelines.

use serde_json::{Value, json};

use crate::common::card::card;
use crate::common::{Sandbox, chat, finding_codes, git};

fn outcomes(lines: &[Value]) -> Vec<(String, String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    lines
        .iter()
        .map(|line| (text(&line["file"]), text(&line["outcome"]), text(&line["timeline"])))
        .collect()
}

#[test]
fn backups_are_assigned_to_their_chats() {
    let sandbox = Sandbox::from_fixture("1.19.0");
    let answer = sandbox.json(&["import"]).exits(0);
    let lines = answer.of_type("backup");
    assert_eq!(lines.len(), 16);
    let main = "chats/Mira Voss/The Tide Office — part 1 (雨)";
    let of_main: Vec<_> =
        outcomes(&lines).into_iter().filter(|(.., timeline)| timeline == main).collect();
    assert_eq!(of_main.len(), 7, "{of_main:?}");
    // All chats of a character share one key; their content decides.
    let checkpoint =
        outcomes(&lines).into_iter().find(|(file, ..)| file.contains("235933")).unwrap();
    assert_eq!(checkpoint.1, "known");
    assert!(checkpoint.2.ends_with("Checkpoint #1"));

    let log = sandbox.json(&["log", main]).exits(0).of_type("snapshot");
    let own: Vec<_> = log.iter().filter(|line| line["timeline"] == main).collect();
    let messages: Vec<_> = own.iter().map(|line| line["messages"].as_u64().unwrap()).collect();
    assert_eq!(messages, [32, 33, 27, 20, 20, 1], "newest first, each at its own time");
    assert_eq!(own[1]["time"], "2026-11-15T00:00:30Z");
    assert_eq!(own[1]["kind"], "import");
    for pair in own.windows(2) {
        assert_eq!(pair[0]["parents"][0], pair[1]["id"]);
    }
    sandbox.stvc(&["check"]).exits(0);
    sandbox.git(&["fsck", "--strict"]);

    // Existing links between forks stay.
    let timelines = sandbox.json(&["timelines"]).exits(0).of_type("timeline");
    let branch = timelines
        .iter()
        .find(|line| line["timeline"].as_str().unwrap().ends_with("408ms - Branch #1"));
    assert_eq!(branch.unwrap()["parent"], main);
}

#[test]
fn imported_snapshot_is_restored_byte_for_byte() {
    let sandbox = Sandbox::from_fixture("1.19.0");
    sandbox.stvc(&["import"]).exits(0);
    let to = sandbox.folder().join("old");
    sandbox.stvc(&["restore", "Tide Office~1", "--to", to.to_str().unwrap()]).exits(0);
    let restored =
        std::fs::read(to.join("chats/Mira Voss/The Tide Office — part 1 (雨).jsonl")).unwrap();
    assert_eq!(restored, sandbox.read("backups/chat_mira_voss_20261115-000030.jsonl"));
}

#[test]
fn imported_snapshot_yields_no_finding_about_an_existing_lorebook() {
    let sandbox = Sandbox::empty();
    let now = chat("one", 6, Some("Harbour"));
    let then = now.split(|byte| *byte == b'\n').take(4).collect::<Vec<_>>().join(&b'\n');
    sandbox.write("chats/Mira/one.jsonl", &now);
    sandbox.write("worlds/Harbour.json", r#"{"entries":{}}"#);
    sandbox.write("backups/chat_mira_20261101-120000.jsonl", &then);
    let imported = sandbox.json(&["import"]).exits(0).of_type("backup");
    assert_eq!(imported[0]["outcome"], "imported", "{imported:?}");
    let log = sandbox.json(&["log", "Mira/one"]).exits(0).of_type("snapshot");
    let id = log.iter().find(|line| line["kind"] == "import").unwrap()["id"].as_str().unwrap();
    let to = sandbox.folder().join("old");
    let ways = [
        vec!["show", id],
        vec!["restore", id, "--to", to.to_str().unwrap()],
        vec!["restore", id, "--overwrite"],
        vec!["restore", id],
    ];
    for way in ways {
        let answer = sandbox.json(&way).exits(0);
        assert!(
            !finding_codes(&answer).contains(&"lorebook-missing".into()),
            "{way:?}: {}",
            answer.stdout
        );
    }
    assert_eq!(sandbox.read("chats/Mira/one.jsonl"), then);
    // A missing lorebook is reported.
    std::fs::remove_file(sandbox.path("worlds/Harbour.json")).unwrap();
    for way in [["show", id], ["restore", id]] {
        let answer = sandbox.json(&way).exits(0);
        assert!(
            finding_codes(&answer).contains(&"lorebook-missing".into()),
            "{way:?}: {}",
            answer.stdout
        );
    }
}

#[test]
fn importing_twice_adds_nothing_and_a_dry_run_changes_nothing() {
    for fixture in ["1.19.0", "1.12.6"] {
        let sandbox = Sandbox::from_fixture(fixture);
        let plan = sandbox.json(&["import", "--dry-run"]).exits(0);
        assert!(!sandbox.store().exists());
        let first = sandbox.json(&["import"]).exits(0);
        assert_eq!(outcomes(&plan.of_type("backup")), outcomes(&first.of_type("backup")));
        let refs = sandbox.git(&["for-each-ref"]);
        let second = sandbox.json(&["import"]).exits(0);
        assert!(
            second.of_type("backup").iter().all(|line| line["outcome"] == "known"),
            "{}",
            second.stdout
        );
        assert_eq!(sandbox.git(&["for-each-ref"]), refs);
    }
}

#[test]
fn snapshot_ids_stay_valid_after_an_import() {
    let sandbox = Sandbox::from_fixture("1.19.0");
    sandbox.stvc(&["snapshot"]).exits(0);
    sandbox.stvc(&["tag", "keep", "Tide Office"]).exits(0);
    let before = sandbox.json(&["show", "Tide Office"]).exits(0).of_type("snapshot")[0].clone();
    sandbox.stvc(&["import"]).exits(0);
    let after = sandbox.json(&["show", "Tide Office"]).exits(0).of_type("snapshot")[0].clone();
    assert_ne!(before["id"], after["id"]);
    assert_eq!(before["content"], after["content"]);
    let old = sandbox.json(&["show", before["id"].as_str().unwrap()]).exits(0).of_type("snapshot")
        [0]
    .clone();
    assert_eq!(old["content"], before["content"]);
    assert_eq!(after["tags"], json!(["keep"]), "tags go along");
    // Git would prune unreachable objects.
    git(&sandbox.store(), &["gc", "-q", "--prune=now"]);
    sandbox.stvc(&["show", before["id"].as_str().unwrap()]).exits(0);
}

#[test]
fn unmatched_backup_becomes_a_new_timeline() {
    let sandbox = Sandbox::from_fixture("1.19.0");
    let chat = |slug: &str, words: &str| {
        let header = json!({ "chat_metadata": { "integrity": slug } });
        let lines: Vec<_> =
            words.split(' ').map(|word| json!({ "name": "A", "mes": word }).to_string()).collect();
        format!("{header}\n{}", lines.join("\n"))
    };
    sandbox.write("backups/chat_mira_voss_20260101-120000.jsonl", chat("gone", "one two three"));
    sandbox
        .write("backups/chat_mira_voss_20260101-130000.jsonl", chat("gone", "one two three four"));
    sandbox.write("backups/chat_nobody_20260101-120000.jsonl", chat("stranger", "x y z"));
    let answer = sandbox.json(&["import"]).exits(0);
    let all = outcomes(&answer.of_type("backup"));
    let of = |part: &str| all.iter().find(|(file, ..)| file.contains(part)).unwrap().2.clone();
    assert_eq!(of("mira_voss_20260101-12"), "chats/Mira Voss/Backup 2026-01-01 12h00m00s");
    assert_eq!(of("mira_voss_20260101-13"), "chats/Mira Voss/Backup 2026-01-01 12h00m00s");
    assert_eq!(of("nobody"), "chats/nobody/Backup 2026-01-01 12h00m00s");
    sandbox.stvc(&["restore", "nobody"]).exits(0);
    assert_eq!(
        sandbox.read("chats/nobody/Backup 2026-01-01 12h00m00s.jsonl"),
        chat("stranger", "x y z").into_bytes()
    );
}

#[test]
fn backup_of_a_deleted_fork_is_not_assigned_to_its_parent() {
    let sandbox = Sandbox::from_fixture("1.19.0");
    std::fs::remove_file(
        sandbox.path("chats/Mira Voss/Mira Voss - 2026-11-14@23h57m31s408ms - Checkpoint #1.jsonl"),
    )
    .unwrap();
    let answer = sandbox.json(&["import"]).exits(0);
    let gone = outcomes(&answer.of_type("backup"))
        .into_iter()
        .find(|(file, ..)| file.contains("235933"))
        .unwrap();
    assert_eq!(gone.2, "chats/Mira Voss/Backup 2026-11-14 23h59m33s");
    let timelines = sandbox.json(&["timelines"]).exits(0).of_type("timeline");
    let line = timelines.iter().find(|line| line["timeline"] == gone.2.as_str()).unwrap();
    assert_eq!(
        (&line["parent"], &line["fork_at"]),
        (&json!("chats/Mira Voss/The Tide Office — part 1 (雨)"), &json!(9))
    );
}

#[test]
fn empty_truncated_and_unreadable_backups_do_not_block_others() {
    let sandbox = Sandbox::from_fixture("1.19.0");
    let whole = sandbox.read("backups/chat_mira_voss_20261114-235943.jsonl");
    sandbox.write("backups/chat_mira_voss_20261114-235500.jsonl", b"");
    sandbox.write("backups/chat_mira_voss_20261114-235600.jsonl", &whole[..whole.len() - 40]);
    std::fs::create_dir(sandbox.path("backups/chat_mira_voss_20261114-235700.jsonl")).unwrap();
    let answer = sandbox.json(&["import"]).exits(3);
    let all = outcomes(&answer.of_type("backup"));
    let of = |part: &str| all.iter().find(|(file, ..)| file.contains(part)).unwrap().clone();
    assert_eq!(of("235500").1, "empty");
    assert_eq!(of("235600").1, "imported");
    assert_eq!(of("235600").2, "chats/Mira Voss/The Tide Office — part 1 (雨)");
    assert_eq!(of("235700").1, "failed");
    assert_eq!(all.iter().filter(|(_, outcome, _)| outcome == "imported").count(), 9);
}

#[test]
fn backup_dated_after_the_chat_does_not_become_the_latest_snapshot() {
    let sandbox = Sandbox::from_fixture("1.19.0");
    let old = sandbox.read("backups/chat_mira_voss_20261114-235828.jsonl");
    sandbox.write("backups/chat_mira_voss_20991231-235959.jsonl", old);
    let before = sandbox.files();
    sandbox.stvc(&["import"]).exits(0);
    assert_eq!(
        sandbox.json(&["show", "Tide Office"]).exits(0).of_type("snapshot")[0]["messages"],
        32
    );
    assert_eq!(sandbox.files(), before, "the library is not touched");
}

#[test]
fn importing_backups_without_a_readable_message_twice_adds_nothing() {
    let sandbox = Sandbox::empty();
    sandbox.write("chats/Mira/a.jsonl", spoken("Mira", "one two"));
    let header = r#"{"user_name":"u","character_name":"Mira","chat_metadata":{}}"#;
    for (n, text) in
        [header.to_owned(), format!("{header}\n{{\"mes"), "no JSON".into(), "\0\0".into()]
            .iter()
            .enumerate()
    {
        sandbox.write(&format!("backups/chat_mira_2026010{}-120000.jsonl", n + 1), text);
        sandbox.write(&format!("backups/chat_nobody_2026010{}-120000.jsonl", n + 1), text);
    }
    let first = sandbox.json(&["import"]).exits(0);
    assert_eq!(first.of_type("summary")[0]["imported"], 8, "{first:?}");
    let timelines = sandbox.json(&["timelines"]).exits(0).of_type("timeline").len();
    for _ in 0..2 {
        let again = sandbox.json(&["import"]).exits(0);
        assert_eq!(again.of_type("summary")[0]["imported"], 0, "{again:?}");
    }
    assert_eq!(sandbox.json(&["timelines"]).exits(0).of_type("timeline").len(), timelines);
}

#[test]
fn backup_with_an_impossible_date_is_imported_and_reported() {
    let sandbox = Sandbox::empty();
    sandbox.write("chats/Mira/a.jsonl", spoken("Mira", "one two three"));
    let names = ["20260230-120000", "20261345-120000", "20260101-256199", "00000101-000000"];
    for (n, date) in names.iter().enumerate() {
        let words = format!("one two three four{n}");
        sandbox.write(&format!("backups/chat_mira_{date}.jsonl"), spoken("Mira", &words));
    }
    let answer = sandbox.json(&["import"]).exits(0);
    assert_eq!(answer.of_type("summary")[0]["imported"], 4, "{answer:?}");
    let findings = answer.of_type("finding");
    let mut findings: Vec<_> = findings
        .iter()
        .filter(|line| line["code"] == "backup-undated")
        .map(|line| line["subject"].as_str().unwrap().to_owned())
        .collect();
    findings.sort();
    let mut expected = names.map(|date| format!("backups/chat_mira_{date}.jsonl"));
    expected.sort();
    assert_eq!(findings, expected);
    let again = sandbox.json(&["import"]).exits(0);
    assert_eq!(again.of_type("summary")[0]["imported"], 0, "{again:?}");
    sandbox.stvc(&["check"]).exits(0);
}

#[test]
fn missing_import_folder_is_not_reported_as_missing_library() {
    let sandbox = Sandbox::empty();
    let answer = sandbox.stvc(&["import", "/no/such/folder"]).exits(1);
    assert!(answer.stderr.contains("/no/such/folder: No such file"), "{}", answer.stderr);
    assert!(!answer.stderr.contains("--data"), "{}", answer.stderr);
    let mut elsewhere = sandbox.command(&["--data", "/no/such/folder", "status"]);
    let result = crate::common::answer(elsewhere.output().unwrap()).exits(1);
    assert!(result.stderr.contains("pass your SillyTavern folder"), "{}", result.stderr);
}

#[test]
fn import_can_be_undone() {
    let sandbox = Sandbox::from_fixture("1.19.0");
    sandbox.stvc(&["snapshot"]).exits(0);
    let heads = sandbox.git(&["for-each-ref", "refs/heads", "refs/tags"]);
    sandbox.stvc(&["import"]).exits(0);
    assert_ne!(sandbox.git(&["for-each-ref", "refs/heads", "refs/tags"]), heads);
    sandbox.stvc(&["undo"]).exits(0);
    assert_eq!(sandbox.git(&["for-each-ref", "refs/heads", "refs/tags"]), heads);
    sandbox.stvc(&["check"]).exits(0);
}

/// Builds a chat as in a backup, spoken by `name`.
fn spoken(name: &str, words: &str) -> String {
    let header = json!({ "user_name": "unused", "character_name": "unused", "chat_metadata": {} });
    let messages = words.split(' ').map(|word| json!({ "name": name, "mes": word }).to_string());
    let lines: Vec<_> = std::iter::once(header.to_string()).chain(messages).collect();
    lines.join("\n")
}

/// Imports and returns the timeline of each backup, ordered by name.
fn imported(sandbox: &Sandbox) -> Vec<String> {
    let answer = sandbox.json(&["import"]).exits(0);
    let mut all = outcomes(&answer.of_type("backup"));
    all.sort();
    // A second import recognizes each backup.
    let again = sandbox.json(&["import"]).exits(0);
    let mut known = outcomes(&again.of_type("backup"));
    known.sort();
    assert!(known.iter().all(|(_, outcome, _)| outcome == "known"), "{known:?}");
    let timelines = |all: &[(String, String, String)]| {
        all.iter().map(|(.., timeline)| timeline.clone()).collect::<Vec<_>>()
    };
    assert_eq!(timelines(&known), timelines(&all));
    timelines(&all)
}

#[test]
fn backup_is_assigned_to_the_character_with_its_key() {
    let sandbox = Sandbox::empty();
    sandbox.write("characters/Mira-Voss.png", card(&json!({ "data": { "name": "Mira" } }), 64));
    sandbox.write("backups/chat_mira_voss_20260101-120000.jsonl", spoken("Mira", "one two"));
    // Neither card nor chat exists; the messages have the name.
    sandbox.write("backups/chat_old_ben_20260101-120000.jsonl", spoken("Old Ben", "three four"));
    assert_eq!(
        imported(&sandbox),
        [
            "chats/Mira-Voss/Backup 2026-01-01 12h00m00s",
            "chats/Old Ben/Backup 2026-01-01 12h00m00s"
        ]
    );
}

#[test]
fn backup_is_not_assigned_to_a_copy_of_another_character() {
    let sandbox = Sandbox::empty();
    let words = "one two three four";
    sandbox.write("chats/Mira/a.jsonl", spoken("Mira", "one two five"));
    sandbox.write("chats/Voss/a.jsonl", spoken("Mira", words));
    sandbox.write("backups/chat_mira_20260101-120000.jsonl", spoken("Mira", "one two three"));
    assert_eq!(imported(&sandbox), ["chats/Mira/a"]);
}

/// Messages are sampled; chats without a common sample have none in common.
#[test]
fn backup_is_assigned_to_the_chat_with_its_messages() {
    let sandbox = Sandbox::empty();
    let with_words = |words: &str, count: usize| {
        let words: Vec<_> = (0..count).map(|n| format!("{words}{n}")).collect();
        spoken("Mira", &words.join(" "))
    };
    sandbox.write("chats/Mira/a.jsonl", with_words("other", 30));
    sandbox.write("chats/Mira/b.jsonl", with_words("word", 30));
    sandbox.write("backups/chat_mira_20260101-120000.jsonl", with_words("word", 20));
    assert_eq!(imported(&sandbox), ["chats/Mira/b"]);
}

#[test]
fn backups_of_non_ascii_names_are_distinguished_by_the_key_hash() {
    let sandbox = Sandbox::empty();
    sandbox.write("chats/雪/a.jsonl", spoken("A", "one two"));
    sandbox.write("chats/雨/a.jsonl", spoken("A", "one two"));
    sandbox.write("backups/chat___124d6058_20260101-120000.jsonl", spoken("A", "one"));
    sandbox.write("backups/chat___53058fe2_20260101-120000.jsonl", spoken("A", "one"));
    assert_eq!(imported(&sandbox), ["chats/雨/a", "chats/雪/a"]);
}

#[test]
fn characters_with_equal_keys_are_distinguished_by_messages() {
    let sandbox = Sandbox::empty();
    sandbox.write("chats/Mira Voss/a.jsonl", spoken("Mira", "one two three"));
    sandbox.write("chats/Mira-Voss/b.jsonl", spoken("Mira", "four five six"));
    sandbox.write("characters/Mira Voss.png", card(&json!({ "data": { "name": "Captain" } }), 64));
    sandbox.write("characters/Mira-Voss.png", card(&json!({ "data": { "name": "Pilot" } }), 64));
    // By messages, then by speaker.
    sandbox.write("backups/chat_mira_voss_20260101-110000.jsonl", spoken("Mira", "four five"));
    sandbox.write("backups/chat_mira_voss_20260101-120000.jsonl", spoken("Captain", "other words"));
    assert_eq!(
        imported(&sandbox),
        ["chats/Mira-Voss/b", "chats/Mira Voss/Backup 2026-01-01 12h00m00s"]
    );
}

#[test]
fn ambiguous_backup_becomes_a_separate_timeline() {
    let sandbox = Sandbox::empty();
    for folder in ["Mira Voss", "Mira-Voss"] {
        sandbox.write(&format!("chats/{folder}/a.jsonl"), spoken("Mira", "one two three"));
    }
    sandbox.write("backups/chat_mira_voss_20260101-110000.jsonl", spoken("Mira", "one two"));
    sandbox.write("backups/chat_mira_voss_20260101-120000.jsonl", spoken("Mira", "other words"));
    let answer = sandbox.json(&["import", "--dry-run"]).exits(0);
    let found = answer.of_type("finding");
    assert_eq!(finding_codes(&answer), ["backup-ambiguous", "backup-ambiguous"]);
    let message = found[0]["message"].as_str().unwrap();
    assert!(message.contains("may belong to \"Mira Voss\" or \"Mira-Voss\""), "{message}");
    assert_eq!(
        imported(&sandbox),
        [
            "chats/mira_voss/Backup 2026-01-01 11h00m00s",
            "chats/mira_voss/Backup 2026-01-01 12h00m00s"
        ]
    );
}

#[test]
fn group_backup_is_assigned_to_the_chat_in_its_group() {
    let sandbox = Sandbox::empty();
    let id = "2026-11-15@00h01m50s750ms";
    sandbox.write("groups/1.json", json!({ "id": "1", "chats": [id], "chat_id": id }).to_string());
    let line = |words: &str| {
        json!({ "name": "Mira", "mes": words, "original_avatar": "Mira.png" }).to_string()
    };
    let chat = format!("{}\n{}\n{}", json!({ "chat_metadata": {} }), line("one"), line("two"));
    sandbox.write("backups/chat_2026_11_15_00h01m50s750ms_20261115-120000.jsonl", &chat);
    // The group is unknown; SillyTavern 1.12 wrote no header.
    let old = format!("{}\n{}", line("three"), line("four"));
    sandbox.write("backups/chat_the_crew_20261115-120000.jsonl", old);
    assert_eq!(imported(&sandbox), [format!("group chats/{id}"), "group chats/the_crew".into()]);
    // After a restore its group lists it.
    sandbox.stvc(&["restore", id]).exits(0);
    assert_eq!(sandbox.read(&format!("group chats/{id}.jsonl")), chat.as_bytes());
}

#[test]
#[cfg(unix)]
fn circular_link_among_backups_does_not_block_others() {
    let sandbox = Sandbox::empty();
    sandbox.write("chats/Mira/a.jsonl", spoken("Mira", "one two three"));
    sandbox.write("backups/chat_mira_20261101-101112.jsonl", spoken("Mira", "one two"));
    let link = sandbox.path("backups/chat_mira_20261102-101112.jsonl");
    std::os::unix::fs::symlink(&link, &link).unwrap();
    let answer = sandbox.json(&["import"]).exits(3);
    assert_eq!(answer.of_type("summary")[0]["imported"], 1, "{answer:?}");
}
