//! Output for people: the text of each command, names of snapshots, and colours.

use std::collections::HashMap;
use std::fs;

use insta::assert_snapshot;

use crate::common::harbour::{CHAT, edit, library, story};
use crate::common::{Answer, Sandbox};

/// Returns the output with each id replaced by letters of the same length, and without sizes.
fn words(answer: &Answer) -> String {
    let mut letters: HashMap<String, char> = HashMap::new();
    let mut out = String::new();
    for line in answer.stdout.lines().chain(answer.stderr.lines()) {
        let mut rest = line;
        while !rest.is_empty() {
            let digits = rest.bytes().take_while(u8::is_ascii_hexdigit).count();
            if matches!(digits, 10 | 40 | 64) {
                let next = char::from(b'A' + u8::try_from(letters.len()).unwrap());
                let letter = *letters.entry(rest[..10].to_owned()).or_insert(next);
                out.extend(std::iter::repeat_n(letter, digits));
                rest = &rest[digits..];
            } else {
                let word = rest.find(|c: char| !c.is_alphanumeric()).unwrap_or(rest.len());
                let end = rest[word..].chars().next().map_or(word, |c| word + c.len_utf8());
                out.push_str(&rest[..end]);
                rest = &rest[end..];
            }
        }
        if let Some(at) = out.rfind("; ").filter(|_| out.ends_with(" written.")) {
            out.truncate(at);
            out.push('.');
        }
        out.push('\n');
    }
    out
}

#[test]
fn commands_suggest_the_first_snapshot_when_nothing_is_stored() {
    let sandbox = library();
    assert_snapshot!(words(&sandbox.stvc(&["status"]).exits(0)), @"
    new  Ann / Harbour    3 msgs     no snapshot yet
    new  Bo / Storm 雨    1 msg      no snapshot yet
    new  lorebook / Lore  2 entries  no snapshot yet
    There are no snapshots yet. Run `stvc snapshot` to create the first.
    ");
    let log = words(&sandbox.stvc(&["log"]).exits(10));
    assert_snapshot!(log.replace(sandbox.store().to_str().unwrap(), "STORE"), @"
    error: there is no store at STORE
    hint: run `stvc snapshot` to create the store and the first snapshots
    ");
    assert_snapshot!(words(&sandbox.stvc(&["snapshot"]).exits(0)), @"
    AAAAAAAAAA  Ann / Harbour    3 messages
    BBBBBBBBBB  Bo / Storm 雨    1 message
    CCCCCCCCCC  lorebook / Lore  2 entries
    3 snapshots created.
    ");
    assert_snapshot!(words(&sandbox.stvc(&["snapshot"]).exits(0)), @"Nothing changed in 3 timelines.");
    assert_snapshot!(words(&Sandbox::empty().stvc(&["snapshot"]).exits(0)), @"There are no chats here yet.");
}

#[test]
fn status_and_diff_show_changes() {
    let mut sandbox = library();
    sandbox.stvc(&["snapshot"]).exits(0);
    edit(&mut sandbox);
    assert_snapshot!(words(&sandbox.stvc(&["status"]).exits(0)), @"
    changed  Ann / Harbour    3 → 4 msgs  chat  1 snapshot  AAAAAAAAAA  2 hours ago
    changed  lorebook / Lore  2 entries         1 snapshot  BBBBBBBBBB  2 hours ago
    1 unchanged. Run `stvc snapshot` to store the changes.
    Last snapshot: 2 hours ago, Bo / Storm 雨. There is no backup yet.
    Not protected: no watch is running. Run `stvc setup`.
    ");
    assert_snapshot!(words(&sandbox.stvc(&["diff", "Harbour"]).exits(0)), @"
    --- AAAAAAAAAA Ann / Harbour (3 messages, 2 hours ago)
    +++ current files
    Messages
      ~ #2  Ann: [-Better-]{+Much better+}.
      + #3  Wren: And now?
    Lorebook
      ~ UID 0  Lamp
          content: [-Oil-]{+Whale oil+}.
    Metadata
      ~ integrity  [-1-]{+2+}
    ");
}

#[test]
fn log_shows_the_history() {
    let sandbox = story();
    assert_snapshot!(words(&sandbox.stvc(&["timelines"]).exits(0)), @"
    unchanged  Ann / Harbour    4 msgs     2 snapshots  AAAAAAAAAA  just now
    unchanged  Bo / Storm 雨    1 msg      1 snapshot   BBBBBBBBBB  2 hours ago
    unchanged  lorebook / Lore  2 entries  2 snapshots  CCCCCCCCCC  just now
    ");
    sandbox.stvc(&["tag", "lamp", "Harbour~1"]).exits(0);
    assert_snapshot!(words(&sandbox.stvc(&["log"]).exits(0)), @"
    AAAAAAAAAA Ann / Harbour  4 messages, 2026-11-15 01:47
        After the lamp
    BBBBBBBBBB lorebook / Lore  2 entries, 2026-11-15 01:47
        After the lamp
    CCCCCCCCCC lorebook / Lore  2 entries, 2026-11-14 23:47
    DDDDDDDDDD Ann / Harbour  3 messages, 2026-11-14 23:47 [lamp]
        Ann: Better.
    EEEEEEEEEE Bo / Storm 雨  1 message, 2026-11-14 23:46
        Bo: 雨が降る 🦊
    ");
    assert_snapshot!(words(&sandbox.stvc(&["log", "--graph"]).exits(0)), @"
    ◉  AAAAAAAAAA lorebook / Lore  2 entries, 2026-11-15 01:47
    │  After the lamp
    ○  BBBBBBBBBB lorebook / Lore  2 entries, 2026-11-14 23:47

    ◉  CCCCCCCCCC Ann / Harbour  4 messages, 2026-11-15 01:47
    │  After the lamp
    ○  DDDDDDDDDD Ann / Harbour  3 messages, 2026-11-14 23:47 [lamp]
       Ann: Better.
    ◉  EEEEEEEEEE Bo / Storm 雨  1 message, 2026-11-14 23:46
       Bo: 雨が降る 🦊
    ");
    assert_snapshot!(words(&sandbox.stvc(&["log", "-n", "1"]).exits(0)), @"
    AAAAAAAAAA Ann / Harbour  4 messages, 2026-11-15 01:47
        After the lamp
    … and 4 more
    ");
    assert_snapshot!(words(&sandbox.stvc(&["show", "lamp"]).exits(0)), @"
    snapshot   AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA
    timeline   Ann / Harbour
    created    2026-11-14 23:47:40 +0000 (2 hours ago)
    subject    Harbour: 3 messages
    tags       lamp
    kind       snapshot
    content    b3:BBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBB
    messages   3
    chat       chats/Ann/Harbour.jsonl (328 bytes)
    lorebook   worlds/Lore.json (125 bytes)

    2 lorebook entries:
         0  Lamp
         1  Quay

    Last messages:
      #0 Ann: The harbour is dark.
      #1 Wren: I light the lamp.
      #2 Ann: Better.
    ");
    let checked = sandbox.stvc(&["check"]).exits(0).stdout;
    assert!(
        checked.starts_with("The store is valid: ") && checked.contains(" and 5 snapshots,"),
        "{checked}"
    );
}

#[test]
fn restore_recreates_a_deleted_chat() {
    let mut sandbox = story();
    fs::remove_file(sandbox.path(CHAT)).unwrap();
    let place =
        |answer: &Answer| words(answer).replace(sandbox.library().to_str().unwrap(), "LIBRARY");
    assert_snapshot!(place(&sandbox.stvc(&["restore", "Harbour"]).exits(0)), @"
    restored       chats/Ann/Harbour.jsonl  411 bytes
    unchanged      worlds/Lore.json  131 bytes
    Restored and verified in LIBRARY: Ann / Harbour, 4 messages, created just now.
    note: chats/Ann/Harbour: an open page of SillyTavern may overwrite this change with its next save
      reload SillyTavern's page before you use it again
    ");
    assert_snapshot!(place(&sandbox.stvc(&["restore", "Harbour"]).exits(0)), @"
    unchanged      chats/Ann/Harbour.jsonl  411 bytes
    unchanged      worlds/Lore.json  131 bytes
    Nothing to do: the files match snapshot AAAAAAAAAA (Ann / Harbour, 4 messages, created just now).
    ");
    assert_snapshot!(place(&sandbox.stvc(&["restore", "Harbour~1"]).exits(4)), @"
    error: the restore would replace chats/Ann/Harbour.jsonl, worlds/Lore.json
    hint: run `stvc restore AAAAAAAAAA --as Restored` to restore it as a new chat; run `stvc restore AAAAAAAAAA --overwrite` to store the current files and then replace them; run `stvc restore AAAAAAAAAA --to restored` to write the files into the folder `restored`
    ");
    sandbox.append(CHAT, "{}");
    sandbox.wait(60);
    let place =
        |answer: &Answer| words(answer).replace(sandbox.library().to_str().unwrap(), "LIBRARY");
    assert_snapshot!(place(&sandbox.stvc(&["restore", "Harbour~1", "--overwrite"]).exits(0)), @"
    The previous version is kept as snapshot AAAAAAAAAA.
    replaced       chats/Ann/Harbour.jsonl  328 bytes
    replaced       worlds/Lore.json  125 bytes
    Restored and verified in LIBRARY: Ann / Harbour, 3 messages, created 2 hours ago.
    note: chats/Ann/Harbour: an open page of SillyTavern may overwrite this change with its next save
      reload SillyTavern's page before you use it again
    ");
}

#[test]
fn checkpoints_and_tags_are_listed() {
    let mut sandbox = story();
    assert_snapshot!(words(&sandbox.stvc(&["tag"]).exits(0)), @"There are no tags yet. Run `stvc tag NAME SNAPSHOT` to create one.");
    assert_snapshot!(words(&sandbox.stvc(&["snapshot", "Harbour", "--at", "1"]).exits(0)), @"
    AAAAAAAAAA  Ann / Harbour  2 messages  Harbour @1
    note: chats/Ann/Harbour: it contains the current lorebook, not the lorebook at message 1
      if ST-Auto-Recap recorded the lorebook at that message, run `stvc restore … --at N` or `stvc reconstruct` to get it
    1 snapshot created.
    ");
    sandbox.wait(1);
    sandbox.stvc(&["snapshot", "Harbour", "--at", "99", "--dry-run"]).exits(4);
    sandbox.stvc(&["snapshot", "Harbour", "--at", "0", "--tag", "at the quay 雨"]).exits(0);
    sandbox.stvc(&["tag", "lamp", "Harbour~1"]).exits(0);
    assert_snapshot!(words(&sandbox.stvc(&["tag"]).exits(0)), @"
    Harbour @1      AAAAAAAAAA  Ann / Harbour  just now
    at the quay 雨  BBBBBBBBBB  Ann / Harbour  just now
    lamp            CCCCCCCCCC  Ann / Harbour  2 hours ago
    ");
    // The timeline itself did not change.
    let head = sandbox.json(&["show", "Harbour"]).exits(0).of_type("snapshot").remove(0);
    assert_eq!(head["messages"], 4);
    assert_snapshot!(words(&sandbox.stvc(&["tag", "lamp", "Storm"]).exits(1)), @r#"
    error: the tag "lamp" already exists, for snapshot AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA
    hint: choose another name; run `stvc tag lamp SNAPSHOT --move` to move the tag
    "#);
    sandbox.stvc(&["snapshot", "Storm", "--tag", "lamp"]).exits(1);
    assert_snapshot!(words(&sandbox.stvc(&["tag", "--delete", "lamp"]).exits(0)), @"deleted lamp  AAAAAAAAAA  Ann / Harbour  2 hours ago");
    sandbox.stvc(&["show", "lamp"]).exits(1);
}

#[test]
fn repeated_checkpoint_creates_no_second_snapshot() {
    let mut sandbox = story();
    let first =
        sandbox.json(&["snapshot", "Harbour", "--at", "1"]).exits(0).of_type("snapshot").remove(0);
    sandbox.wait(60);
    let second =
        sandbox.json(&["snapshot", "Harbour", "--at", "1"]).exits(0).of_type("snapshot").remove(0);
    assert_eq!((&second["id"], &second["unchanged"]), (&first["id"], &true.into()));
    assert_eq!(sandbox.json(&["tag"]).exits(0).of_type("tag").len(), 1);
}

/// Every way to name the latest snapshot of a chat and its parent.
#[test]
fn snapshot_is_found_by_every_kind_of_name() {
    let sandbox = story();
    sandbox.stvc(&["tag", "the lamp: lit", "Harbour"]).exits(0);
    let newest = sandbox.json(&["show", "Harbour"]).exits(0).of_type("snapshot").remove(0);
    let id = newest["id"].as_str().unwrap();
    let content = format!("b3:{}", newest["content"].as_str().unwrap());
    let file = sandbox.path(CHAT);
    let names = [
        id,
        &id[..12],
        &id[..12].to_uppercase(),
        &content,
        &content[..20],
        "the lamp: lit",
        "chats/Ann/Harbour",
        CHAT,
        "Ann/Harbour",
        "Harbour",
        "harb",
        "ann/har",
        file.to_str().unwrap(),
    ];
    let named = |name: &str| {
        let shown = stvc::verbs::show::show(&sandbox.workspace(), name);
        shown.map(|shown| shown.shown.snapshot.id.to_string())
    };
    for name in names {
        let found = sandbox.json(&["show", name]).exits(0).of_type("snapshot").remove(0);
        assert_eq!(found["id"], newest["id"], "{name}");
        for back in [format!("{name}~1"), format!("{name}~")] {
            assert_eq!(named(&back).unwrap(), newest["parents"][0].as_str().unwrap(), "{back}");
        }
    }
    // In the chat's folder a file can be named as the shell completes it.
    let mut command = sandbox.command(&["show", "Harbour.jsonl"]);
    let answer =
        crate::common::answer(command.current_dir(sandbox.path("chats/Ann")).output().unwrap());
    answer.exits(0);
    sandbox.stvc(&["show", "Harbour~1"]).exits(0);
    sandbox.stvc(&["show", "Harbour~2"]).exits(1);
    for name in ["nothing", "b3:", "b3:00", &id[..3], "Harbour~2", "Harbour~x", ""] {
        assert!(named(name).is_err(), "{name}");
    }
}

#[test]
fn ambiguous_name_lists_its_candidates() {
    let sandbox = story();
    assert_snapshot!(words(&sandbox.stvc(&["show", "a"]).exits(1)), @r#"
    error: "a" is ambiguous
      chats/Ann/Harbour
      chats/Bo/Storm 雨
    hint: type more of the name
    "#);
    // An exact name precedes a partial one.
    sandbox.write("chats/Ann/Harbour two.jsonl", "{}\n{}");
    sandbox.write("chats/Bo/Harbour.jsonl", "{}\n{}");
    sandbox.stvc(&["snapshot"]).exits(0);
    let both = sandbox.stvc(&["restore", "Harbour"]).exits(1);
    assert!(
        both.stderr.contains("chats/Ann/Harbour\n") && both.stderr.contains("chats/Bo/Harbour\n"),
        "{}",
        both.stderr
    );
    let one = sandbox.json(&["show", "Ann/Harbour"]).exits(0).of_type("snapshot").remove(0);
    assert_eq!(one["timeline"], "chats/Ann/Harbour");
}

#[test]
fn demo_runs_a_round_trip() {
    let sandbox = Sandbox::empty();
    let before = sandbox.files();
    let answer = sandbox.stvc(&["demo"]).exits(0);
    let typed: Vec<_> = answer.stdout.lines().filter(|line| line.starts_with("$ ")).collect();
    assert_snapshot!(typed.join("\n"), @r#"
    $ stvc snapshot
    $ stvc status
    $ stvc snapshot -m "The bell rings"
    $ stvc log --graph
    $ stvc diff "Tide Office~1" "Tide Office"
    $ stvc restore "Tide Office"
    $ stvc restore "Tide Office~1" --as "The bell never rang"
    $ stvc restore "Tide Office~1" --overwrite --only chat
    $ stvc check
    "#);
    assert!(answer.stdout.contains("the restored files are identical to the originals"));
    assert_eq!(answer.stderr, "");
    // Leaves no file in the working folder, the temporary folder or the user's store.
    let mut command = sandbox.command(&["demo"]);
    let temporary = tempfile::tempdir().unwrap();
    let store = sandbox.folder().join("store");
    command
        .env("TMPDIR", temporary.path())
        .env("STVC_STORE", &store)
        .env("STVC_DATA", sandbox.library());
    crate::common::answer(command.output().unwrap()).exits(0);
    assert!(!store.exists() && !sandbox.store().exists());
    assert_eq!(fs::read_dir(temporary.path()).unwrap().count(), 0);
    assert_eq!(sandbox.files(), before);
}
