//! What people come for, as they would do it: every command that an answer offers is tried as it is printed, on a copy, and works.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use crate::common::{Answer, Sandbox, answer, chat, copy, message, text};

const A: &str = "chats/Mira/Tide Office.jsonl";

fn library() -> Sandbox {
    let sandbox = Sandbox::empty();
    sandbox.write(A, chat("Mira", 12, Some("Harbour")));
    sandbox.write("chats/Mira/Storm.jsonl", chat("Storm", 5, None));
    sandbox.write(
        "worlds/Harbour.json",
        r#"{"entries":{"0":{"uid":0,"comment":"Pier","content":"Wood."}}}"#,
    );
    sandbox
}

/// Somebody at a computer.
struct Session {
    sandbox: Sandbox,
    /// What was offered, so that a session that offers nothing is noticed.
    tried: BTreeSet<String>,
}

impl Session {
    fn new(sandbox: Sandbox) -> Self {
        Self { sandbox, tried: BTreeSet::new() }
    }

    /// Type a command; try what its answer offers.
    #[track_caller]
    fn types(&mut self, arguments: &[&str], code: i32) -> Answer {
        self.sandbox.wait(60);
        let answer = self.sandbox.stvc(arguments).exits(code);
        for offered in offered(&answer) {
            self.try_out(&offered);
            self.tried.insert(offered);
        }
        answer
    }

    /// In a copy of all there is, as a shell reads it. On Windows it would be PowerShell, which is not on every machine that these tests run on.
    #[track_caller]
    fn try_out(&self, line: &str) {
        if cfg!(windows) {
            return;
        }
        let elsewhere = Sandbox::bare();
        copy(self.sandbox.folder(), elsewhere.folder());
        let bin = Path::new(env!("CARGO_BIN_EXE_stvc")).parent().unwrap();
        let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
        let mut shell = Command::new("sh");
        shell.args(["-c", line]).current_dir(elsewhere.library()).env_clear();
        for (name, value) in self.sandbox.command(&[]).get_envs() {
            shell.env(name, value.unwrap_or_default());
        }
        let done = answer(shell.env("PATH", path).output().unwrap());
        assert_eq!(done.code, 0, "{line}\n{}{}", done.stdout, done.stderr);
    }
}

/// The commands in an answer.
fn offered(answer: &Answer) -> Vec<String> {
    let said = format!("{}\n{}", answer.stdout, answer.stderr);
    let quoted = said.split('`').skip(1).step_by(2);
    let commands = quoted.filter(|words| words.starts_with("stvc "));
    let commands: Vec<_> = commands.map(|words| words.replace('\n', " ")).collect();
    for command in &commands {
        let is_blank = |word: &str| {
            word == "…"
                || word.len() > 2 && word.chars().all(|c| c.is_ascii_uppercase() || c == '.')
        };
        assert!(!command.split(' ').any(is_blank), "what is to be typed for it? {command}\n{said}");
    }
    commands
}

#[test]
fn i_lost_a_chat() {
    let mut session = Session::new(library());
    session.types(&["status"], 0);
    session.types(&["snapshot"], 0);
    let whole = session.sandbox.read(A);
    // SillyTavern wrote an empty chat over it.
    session.sandbox.write(A, chat("Mira", 1, Some("Harbour")));
    let status = session.types(&["status"], 0).stdout;
    assert!(status.contains("12 → 1 msgs"), "{status}");
    session.types(&["snapshot"], 0);
    session.types(&["log", "Tide Office"], 0);
    session.types(&["diff", "Tide Office~1", "Tide Office"], 0);
    session.types(&["restore", "Tide Office~1"], 4);
    session.types(&["restore", "Tide Office~1", "--overwrite"], 0);
    assert_eq!(session.sandbox.read(A), whole);
    // And deleted the other.
    std::fs::remove_file(session.sandbox.path("chats/Mira/Storm.jsonl")).unwrap();
    session.types(&["status"], 0);
    session.types(&["timelines"], 0);
    session.types(&["restore", "Strom"], 1);
    session.types(&["restore", "Storm"], 0);
    session.types(&["status"], 0);
    session.types(&["undo"], 0);
    assert!(session.tried.len() >= 5, "{:?}", session.tried);
}

#[test]
fn another_ending() {
    let mut session = Session::new(library());
    session.types(&["snapshot"], 0);
    session.types(&["fork", "Tide Office", "--at", "4", "--dry-run"], 0);
    session.types(&["fork", "Tide Office", "--at", "4"], 0);
    session.types(&["fork", "Tide Office", "--at", "400"], 4);
    session.types(&["timelines", "--tree"], 0);
    session.sandbox.append("chats/Mira/Tide Office - Branch #1.jsonl", &message("other", 5));
    session.sandbox.write(
        "worlds/Harbour.json",
        r#"{"entries":{"0":{"uid":0,"comment":"Pier","content":"Stone."}}}"#,
    );
    session.types(&["snapshot"], 0);
    session.types(&["diff", "Mira/Tide Office...Branch #1"], 0);
    session.types(&["merge", "Branch #1", "Mira/Tide Office"], 0);
    session.types(&["merge", "Branch #1", "Mira/Tide Office", "--yes"], 0);
    session.types(&["restore", "Mira/Tide Office", "--as", "Branch #1"], 0);
    session.types(&["undo"], 0);
    session.types(&["doctor"], 0);
    session.types(&["log", "--graph"], 0);
    assert!(session.tried.len() >= 2, "{:?}", session.tried);
}

#[test]
fn two_computers() {
    let mut one = Session::new(library());
    let folder = one.sandbox.folder().join("shared");
    one.types(&["sync"], 2);
    one.types(&["sync", text(&folder), "--dry-run"], 0);
    one.types(&["sync", text(&folder)], 0);
    let mut two = Session::new(Sandbox::empty());
    two.types(&["sync", text(&folder)], 0);
    assert_eq!(two.sandbox.read(A), one.sandbox.read(A));
    one.sandbox.append(A, &message("one", 12));
    two.sandbox.append(A, &message("two", 12));
    one.types(&["sync"], 0);
    two.types(&["sync", "--dry-run"], 0);
    two.types(&["sync"], 0);
    two.types(&["status"], 0);
    two.types(&["timelines"], 0);
    one.types(&["sync"], 0);
    one.types(&["backup"], 0);
    one.types(&["backup", "--last"], 0);
    one.types(&["check"], 0);
}

/// Thirty branches of one story, of which three come to the bell, and one of these said it otherwise before.
#[test]
fn which_of_my_30_branches_has_the_scene_with_the_bell() {
    let sandbox = Sandbox::empty();
    let begin = String::from_utf8(chat("Mira", 8, Some("Harbour"))).unwrap();
    let bell = |n: usize, text: &str| message(&format!("branch {n}: {text}"), 8);
    let name = |n: usize| format!("chats/Mira/Tide Office - Branch #{n}.jsonl");
    sandbox.write(A, begin.clone());
    for n in 1..=30 {
        let said = if n % 10 == 0 { "the bell rings" } else { "nothing is heard" };
        sandbox.write(&name(n), format!("{begin}\n{}", bell(n, said)));
    }
    let mut session = Session::new(sandbox);
    session.types(&["snapshot"], 0);
    session.sandbox.write(&name(20), format!("{begin}\n{}", bell(20, "the horn sounds")));
    session.types(&["snapshot"], 0);
    let found = session.types(&["search", "bell rings"], 0).stdout;
    for n in [10, 20, 30] {
        assert!(found.contains(&format!("Branch #{n}")), "{found}");
    }
    assert!(!found.contains("Branch #11"), "{found}");
    // In one of them it is not any more.
    let versions = session.types(&["log", "Branch #20", "--message", "8"], 0).stdout;
    assert!(versions.contains("bell") && versions.contains("horn"), "{versions}");
    assert!(!session.tried.is_empty(), "nothing was offered");
}

#[test]
fn what_did_my_book_say_two_weeks_ago_and_which_message_changed_it() {
    let mut session = Session::new(library());
    session.types(&["snapshot"], 0);
    session.sandbox.wait(16 * 86_400);
    session.sandbox.append(A, &message("Mira", 12));
    session.sandbox.write(
        "worlds/Harbour.json",
        r#"{"entries":{"0":{"uid":0,"comment":"Pier","content":"Ashes."}}}"#,
    );
    session.types(&["snapshot"], 0);
    let then = session.types(&["lore", "Pier", "--at", "2 weeks ago"], 0).stdout;
    assert!(then.contains("Wood."), "{then}");
    let story = session.types(&["lore", "Pier"], 0).stdout;
    assert!(story.contains("Tide Office #12") && story.contains("Ashes"), "{story}");
    // Before the first snapshot nothing is known, and that is said.
    let before = session.types(&["lore", "Pier", "--at", "2 months ago"], 1).stderr;
    assert!(before.contains("was not stored yet then"), "{before}");
}

#[test]
fn show_me_a_message_as_it_was_before_i_edited_it() {
    let mut session = Session::new(library());
    session.types(&["snapshot"], 0);
    let edited = String::from_utf8(session.sandbox.read(A)).unwrap().replace("Mira 7:", "Mira, 7:");
    session.sandbox.write(A, edited);
    session.types(&["snapshot"], 0);
    let versions = session.types(&["log", "Tide Office", "--message", "7"], 0);
    let [offered] = offered(&versions).try_into().unwrap();
    let arguments: Vec<_> = offered.split(' ').skip(1).collect();
    let whole = session.types(&arguments, 0).stdout;
    assert!(whole.contains("Mira 7:"), "{whole}");
}
