//! Findings about the lorebook, its registries and its queue.

use serde_json::json;

use super::{assert_findings, files, findings_of_files, folder, of_these, yields, yields_with};
use crate::common::recap_library::{Entry, Operation, RecapLibrary, book_name};

#[test]
fn req_30_registries_must_list_existing_entries() {
    let dangling = |words: &'static [&'static str]| [("registry-dangling", "warning", words)];
    let with = |content: &str| {
        let registry = Entry::registry_of(6, "character", content);
        move |library: &mut RecapLibrary| library.entries[3] = registry
    };
    // All three notations, valid and invalid.
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
    // Also in a chat that has no cache of the registries.
    yields(
        |library| {
            library.entries[3] = Entry::registry(6, "character", &[(9, "character-Kestrel")]);
            library.cache.clear();
        },
        &dangling(&["UID 9"]),
    );
    // A registry must not list registries, or entries that are null or a number.
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
fn req_30_unreadable_registry_is_an_error() {
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
        yields(|library| library.entries[3] = Entry::raw("6", &json), &error(&["is not a string"]));
    }
}

#[test]
fn req_66_uids_of_a_lorebook_must_be_unique() {
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
    // Gaps, keys other than UIDs, entries without a UID and equal UIDs in two books are allowed.
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
    let two = ["one", "two"].map(|chat| files(&RecapLibrary::new("Mira", chat)));
    of_these(&two.concat(), &[]);
}

#[test]
fn req_13_empty_queue_yields_no_finding() {
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
fn req_63_queue_operations_on_missing_messages_are_reported() {
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
                &["op_1", "GENERATE_SCENE_RECAP", "message 12", "has only 12 messages"],
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
    for key in ["message_index", "scene_index", "start_index", "end_index"] {
        let about = |message: i64| Operation {
            metadata: format!(r#"{{"{key}":{message}}}"#),
            ..Operation::new("pending")
        };
        yields(queue(vec![about(11)]), &[]);
        yields(queue(vec![about(12)]), &[("queue-past-end", "warning", &["message 12"])]);
    }
}

#[test]
fn several_or_unreadable_queues_are_reported() {
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
fn req_65_lorebook_of_another_chat_is_reported() {
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
        &[("lorebook-attached-differs", "warning", &["no lorebook is bound to it"])],
    );
    yields(
        |library| {
            library.attached = other();
            library.main_chat = Some("Other".into());
        },
        &[("lorebook-attached-differs", "info", &[])],
    );
    for book in ["z-AutoLB-Mira-Other", "My lore"] {
        yields(attached(book), &[("lorebook-name-unexpected", "info", &[book, "{{chat}}"])]);
    }
    // A fork's, a second of the same name, an old one, a writer's own that the extension never saw.
    yields(
        |library| {
            attached("z-AutoLB-Mira-Other")(library);
            library.main_chat = Some("Other".into());
        },
        &[],
    );
    for book in ["z-AutoLB-Mira-Harbour nights (2)", "z-AutoLB-Harbour nights"] {
        yields(attached(book), &[]);
    }
    yields(bound("My lore"), &[]);
    yields(bound("z-AutoLB-Mira-Other"), &[("lorebook-name-unexpected", "info", &[])]);
}

/// Bound to a lorebook that the extension has noted, too.
fn attached(book: &str) -> impl Fn(&mut RecapLibrary) {
    move |library| (library.book, library.attached) = (Some(book.into()), Some(book.into()))
}

/// Bound to a lorebook that the extension knows nothing of.
fn bound(book: &str) -> impl Fn(&mut RecapLibrary) {
    move |library| {
        (library.book, library.attached) = (Some(book.into()), None);
        library.cache.clear();
    }
}

#[test]
fn req_65_lorebook_names_follow_the_configured_template() {
    let settings = |template: &str| {
        json!({ "extension_settings": { "autoLorebooks": { "nameTemplate": template } } })
            .to_string()
    };
    let unexpected = |book| [("lorebook-name-unexpected", "info", book)];
    let own = settings("{{chat}}: lore of {{char}}");
    yields_with(Some(&own), attached("Harbour nights lore of Mira"), &[]);
    yields_with(Some(&own), attached("Harbour nights lore of Mira (2)"), &[]);
    let other = &["Other lore of Mira", "{{chat}}: lore of {{char}}"][..];
    yields_with(Some(&own), attached("Other lore of Mira"), &unexpected(other));
    // Also where only the name says that the extension made it.
    yields_with(Some(&own), bound("Other lore of Mira"), &unexpected(other));
    yields_with(Some(&own), bound("My lore"), &[]);
    // The extension's own template is not what this user's calls books.
    yields_with(Some(&own), |_| {}, &unexpected(&["z-AutoLB-Mira-Harbour nights"]));
    // A template that fits every name says nothing of books that are not the extension's.
    yields_with(Some(&settings("{{chat}}")), bound("My lore"), &[]);

    // Empty settings, and invalid ones.
    let huge = format!("{}{}", settings("x"), " ".repeat(65 << 20));
    let odd =
        ["", "{", "[]", "nameTemplate", "{\"extension_settings\":null}", &settings(""), &huge];
    for settings in odd {
        yields_with(Some(settings), |_| {}, &[]);
    }
    yields_with(None, |_| {}, &[]);
    let dir = folder(&files(&RecapLibrary::default()));
    std::fs::create_dir(dir.path().join("settings.json")).unwrap();
    assert_findings(&findings_of_files(dir.path()), &[]);
}
