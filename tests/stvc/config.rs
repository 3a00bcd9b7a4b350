//! Defaults: what is set holds where the command line says nothing.

use std::fs;
use std::path::Path;

use crate::common::{Sandbox, chat, message, text};

fn library() -> Sandbox {
    let sandbox = Sandbox::empty();
    sandbox.write("chats/Mira/a.jsonl", chat("a", 3, None));
    sandbox.stvc(&["snapshot"]).exits(0);
    sandbox
}

#[test]
fn settings_are_seen_set_and_unset() {
    let sandbox = library();
    let file = sandbox.store().join("stvc/config.toml");
    let all = sandbox.json(&["config"]).exits(0).of_type("setting");
    assert!(all.iter().all(|line| line["value"].is_null()), "{all:?}");
    fs::write(&file, "# mine\ndate = \"iso\" # as I like it\n\n[retention]\nkeep-last = 3\n")
        .unwrap();
    sandbox.stvc(&["config", "date", "relative"]).exits(0);
    sandbox.stvc(&["config", "retention.keep-last", "5"]).exits(0);
    sandbox.stvc(&["config", "retention.keep-within", "7d"]).exits(0);
    assert_eq!(
        fs::read_to_string(&file).unwrap(),
        "# mine\ndate = \"relative\" # as I like it\n\n[retention]\nkeep-last = 5\nkeep-within = \"7d\"\n"
    );
    assert_eq!(sandbox.stvc(&["config", "date"]).exits(0).stdout, "relative\n");
    assert!(sandbox.stvc(&["log"]).exits(0).stdout.contains("just now"));
    assert!(sandbox.stvc(&["log", "--date", "iso"]).exits(0).stdout.contains("T"));
    sandbox.stvc(&["forget", "--dry-run"]).exits(0);
    sandbox.stvc(&["config", "--unset", "date"]).exits(0);
    assert!(!sandbox.stvc(&["log"]).exits(0).stdout.contains("just now"));
    sandbox.stvc(&["config", "color", "always"]).exits(0);
    assert!(sandbox.stvc(&["log"]).exits(0).stdout.contains('\u{1b}'));
    assert!(!sandbox.stvc(&["--color", "never", "log"]).exits(0).stdout.contains('\u{1b}'));
}

#[test]
fn what_cannot_be_understood_is_named_and_not_written() {
    let sandbox = library();
    let file = sandbox.store().join("stvc/config.toml");
    for (arguments, words) in [
        (&["config", "colour", "red"][..], "there is no setting \"colour\""),
        (&["config", "color", "red"], "expected one of `auto`, `always`, `never`"),
        (&["config", "retention.keep-last", "many"], "retention.keep-last cannot be set to that"),
        (&["config", "retention.keep-last", "-1"], "cannot be set"),
        (&["config", "retention.keep-within", "soon"], "a time is expected"),
        (&["config", "--unset", "colour"], "there is no setting"),
        (&["config", "colour"], "there is no setting"),
    ] {
        let answer = sandbox.stvc(arguments);
        assert_ne!(answer.code, 0, "{arguments:?}");
        assert!(answer.stderr.contains(words), "{arguments:?}: {}", answer.stderr);
        assert!(!file.exists());
    }
    for (text, line) in [
        ("date = \"iso\"\ncolour = \"red\"\n", "line 2: unknown field `colour`"),
        ("\n\ndate = iso\n", "line 3: "),
        ("[retention]\nkeep-lst = 3\n", "line 2: unknown field `keep-lst`"),
        ("pager = 3\n", "line 1: "),
    ] {
        fs::write(&file, text).unwrap();
        // Other commands work without it, and say so.
        let log = sandbox.stvc(&["log"]).exits(0);
        assert!(
            log.stderr.contains(line) && log.stderr.contains("it is not used"),
            "{}",
            log.stderr
        );
        let config = sandbox.stvc(&["config"]).exits(1);
        assert!(config.stderr.contains(line), "{}", config.stderr);
        sandbox.stvc(&["config", "date", "iso"]).exits(1);
        assert_eq!(fs::read_to_string(&file).unwrap(), text);
    }
    fs::write(&file, b"date = \"\xff\"").unwrap();
    assert!(sandbox.stvc(&["config"]).exits(1).stderr.contains("not valid UTF-8"));
}

#[test]
fn copies_go_where_the_last_one_went() {
    let mut sandbox = library();
    for command in ["backup", "sync"] {
        let nowhere = sandbox.stvc(&[command]).exits(2).stderr;
        assert!(nowhere.contains("it is not said where to"), "{nowhere}");
        assert!(nowhere.contains("hint: name a "), "{nowhere}");
    }
    let file = sandbox.folder().join("all.stvc");
    sandbox.stvc(&["backup", text(&file)]).exits(0);
    let first = fs::read(&file).unwrap();
    sandbox.wait(60);
    sandbox.append("chats/Mira/a.jsonl", &message("a", 3));
    let again = sandbox.stvc(&["backup"]).exits(0);
    assert!(again.stderr.contains("as the last time"), "{}", again.stderr);
    assert_ne!(fs::read(&file).unwrap(), first);
    sandbox.stvc(&["sync"]).exits(2);
    sandbox.wait(60);
    let folder = sandbox.folder().join("shared");
    sandbox.stvc(&["sync", text(&folder)]).exits(0);
    sandbox.wait(60);
    sandbox.append("chats/Mira/a.jsonl", &message("a", 4));
    sandbox.stvc(&["sync"]).exits(0);
    let heads = |place: &Path| crate::common::refs(place);
    assert_eq!(heads(&folder), heads(&sandbox.store()));
    // What is set has precedence over what was last.
    let other = sandbox.folder().join("other");
    sandbox.stvc(&["config", "backup", text(&other)]).exits(0);
    sandbox.stvc(&["backup"]).exits(0);
    assert_eq!(heads(&other), heads(&sandbox.store()));
}

#[test]
fn an_encrypted_backup_stays_one() {
    let sandbox = library();
    let (file, secret) = (sandbox.folder().join("all.stvc"), sandbox.folder().join("secret"));
    fs::write(&secret, "open sesame\n").unwrap();
    let with = |arguments: &[&str]| {
        sandbox.stvc(&[&["--passphrase-file", text(&secret)], arguments].concat())
    };
    with(&["backup", "--encrypt", text(&file)]).exits(0);
    with(&["backup"]).exits(0);
    assert!(fs::read(&file).unwrap().starts_with(b"age-encryption.org"));
    // Nobody is asked here, so nothing is written in the open.
    sandbox.stvc(&["backup"]).exits(1);
    assert!(fs::read(&file).unwrap().starts_with(b"age-encryption.org"));
}
