//! A valid library, and one per finding.

use stvc::internals::rules;

use super::{
    Reported, assert_findings, assert_yields, findings_of_answer, findings_of_snapshot, more, recap,
};
use crate::common::Sandbox;
use crate::common::recap_library::{Entry, Operation, RecapLibrary, book_name};

/// Returns the findings of `show` for the latest snapshot.
#[track_caller]
fn shown(sandbox: &Sandbox) -> Vec<Reported> {
    findings_of_answer(&sandbox.json(&["show", &sandbox.snapshot_ids()[0]]).exits(0))
}

#[test]
fn valid_library_yields_no_finding() {
    let (sandbox, _) = assert_yields(&RecapLibrary::default(), &[]);
    assert_findings(&shown(&sandbox), &[]);
    // A fork with its own lorebook.
    let mut fork = RecapLibrary::default().fork("Branch #1", 7);
    recap(&mut fork).chat_id = Some("Branch #1".into());
    assert_yields(&fork, &[]);
    // Without the extension and without a lorebook.
    let plain = RecapLibrary {
        recap: None,
        book: None,
        attached: None,
        scenes: Vec::new(),
        cache: Vec::new(),
        ..RecapLibrary::default()
    };
    assert_yields(&plain, &[]);
}

/// Code, level and the change that causes the finding.
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
fn each_broken_library_yields_only_its_finding() {
    for (code, level, change) in CASES {
        let mut library = RecapLibrary::default();
        change(&mut library);
        let (sandbox, found) = assert_yields(&library, &[(code, level, &[])]);
        // The stored snapshot has the same finding.
        assert_eq!(shown(&sandbox), found);
    }
    let subject = "Data of ST-Auto-Recap";
    let (_, codes) = rules::CATALOGUE.iter().find(|(title, _)| *title == subject).unwrap();
    for code in *codes {
        assert!(CASES.iter().any(|(case, ..)| *case == code.as_str()), "{code} has no library");
    }
}

/// Hundreds of equal findings would hide the others.
#[test]
fn findings_of_one_kind_are_limited_to_20() {
    let items: Vec<_> = (100..200).map(|uid| (uid, "x")).collect();
    let mut library = RecapLibrary::default();
    library.entries[3] = Entry::registry(6, "character", &items);
    let sandbox = Sandbox::empty();
    library.write(&sandbox);
    let found = findings_of_snapshot(&sandbox);
    assert_eq!(found.len(), 20);
    assert!(found[19].2.ends_with("and 80 more of this kind"), "{}", found[19].2);
}

/// A snapshot reports findings about new content only.
#[test]
fn scenes_are_checked_when_they_change() {
    let sandbox = Sandbox::empty();
    let mut library = RecapLibrary { messages: 450, ..RecapLibrary::default() };
    library.scenes[0].more.push(more("scene_recap_hash", "\"x\""));
    library.write(&sandbox);
    assert_findings(
        &findings_of_snapshot(&sandbox),
        &[("scene-hash-differs", "info", &["message 3:"])],
    );
    library.messages += 1;
    library.write(&sandbox);
    assert_findings(&findings_of_snapshot(&sandbox), &[]);
    // A new version is checked, however old its message is.
    recap(&mut library).versions.push((2, 9));
    recap(&mut library).current = 2;
    library.messages += 1;
    library.write(&sandbox);
    assert_findings(
        &findings_of_snapshot(&sandbox),
        &[("recap-scene-missing", "warning", &["2 (message 9)"])],
    );
}

#[test]
fn silent_losses_of_sillytavern_are_reported() {
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
            // A command without a new snapshot does not repeat it.
            let found = found.iter().find(|line| line["code"] == code);
            if command != ["status"] {
                let found = found.unwrap_or_else(|| panic!("{command:?}: {}", answer.stdout));
                assert!(found["message"].as_str().unwrap().contains(words), "{found}");
            }
        }
        assert!(sandbox.read("chats/Mira/odd.jsonl") == chat);
    }
    // A lorebook.
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
