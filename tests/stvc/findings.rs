//! Every finding about a timeline's own files: a library that has it and no other, and a sound one that has none.

use serde_json::Value;
use stvc::rules::{self, Finding};
use stvc::st::{Chat, Disk, Library, capture};

use crate::common::recap_library::{
    Entry, Operation, Recap, RecapLibrary, book_name, object, quoted,
};
use crate::common::{Answer, Sandbox};

/// Code, level and words of the message of each finding that is expected.
type Expected<'a> = &'a [(&'a str, &'a str, &'a [&'a str])];

/// What a snapshot of the library says. The gate for active queues has tests of its own.
#[track_caller]
fn told(sandbox: &Sandbox) -> Vec<Told> {
    of_answer(&sandbox.json(&["snapshot", "--allow-active-queue"]).exits(0))
}

/// What is said of the newest snapshot when it is shown.
#[track_caller]
fn shown(sandbox: &Sandbox) -> Vec<Told> {
    of_answer(&sandbox.json(&["show", &sandbox.snapshot_ids()[0]]).exits(0))
}

fn of_answer(answer: &Answer) -> Vec<Told> {
    let text = |line: &Value, key: &str| line[key].as_str().unwrap().to_owned();
    let told = |line: &Value| (text(line, "code"), text(line, "level"), text(line, "message"));
    let found = answer.of_type("finding");
    found.iter().map(told).filter(|(code, ..)| code != "queue-active").collect()
}

type Told = (String, String, String);

/// What the rules say of the only chat's files, without a process.
#[track_caller]
fn of_files(sandbox: &Sandbox) -> Vec<Told> {
    let library = Library::open(&sandbox.library(), None).unwrap();
    let scan = library.scan().unwrap();
    let captured = capture(&library, &scan.groups, &scan.timelines[0], &Disk).unwrap();
    let chat = Chat::split(&captured.files.chat.bytes, false);
    let found = rules::of_files(&captured.files, &chat, rules::ALL);
    let told = |finding: Finding| {
        (finding.code.to_string(), finding.level.as_str().to_owned(), finding.message)
    };
    found.into_iter().map(told).collect()
}

/// The sound library with one thing changed must yield just these findings.
#[track_caller]
fn yields(change: impl FnOnce(&mut RecapLibrary), expected: Expected<'_>) {
    let mut library = RecapLibrary::default();
    change(&mut library);
    let sandbox = Sandbox::empty();
    library.write(&sandbox);
    expect(&of_files(&sandbox), expected);
}

#[track_caller]
fn expect(found: &[Told], expected: Expected<'_>) {
    let codes: Vec<_> =
        found.iter().map(|(code, level, _)| (code.as_str(), level.as_str())).collect();
    let wanted: Vec<_> = expected.iter().map(|(code, level, _)| (*code, *level)).collect();
    assert_eq!(codes, wanted, "{found:#?}");
    for ((_, _, message), (_, _, words)) in found.iter().zip(expected) {
        for word in *words {
            assert!(message.contains(word), "{word:?} is missing: {message}");
        }
    }
}

fn more(key: &str, json: &str) -> (String, String) {
    (key.to_owned(), json.to_owned())
}

#[track_caller]
fn recap(library: &mut RecapLibrary) -> &mut Recap {
    library.recap.as_mut().unwrap()
}

#[test]
fn a_sound_library_yields_no_finding() {
    let sandbox = Sandbox::empty();
    RecapLibrary::default().write(&sandbox);
    expect(&told(&sandbox), &[]);
    expect(&shown(&sandbox), &[]);
    // A fork that was given a lorebook of its own.
    yields(
        |library| {
            *library = library.fork("Branch #1", 7);
            recap(library).chat_id = Some("Branch #1".into());
        },
        &[],
    );
    // No extension at all, no lorebook at all.
    yields(
        |library| {
            (library.recap, library.book, library.attached) = (None, None, None);
            (library.scenes, library.cache) = (Vec::new(), Vec::new());
        },
        &[],
    );
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
        let sandbox = Sandbox::empty();
        library.write(&sandbox);
        let found = told(&sandbox);
        expect(&found, &[(code, level, &[])]);
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

#[test]
fn req_30_registries_list_entries_that_are_there() {
    let dangling = |words: &'static [&'static str]| [("registry-dangling", "warning", words)];
    let with = |content: &str| {
        let registry = Entry::registry_of(6, "character", content);
        move |library: &mut RecapLibrary| library.entries[3] = registry
    };
    // All three notations, sound and not.
    for content in [
        "[Registry: character]\n- UID=5 | name: character-Mira",
        "[Registry: character]\r\n- uid: 5 | name: character-Mira\r\n",
        "[Registry: character]",
        "",
        "{\"items\":[{\"id\":\"5\",\"name\":\"character-Mira\"},{\"uid\":0}]}",
    ] {
        yields(with(content), &[]);
    }
    for content in [
        "[Registry: character]\n- UID=5 | name: character-Mira\n- UID=9 | name: character-Kestrel | aliases: a|b",
        "[Registry: character]\n- uid: 9 | name: character-Kestrel",
        "{\"items\":[{\"id\":5},{\"uid\":9,\"name\":\"character-Kestrel\"}]}",
    ] {
        yields(with(content), &dangling(&["\"character\"", "UID 9", "character-Kestrel"]));
    }
    // Each UID once, and each of several.
    yields(
        with(
            "[Registry: character]\n- UID=2000000 | name: a\n- UID=2000000 | name: a\n- UID=undefined | name: b",
        ),
        &[
            ("registry-dangling", "warning", &["UID 2000000", "\"a\""]),
            ("registry-dangling", "warning", &["UID undefined", "\"b\""]),
        ],
    );
    // A registry, an entry that is null and one that is a number are no entries to be listed.
    yields(
        |library| {
            library.entries[3] =
                Entry::registry(6, "character", &[(5, "m"), (1, "r"), (7, "n"), (8, "1")]);
            library.entries.push(Entry::raw("7", "null"));
            library.entries.push(Entry::raw("8", "1"));
        },
        &[
            ("registry-dangling", "warning", &["UID 1 "]),
            ("registry-dangling", "warning", &["UID 7 "]),
            ("registry-dangling", "warning", &["UID 8 "]),
        ],
    );
}

#[test]
fn req_30_a_registry_that_cannot_be_read_is_an_error() {
    let error = |words: &'static [&'static str]| [("registry-unreadable", "error", words)];
    for content in ["once upon a time", "{\"items\": [", "{\"items\": 5}"] {
        yields(
            |library| library.entries[3] = Entry::registry_of(6, "character", content),
            &error(&["_registry_character", "\"6\""]),
        );
    }
    for content in ["null", "7", "[\"- UID=5\"]", "{}"] {
        let json =
            format!("{{\"uid\":6,\"comment\":\"_registry_character\",\"content\":{content}}}");
        yields(|library| library.entries[3] = Entry::raw("6", &json), &error(&["no text"]));
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

#[test]
fn req_66_a_uid_stands_once_in_a_book() {
    yields(
        |library| {
            let json = library.entries[2].json.replace("character-Mira", "character-Other");
            library.entries.push(Entry::raw("9", &json));
        },
        &[(
            "uid-repeated",
            "error",
            &["UID 5 ", "\"5\"", "character-Mira", "\"9\"", "character-Other"],
        )],
    );
    // The number and the text are the same UID to JavaScript.
    yields(
        |library| library.entries.push(Entry::raw("x", r#"{"uid":"5"}"#)),
        &[("uid-repeated", "error", &["UID 5 "])],
    );
    // Gaps, keys that are no UIDs and entries without one are nothing; the same UID in two books is nothing.
    yields(
        |library| {
            library.entries.push(Entry::new(2_000_000, "lore-Far", "Far."));
            library.entries.push(Entry::raw("__proto__", r#"{"uid":77,"comment":"x"}"#));
            library.entries.push(Entry::raw("8", "{}"));
            library.entries.push(Entry::raw("10", "{}"));
            library.entries.push(Entry::raw("11", "null"));
        },
        &[],
    );
    let sandbox = Sandbox::empty();
    RecapLibrary::new("Mira", "one").write(&sandbox);
    RecapLibrary::new("Mira", "two").write(&sandbox);
    expect(&told(&sandbox), &[]);
}

#[test]
fn req_13_an_empty_queue_is_no_finding() {
    yields(|library| library.queue = Some(Vec::new()), &[]);
    yields(|library| library.queue = None, &[]);
    let done = ["completed", "failed", "cancelled"];
    let done = done.map(|status| Operation::new(status).about(99));
    yields(|library| library.queue = Some(done.to_vec()), &[]);
    for content in [r#""""#, r#""{}""#, r#""{\"queue\":[]}""#, "null"] {
        let json = format!(r#"{{"uid":9,"comment":"__operation_queue","content":{content}}}"#);
        yields(
            |library| {
                library.queue = None;
                library.entries.push(Entry::raw("9", &json));
            },
            &[],
        );
    }
}

#[test]
fn req_63_operations_about_messages_that_are_not_there() {
    let queue = |operations: Vec<Operation>| {
        move |library: &mut RecapLibrary| library.queue = Some(operations)
    };
    yields(queue(vec![Operation::new("pending").about(11)]), &[]);
    let id = |id: &str, operation: Operation| Operation { id: id.into(), ..operation };
    yields(
        queue(vec![
            id("op_1", Operation::new("pending").about(12)),
            id("op_2", Operation::new("in_progress").about(3)),
            id("op_3", Operation::new("retrying").about(400)),
            id("op_4", Operation::new("cancelled").about(400)),
        ]),
        &[
            (
                "queue-past-end",
                "warning",
                &["op_1", "GENERATE_SCENE_RECAP", "message 12", "has 12"],
            ),
            ("queue-past-end", "warning", &["op_3", "message 400"]),
        ],
    );
    for params in
        [r#"{"startIndex":0,"endIndex":12}"#, r#"{"indexes":[1,2,12]}"#, r#"{"messageIndex":12}"#]
    {
        let operation = Operation { params: params.into(), ..Operation::new("pending") };
        yields(queue(vec![operation]), &[("queue-past-end", "warning", &["message 12"])]);
    }
}

#[test]
fn queues_that_are_several_or_cannot_be_read() {
    yields(
        |library| library.entries.push(Entry::queue(1_763_632_700_000, &[])),
        &[("queue-several", "warning", &["2 entries", "1763632700000", "1763632702906"])],
    );
    for content in [r#""{\"queue\": [""#, r#""[]""#, "7", r#""{\"queue\":5}""#] {
        let json = format!(r#"{{"uid":9,"comment":"__operation_queue","content":{content}}}"#);
        yields(
            |library| {
                library.queue = None;
                library.entries.push(Entry::raw("9", &json));
            },
            &[("queue-unreadable", "warning", &["\"9\""])],
        );
    }
}

#[test]
fn req_64_a_recap_of_another_chat() {
    let foreign = |words: &'static [&'static str]| [("recap-foreign", "warning", words)];
    yields(
        |library| recap(library).chat_id = Some("Old name".into()),
        &foreign(&["Old name", "will be reset when the chat is opened"]),
    );
    yields(|library| recap(library).chat_id = None, &foreign(&["does not say", "will be reset"]));
    // A fork keeps it.
    yields(
        |library| {
            library.main_chat = Some("Harbour".into());
            recap(library).chat_id = Some("Harbour".into());
        },
        &foreign(&["Harbour", "fork"]),
    );
    // Nothing to lose.
    yields(
        |library| {
            let recap = recap(library);
            (recap.chat_id, recap.current, recap.versions) =
                (Some("Old name".into()), 0, Vec::new());
        },
        &foreign(&["Old name", "nothing is lost"]),
    );
    yields(
        |library| {
            let recap = recap(library);
            (recap.chat_id, recap.current, recap.versions) = (None, 0, Vec::new());
        },
        &[],
    );
    // The name as it was typed.
    yields(
        |library| {
            *library = RecapLibrary::new("Mira", "Why not");
            recap(library).chat_id = Some("Why? not".into());
        },
        &[],
    );
    // Without its lorebook the chat passes for an import.
    let sandbox = Sandbox::empty();
    let mut library = RecapLibrary::default();
    recap(&mut library).chat_id = Some("Old name".into());
    sandbox.write(&library.chat_path(), library.chat_bytes());
    expect(
        &told(&sandbox),
        &[("recap-foreign", "warning", &["import"]), ("lorebook-missing", "error", &[])],
    );
}

#[test]
fn req_05_the_version_in_use_is_there() {
    yields(
        |library| recap(library).current = 9,
        &[("recap-version-lost", "error", &["is 9", "0, 1"])],
    );
    // Version 0 alone, gaps, and none at all are sound.
    let with = |current, versions: Vec<(i64, i64)>| {
        move |library: &mut RecapLibrary| {
            (recap(library).current, recap(library).versions) = (current, versions);
        }
    };
    yields(with(0, vec![(0, 3)]), &[]);
    yields(with(7, vec![(2, 3), (7, 7)]), &[]);
    yields(with(0, Vec::new()), &[]);
    let odd = [
        ("versions", "7", "no list"),
        ("versions", r#"{"0":{}}"#, "no list"),
        ("versions", "[null]", "no whole number"),
        ("versions", r#"[{"version":"0"}]"#, "no whole number"),
        ("versions", r#"[{"version":0.5}]"#, "no whole number"),
        ("current_version", "\"1\"", "no whole number"),
        ("current_version", "1e99", "no whole number"),
        ("current_version", "null", "no whole number"),
    ];
    for (key, json, words) in odd {
        yields(
            |library| recap(library).more.push(more(key, json)),
            &[("recap-unreadable", "warning", &[words])],
        );
    }
    for json in ["[]", "7", "\"x\""] {
        yields(
            |library| library.more.push(more("auto_recap_running_scene_recaps", json)),
            &[("recap-unreadable", "warning", &["no object"])],
        );
    }
}

#[test]
fn req_73_the_cached_registry_lists_entries_that_are_there() {
    yields(
        |library| library.cache.push((9, "character".into(), "Kestrel".into())),
        &[("registry-cache-dangling", "warning", &["9 (character \"Kestrel\")"])],
    );
    // Of many the first few.
    yields(
        |library| library.cache.extend((20..30).map(|uid| (uid, "item".into(), format!("n{uid}")))),
        &[("registry-cache-dangling", "warning", &["20 (item \"n20\")", "24 (", "and 5 more"])],
    );
}

#[test]
fn req_73_the_scenes_of_the_running_recap_are_there() {
    yields(
        |library| recap(library).versions.push((2, 12)),
        &[("recap-past-end", "warning", &["2 (message 12)", "12 messages"])],
    );
    yields(
        |library| recap(library).versions.push((2, 9)),
        &[("recap-scene-missing", "warning", &["2 (message 9)"])],
    );
    yields(
        |library| {
            let scene = &mut library.scenes[0];
            scene.recap = String::new();
        },
        &[("recap-scene-missing", "warning", &["0 (message 3)"])],
    );
    // Blank lines are no messages.
    let sandbox = Sandbox::empty();
    let library = RecapLibrary::default();
    library.write(&sandbox);
    sandbox.write(&library.chat_path(), library.chat_bytes().replace('\n', "\n\n") + "\n");
    expect(&told(&sandbox), &[]);
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
fn req_65_the_lorebook_is_the_chats_own() {
    let other = || Some(book_name("Mira", "Other"));
    yields(
        |library| library.attached = other(),
        &[(
            "lorebook-attached-differs",
            "warning",
            &["z-AutoLB-Mira-Other", "z-AutoLB-Mira-Harbour nights"],
        )],
    );
    yields(
        |library| {
            (library.book, library.recap) = (None, None);
            (library.scenes, library.cache) = (Vec::new(), Vec::new());
        },
        &[("lorebook-attached-differs", "warning", &["none"])],
    );
    yields(
        |library| {
            library.attached = other();
            library.main_chat = Some("Other".into());
        },
        &[("lorebook-attached-differs", "info", &[])],
    );
    yields(
        |library| (library.book, library.attached) = (other(), other()),
        &[("lorebook-name-unexpected", "info", &["z-AutoLB-Mira-Other"])],
    );
    // A fork's, a second of the same name, an old one, a writer's own.
    for (book, main_chat) in [
        ("z-AutoLB-Mira-Other", Some("Other")),
        ("z-AutoLB-Mira-Harbour nights (2)", None),
        ("z-AutoLB-Harbour nights", None),
        ("My lore", None),
    ] {
        yields(
            |library| {
                (library.book, library.attached) = (Some(book.into()), Some(book.into()));
                library.main_chat = main_chat.map(str::to_owned);
            },
            &[],
        );
    }
}

#[test]
fn req_74_scene_recaps() {
    let with = |key: &'static str, json: &'static str| {
        move |library: &mut RecapLibrary| {
            library.scenes[1].more.push(more(key, json));
        }
    };
    for json in ["2", "-1", "\"1\"", "1.5", "[]"] {
        yields(
            with("scene_recap_current_index", json),
            &[("scene-index-wrong", "warning", &["message 7:"])],
        );
    }
    for json in ["0", "null"] {
        yields(with("scene_recap_current_index", json), &[]);
    }
    yields(
        with("scene_recap_hash", "\"rm4ymq\""),
        &[("scene-hash-differs", "info", &["message 7:"])],
    );
    yields(with("scene_recap_hash", "null"), &[]);
    // Half an emoji, and what JavaScript trims; the hash was made by JavaScript.
    yields(
        |library| {
            let memory = r#""\ufeff\u00a0 half \ud83d, whole 😀 \u2028""#;
            library.scenes[1].more.push(more("scene_recap_memory", memory));
            library.scenes[1].more.push(more("scene_recap_hash", "\"xhta40\""));
        },
        &[],
    );
    // Many of a kind are one finding.
    yields(
        |library| {
            let scene = library.scenes[1].clone();
            library.scenes.extend([8, 9, 10, 11].map(|at| {
                let mut scene = scene.clone();
                scene.at = at;
                scene
            }));
            for scene in &mut library.scenes {
                scene.more.push(more("scene_recap_hash", "\"x\""));
            }
        },
        &[("scene-hash-differs", "info", &["message 3, 7, 8, 9, 10 and 1 more:"])],
    );
}

#[test]
fn req_24_a_lorebook_that_does_not_exist_is_an_error() {
    let sandbox = Sandbox::empty();
    let library = RecapLibrary::default();
    sandbox.write(&library.chat_path(), library.chat_bytes());
    expect(&told(&sandbox), &[("lorebook-missing", "error", &["z-AutoLB-Mira-Harbour nights"])]);
    // It was stored nevertheless, and nothing failed.
    assert_eq!(sandbox.snapshot_ids().len(), 1);
    sandbox.json(&["status"]).exits(0);
    sandbox.append(&library.chat_path(), &library.message(12));
    sandbox.json(&["status"]).exits(0);
}

/// Whatever stands where the extension's data should be: findings, never a failure.
#[test]
fn odd_values_anywhere_are_no_failure() {
    const ODD: [&str; 14] = [
        "null",
        "true",
        "0",
        "-1",
        "2000000",
        "1e400",
        "0.5",
        "\"\"",
        "\"x\"",
        "\"\\ud83d\"",
        "[]",
        "[null,1,{}]",
        "{}",
        r#"{"__proto__":null,"":{"":[]},"1":1}"#,
    ];
    let sandbox = Sandbox::empty();
    let write = |change: &dyn Fn(&mut RecapLibrary)| {
        let mut library = RecapLibrary::default();
        change(&mut library);
        library.write(&sandbox);
        assert!(of_files(&sandbox).len() < 9);
    };
    for json in ODD {
        for key in [
            "auto_recap_running_scene_recaps",
            "auto_lorebooks",
            "world_info",
            "main_chat",
            "auto_recap",
        ] {
            write(&|library| library.more.push(more(key, json)));
        }
        for key in ["chat_id", "current_version", "versions"] {
            write(&|library| recap(library).more.push(more(key, json)));
        }
        for key in ["version", "new_scene_index", "scene_count"] {
            let version = format!("[{}]", object(&[more("version", "1"), more(key, json)]));
            write(&|library| recap(library).more.push(more("versions", &version)));
        }
        for key in ["lorebookName", "registry"] {
            let value = object(&[more(key, json)]);
            write(&|library| library.more.push(more("auto_lorebooks", &value)));
        }
        let index = format!(r#"{{"registry":{{"index":{json}}}}}"#);
        write(&|library| library.more.push(more("auto_lorebooks", &index)));
        let index = format!(r#"{{"registry":{{"index":{{"7":{json}}}}}}}"#);
        write(&|library| library.more.push(more("auto_lorebooks", &index)));
        for key in [
            "scene_break",
            "scene_break_name",
            "scene_recap_memory",
            "scene_recap_hash",
            "scene_recap_versions",
            "scene_recap_current_index",
            "scene_recap_metadata",
        ] {
            write(&|library| library.scenes[0].more.push(more(key, json)));
        }
        let metadata = format!(r#"{{"1":{{"allEntries":{json},"totalActivatedEntries":{json}}}}}"#);
        write(&|library| library.scenes[0].more.push(more("scene_recap_metadata", &metadata)));
        // Entries, and the fields of entries.
        for key in ["7", "__proto__", "", "1e3"] {
            write(&|library| library.entries.push(Entry::raw(key, json)));
        }
        for title in ["__operation_queue", "_registry_", "x"] {
            let entry = format!(r#"{{"uid":{json},"comment":"{title}","content":{json}}}"#);
            write(&|library| library.entries.push(Entry::raw("7", &entry)));
            let inside = quoted(json);
            let entry = format!(r#"{{"comment":"{title}","content":{inside}}}"#);
            write(&|library| library.entries.push(Entry::raw("7", &entry)));
        }
        let entry = format!(r#"{{"uid":3,"comment":{json},"content":"x"}}"#);
        write(&|library| library.entries.push(Entry::raw("7", &entry)));
        // The queue and what is in it.
        for content in [
            format!(r#"{{"queue":{json}}}"#),
            format!(r#"{{"queue":[{json}]}}"#),
            format!(
                r#"{{"queue":[{{"id":{json},"type":{json},"status":{json},"params":{json},"metadata":{json}}}]}}"#
            ),
            format!(
                r#"{{"queue":[{{"status":"pending","params":{{"index":{json},"indexes":{json}}}}}]}}"#
            ),
        ] {
            let entry =
                format!(r#"{{"comment":"__operation_queue","content":{}}}"#, quoted(&content));
            write(&|library| library.entries.push(Entry::raw("7", &entry)));
        }
    }
    // Books that are no books.
    let library = RecapLibrary::default();
    library.write(&sandbox);
    for book in ODD {
        sandbox.write(&library.book_path(), book);
        assert!(of_files(&sandbox).len() < 9);
        sandbox.write(&library.book_path(), format!(r#"{{"entries":{book}}}"#));
        assert!(of_files(&sandbox).len() < 9);
    }
}
