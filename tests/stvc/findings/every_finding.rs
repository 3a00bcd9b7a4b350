//! A sound library, and one for each finding.

use stvc::rules;

use super::{Told, expect, more, of_answer, recap, told, yields};
use crate::common::Sandbox;
use crate::common::recap_library::{Entry, Operation, RecapLibrary, book_name};

/// What is said of the newest snapshot when it is shown.
#[track_caller]
fn shown(sandbox: &Sandbox) -> Vec<Told> {
    of_answer(&sandbox.json(&["show", &sandbox.snapshot_ids()[0]]).exits(0))
}

#[test]
fn a_sound_library_yields_no_finding() {
    let (sandbox, _) = yields(&RecapLibrary::default(), &[]);
    expect(&shown(&sandbox), &[]);
    // A fork that was given a lorebook of its own.
    let mut fork = RecapLibrary::default().fork("Branch #1", 7);
    recap(&mut fork).chat_id = Some("Branch #1".into());
    yields(&fork, &[]);
    // No extension at all, no lorebook at all.
    let plain = RecapLibrary {
        recap: None,
        book: None,
        attached: None,
        scenes: Vec::new(),
        cache: Vec::new(),
        ..RecapLibrary::default()
    };
    yields(&plain, &[]);
}

/// A library for each finding: the sound one with that thing changed.
type Case = (&'static str, &'static str, fn(&mut RecapLibrary));

const CASES: &[Case] = &[
    ("registry-dangling", "warning", |library| {
        library.entries[3] = Entry::registry(6, "character", &[(9, "character-Kestrel")]);
    }),
    ("registry-unreadable", "error", |library| {
        library.entries[3] = Entry::registry_of(6, "character", "once upon a time");
    }),
    ("registry-cache-dangling", "warning", |library| {
        library.cache.push((9, "character".into(), "Kestrel".into()));
    }),
    ("uid-repeated", "error", |library| library.entries.push(Entry::raw("9", r#"{"uid":5}"#))),
    ("queue-several", "warning", |library| {
        library.entries.push(Entry::queue(1_763_632_700_000, &[]));
    }),
    ("queue-unreadable", "warning", |library| {
        let entry = r#"{"uid":9,"comment":"__operation_queue","content":"{"}"#;
        (library.queue, library.entries[1]) = (None, Entry::raw("9", entry));
    }),
    ("queue-past-end", "warning", |library| {
        library.queue = Some(vec![Operation::new("pending").about(12)]);
    }),
    ("recap-foreign", "warning", |library| recap(library).chat_id = Some("Old name".into())),
    ("recap-version-lost", "error", |library| recap(library).current = 9),
    ("recap-unreadable", "warning", |library| {
        recap(library).more.push(more("current_version", "\"1\""));
    }),
    ("recap-past-end", "warning", |library| recap(library).versions.push((2, 12))),
    ("recap-scene-missing", "warning", |library| recap(library).versions.push((2, 9))),
    ("lorebook-attached-differs", "warning", |library| library.attached = Some("Other".into())),
    ("lorebook-attached-differs", "info", |library| {
        (library.attached, library.main_chat) = (Some("Other".into()), Some("Other".into()));
    }),
    ("lorebook-name-unexpected", "info", |library| {
        let other = Some(book_name("Mira", "Other"));
        (library.book, library.attached) = (other.clone(), other);
    }),
    ("scene-index-wrong", "warning", |library| {
        library.scenes[1].more.push(more("scene_recap_current_index", "2"));
    }),
    ("scene-hash-differs", "info", |library| {
        library.scenes[1].more.push(more("scene_recap_hash", "\"rm4ymq\""));
    }),
];

#[test]
fn a_library_for_each_finding_yields_just_that() {
    for (code, level, change) in CASES {
        let mut library = RecapLibrary::default();
        change(&mut library);
        let (sandbox, found) = yields(&library, &[(code, level, &[])]);
        // Stored, it is as odd as it was.
        assert_eq!(shown(&sandbox), found);
    }
    let subject = "What ST-Auto-Recap keeps";
    let (_, rules) = rules::CATALOGUE.iter().find(|(title, _)| *title == subject).unwrap();
    for rule in *rules {
        assert!(
            CASES.iter().any(|(code, ..)| *code == rule.code.as_str()),
            "{} has no library",
            rule.code
        );
    }
}

/// A list of hundreds would hide everything else.
#[test]
fn many_findings_of_one_kind_are_cut_short() {
    let items: Vec<_> = (100..200).map(|uid| (uid, "x")).collect();
    let mut library = RecapLibrary::default();
    library.entries[3] = Entry::registry(6, "character", &items);
    let sandbox = Sandbox::empty();
    library.write(&sandbox);
    let found = told(&sandbox);
    assert_eq!(found.len(), 20);
    assert!(found[19].2.ends_with("and 80 more such findings"), "{}", found[19].2);
}

/// A save is told what it brings. What was told before is not told again.
#[test]
fn scenes_are_looked_at_when_they_change() {
    let sandbox = Sandbox::empty();
    let mut library = RecapLibrary { messages: 450, ..RecapLibrary::default() };
    library.scenes[0].more.push(more("scene_recap_hash", "\"x\""));
    library.write(&sandbox);
    expect(&told(&sandbox), &[("scene-hash-differs", "info", &["message 3:"])]);
    library.messages += 1;
    library.write(&sandbox);
    expect(&told(&sandbox), &[]);
    // A version that was just made is looked at, however old its message.
    recap(&mut library).versions.push((2, 9));
    recap(&mut library).current = 2;
    library.messages += 1;
    library.write(&sandbox);
    expect(&told(&sandbox), &[("recap-scene-missing", "warning", &["2 (message 9)"])]);
}

#[test]
fn what_sillytavern_would_lose_silently_is_said() {
    let message = r#"{"name":"Wren","is_user":true,"mes":"the first thing that was said"}"#;
    let header = r#"{"user_name":"unused","character_name":"unused","chat_metadata":{}}"#;
    let odd = b"{\"name\":\"Wren\",\"mes\":\"caf\xe9\"}".as_slice();
    let cases: [(&str, &str, Vec<u8>); 3] = [
        ("chat-header-missing", "line 1 is a message", [message, message].join("\n").into_bytes()),
        (
            "not-utf8",
            "line 3 is not UTF-8",
            [header.as_bytes(), b"\n", message.as_bytes(), b"\n", odd].concat(),
        ),
        ("not-utf8", "line 1 is not UTF-8", [odd, b"\n", message.as_bytes()].concat()),
    ];
    for (code, words, chat) in cases {
        let sandbox = Sandbox::empty();
        sandbox.write("chats/Mira/odd.jsonl", &chat);
        for command in [&["snapshot"][..], &["doctor"], &["show", "odd"], &["status"]] {
            let answer = sandbox.json(command).exits(0);
            let found = answer.of_type("finding");
            // What is known is not said again by a command that takes nothing.
            let found = found.iter().find(|line| line["code"] == code);
            if command != ["status"] {
                let found = found.unwrap_or_else(|| panic!("{command:?}: {}", answer.stdout));
                assert!(found["message"].as_str().unwrap().contains(words), "{found}");
            }
        }
        assert!(sandbox.read("chats/Mira/odd.jsonl") == chat);
    }
    // A lorebook, too.
    let sandbox = Sandbox::empty();
    let library = RecapLibrary::default();
    library.write(&sandbox);
    let mut book = sandbox.read(&library.book_path());
    let at = book.windows(3).position(|bytes| bytes == b"Wet").unwrap();
    book[at] = 0xff;
    sandbox.write(&library.book_path(), book);
    let answer = sandbox.json(&["snapshot"]).exits(0);
    assert!(
        answer.of_type("finding").iter().any(|line| line["code"] == "not-utf8"),
        "{}",
        answer.stdout
    );
}
