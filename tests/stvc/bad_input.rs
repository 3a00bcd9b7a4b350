//! Invalid libraries: each invalid file is reported, the others are stored, and no byte is lost or
//! added.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::common::{
    Answer, Sandbox, Stored, assert_no_control_characters, assert_no_panic, assert_valid, chat,
    message, skip_on_this_machine,
};

const GOOD: &str = "chats/Mira/good.jsonl";

fn library() -> Sandbox {
    let sandbox = Sandbox::empty();
    sandbox.write(GOOD, chat("good", 4, None));
    sandbox
}

/// Asserts that the valid chat was stored.
#[track_caller]
fn assert_good_chat_stored(sandbox: &Sandbox) {
    let log = sandbox.json(&["log"]).exits(0).of_type("snapshot");
    let line = log.iter().find(|line| line["timeline"] == "chats/Mira/good").unwrap();
    let id = line["id"].as_str().unwrap().to_owned();
    Stored { id, path: GOOD.to_owned(), bytes: sandbox.read(GOOD) }.assert_restores(sandbox);
    assert_valid(sandbox);
}

/// Returns code, subject and message of each finding.
fn findings(answer: &Answer) -> Vec<String> {
    let lines = answer.of_type("finding");
    lines
        .iter()
        .map(|line| format!("{} {} {}", line["code"], line["subject"], line["message"]))
        .collect()
}

#[track_caller]
fn assert_findings(answer: &Answer, words: &[&str]) {
    let found = findings(answer);
    assert!(
        found.iter().any(|line| words.iter().all(|word| line.contains(word))),
        "{words:?} in {found:#?}"
    );
}

#[test]
fn missing_chat_is_reported_and_its_snapshots_stay() {
    let sandbox = library();
    let stored = Stored::take(&sandbox, GOOD);
    let answer = sandbox.stvc(&["snapshot", "Mira/other"]).exits(1);
    assert!(answer.stderr.contains("Mira/other"), "{}", answer.stderr);
    fs::remove_file(sandbox.path(GOOD)).unwrap();
    let answer = sandbox.stvc(&["snapshot", GOOD]).exits(1);
    assert!(answer.stderr.contains("good.jsonl"), "{}", answer.stderr);
    sandbox.stvc(&["snapshot"]).exits(0);
    stored.assert_restores(&sandbox);
    sandbox.stvc(&["restore", "Mira/good"]).exits(0);
    assert_eq!(sandbox.read(GOOD), stored.bytes);
}

#[cfg(unix)]
#[test]
fn unreadable_chat_is_reported_and_the_others_are_stored() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let sandbox = library();
    // Root ignores permissions, but cannot follow a dangling link.
    symlink("nowhere", sandbox.path("chats/Mira/dangling.jsonl")).unwrap();
    symlink("loop.jsonl", sandbox.path("chats/Mira/loop.jsonl")).unwrap();
    let mut odd = vec!["dangling", "loop"];
    if std::path::Path::new("/proc/self/mem").exists() {
        // A file whose reads fail.
        symlink("/proc/self/mem", sandbox.path("chats/Mira/broken.jsonl")).unwrap();
        odd.push("broken");
    } else {
        skip_on_this_machine("there is no file here that cannot be read");
    }
    sandbox.write("chats/Mira/secret.jsonl", chat("secret", 2, None));
    let secret = sandbox.path("chats/Mira/secret.jsonl");
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o000)).unwrap();
    if fs::read(&secret).is_err() {
        odd.push("secret");
    } else {
        skip_on_this_machine("root reads a file that nobody may read");
    }
    fs::create_dir(sandbox.path("chats/Mira/folder.jsonl")).unwrap();
    odd.push("folder");

    let answer = assert_no_panic(sandbox.stvc(&["snapshot"])).exits(3);
    for name in &odd {
        assert!(answer.stderr.contains(name), "{name}: {}", answer.stderr);
    }
    assert_eq!(
        assert_no_panic(sandbox.json(&["snapshot"])).exits(3).of_type("failed").len(),
        odd.len()
    );
    assert_no_panic(sandbox.stvc(&["status"]));
    assert_good_chat_stored(&sandbox);
}

#[test]
fn chat_is_stored_without_unreadable_lorebook_or_group() {
    let sandbox = library();
    sandbox.write("chats/Mira/bound.jsonl", chat("bound", 3, Some("Harbour")));
    // An unreadable file is not reported as missing.
    fs::create_dir_all(sandbox.path("worlds/Harbour.json")).unwrap();
    let answer = assert_no_panic(sandbox.stvc(&["snapshot"])).exits(3);
    assert!(answer.stderr.contains("Harbour.json"), "{}", answer.stderr);
    assert!(!answer.stderr.contains("does not exist"), "{}", answer.stderr);
    assert_eq!(sandbox.snapshot_ids().len(), 2);
    sandbox.write("groups/1.json", "{ no JSON");
    let answer = assert_no_panic(sandbox.json(&["snapshot"])).exits(3);
    assert_findings(&answer, &["file-damaged", "groups/1.json"]);
    assert_good_chat_stored(&sandbox);
}

#[test]
fn chat_with_invalid_lorebook_name_is_stored() {
    let sandbox = Sandbox::empty();
    for name in ["..", "///", "", "CON"] {
        sandbox.write(GOOD, chat("good", 3, Some(name)));
        assert_no_panic(sandbox.stvc(&["snapshot"])).exits(0);
        assert_good_chat_stored(&sandbox);
    }
}

#[test]
fn unusual_bytes_are_reported_and_restored_unchanged() {
    let sandbox = library();
    let whole = chat("odd", 3, None);
    let not_utf8 = [&whole[..], b"\n{\"mes\":\"\xff\xfe\xed\xa0\x80\"}"].concat();
    let odd: [(&str, Vec<u8>, &str); 8] = [
        ("empty", Vec::new(), "chat-empty"),
        ("no utf-8", not_utf8, ""),
        ("cut", whole[..whole.len() - 9].to_vec(), "chat-line-broken"),
        ("cut header", whole[..20].to_vec(), "chat-damaged"),
        ("bom", [b"\xef\xbb\xbf", &whole[..]].concat(), "chat-bom"),
        ("nothing", vec![0; 4096], "chat-damaged"),
        ("blank", b"\n\n\r\n \n".to_vec(), "chat-empty"),
        (
            "deep",
            [whole, b"\n".to_vec(), "[".repeat(50_000).into_bytes()].concat(),
            "chat-line-broken",
        ),
    ];
    for (name, bytes, _) in &odd {
        sandbox.write(&format!("chats/Odd/{name}.jsonl"), bytes);
    }
    let answer = assert_no_panic(sandbox.json(&["snapshot"])).exits(0);
    for (name, _, code) in &odd {
        if !code.is_empty() {
            assert_findings(&answer, &[&format!("/{name}.jsonl"), code]);
        }
        let path = format!("chats/Odd/{name}.jsonl");
        let stored = Stored::take(&sandbox, &path);
        stored.assert_restores(&sandbox);
        assert_no_panic(sandbox.stvc(&["show", &stored.id])).exits(0);
        assert_no_panic(sandbox.stvc(&["diff", &stored.id])).exits(0);
        assert_no_panic(sandbox.stvc(&["snapshot", &path, "--at", "0"]));
    }
    assert_good_chat_stored(&sandbox);
}

/// During continuous saves, a snapshot contains exactly one of the saved states, or no snapshot is
/// created.
#[test]
fn snapshot_never_mixes_two_saves_of_a_chat() {
    let sandbox = library();
    let path = "chats/Mira/busy.jsonl";
    let state = |n: usize| chat("busy", 200 + n % 50, None);
    sandbox.write(path, state(0));
    let done = AtomicBool::new(false);
    let mut stored = Vec::new();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for n in 1.. {
                if done.load(Ordering::Relaxed) {
                    break;
                }
                sandbox.save(path, state(n));
            }
        });
        for _ in 0..12 {
            let answer = sandbox.json(&["snapshot", path]);
            match answer.code {
                0 => stored.push(answer.of_type("snapshot")[0].clone()),
                1 => assert!(answer.stdout.contains("busy.jsonl kept changing"), "{answer:?}"),
                _ => panic!("{answer:?}"),
            }
        }
        done.store(true, Ordering::Relaxed);
    });
    sandbox.stvc(&["snapshot"]).exits(0);
    for line in &stored {
        let messages = usize::try_from(line["messages"].as_u64().unwrap()).unwrap();
        let stored = Stored {
            id: line["id"].as_str().unwrap().to_owned(),
            path: path.to_owned(),
            bytes: state(messages - 200),
        };
        stored.assert_restores(&sandbox);
    }
    assert_good_chat_stored(&sandbox);
}

/// Names that are special in a ref, a tree, a terminal or a temporary file.
#[cfg(unix)]
fn odd_names() -> Vec<String> {
    let mut names: Vec<String> = [
        "a..b",
        "...x",
        "-dash",
        "--help",
        "x.lock",
        "@",
        "@{-1}",
        "HEAD",
        "refs",
        "CON",
        "nul.txt",
        "dot.",
        "space ",
        " space",
        "~1",
        "100%",
        "%2F",
        "a:b",
        "a*?[b",
        "quote\"'`$(id)",
        "line\nbreak",
        "tab\there",
        "\u{1b}[31mred",
        "bell\u{7}",
        "\u{9b}2J",
        "\u{202e}txt",
        "雨 🦊",
        "e\u{301}",
        "é",
        "Same",
        "same",
        "x.jsonl",
        "git~1",
        "\u{200c}.git",
    ]
    .map(String::from)
    .to_vec();
    // The longest name that fits with its extension.
    names.extend([
        format!("{}x", "🦊".repeat(62)),
        format!("a{}b", " ".repeat(247)),
        "%".repeat(249),
        "雨".repeat(83),
    ]);
    names.push(format!("{}y", "🦊".repeat(62)));
    names
}

#[cfg(unix)]
#[test]
fn unusual_names_are_stored_and_restored_unchanged() {
    let mut sandbox = Sandbox::empty();
    let mut paths = Vec::new();
    for (n, name) in odd_names().iter().enumerate() {
        assert!(name.len() <= 249);
        let path = format!("chats/Odd \u{1b} folder/{name}.jsonl");
        sandbox.write(&path, chat(&format!("odd {n}"), 2, None));
        paths.push(path);
    }
    sandbox.write(&format!("group chats/{}.jsonl", "🦊".repeat(62)), chat("group", 2, None));
    for arguments in
        [&["snapshot"][..], &["status"], &["timelines"], &["log"], &["log", "--graph"], &["check"]]
    {
        let answer = assert_no_panic(sandbox.stvc(arguments)).exits(0);
        assert_no_control_characters(&answer);
    }
    assert_valid(&sandbox);
    assert_eq!(sandbox.snapshot_ids().len(), paths.len() + 1);
    sandbox.wait(60);
    let before: Vec<_> = paths.iter().map(|path| sandbox.read(path)).collect();
    let answer = sandbox.json(&["log"]).exits(0);
    fs::remove_dir_all(sandbox.path("chats")).unwrap();
    for line in answer.of_type("snapshot") {
        assert_no_control_characters(
            &sandbox.stvc(&["restore", line["id"].as_str().unwrap()]).exits(0),
        );
    }
    for (path, bytes) in paths.iter().zip(before) {
        assert_eq!(sandbox.read(path), bytes, "{path:?}");
    }
    let states = sandbox.json(&["status"]).exits(0).of_type("timeline");
    assert!(states.iter().all(|line| line["state"] == "unchanged"), "{states:?}");
}

#[cfg(unix)]
#[test]
fn unstorable_names_are_reported_and_others_stored() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let sandbox = library();
    for name in
        [&b"..jsonl"[..], b"...jsonl", b".jsonl", b"back\\slash.jsonl", b"no \xff utf-8.jsonl"]
    {
        fs::write(sandbox.path("chats/Mira").join(OsStr::from_bytes(name)), chat("odd", 2, None))
            .unwrap();
    }
    let answer = assert_no_panic(sandbox.json(&["snapshot"])).exits(3);
    let found = findings(&answer);
    assert_eq!(found.len(), 5, "{found:#?}");
    assert_findings(&answer, &["unreadable", "back"]);
    assert_findings(&answer, &["unreadable", "utf-8.jsonl"]);
    assert_no_control_characters(&assert_no_panic(sandbox.stvc(&["snapshot"])).exits(3));
    assert_good_chat_stored(&sandbox);
}

/// A typed name is never a path.
#[test]
fn typed_names_cannot_escape_the_library() {
    let sandbox = library();
    sandbox.stvc(&["snapshot"]).exits(0);
    for name in
        ["../../etc/passwd", "..", "chats/../../x", "\u{1b}[2J", "", "~", "~~~~", "b3:", "b3:zz"]
    {
        for command in ["snapshot", "restore", "show", "diff"] {
            let answer = assert_no_panic(sandbox.stvc(&[command, name]));
            assert_eq!(answer.code, 1, "{command} {name:?}: {answer:?}");
            assert_no_control_characters(&answer);
        }
    }
    assert_good_chat_stored(&sandbox);
}

/// The failure of another chat is not reported.
#[test]
fn invalid_file_does_not_fail_the_snapshot_of_another_chat() {
    let sandbox = library();
    sandbox.write("groups/1.json", "{ no JSON");
    sandbox.stvc(&["snapshot", GOOD]).exits(0);
    sandbox.append(GOOD, &message("good", 9));
    sandbox.stvc(&["snapshot", GOOD, "--tag", "mine"]).exits(0);
    assert_good_chat_stored(&sandbox);
}

#[test]
fn usage_error_mentions_quotes_only_for_names_with_spaces() {
    let sandbox = Sandbox::from_fixture("1.19.0");
    let answer = sandbox.stvc(&["restore", "Tide", "Office"]).exits(2);
    assert!(answer.stderr.contains("A name with spaces needs quotes"), "{}", answer.stderr);
    let answer = sandbox.stvc(&["timelines", "--sinc", "x"]).exits(2);
    assert!(answer.stderr.contains("--sinc"), "{}", answer.stderr);
    assert!(!answer.stderr.contains("as a value"), "{}", answer.stderr);
    assert!(!answer.stderr.contains("quotes"), "{}", answer.stderr);
}
