//! Layout at 80 and 120 columns, in a pipe, in a pager, and without Unicode.

use insta::assert_snapshot;
use unicode_width::UnicodeWidthStr;

use crate::common::{Sandbox, answer, chat, has_terminal, message, typed_on_terminal};

const FOLDER: &str = "Mira the Lighthouse Keeper";
const MAIN: &str = "Mira the Lighthouse Keeper - 2026-11-01@18h30m12s";

/// Creates a chat with a long name and three branches named by SillyTavern; one grew, one has
/// another lorebook, one is deleted.
fn library() -> Sandbox {
    let mut sandbox = Sandbox::empty();
    let path = |chat: &str| format!("chats/{FOLDER}/{chat}.jsonl");
    let branch = |n: usize| format!("{MAIN} - Branch #{n}");
    let book = |text: &str| {
        format!(
            r#"{{"entries":{{"0":{{"uid":0,"comment":"Lamp of the old lighthouse","content":"{text}"}}}}}}"#
        )
    };
    sandbox.write("worlds/Lore.json", book("Oil."));
    sandbox.write(&path(MAIN), chat("main", 8, Some("Lore")));
    sandbox.stvc(&["snapshot"]).exits(0);
    for n in [2, 10, 11] {
        sandbox.wait(60);
        sandbox.write(&path(&branch(n)), chat("main", 4, Some("Lore")));
        sandbox.append(&path(&branch(n)), &message(&format!("branch {n}"), 4));
        sandbox.stvc(&["snapshot"]).exits(0);
    }
    sandbox.wait(60);
    sandbox.stvc(&["tag", "the storm begins", "Branch #10"]).exits(0);
    std::fs::remove_file(sandbox.path(&path(&branch(11)))).unwrap();
    sandbox.write("worlds/Lore.json", book("Whale oil."));
    sandbox.stvc(&["snapshot"]).exits(0);
    sandbox.wait(3600);
    sandbox.append(&path(MAIN), &message("main", 8));
    sandbox
}

/// Returns the output at a width, without ids.
fn at(sandbox: &Sandbox, columns: Option<usize>, arguments: &[&str]) -> String {
    let mut command = sandbox.command(arguments);
    match columns {
        Some(columns) => command.env("STVC_COLUMNS", columns.to_string()),
        None => command.env_remove("STVC_COLUMNS"),
    };
    let text = answer(command.output().unwrap()).exits(0).stdout;
    if let Some(columns) = columns {
        for line in text.lines() {
            assert!(line.width() <= columns, "{arguments:?} at {columns}: {} {line}", line.width());
        }
    }
    without_ids(&text)
}

fn without_ids(text: &str) -> String {
    let is_id = |word: &str| word.len() == 10 && word.bytes().all(|byte| byte.is_ascii_hexdigit());
    let line = |line: &str| -> String {
        let words: Vec<_> =
            line.split(' ').map(|word| if is_id(word) { "IDIDIDIDID" } else { word }).collect();
        words.join(" ")
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn everyday_commands_fit_80_columns() {
    let sandbox = library();
    assert_snapshot!(at(&sandbox, Some(80), &["status"]), @"
    changed  Mira the Lightho…- 2026-11-01@18h30m12s    8 → 9 msgs  chat  1 hour ago
    deleted  Mira the Lightho…@18h30m12s - Branch #11   5 msgs            1 hour ago
    3 unchanged. Run `stvc snapshot` to store the changes.
    Last snapshot: 1 hour ago, Mira the …- Branch #11. There is no backup yet.
    Not protected: no watch is running. Run `stvc setup`.
    ");
    assert_snapshot!(at(&sandbox, Some(80), &["timelines"]), @"
    changed    Mira the Lighth…- 2026-11-01@18h30m12s   8 → 9 msgs  chat  1 hour ago
    deleted    Mira the Lighth…18h30m12s - Branch #11   5 msgs            1 hour ago
    unchanged  Mira the Lighth…18h30m12s - Branch #10   5 msgs            1 hour ago
    unchanged  Mira the Lighth…@18h30m12s - Branch #2   5 msgs            1 hour ago
    unchanged  lorebook / Lore                          1 entry           1 hour ago
    ");
    assert_snapshot!(at(&sandbox, Some(80), &["timelines", "--tree"]), @"
    Mira the Lighthouse K…se Keeper - 2026-11-01@18h30m12s   9 messages   (changed)
    ├─ after #3  Mira the …- Branch #11   5 messages, 1 after the fork   (deleted)
    ├─ after #3  Mira t…anch #10   5 messages, 1 after the fork   [the storm begins]
    └─ after #3  Mira the Light…8h30m12s - Branch #2   5 messages, 1 after the fork
    lorebook / Lore   1 entry
    ");
    assert_snapshot!(at(&sandbox, Some(80), &["log", "--graph"]), @"
      ◉  IDIDIDIDID Mira the Ligh…30m12s - Branch #11  5 msgs, 2026-11-14, deleted
      │  Mira: branch 11 4: 5996496a31bb873a b87d2a652b5e1984
      ○  IDIDIDIDID Mira the Ligh…0m12s - Branch #11  5 msgs, 2026-11-14, after #3
    ╭─╯  Mira: branch 11 4: 5996496a31bb873a b87d2a652b5e1984
    ◉  IDIDIDIDID Mira t…anch #10  5 msgs, 2026-11-14, after #3 [the storm begins]
    │  Mira: branch 10 4: 5094926a2c88acc5 6e7d0b340c9fe37b
    ◉    IDIDIDIDID Mira the Ligh…30m12s - Branch #2  5 msgs, 2026-11-14, after #3
    ├─╯  Mira: branch 2 4: 081411529d7428d4 67efb0b8f4f83078
    ◉  IDIDIDIDID Mira the Ligh…2026-11-01@18h30m12s  8 messages, 2026-11-14 23:46
       Mira: main 7: aa4ffd73e99cc176 f0b779ac88c7fddd
    ◉  IDIDIDIDID lorebook / Lore  1 entry, 2026-11-14 23:50
    ○  IDIDIDIDID lorebook / Lore  1 entry, 2026-11-14 23:46
    ");
    assert_snapshot!(at(&sandbox, Some(80), &["search", "lighthouse"]), @"
    IDIDIDIDID lorebook / Lore  lorebook entry 0 Lamp of the old lighth…  1 hour ago
        Lamp of the old lighthouse · Whale oil.
    IDIDIDIDID lorebook / Lore  lorebook entry 0 Lamp of…  1 hour ago, removed since
        Lamp of the old lighthouse · Oil.
    2 matches.
    ");
    assert_snapshot!(at(&sandbox, Some(80), &["tag"]), @"the storm begins  IDIDIDIDID  Mira the Lighth…8h30m12s - Branch #10   1 hour ago");
    assert_snapshot!(at(&sandbox, Some(80), &["snapshot", "--dry-run"]), @"
    would create  Mira the Lighthous…per - 2026-11-01@18h30m12s   9 messages (was 8)
    1 snapshot would be created, 3 unchanged, 1 deleted (see `stvc timelines`).
    ");
}

/// The screens of all commands, in the order in which a user could enter them. On other systems,
/// paths have other lengths.
#[cfg(target_os = "linux")]
#[test]
fn every_command_has_its_screen_at_80_columns() {
    let sandbox = library();
    let mut elsewhere = Sandbox::empty();
    elsewhere.wait(7200);
    let (file, mirror) = (sandbox.folder().join("all.stvc"), sandbox.folder().join("mirror"));
    let [file, mirror] = [&file, &mirror].map(|path| path.to_str().unwrap());
    let chat = "18h30m12s";
    let screens = [
        &["snapshot"][..],
        &["status"],
        &["timelines"],
        &["log", chat],
        &["show", chat],
        &["show", chat, "--message", "2"],
        &["show", chat, "--book"],
        &["diff", "18h30m12s~1"],
        &["search", "lamp"],
        &["lore"],
        &["lore", "Lamp"],
        &["tag", "a good day", chat],
        &["tag"],
        &["fork", chat, "--at", "4", "--as", "The lamp goes out"],
        &["restore", "18h30m12s~1", "--dry-run"],
        &["restore", "18h30m12s~1", "--overwrite"],
        &["undo"],
        &["operations"],
        &["merge", "The lamp goes out", chat, "--dry-run"],
        &["doctor"],
        &["check"],
        &["backup", file],
        &["backup", mirror],
        &["backup", "--last"],
        &["check", file],
        &["sync", mirror],
        &["stats"],
        &["forget", "--keep-last", "1", "--dry-run"],
        &["erase", "Branch #11", "--yes"],
        &["gc"],
        &["config"],
        &["extension", "install"],
        &["extension"],
    ];
    let mut all = String::new();
    let mut add = |sandbox: &Sandbox, arguments: &[&str]| {
        let run = sandbox.command(arguments).env("STVC_COLUMNS", "80").output().unwrap();
        let run = answer(run);
        let library = sandbox.library();
        let known = [(library.to_str().unwrap(), "LIBRARY"), (file, "FILE"), (mirror, "MIRROR")];
        let plain = |text: &str| {
            known.iter().fold(without_ids(text), |text, (path, word)| text.replace(path, word))
        };
        let text = plain(&format!("{}{}", run.stdout, run.stderr));
        let words: Vec<_> = arguments.iter().map(|word| plain(word)).collect();
        all += &format!("$ stvc {}\n{}\n\n", words.join(" "), text.trim_end());
    };
    screens.iter().for_each(|arguments| add(&sandbox, arguments));
    add(&elsewhere, &["import", file]);
    add(&elsewhere, &["restore", "--all"]);
    assert_snapshot!(all);
}

#[test]
fn everyday_commands_fit_120_columns() {
    let sandbox = library();
    assert_snapshot!(at(&sandbox, Some(120), &["status"]), @"
    changed  Mira the Lighthouse Ke…se Keeper - 2026-11-01@18h30m12s   8 → 9 msgs  chat  1 snapshot   IDIDIDIDID  1 hour ago
    deleted  Mira the Lighthouse Ke…026-11-01@18h30m12s - Branch #11   5 msgs            2 snapshots  IDIDIDIDID  1 hour ago
    3 unchanged. Run `stvc snapshot` to store the changes.
    Last snapshot: 1 hour ago, Mira the …- Branch #11. There is no backup yet.
    Not protected: no watch is running. Run `stvc setup`.
    ");
    assert_snapshot!(at(&sandbox, Some(120), &["timelines"]), @"
    changed    Mira the Lighthouse Keeper…ighthouse Keeper - 2026-11-01@18h30m12s   8 → 9 msgs  chat  IDIDIDIDID  1 hour ago
    deleted    Mira the Lighthouse Keeper…per - 2026-11-01@18h30m12s - Branch #11   5 msgs            IDIDIDIDID  1 hour ago
    unchanged  Mira the Lighthouse Keeper…per - 2026-11-01@18h30m12s - Branch #10   5 msgs            IDIDIDIDID  1 hour ago
    unchanged  Mira the Lighthouse Keeper…eper - 2026-11-01@18h30m12s - Branch #2   5 msgs            IDIDIDIDID  1 hour ago
    unchanged  lorebook / Lore                                                      1 entry           IDIDIDIDID  1 hour ago
    ");
    assert_snapshot!(at(&sandbox, Some(120), &["log"]), @"
    IDIDIDIDID Mira the Lighthouse Keeper…er - 2026-11-01@18h30m12s - Branch #11  5 messages, 2026-11-14 23:50, deleted
        Mira: branch 11 4: 5996496a31bb873a b87d2a652b5e1984
    IDIDIDIDID lorebook / Lore  1 entry, 2026-11-14 23:50
    IDIDIDIDID Mira the Lighthouse Kee…2026-11-01@18h30m12s - Branch #11  5 messages, 2026-11-14 23:49, forked after #3
        Mira: branch 11 4: 5996496a31bb873a b87d2a652b5e1984
    IDIDIDIDID Mira the Lighth…18h30m12s - Branch #10  5 messages, 2026-11-14 23:48, forked after #3 [the storm begins]
        Mira: branch 10 4: 5094926a2c88acc5 6e7d0b340c9fe37b
    IDIDIDIDID Mira the Lighthouse Kee…2026-11-01@18h30m12s - Branch #2  5 messages, 2026-11-14 23:47, forked after #3
        Mira: branch 2 4: 081411529d7428d4 67efb0b8f4f83078
    IDIDIDIDID Mira the Lighthouse Keeper / …the Lighthouse Keeper - 2026-11-01@18h30m12s  8 messages, 2026-11-14 23:46
        Mira: main 7: aa4ffd73e99cc176 f0b779ac88c7fddd
    IDIDIDIDID lorebook / Lore  1 entry, 2026-11-14 23:46
    ");
}

#[test]
fn piped_output_has_one_record_per_line() {
    let sandbox = library();
    assert_snapshot!(at(&sandbox, None, &["log"]), @"
    IDIDIDIDID Mira the Lighthouse Keeper / Mira the Lighthouse Keeper - 2026-11-01@18h30m12s - Branch #11  5 messages, 2026-11-14 23:50, deleted  Mira: branch 11 4: 5996496a31bb873a b87d2a652b5e1984
    IDIDIDIDID lorebook / Lore  1 entry, 2026-11-14 23:50
    IDIDIDIDID Mira the Lighthouse Keeper / Mira the Lighthouse Keeper - 2026-11-01@18h30m12s - Branch #11  5 messages, 2026-11-14 23:49, forked after #3  Mira: branch 11 4: 5996496a31bb873a b87d2a652b5e1984
    IDIDIDIDID Mira the Lighthouse Keeper / Mira the Lighthouse Keeper - 2026-11-01@18h30m12s - Branch #10  5 messages, 2026-11-14 23:48, forked after #3 [the storm begins]  Mira: branch 10 4: 5094926a2c88acc5 6e7d0b340c9fe37b
    IDIDIDIDID Mira the Lighthouse Keeper / Mira the Lighthouse Keeper - 2026-11-01@18h30m12s - Branch #2  5 messages, 2026-11-14 23:47, forked after #3  Mira: branch 2 4: 081411529d7428d4 67efb0b8f4f83078
    IDIDIDIDID Mira the Lighthouse Keeper / Mira the Lighthouse Keeper - 2026-11-01@18h30m12s  8 messages, 2026-11-14 23:46  Mira: main 7: aa4ffd73e99cc176 f0b779ac88c7fddd
    IDIDIDIDID lorebook / Lore  1 entry, 2026-11-14 23:46
    ");
    assert_snapshot!(at(&sandbox, None, &["timelines"]), @"
    changed    Mira the Lighthouse Keeper / Mira the Lighthouse Keeper - 2026-11-01@18h30m12s               8 → 9 msgs  chat  1 snapshot   IDIDIDIDID  1 hour ago
    deleted    Mira the Lighthouse Keeper / Mira the Lighthouse Keeper - 2026-11-01@18h30m12s - Branch #11  5 msgs            2 snapshots  IDIDIDIDID  1 hour ago  forked after #3 of Mira the Lighthouse Keeper - 2026-11-01@18h30m12s - Branch #10
    unchanged  Mira the Lighthouse Keeper / Mira the Lighthouse Keeper - 2026-11-01@18h30m12s - Branch #10  5 msgs            1 snapshot   IDIDIDIDID  1 hour ago  forked after #3 of Mira the Lighthouse Keeper - 2026-11-01@18h30m12s - Branch #2   [the storm begins]
    unchanged  Mira the Lighthouse Keeper / Mira the Lighthouse Keeper - 2026-11-01@18h30m12s - Branch #2   5 msgs            1 snapshot   IDIDIDIDID  1 hour ago  forked after #3 of Mira the Lighthouse Keeper - 2026-11-01@18h30m12s
    unchanged  lorebook / Lore                                                                              1 entry           2 snapshots  IDIDIDIDID  1 hour ago
    ");
    assert_snapshot!(at(&sandbox, None, &["search", "lamp"]), @"
    IDIDIDIDID lorebook / Lore  lorebook entry 0 Lamp of the old lighthouse  1 hour ago  Lamp of the old lighthouse · Whale oil.
    IDIDIDIDID lorebook / Lore  lorebook entry 0 Lamp of the old lighthouse  1 hour ago, removed since  Lamp of the old lighthouse · Oil.
    2 matches.
    ");
    assert_snapshot!(at(&sandbox, None, &["operations", "-n", "2"]), @r#"
    6  2026-11-14 23:50  stvc snapshot  updated 2 timelines
    5  2026-11-14 23:50  stvc tag "the storm begins" "Branch #10"  created 1 tag
    "#);
}

#[test]
fn output_works_at_any_width_and_locale() {
    let sandbox = library();
    for columns in ["0", "1", "20", "21", "33", "79", "100000", "wide", ""] {
        for arguments in [
            &["status"][..],
            &["timelines"],
            &["timelines", "--tree"],
            &["log", "--graph"],
            &["search", "a"],
            &["diff", "Branch #2"],
            &["show", "Branch #2"],
            &["stats"],
        ] {
            let output = sandbox.command(arguments).env("STVC_COLUMNS", columns).output().unwrap();
            answer(output).exits(0);
        }
    }
    let graph = |locale: &str| {
        let mut command = sandbox.command(&["log", "--graph"]);
        command.env("LC_ALL", locale).env("STVC_COLUMNS", "60");
        answer(command.output().unwrap()).exits(0).stdout
    };
    assert!(graph("C").is_ascii(), "{}", graph("C"));
    assert!(graph("de_DE.ISO-8859-1").is_ascii());
    assert!(graph("C.UTF-8").contains('◉'));
}

/// Runs a command on a terminal without input and returns the screen.
fn on_a_terminal(sandbox: &Sandbox, arguments: &[&str], variables: &[(&str, &str)]) -> String {
    typed_on_terminal(sandbox, arguments, variables, "").stdout
}

#[cfg(target_os = "linux")]
#[test]
fn long_output_goes_to_the_pager() {
    if !has_terminal() {
        return;
    }
    let mut sandbox = Sandbox::empty();
    sandbox.write("chats/Mira/a.jsonl", chat("a", 1, None));
    for n in 1..20 {
        sandbox.stvc(&["snapshot"]).exits(0);
        sandbox.wait(60);
        sandbox.append("chats/Mira/a.jsonl", &message("a", n));
    }
    let pager = "sed 's/^/paged: /'";
    let long = on_a_terminal(&sandbox, &["log"], &[("PAGER", pager)]);
    assert_eq!(long.lines().filter(|line| line.starts_with("paged: ")).count(), 38, "{long}");
    // `STVC_PAGER` precedes `PAGER`; short output and `--no-pager` are printed directly.
    let own = on_a_terminal(&sandbox, &["log"], &[("PAGER", "false"), ("STVC_PAGER", pager)]);
    assert!(own.contains("paged: "), "{own}");
    for (arguments, variables) in [
        (&["log", "-n", "3"][..], &[("PAGER", pager)][..]),
        (&["--no-pager", "log"], &[("PAGER", pager)]),
        (&["--json", "log"], &[("PAGER", pager)]),
        (&["log"], &[("PAGER", "")]),
        (&["log"], &[("PAGER", "cat")]),
    ] {
        let text = on_a_terminal(&sandbox, arguments, variables);
        assert!(!text.contains("paged: ") && text.contains("Mira"), "{arguments:?}: {text}");
    }
    // A missing pager is reported and the output printed; a pager may exit early.
    let missing = on_a_terminal(&sandbox, &["log"], &[("PAGER", "no-such-pager -R")]);
    assert_eq!(missing.lines().filter(|line| line.contains("Mira / a")).count(), 19, "{missing}");
    assert!(missing.contains("cannot run the pager \"no-such-pager -R\""), "{missing}");
    let short = on_a_terminal(&sandbox, &["log"], &[("PAGER", "head -n 1")]);
    assert_eq!(short.lines().count(), 1, "{short}");
    // It can be configured.
    sandbox.stvc(&["config", "pager", pager]).exits(0);
    assert!(on_a_terminal(&sandbox, &["log"], &[]).contains("paged: "));
    // The store's configuration may be another user's, so its pager is not run.
    let store = sandbox.store();
    let foreign =
        on_a_terminal(&sandbox, &["--store", store.to_str().unwrap(), "log"], &[("PAGER", "cat")]);
    assert!(!foreign.contains("paged: ") && foreign.contains("Mira"), "{foreign}");
}

/// Creates 200 chats whose lorebooks are missing, and five lorebooks with 30 entries each.
fn large_library() -> Sandbox {
    let sandbox = Sandbox::empty();
    for n in 0..200 {
        sandbox.write(&format!("chats/Mira/Night {n:03}.jsonl"), chat("a", 3, Some("Gone")));
    }
    let entries: Vec<_> =
        (0..30).map(|n| format!(r#""{n}":{{"uid":{n},"comment":"Entry {n}"}}"#)).collect();
    for n in 0..5 {
        let book = format!(r#"{{"entries":{{{}}}}}"#, entries.join(","));
        sandbox.write(&format!("worlds/Book {n}.json"), book);
    }
    sandbox
}

#[test]
fn commands_answer_on_one_screen_in_a_large_library() {
    let mut sandbox = large_library();
    let lines = |sandbox: &Sandbox, arguments: &[&str]| {
        let answer = sandbox.stvc(arguments).exits(0);
        let text = format!("{}{}", answer.stderr, answer.stdout);
        (text.lines().count(), text)
    };
    let (number, text) = lines(&sandbox, &["snapshot"]);
    assert!(number <= 24, "{text}");
    assert!(text.contains("… and 186 more; `stvc log` lists all"), "{text}");
    assert!(text.lines().last().unwrap().starts_with("205 snapshots created"), "{text}");
    sandbox.wait(60);
    for n in 0..200 {
        sandbox.append(&format!("chats/Mira/Night {n:03}.jsonl"), &message("a", 3));
    }
    let (number, text) = lines(&sandbox, &["status"]);
    assert!(number <= 10, "{text}");
    assert!(text.contains("… and 198 more changed; `stvc status -v` lists all"), "{text}");
    assert!(text.contains("200 errors, for example"), "{text}");
    let (number, text) = lines(&sandbox, &["lore"]);
    assert!(number <= 10, "{text}");
    assert!(lines(&sandbox, &["lore", "-v"]).0 > 60);
    assert!(lines(&sandbox, &["status", "-v"]).0 > 200);
}
