//! Settings apply when the command line does not override them.

use std::fs;
use std::path::Path;

use crate::common::watching::Watching;
use crate::common::{Sandbox, chat, message, text};

fn library() -> Sandbox {
    let sandbox = Sandbox::empty();
    sandbox.write("chats/Mira/a.jsonl", chat("a", 3, None));
    sandbox.stvc(&["snapshot"]).exits(0);
    sandbox
}

#[test]
fn settings_are_listed_set_and_unset() {
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
fn settings_of_an_inline_table_are_set_and_unset() {
    let sandbox = library();
    let file = sandbox.store().join("stvc/config.toml");
    fs::write(&file, "# mine\ninclude = { groups = true } # and no more\n").unwrap();
    sandbox.stvc(&["config", "include.settings", "true"]).exits(0);
    for key in ["include.groups", "include.settings"] {
        assert_eq!(sandbox.stvc(&["config", key]).exits(0).stdout, "true\n");
    }
    sandbox.stvc(&["config", "--unset", "include.groups"]).exits(0);
    let left = fs::read_to_string(&file).unwrap();
    assert!(
        left.starts_with("# mine\ninclude = {") && left.ends_with("} # and no more\n"),
        "{left}"
    );
    assert!(left.contains("settings = true") && !left.contains("groups"), "{left}");
}

#[test]
fn invalid_setting_is_refused_and_not_written() {
    let sandbox = library();
    let file = sandbox.store().join("stvc/config.toml");
    for (arguments, words) in [
        (&["config", "colour", "red"][..], "unknown setting \"colour\""),
        (&["config", "color", "red"], "expected one of `auto`, `always`, `never`"),
        (&["config", "retention.keep-last", "many"], "invalid value for retention.keep-last: "),
        (&["config", "retention.keep-last", "-1"], "invalid value for retention.keep-last: "),
        (&["config", "retention.keep-within", "soon"], "expected a duration, such as "),
        (&["config", "--unset", "colour"], "unknown setting \"colour\""),
        (&["config", "colour"], "unknown setting \"colour\""),
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
        // Other commands work without it and report it.
        let log = sandbox.stvc(&["log"]).exits(0);
        assert!(
            log.stderr.contains(line) && log.stderr.contains("the defaults are used"),
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

/// A configuration with a typing error.
const BROKEN: &str = "date = \"iso\"\n[retention]\nkeep-lst = 3\n";

#[test]
fn snapshot_warns_about_broken_configuration() {
    let mut sandbox = library();
    let file = sandbox.store().join("stvc/config.toml");
    fs::write(&file, BROKEN).unwrap();
    sandbox.wait(60);
    sandbox.append("chats/Mira/a.jsonl", &message("a", 3));
    let taken = sandbox.json(&["snapshot"]).exits(0);
    assert_eq!(taken.of_type("snapshot").len(), 1);
    let findings = taken.of_type("finding");
    let finding = findings.iter().find(|found| found["code"] == "configuration-broken").unwrap();
    assert_eq!(finding["level"], "warning");
    assert!(finding["message"].as_str().unwrap().contains("line 3: unknown field `keep-lst`"));
    assert!(finding["subject"].as_str().unwrap().ends_with("config.toml"));
    for command in ["status", "timelines", "stats", "doctor", "check"] {
        sandbox.stvc(&[command]).exits(0);
    }
    let copy = sandbox.folder().join("copy.stvc");
    sandbox.stvc(&["backup", text(&copy)]).exits(0);
    sandbox.stvc(&["restore", "Mira/a~1", "--overwrite"]).exits(0);
    assert_eq!(sandbox.read("chats/Mira/a.jsonl"), chat("a", 3, None));
    assert_eq!(fs::read_to_string(&file).unwrap(), BROKEN);
}

/// The configured retention and destination are unknown.
#[test]
fn forget_and_backup_without_options_refuse_broken_configuration() {
    let sandbox = library();
    let copy = sandbox.folder().join("copy.stvc");
    sandbox.stvc(&["backup", text(&copy)]).exits(0);
    fs::write(sandbox.store().join("stvc/config.toml"), BROKEN).unwrap();
    for command in ["forget", "backup", "sync"] {
        let refused = sandbox.stvc(&[command]).exits(1);
        assert!(refused.stderr.contains("line 3: "), "{}", refused.stderr);
        assert!(refused.stderr.contains("hint: correct the file"), "{}", refused.stderr);
    }
    // Values on the command line are known.
    sandbox.stvc(&["forget", "--keep-last", "1"]).exits(0);
    sandbox.stvc(&["gc"]).exits(0);
}

#[test]
fn watch_survives_broken_configuration_and_reads_the_correction() {
    let mut sandbox = library();
    let file = sandbox.store().join("stvc/config.toml");
    for messages in 4..8 {
        sandbox.wait(60);
        sandbox.write("chats/Mira/a.jsonl", chat("a", messages, None));
        sandbox.stvc(&["snapshot"]).exits(0);
    }
    fs::write(&file, BROKEN).unwrap();
    let watching = Watching::start(&sandbox, &["--poll", "100ms"]);
    let found = watching.wait_for(|event| event["type"] == "finding");
    assert_eq!(found["code"], "configuration-broken");
    sandbox.save("chats/Mira/a.jsonl", chat("a", 9, None));
    watching.snapshot_of(9);
    assert_eq!(sandbox.snapshot_ids().len(), 6);
    fs::write(&file, BROKEN.replace("lst", "last")).unwrap();
    let event = watching.wait_for(|event| event["event"] == "tidied");
    assert_eq!(event["forgotten"], 3, "{event}");
    watching.stop();
    assert_eq!(sandbox.snapshot_ids().len(), 3);
}

#[test]
fn backup_without_a_destination_uses_the_last_one() {
    let mut sandbox = library();
    for command in ["backup", "sync"] {
        let nowhere = sandbox.stvc(&[command]).exits(2).stderr;
        assert!(
            nowhere.contains(&format!("no {command} destination: none was given")),
            "{nowhere}"
        );
        assert!(nowhere.contains("hint: pass a "), "{nowhere}");
    }
    let file = sandbox.folder().join("all.stvc");
    sandbox.stvc(&["backup", text(&file)]).exits(0);
    let first = fs::read(&file).unwrap();
    sandbox.wait(60);
    sandbox.append("chats/Mira/a.jsonl", &message("a", 3));
    let again = sandbox.stvc(&["backup"]).exits(0);
    assert!(again.stderr.contains(&format!("Backing up to {}.", text(&file))), "{}", again.stderr);
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
    // The configured destination precedes the last one.
    let other = sandbox.folder().join("other");
    sandbox.stvc(&["config", "backup.destination", text(&other)]).exits(0);
    sandbox.stvc(&["backup"]).exits(0);
    assert_eq!(heads(&other), heads(&sandbox.store()));
}

#[test]
fn repeated_backup_of_an_encrypted_file_stays_encrypted() {
    let sandbox = library();
    let (file, secret) = (sandbox.folder().join("all.stvc"), sandbox.folder().join("secret"));
    fs::write(&secret, "open sesame\n").unwrap();
    let with = |arguments: &[&str]| {
        sandbox.stvc(&[&["--passphrase-file", text(&secret)], arguments].concat())
    };
    with(&["backup", "--encrypt", text(&file)]).exits(0);
    with(&["backup"]).exits(0);
    assert!(fs::read(&file).unwrap().starts_with(b"age-encryption.org"));
    // Without a terminal to ask on, nothing is written unencrypted.
    sandbox.stvc(&["backup"]).exits(1);
    assert!(fs::read(&file).unwrap().starts_with(b"age-encryption.org"));
}
