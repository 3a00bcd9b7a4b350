//! Dates in output and in names of moments.

use crate::common::{self, Sandbox, chat};

const A: &str = "chats/Mira/Tide Office.jsonl";

/// Creates snapshots with 4, 5 and 6 messages, a week apart, the last one yesterday.
fn library() -> Sandbox {
    let mut sandbox = Sandbox::empty();
    sandbox.write(A, chat("Mira", 4, None));
    sandbox.stvc(&["snapshot"]).exits(0);
    for n in [5, 6] {
        sandbox.wait(7 * 86_400);
        sandbox.append(A, &common::message("Mira", n));
        sandbox.stvc(&["snapshot"]).exits(0);
    }
    sandbox.wait(86_400);
    sandbox
}

fn messages(sandbox: &Sandbox, name: &str) -> u64 {
    let answer = sandbox.json(&["show", name]).exits(0);
    answer.of_type("snapshot")[0]["messages"].as_u64().unwrap()
}

#[test]
fn snapshot_is_named_by_its_date() {
    let sandbox = library();
    let day = |n: usize| {
        let log = sandbox.json(&["log"]).exits(0).of_type("snapshot");
        log[n]["time"].as_str().unwrap()[..10].to_owned()
    };
    assert_eq!(messages(&sandbox, "Tide Office@now"), 6);
    assert_eq!(messages(&sandbox, "Tide Office@2 days ago"), 5);
    assert_eq!(messages(&sandbox, "tide office@{2 weeks ago}"), 4);
    // A day means its end.
    for (n, expected) in [(0, 6), (1, 5), (2, 4)] {
        assert_eq!(messages(&sandbox, &format!("Tide Office@{}", day(n))), expected);
        assert_eq!(messages(&sandbox, &format!("Tide Office@{{{} 00:00}}~0", day(0))), 5);
    }
    assert_eq!(messages(&sandbox, "Tide Office@2 days ago~1"), 4);
    let early = sandbox.stvc(&["show", "Tide Office@2001-01-01"]).exits(1).stderr;
    assert!(
        early.contains("has no snapshot from that time: its first snapshot is from 20"),
        "{early}"
    );
    sandbox.stvc(&["show", "Tide Office@someday"]).exits(1);
    sandbox.stvc(&["show", "@2 days ago"]).exits(1);
    sandbox.stvc(&["diff", "Tide Office@2 weeks ago", "Tide Office@2 days ago"]).exits(0);
    let out = sandbox.folder().join("then");
    sandbox.stvc(&["restore", "Tide Office@2 weeks ago", "--to", out.to_str().unwrap()]).exits(0);
}

#[test]
fn name_that_looks_like_a_date_is_read_as_a_name() {
    let sandbox = Sandbox::empty();
    sandbox.write("chats/Mira/Mira - 2026-11-01@18h30m12s.jsonl", chat("Mira", 2, None));
    sandbox.write("chats/Mira/at@today.jsonl", chat("Mira", 3, None));
    sandbox.stvc(&["snapshot"]).exits(0);
    assert_eq!(messages(&sandbox, "Mira - 2026-11-01@18h30m12s"), 2);
    assert_eq!(messages(&sandbox, "at@today"), 3);
    assert_eq!(messages(&sandbox, "18h30m12s@now"), 2);
}

#[test]
fn log_is_limited_by_dates() {
    let sandbox = library();
    let count = |arguments: &[&str]| {
        let log = sandbox.json(&[&["log"], arguments].concat()).exits(0);
        log.of_type("snapshot").len()
    };
    assert_eq!(count(&["--since", "10 days ago"]), 2);
    assert_eq!(count(&["--until", "10 days ago"]), 1);
    assert_eq!(count(&["--since", "10 days ago", "--until", "5 days ago"]), 1);
    assert_eq!(count(&["--since", "now"]), 0);
    assert_eq!(count(&["-n", "0"]), 0);
    let none = sandbox.stvc(&["log", "--since", "now"]).exits(0).stdout;
    assert_eq!(none, "There are no snapshots from that time.\n");
    let none = sandbox.stvc(&["log", "-n", "0"]).exits(0).stdout;
    assert_eq!(none, "… and 3 more\n");
    let wrong = sandbox.stvc(&["log", "--since", "someday"]).exits(2).stderr;
    assert!(wrong.contains("\"someday\" is not a date: write 2026-11-01"), "{wrong}");
}

#[test]
fn dates_are_printed_in_the_configured_style() {
    let sandbox = library();
    let log = |arguments: &[&str]| {
        sandbox.stvc(&[&["log", "-n", "1"], arguments].concat()).exits(0).stdout
    };
    let time = sandbox.json(&["log", "-n", "1"]).exits(0).of_type("snapshot")[0]["time"].clone();
    let (day, time) = (&time.as_str().unwrap()[..10], &time.as_str().unwrap()[11..16]);
    assert!(log(&[]).contains(&format!("{day} {time}")), "{}", log(&[]));
    assert!(log(&["--date", "relative"]).contains("1 day ago"));
    assert!(log(&["--date", "iso"]).contains(&format!("{day}T{time}")));
    assert!(sandbox.stvc(&["timelines"]).exits(0).stdout.contains("1 day ago"));
    let local = sandbox.stvc(&["--date", "local", "timelines"]).exits(0).stdout;
    assert!(local.contains(&format!("{day} {time}")), "{local}");
    let operations = sandbox.stvc(&["operations", "-n", "1"]).exits(0).stdout;
    assert!(operations.contains(&format!("{day} {time}")), "{operations}");
    sandbox.stvc(&["log", "--date", "julian"]).exits(2);
}
