//! Retention: which snapshots are removed, which always stay, and how the history is relinked.

use serde_json::Value;

use crate::common::recap_library::RecapLibrary;
use crate::common::{Answer, NOW, Sandbox, assert_same};

const DAY: i64 = 86_400;

/// Appends one message per save and takes snapshots `apart` seconds apart.
fn saves(sandbox: &mut Sandbox, count: usize, apart: i64) -> Vec<String> {
    let mut ids = Vec::new();
    for n in 0..count {
        let library = RecapLibrary { messages: 12 + n, ..RecapLibrary::default() };
        library.write(sandbox);
        ids.extend(sandbox.take(&[]));
        sandbox.wait(apart);
    }
    ids
}

fn log(sandbox: &Sandbox) -> Vec<Value> {
    sandbox.json(&["log"]).exits(0).chat_lines("snapshot")
}

fn messages(sandbox: &Sandbox) -> Vec<u64> {
    log(sandbox).iter().map(|line| line["messages"].as_u64().unwrap()).collect()
}

fn forgotten(answer: &Answer) -> u64 {
    answer.of_type("summary")[0]["forgotten"].as_u64().unwrap()
}

#[test]
fn forget_keeps_the_latest_snapshots_and_relinks_the_history() {
    let mut sandbox = Sandbox::empty();
    let ids = saves(&mut sandbox, 10, 60);
    let before = sandbox.files();
    let plan = sandbox.json(&["forget", "--keep-last", "3", "--dry-run"]).exits(0);
    assert_eq!(forgotten(&plan), 7);
    assert!(plan.of_type("summary")[0]["bytes"].as_u64().unwrap() > 0);
    assert_eq!(sandbox.chat_ids().len(), 10, "a dry run changes nothing");
    let answer = sandbox.json(&["forget", "--keep-last", "3"]).exits(0);
    assert_eq!(forgotten(&answer), 7);
    assert_eq!(answer.of_type("snapshot").len(), 7);
    assert_eq!(messages(&sandbox), [21, 20, 19]);
    assert_same(&sandbox.files(), &before);
    sandbox.git(&["fsck", "--strict"]);
    sandbox.stvc(&["check"]).exits(0);
    // Each snapshot follows the previous one; the first has no parent.
    let log = log(&sandbox);
    assert_eq!(log[0]["parents"], serde_json::json!([log[1]["id"]]));
    assert_eq!(log[2]["parents"], serde_json::json!([]));
    // The files still equal the latest snapshot.
    assert!(sandbox.stvc(&["snapshot"]).exits(0).stdout.contains("Nothing changed"));
    // Former ids stay valid, even after the old commits are collected.
    sandbox.stvc(&["gc", "--keep-undo", "0d", "--grace", "0d"]).exits(0);
    let newest = sandbox.json(&["show", &ids[9][..12]]).exits(0).of_type("snapshot").remove(0);
    assert_eq!(newest["id"], log[0]["id"]);
    sandbox.stvc(&["show", &ids[0]]).exits(1);
    sandbox.stvc(&["check"]).exits(0);
    sandbox.git(&["fsck", "--strict"]);
}

#[test]
fn forget_can_be_undone_until_gc() {
    let mut sandbox = Sandbox::empty();
    let ids = saves(&mut sandbox, 6, 60);
    sandbox.stvc(&["forget", "--keep-last", "1"]).exits(0);
    sandbox.stvc(&["gc", "--grace", "0d"]).exits(0);
    sandbox.stvc(&["undo"]).exits(0);
    let mut now = sandbox.chat_ids();
    now.reverse();
    assert_eq!(now, ids);
    sandbox.stvc(&["check"]).exits(0);
    // Collected, so undo is impossible.
    sandbox.stvc(&["forget", "--keep-last", "1"]).exits(0);
    let freed = sandbox.json(&["gc", "--keep-undo", "0d", "--grace", "0d"]).exits(0);
    assert!(freed.of_type("summary")[0]["dropped"].as_u64().unwrap() > 5);
    sandbox.stvc(&["undo"]).exits(0);
    assert_eq!(sandbox.chat_ids().len(), 1);
}

/// `history/retention` has every case.
#[test]
fn forget_keeps_the_latest_of_each_hour_day_week_and_month() {
    let mut sandbox = Sandbox::empty();
    // Four a day, six hours apart, from Saturday evening to Tuesday.
    saves(&mut sandbox, 12, DAY / 4);
    let kept = |arguments: &[&str]| {
        let mut all = vec!["forget", "--dry-run"];
        all.extend(arguments);
        let answer = sandbox.json(&all).exits(0);
        // Its lorebook has one, which stays.
        answer.of_type("summary")[0]["kept"].as_u64().unwrap() - 1
    };
    assert_eq!(kept(&["--keep-daily", "3"]), 3);
    assert_eq!(kept(&["--keep-hourly", "5"]), 5);
    assert_eq!(kept(&["--keep-weekly", "100"]), 2);
    assert_eq!(kept(&["--keep-monthly", "12"]), 1);
    assert_eq!(kept(&["--keep-within", "2d"]), 8);
    // A snapshot is kept if any rule keeps it.
    assert_eq!(kept(&["--keep-daily", "7", "--keep-last", "8"]), 9);
    assert_eq!(kept(&["--keep-last", "1000"]), 12);
}

#[test]
fn forget_keeps_tagged_snapshots_fork_points_and_the_latest_snapshot() {
    let mut sandbox = Sandbox::empty();
    let ids = saves(&mut sandbox, 8, 60);
    sandbox.stvc(&["tag", "part one", &ids[2]]).exits(0);
    sandbox.stvc(&["restore", &ids[4], "--as", "What if"]).exits(0);
    sandbox.wait(60);
    sandbox.append("chats/Mira/What if.jsonl", r#"{"name":"Wren","mes":"elsewhere"}"#);
    sandbox.stvc(&["snapshot"]).exits(0);
    sandbox.stvc(&["forget", "--keep-tag"]).exits(0);
    let main: Vec<_> = log(&sandbox)
        .into_iter()
        .filter(|line| line["timeline"] == "chats/Mira/Harbour nights")
        .map(|line| line["messages"].as_u64().unwrap())
        .collect();
    assert_eq!(main, [19, 16, 14]);
    // The fork point is unchanged, although the fork's first snapshot was removed.
    let timelines = sandbox.json(&["timelines"]).exits(0).of_type("timeline");
    let fork = timelines.iter().find(|line| line["timeline"] == "chats/Mira/What if").unwrap();
    assert_eq!(
        (&fork["parent"], &fork["fork_at"]),
        (&"chats/Mira/Harbour nights".into(), &16.into())
    );
    assert_eq!(fork["snapshots"], 1);
    assert_eq!(sandbox.json(&["show", "part one"]).exits(0).of_type("snapshot")[0]["messages"], 14);
    sandbox.stvc(&["check"]).exits(0);
}

#[test]
fn forget_changes_only_named_timelines() {
    let mut sandbox = Sandbox::empty();
    saves(&mut sandbox, 4, 60);
    for n in 0..3 {
        let library = RecapLibrary {
            messages: 12 + n,
            story: "x".into(),
            ..RecapLibrary::new("Ann", "Other")
        };
        library.write(&sandbox);
        sandbox.stvc(&["snapshot"]).exits(0);
        sandbox.wait(60);
    }
    sandbox.stvc(&["forget", "Other", "--keep-last", "1"]).exits(0);
    assert_eq!(sandbox.chat_ids().len(), 5);
    sandbox.stvc(&["forget", "nobody", "--keep-last", "1"]).exits(1);
}

#[test]
fn forget_refuses_a_policy_that_keeps_nothing() {
    let mut sandbox = Sandbox::empty();
    saves(&mut sandbox, 3, 60);
    sandbox.stvc(&["forget"]).exits(2);
    sandbox.stvc(&["forget", "--keep-last", "0"]).exits(4);
    sandbox.stvc(&["forget", "--keep-last", "0", "--keep-within", "0d"]).exits(4);
    sandbox.stvc(&["forget", "--keep-within", "soon"]).exits(2);
    assert_eq!(sandbox.chat_ids().len(), 3);
}

#[test]
fn forget_uses_the_configured_policy() {
    let mut sandbox = Sandbox::empty();
    saves(&mut sandbox, 5, 60);
    let config = sandbox.store().join("stvc/config.toml");
    std::fs::write(&config, "[retention]\nkeep-last = 2\nkeep-within = \"0d\"\n").unwrap();
    let answer = sandbox.json(&["forget"]).exits(0);
    assert_eq!(forgotten(&answer), 3);
    for bad in ["[retention]\nkeep-lsat = 2\n", "[retention\n", "[retention]\nkeep-within = 3\n"] {
        std::fs::write(&config, bad).unwrap();
        let answer = sandbox.stvc(&["forget"]).exits(1);
        assert!(answer.stderr.contains("config.toml"), "{}", answer.stderr);
    }
    std::fs::write(&config, "").unwrap();
    sandbox.stvc(&["forget"]).exits(2);
}

#[test]
fn forget_keeps_snapshots_dated_in_the_future() {
    let mut sandbox = Sandbox::empty();
    saves(&mut sandbox, 3, 60);
    let mut command = sandbox.command(&["forget", "--keep-within", "1d"]);
    command.env("SOURCE_DATE_EPOCH", (NOW - 10 * DAY).to_string());
    crate::common::answer(command.output().unwrap()).exits(0);
    assert_eq!(sandbox.chat_ids().len(), 3);
}

#[test]
fn forget_changes_nothing_in_a_damaged_history() {
    let mut sandbox = Sandbox::empty();
    saves(&mut sandbox, 4, 60);
    let pack = std::fs::read_dir(sandbox.store().join("objects/pack")).unwrap().flatten();
    let pack = pack
        .map(|entry| entry.path())
        .find(|path| path.extension().is_some_and(|ending| ending == "idx"))
        .unwrap();
    std::fs::remove_file(&pack).unwrap();
    std::fs::remove_file(pack.with_extension("pack")).unwrap();
    let before = crate::common::files(&sandbox.store());
    sandbox.stvc(&["forget", "--keep-last", "1"]).exits(1);
    let mut after = crate::common::files(&sandbox.store());
    // The lock file may name its last holder.
    for changed in ["stvc/lock", "stvc/lock.json"] {
        if let Some(bytes) = before.get(changed) {
            after.insert(changed.into(), bytes.clone());
        }
    }
    assert_same(&after, &before);
}

#[test]
fn forget_killed_midway_loses_nothing() {
    for delay in [1, 2, 3, 5, 8, 12, 20, 30] {
        let mut sandbox = Sandbox::empty();
        saves(&mut sandbox, 5, 60);
        let mut child = sandbox
            .command(&["forget", "--keep-last", "2"])
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(std::time::Duration::from_millis(delay));
        let _ = child.kill();
        child.wait().unwrap();
        // After recovery, the command is either complete or has no effect.
        sandbox.stvc(&["snapshot"]).exits(0);
        let left = sandbox.chat_ids().len();
        assert!(left == 5 || left == 2, "{left} snapshots are left");
        sandbox.stvc(&["check"]).exits(0);
    }
}

#[test]
fn stats_count_snapshots_timelines_and_bytes() {
    let mut sandbox = Sandbox::empty();
    saves(&mut sandbox, 5, 60);
    sandbox.stvc(&["restore", "Harbour", "--as", "What if"]).exits(0);
    let stats = sandbox.json(&["stats"]).exits(0);
    let summary = stats.of_type("summary").remove(0);
    assert_eq!((&summary["snapshots"], &summary["timelines"]), (&8.into(), &4.into()));
    let copies: u64 = (0..5)
        .map(|n| {
            let library = RecapLibrary { messages: 12 + n, ..RecapLibrary::default() };
            (library.chat_bytes().len() + library.book_bytes().len()) as u64
        })
        .sum();
    let share = stats
        .of_type("share")
        .into_iter()
        .find(|share| share["timeline"] == "chats/Mira/Harbour nights")
        .unwrap();
    assert_eq!(share["bytes_as_copies"].as_u64().unwrap(), copies);
    assert!(summary["bytes_shared"].as_u64().unwrap() > 0);
    let large = stats.of_type("large").remove(0);
    let sum: u64 = ["text", "swipes", "lorebook", "rest"]
        .iter()
        .map(|part| large[*part].as_u64().unwrap())
        .sum();
    assert_eq!(sum, large["bytes"].as_u64().unwrap());
    assert!(sandbox.stvc(&["stats"]).exits(0).stdout.contains("Separate copies would take "));
}
