//! Forms of `diff`: from a fork point, over time, statistics, one part only.

use serde_json::{Value, json};

use super::{CHAT, lore, said, stored, talk, without_ids, write, write_as, write_book, write_with};
use crate::common::Sandbox;

#[test]
fn three_dot_diff_starts_at_the_fork_point() {
    let mut messages = talk(10);
    let sandbox = stored(&messages);
    let mut fork = messages[..8].to_vec();
    fork.push(said(700, "Wren", "Then we go by land."));
    fork.push(said(701, "Mira", "By land, in this rain?"));
    fork[3]["is_system"] = true.into();
    write_as(&sandbox, "chats/Mira/Tide... - Branch #1.jsonl", json!({"main_chat": "Tide"}), &fork);
    messages.push(said(702, "Mira", "The ferry it is."));
    write(&sandbox, &messages);
    sandbox.stvc(&["snapshot"]).exits(0);
    let answer = sandbox.stvc(&["diff", "Mira/Tide...Branch #1"]).exits(0);
    insta::assert_snapshot!(without_ids(&answer.stdout), @"
    --- ID Mira / Tide (11 messages, just now)
    +++ ID Mira / Tide... - Branch #1 (10 messages, just now)
    The fork point is #7: the first 8 messages are in both.
    In both, but different
      ~ #3  hidden  Wren: Line 3, spoken at the chart room.
    Only in Mira / Tide
      - #8   Mira: Line 8, spoken at the chart room.
      - #9   Wren: Line 9, spoken at the quay.
      - #10  Mira: The ferry it is.
    Only in Mira / Tide... - Branch #1
      + #8  Wren: Then we go by land.
      + #9  Mira: By land, in this rain?
    Metadata
      + main_chat  Tide
    ");
    // A name with dots is read as a name first.
    let own = sandbox.stvc(&["diff", "Tide... - Branch #1"]).exits(0);
    assert!(own.stdout.ends_with("No differences.\n"), "{}", own.stdout);
    let both = sandbox.json(&["diff", "Tide... - Branch #1...chats/Mira/Tide"]).exits(0);
    assert_eq!(both.of_type("comparison")[0]["shared"], 8);
    let wrong = sandbox.stvc(&["diff", "Mira/Tide...Nobody"]).exits(1);
    assert!(wrong.stderr.contains("\"Nobody\""), "{}", wrong.stderr);
}

#[test]
fn diff_history_lists_the_changes_of_each_snapshot() {
    let mut messages = talk(3);
    let mut sandbox = stored(&messages);
    sandbox.wait(3600);
    messages.push(said(3, "Wren", "I am listening."));
    write(&sandbox, &messages);
    sandbox.stvc(&["snapshot", "-m", "Wren listens"]).exits(0);
    sandbox.wait(3600);
    messages[0]["mes"] = "Line 0, spoken at the old bell tower.".into();
    write(&sandbox, &messages);
    let mut book = lore();
    book["entries"]["1"]["order"] = 3.into();
    write_book(&sandbox, &book);
    sandbox.stvc(&["snapshot"]).exits(0);
    let answer = sandbox.stvc(&["diff", "--history", "Tide"]).exits(0);
    insta::assert_snapshot!(without_ids(&answer.stdout), @r#"
    ID Mira / Tide  4 messages, just now
    Messages
      ~ #0  Mira: Line 0, spoken at the {+old +}bell tower.
    Lorebook
      ~ 1 entry  only the order changed  Ferry

    ID Mira / Tide  4 messages, 1 hour ago  Wren listens
    Messages
      + #3  Wren: I am listening.

    ID Mira / Tide  3 messages, 2 hours ago
      the first snapshot
    "#);
    let answer = sandbox.stvc(&["diff", "--history", "Tide", "--stat"]).exits(0);
    insta::assert_snapshot!(without_ids(&answer.stdout), @r#"
    ID 4 messages, just now  messages: 1 edited; lorebook: 1 reordered
    ID 4 messages, 1 hour ago  messages: 1 added
    ID 3 messages, 2 hours ago  the first snapshot
    "#);
    let limited = sandbox.json(&["diff", "--history", "Tide", "-n", "2"]).exits(0);
    assert_eq!(limited.of_type("comparison").len(), 2);
    let chat_only =
        sandbox.json(&["diff", "--history", "Tide", "-n", "1", "--only", "chat"]).exits(0);
    assert!(chat_only.of_type("change").iter().all(|change| change["part"] == "message"));
    sandbox.stvc(&["diff", "Tide", "-n", "2"]).exits(2);
}

#[test]
fn diff_options_summarise_and_select_parts() {
    let mut messages = talk(6);
    let sandbox = stored(&messages);
    messages.remove(1);
    messages.push(said(60, "Wren", "Good night."));
    messages[0]["is_system"] = true.into();
    write_with(&sandbox, json!({"tainted": true}), &messages);
    let mut book = lore();
    book["entries"]["1"]["order"] = 3.into();
    write_book(&sandbox, &book);
    let answer = sandbox.stvc(&["diff", "Tide", "--stat"]).exits(0);
    insta::assert_snapshot!(without_ids(&answer.stdout), @"
    --- ID Mira / Tide (6 messages, just now)
    +++ current files
    Messages  1 added, 1 removed, 1 hidden
    Lorebook  1 reordered
    Metadata  1 added
    ");
    let parts = |only: &str| -> Vec<String> {
        let answer = sandbox.json(&["diff", "Tide", "--exit-code", "--only", only]).exits(1);
        let parts = answer.of_type("change");
        parts.iter().map(|line| line["part"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(parts("chat"), ["message"; 3]);
    assert_eq!(parts("lorebook"), ["lorebook"]);
    assert_eq!(parts("metadata"), ["metadata"]);
    let stat = sandbox.json(&["diff", "Tide", "--stat"]).exits(0);
    assert!(stat.of_type("change").is_empty());
    assert_eq!(
        stat.of_type("comparison")[0]["counts"],
        json!({"message": {"added": 1, "removed": 1, "hidden": 1}, "lorebook": {"order": 1}, "metadata": {"added": 1}})
    );
}

/// The comparison of two snapshots does not read the lines that both have at the start and at the
/// end; the comparison with the files reads all lines.
#[test]
fn snapshots_are_compared_as_their_files_are() {
    let original = talk(8);
    let with = |change: &dyn Fn(&mut Vec<Value>)| {
        let mut messages = original.clone();
        change(&mut messages);
        messages
    };
    let versions = [
        with(&|messages| messages[0]["mes"] = "edited at the start".into()),
        with(&|messages| messages[7]["mes"] = "edited at the end".into()),
        with(&|messages| messages[4]["is_system"] = true.into()),
        with(&|messages| drop(messages.remove(3))),
        with(&|messages| messages.swap(2, 5)),
        with(&|messages| messages.insert(3, original[3].clone())),
        with(&|messages| messages.truncate(5)),
        with(&|messages| messages.extend([original[0].clone(), said(90, "Mira", "new")])),
        with(&|messages| messages.clear()),
        with(&|_| {}),
    ];
    let sandbox = Sandbox::empty();
    write_book(&sandbox, &lore());
    write(&sandbox, &original);
    let take = || sandbox.take(&["chats/Mira/Tide"]).remove(0);
    let mut before = take();
    for (n, messages) in versions.iter().enumerate() {
        write_with(&sandbox, json!({ "note": n }), messages);
        let of_files = sandbox.json(&["diff", &before]).exits(0).of_type("change");
        let after = take();
        let of_snapshots = sandbox.json(&["diff", &before, &after]).exits(0).of_type("change");
        assert_eq!(of_snapshots, of_files, "version {n}");
        assert!(of_files.len() > 1, "version {n}: {of_files:?}");
        before = after;
    }
    // A chat without a header, and with blank lines
    let lines = |messages: &[Value]| messages.iter().map(Value::to_string).collect::<Vec<_>>();
    for text in [lines(&original).join("\n"), lines(&original[1..]).join("\n\n") + "\n\n"] {
        sandbox.write(CHAT, text);
        let of_files = sandbox.json(&["diff", &before]).exits(0).of_type("change");
        let after = take();
        let of_snapshots = sandbox.json(&["diff", &before, &after]).exits(0).of_type("change");
        assert_eq!(of_snapshots, of_files);
        before = after;
    }
}
