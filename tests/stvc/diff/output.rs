//! Output of `diff` for people.

use serde_json::{Value, json};

use super::{BOOK, CHAT, entry, lore, said, stored, talk, write, write_book, write_with};
use crate::common::Sandbox;

/// Returns the changes since the snapshot without the two lines that name the sides.
fn changes(sandbox: &Sandbox) -> String {
    let answer = sandbox.stvc(&["diff", "Tide"]).exits(0);
    answer.stdout.lines().skip(2).map(|line| format!("{line}\n")).collect()
}

/// Returns the kinds of all changes since the snapshot.
fn kinds(sandbox: &Sandbox) -> Vec<String> {
    let changes = sandbox.json(&["diff", "Tide"]).exits(0).of_type("change");
    changes.iter().map(|change| change["kind"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn identical_chats_do_not_differ() {
    let sandbox = stored(&talk(5));
    assert_eq!(changes(&sandbox), "No differences.\n");
    sandbox.stvc(&["diff", "Tide", "--exit-code"]).exits(0);
    let lines = sandbox.json(&["diff", "Tide"]).exits(0).lines();
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert_eq!((&lines[0]["changes"], &lines[1]["changes"]), (&json!(0), &json!(0)));
}

#[test]
fn one_inserted_message_is_one_change() {
    let mut messages = talk(40);
    let sandbox = stored(&messages);
    messages.insert(3, said(900, "Wren", "Did you hear that? Something moved under the floor."));
    messages.remove(20);
    messages.push(said(901, "Mira", "\"That is us, then.\"\n\nShe picks up the lantern and goes down the stairs, slowly, counting each of them aloud as she goes."));
    write(&sandbox, &messages);
    insta::assert_snapshot!(changes(&sandbox), @r#"
    Messages
      + #3   Wren: Did you hear that? Something moved under the floor.
      - #19  Wren: Line 19, spoken at the quay.
      + #40  Mira: "That is us, then." She picks up the lantern and goes down the stairs, slowly,
             counting each of them aloud as she goes.
    "#);
}

#[test]
fn edits_are_shown_by_word() {
    let long = "The maps curl in the damp, and the ink runs where the rain comes through the roof. Nobody has mended it \
                since the flood. Mira puts a bowl under the leak and goes on writing, as if the sound were nothing to her.";
    let mut messages = talk(4);
    messages.insert(0, said(800, "Mira", long));
    let sandbox = stored(&messages);
    // An edit of the first message.
    messages[0] =
        said(800, "Mira", &long.replace("a bowl", "her best cup").replace("nothing", "music"));
    messages[2]["mes"] = "Line 1, whispered at the north shelf.".into();
    messages[3]["name"] = "Mira Voss".into();
    messages[3]["extra"] = json!({"token_count": 12});
    messages[4] = said(3, "Wren", "Something altogether different.");
    write(&sandbox, &messages);
    insta::assert_snapshot!(changes(&sandbox), @"
    Messages
      ~ #0  Mira: The maps curl in the damp, and the ink runs where the rain comes through the roof.
            Nobody has mended it since the flood. Mira puts [-a bowl-]{+her best cup+} under the leak
            and goes on writing, as if the sound were [-nothing-]{+music+} to her.
      ~ #2  Wren: Line 1, [-spoken-]{+whispered+} at the north shelf.
      ~ #3  speaker Mira → Mira Voss; changed: extra.token_count  Mira Voss: Line 2, spoken at the f…
      ~ #4  Wren: [-Line 3, spoken at the chart room-]{+Something altogether different+}.
    ");
    assert_eq!(kinds(&sandbox), ["edited"; 4]);
}

#[test]
fn moved_messages_are_not_reported_as_removed_and_added() {
    let mut messages = talk(12);
    let sandbox = stored(&messages);
    let one = messages.remove(9);
    messages.insert(2, one);
    write(&sandbox, &messages);
    insta::assert_snapshot!(changes(&sandbox), @r#"
    Messages
      > #2  moved here from #9  Wren: Line 9, spoken at the quay.
    "#);
    let mut messages = talk(12);
    messages.rotate_right(3);
    messages[0]["is_system"] = true.into();
    write(&sandbox, &messages);
    insta::assert_snapshot!(changes(&sandbox), @r#"
    Messages
      > #0     moved here from #9; hidden  Wren: Line 9, spoken at the quay.
      > #1–#2  moved here from #10–#11
    "#);
}

#[test]
fn equal_flag_changes_are_grouped() {
    let mut messages = talk(30);
    let sandbox = stored(&messages);
    for n in (2..20).filter(|n| *n != 7) {
        messages[n]["is_system"] = true.into();
    }
    messages[25]["is_system"] = true.into();
    messages[25]["extra"]["auto_recap_memory"] = json!({
        "scene_break": true, "scene_recap_memory": "{}", "scene_recap_versions": ["", "{}"], "scene_recap_current_index": 1});
    for message in &mut messages[26..] {
        message["extra"]["auto_recap_memory"] = json!({"auto_scene_break_checked": true});
    }
    messages[28]["extra"]["bookmark_link"] = "Tide - Checkpoint #1".into();
    write(&sandbox, &messages);
    insta::assert_snapshot!(changes(&sandbox), @"
    Messages
      ~ #2–#6, #8–#19  hidden (17 messages)
      ~ #25            hidden; 2 recap versions added (now 2), scene break set  Wren: Line 25, spoken
                       at the …
      ~ #26–#27, #29   recap marks: auto_scene_break_checked (3 messages)
      ~ #28            linked to the checkpoint Tide - Checkpoint #1; recap marks:
                       auto_scene_break_checked  Mira: Line 28, spoken at the …
    ");
    sandbox.stvc(&["snapshot"]).exits(0);
    messages[3]["is_system"] = false.into();
    let recap = &mut messages[25]["extra"]["auto_recap_memory"];
    recap["scene_recap_versions"] = json!(["", "{}", "{1}"]);
    recap["scene_recap_current_index"] = 2.into();
    messages[28]["extra"].as_object_mut().unwrap().remove("bookmark_link");
    write(&sandbox, &messages);
    insta::assert_snapshot!(changes(&sandbox), @"
    Messages
      ~ #3   shown again  Wren: Line 3, spoken at the chart room.
      ~ #25  1 recap version added (now 3), recap version 2 selected, was 1  Wren: Line 25, spoken at
             the …
      ~ #28  no longer linked to the checkpoint Tide - Checkpoint #1  Mira: Line 28, spoken at the …
    ");
}

#[test]
fn swipe_changes_are_shown() {
    let mut messages = talk(6);
    messages[4]["swipes"] = json!([messages[4]["mes"], "Another answer."]);
    messages[4]["swipe_id"] = 0.into();
    let sandbox = stored(&messages);
    messages[2]["swipes"] = json!([messages[2]["mes"], "No. We stay here until the bell rings."]);
    messages[2]["swipe_id"] = 1.into();
    messages[2]["mes"] = messages[2]["swipes"][1].clone();
    messages[2]["send_date"] = "2026-11-16T10:00:00.000Z".into();
    messages[4]["swipes"] = json!([messages[4]["mes"], "Another answer.", "A third."]);
    write(&sandbox, &messages);
    insta::assert_snapshot!(changes(&sandbox), @"
    Messages
      ~ #2  1 swipe added, swipe 2 of 2 selected, was 1  Mira: No. We stay here until the bell …
      ~ #4  1 swipe added: A third.  Mira: Line 4, spoken at the quay.
    ");
    assert_eq!(kinds(&sandbox), ["swipe", "swipe"]);
}

#[test]
fn lorebook_changes_are_shown_by_field() {
    let sandbox = stored(&talk(2));
    let mut book = lore();
    book["entries"]["0"]["content"] =
        "The office stands on the old quay. It is older than the bell tower.".into();
    book["entries"]["0"]["key"] = json!(["tide office", "harbour office"]);
    book["entries"]["0"]["disable"] = true.into();
    book["entries"]["1"]["comment"] = "The Dawn Ferry".into();
    book["entries"]["2"]["order"] = 7.into();
    book["entries"]["3"] = entry(3, "Gulls", "Grey birds. They steal the bread and the ink.");
    book["name"] = "Lore of the Tide Office".into();
    write_book(&sandbox, &book);
    insta::assert_snapshot!(changes(&sandbox), @"
    Lorebook
      ~ UID 0    Tide Office
          content: The office stands on the {+old +}quay. It is older than the bell tower.
          switched off
          keys: {+harbour office+}
      ~ UID 1    renamed: {+The Dawn +}Ferry
      + UID 3    Gulls: Grey birds. They steal the bread and the ink.
      + name     Lore of the Tide Office
      ~ 1 entry  only the order changed  Lantern Gate
    ");
    book = lore();
    book["entries"].as_object_mut().unwrap().remove("1");
    for entry in book["entries"].as_object_mut().unwrap().values_mut() {
        entry["order"] = 1.into();
        entry["displayIndex"] = 4.into();
    }
    write_book(&sandbox, &book);
    insta::assert_snapshot!(changes(&sandbox), @r#"
    Lorebook
      - UID 1      Ferry: The ferry leaves at dawn and comes back when the bell rings twice.
      ~ 2 entries  only the order changed  Tide Office, Lantern Gate
    "#);
}

#[test]
fn reused_uid_is_not_an_edit() {
    let sandbox = stored(&talk(2));
    let mut book = lore();
    book["entries"]["1"] = entry(1, "Gulls", "Grey birds scream above every wall.");
    book["entries"]["7"] = entry(7, "Lantern Gate", "The gate is gone since the flood.");
    book["entries"].as_object_mut().unwrap().remove("2");
    write_book(&sandbox, &book);
    insta::assert_snapshot!(changes(&sandbox), @"
    Lorebook
      ! UID 1  now used by another entry
          - Ferry: The ferry leaves at dawn and comes back when the bell rings twice.
          + Gulls: Grey birds scream above every wall.
      > UID 7  Lantern Gate: moved here from UID 2
    ");
    assert_eq!(kinds(&sandbox), ["reused", "moved"]);
}

#[test]
fn metadata_changes_are_shown_by_path() {
    let sandbox = stored(&talk(2));
    let version = |n: u64, text: &str| json!({"version": n, "content": text, "scene_count": n, "event_keys": []});
    let recap = |versions: &[Value]| json!({"chat_id": "Tide", "current_version": versions.len() - 1, "versions": versions});
    let first = version(0, "Mira and Wren meet in the office.");
    let before = json!({"variables": {"tide": "5", "a.b": 1}, "note_prompt": "Keep the prose salty.",
        "auto_recap_running_scene_recaps": recap(std::slice::from_ref(&first))});
    write_with(&sandbox, before, &talk(2));
    sandbox.stvc(&["snapshot"]).exits(0);
    let second = version(
        1,
        "Mira and Wren meet in the office. The bell rings, and they leave with the ferry.",
    );
    let first = version(0, "Mira and Wren meet in the tide office.");
    let after = json!({"variables": {"tide": "6", "a.b": 2, "coins": {"gold": 1, "silver": [1, 2]}}, "tainted": true,
        "auto_recap_running_scene_recaps": recap(&[first, second])});
    write_with(&sandbox, after, &talk(2));
    insta::assert_snapshot!(changes(&sandbox), @r#"
    Metadata
      ~ running recap    version 1 is current, was 0
      ~ running recap    version 0
          content: Mira and Wren meet in the {+tide +}office.
      + running recap    version 1 added: Mira and Wren meet in the office. The bell rings, and…
      - note_prompt      Keep the prose salty.
      ~ variables.a.b    [-1-]{+2+}
      ~ variables.tide   [-5-]{+6+}
      + variables.coins  2 values: gold, silver
      + tainted          true
    "#);
    let changes = sandbox.json(&["diff", "Tide"]).exits(0).of_type("change");
    let dotted = changes.iter().find(|change| change["path"] == "variables.a.b").unwrap();
    assert_eq!(dotted["keys"], json!(["variables", "a.b"]));
}

#[test]
fn equal_values_in_other_bytes_are_shown_as_formatted_differently() {
    let sandbox = stored(&talk(2));
    let chat = String::from_utf8(sandbox.read(CHAT)).unwrap();
    sandbox.write(CHAT, chat.replace("\":", "\": "));
    let book = sandbox.read(BOOK);
    sandbox.write(BOOK, [book.as_slice(), b"\n"].concat());
    insta::assert_snapshot!(changes(&sandbox), @"
    Messages
      ~ #0–#1  same values, formatted differently (2 messages)
    Lorebook
      ~ book  same values, formatted differently
    Metadata
      ~ header  same values, formatted differently
    ");
}

#[test]
fn coloured_diff_marks_changes_by_colour_and_not_by_brackets() {
    let mut messages = talk(2);
    let sandbox = stored(&messages);
    messages[0]["mes"] = "Line 0, \u{1b}[2Jspoken at the bell tower.".into();
    messages[1]["mes"] = "Line 1, shouted at the north shelf.".into();
    write(&sandbox, &messages);
    let answer = sandbox.stvc(&["--color", "always", "diff", "Tide"]).exits(0);
    assert!(
        answer.stdout.contains("\u{1b}[31mspoken\u{1b}[0m\u{1b}[32mshouted\u{1b}[0m"),
        "{:?}",
        answer.stdout
    );
    assert!(!answer.stdout.contains("[-") && !answer.stdout.contains("{+"));
    assert!(!answer.stdout.contains("\u{1b}[2J"), "{:?}", answer.stdout);
}

#[test]
fn invalid_json_is_compared_as_text() {
    let sandbox = stored(&talk(3));
    let good = sandbox.read(CHAT);
    let with = |lines: &[u8]| [good.as_slice(), lines].concat();
    sandbox.write(CHAT, with(b"\n{\"mes\":\"torn\n\xff\xfe"));
    insta::assert_snapshot!(changes(&sandbox), @r#"
    Messages
      + #3  {"mes":"torn
      + #4  ��
    "#);
    sandbox.stvc(&["snapshot"]).exits(0);
    sandbox.write(CHAT, with(b"\n{\"mes\":\"worn\n\xff"));
    sandbox.write(BOOK, "{ torn");
    insta::assert_snapshot!(changes(&sandbox), @r#"
    Messages
      ~ #3  {"mes":"[-torn-]{+worn+}
          not valid JSON
      - #4  ��
      + #4  �
    Lorebook
      ~ book  entire lorebook, 3 entries: Tide Office, Ferry, Lantern Gate → a file that is not a
              lorebook
    "#);
    sandbox.stvc(&["snapshot"]).exits(0);
    sandbox.write(CHAT, [b"\xef\xbb\xbf", sandbox.read(CHAT).as_slice()].concat());
    insta::assert_snapshot!(changes(&sandbox), @"
    Lorebook
      - book  a file that is not a lorebook
    Metadata
      ~ header  changed; not valid JSON
    ");
}

/// The other messages do not count as rewritten.
#[test]
fn message_inserted_into_a_long_chat_is_one_change() {
    let mut messages = talk(5000);
    let sandbox = stored(&messages);
    messages.insert(2500, said(60_000, "Wren", "One more."));
    for message in &mut messages[..4000] {
        message["is_system"] = true.into();
    }
    write(&sandbox, &messages);
    let stat = sandbox.json(&["diff", "Tide", "--stat"]).exits(0);
    assert_eq!(
        stat.of_type("comparison")[0]["counts"]["message"],
        json!({"added": 1, "hidden": 3999})
    );
    assert_eq!(changes(&sandbox).lines().count(), 3);
}
