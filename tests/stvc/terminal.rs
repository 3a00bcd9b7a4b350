//! Terminal output: colours on request, `--quiet`, and no control characters.

use std::fs;

use crate::common::harbour::{CHAT, library, message, story};
use crate::common::{Answer, Sandbox, answer};

#[test]
fn colours_follow_options_and_terminal() {
    let sandbox = story();
    let with = |arguments: &[&str], variable: Option<&str>| {
        let mut command = sandbox.command(arguments);
        command.envs(variable.map(|name| (name, "1")));
        crate::common::answer(command.output().unwrap()).exits(0).stdout
    };
    let plain = with(&["log", "--graph"], None);
    assert!(!plain.contains('\u{1b}'));
    let coloured = with(&["--color", "always", "log", "--graph"], None);
    assert!(coloured.contains("\u{1b}[33m"));
    assert_eq!(with(&["--color", "never", "log", "--graph"], Some("CLICOLOR_FORCE")), plain);
    assert_eq!(with(&["log", "--graph"], Some("NO_COLOR")), plain);
    assert_eq!(with(&["--color", "always", "log", "--graph"], Some("NO_COLOR")), coloured);
    // JSON has no colours in any case.
    assert_eq!(with(&["--color", "always", "--json", "log"], None), with(&["--json", "log"], None));
}

#[test]
fn quiet_option_prints_only_results_and_errors() {
    let sandbox = library();
    let quiet = |arguments: &[&str], code| {
        let answer = sandbox.stvc(&[&["--quiet"], arguments].concat()).exits(code);
        (answer.stdout, answer.stderr)
    };
    let nothing = (String::new(), String::new());
    assert_eq!(quiet(&["snapshot"], 0), nothing);
    assert_eq!(quiet(&["check"], 0), nothing);
    fs::remove_file(sandbox.path(CHAT)).unwrap();
    assert_eq!(quiet(&["restore", "Harbour"], 0), nothing);
    assert_eq!(quiet(&["log"], 0).0, sandbox.stvc(&["log"]).stdout);
    assert!(quiet(&["show", "nothing"], 1).1.starts_with("error: "));
}

#[test]
fn control_characters_never_reach_the_terminal() {
    let sandbox = Sandbox::empty();
    let evil = r"\u001b[2J\u001b]0;owned\u0007\u009b31m\r\u202e\u0000\b\u007f";
    let raw = "\u{9b}31m\u{7f}\u{202e}";
    // Any valid file name can be a chat's name.
    let name =
        if cfg!(target_os = "linux") { "evil\n\u{1b}[2J\u{7}\u{202e}" } else { "evil\u{202e}" };
    let header =
        format!(r#"{{"chat_metadata":{{"world_info":"Lore","note{evil}":"{evil}{raw}"}}}}"#);
    let chat = format!("chats/{name}/{name}.jsonl");
    sandbox.write(&chat, format!("{header}\n{}", message(evil, &format!("{evil}{raw}"))));
    let book = |text: &str| {
        format!(
            r#"{{"entries":{{"{evil}":{{"uid":0,"comment":"{evil}{raw}","content":"{text}"}}}}}}"#
        )
    };
    sandbox.write("worlds/Lore.json", book("one"));
    sandbox.write("groups/x.json", "\u{1b}[2J");
    let id = |answer: &Answer| answer.of_type("snapshot")[0]["id"].as_str().unwrap().to_owned();
    let first = id(&sandbox.json(&["snapshot", "-m", "say \u{1b}[2J\u{9b}31m"]).exits(0));
    sandbox.stvc(&["tag", "tag \u{1b}[2J\u{9b}", &first]).exits(0);
    sandbox.write("worlds/Lore.json", book(evil));
    sandbox.append(&chat, "\u{1b}[2J\u{9b} no JSON \u{7}");
    let commands: [&[&str]; 13] = [
        &["status"],
        &["diff", &first],
        &["snapshot"],
        &["timelines"],
        &["log"],
        &["log", "--graph"],
        &["show", &first],
        &["tag"],
        &["restore", &first],
        &["restore", "\u{1b}[2J"],
        &["restore", &first, "--overwrite"],
        &["check"],
        &["show", "evil"],
    ];
    for arguments in commands {
        // With colours: without them all escapes are filtered, stvc's and others.
        let answer = sandbox.stvc(&[&["--color", "always"], arguments].concat());
        let text = without_colours(&format!("{}{}", answer.stdout, answer.stderr));
        assert!(!text.is_empty());
        let alive =
            |c: char| (c.is_control() && c != '\n') || ('\u{202a}'..='\u{202e}').contains(&c);
        assert!(!text.contains(alive), "{arguments:?}: {text:?}");
        assert!(
            !text.lines().any(|line| line.ends_with("evil")),
            "{arguments:?}: a name broke a line:\n{text}"
        );
    }
}

/// Removes `ESC [ … m`, which the test's files do not contain.
fn without_colours(text: &str) -> String {
    let mut parts = text.split("\u{1b}[");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part.find(|c: char| !c.is_ascii_digit() && c != ';').unwrap_or(part.len());
        match part[end..].strip_prefix('m') {
            Some(rest) => out.push_str(rest),
            None => out.push_str(&format!("\u{1b}[{part}")),
        }
    }
    out
}

/// A full disk behind stdout is an error; a closed pipe is not.
#[cfg(unix)]
#[test]
fn failed_output_is_an_error() {
    let sandbox = Sandbox::from_fixture("1.19.0");
    sandbox.stvc(&["snapshot"]).exits(0);
    let commands: [&[&str]; 9] = [
        &["log"],
        &["status"],
        &["timelines", "--tree"],
        &["--json", "log"],
        &["completions", "bash"],
        &["man"],
        &["--help"],
        &["--json", "nonsense"],
        &["backup", "-"],
    ];
    for command in commands {
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        let result = answer(sandbox.command(command).stdout(full).output().unwrap());
        assert!(result.code == 1 || command.contains(&"nonsense"), "{command:?}: {}", result.code);
        assert!(result.stderr.contains("No space left"), "{command:?}: {}", result.stderr);
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        if command != ["backup", "-"] && !command.contains(&"nonsense") {
            let answer =
                crate::common::answer(sandbox.command(command).stdout(writer).output().unwrap());
            assert_eq!((answer.code, answer.stderr.as_str()), (0, ""), "{command:?}");
        }
    }
}

#[test]
fn repeated_findings_are_grouped() {
    let sandbox = Sandbox::empty();
    for n in 0..30 {
        let header =
            r#"{"user_name":"u","character_name":"c","chat_metadata":{"world_info":"Gone"}}"#;
        let chat = format!("{header}\n{{\"name\":\"u\",\"mes\":\"{n}\"}}");
        sandbox.write(&format!("chats/Mira/Branch {n:02}.jsonl"), chat);
    }
    let errors = sandbox.stvc(&["snapshot"]).exits(0).stderr;
    let brief = "error: 30 findings lorebook-missing, for example chats/Mira/Branch 00: ";
    assert!(errors.starts_with(brief) && errors.lines().count() == 1, "{errors}");
    assert!(errors.contains("`stvc doctor` lists all"), "{errors}");
    assert_eq!(sandbox.json(&["status"]).of_type("finding").len(), 30);
    let all = sandbox.stvc(&["status", "-v"]).exits(0).stderr;
    assert_eq!(all.matches("does not exist").count(), 1, "{all}");
    assert!(all.contains("also applies to 29 others: chats/Mira/Branch 01"), "{all}");
}
