//! Everyday tasks as users do them: every printed command is run as printed, on a copy, and works.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use crate::common::{Answer, Sandbox, answer, chat, copy_folder, message, text};

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

/// A user's session.
struct Session {
    sandbox: Sandbox,
    /// Commands that the output suggested. A session without any must fail.
    tried: BTreeSet<String>,
}

impl Session {
    fn new(sandbox: Sandbox) -> Self {
        Self { sandbox, tried: BTreeSet::new() }
    }

    /// Runs a command and every command that its output offers.
    #[track_caller]
    fn run(&mut self, arguments: &[&str], code: i32) -> Answer {
        self.sandbox.wait(60);
        let answer = self.sandbox.stvc(arguments).exits(code);
        for offered in offered(&answer) {
            self.try_out(&offered);
            self.tried.insert(offered);
        }
        answer
    }

    /// Runs the line by a shell in a copy of everything. Not on Windows, where the line is for
    /// PowerShell, which is not on every test machine.
    #[track_caller]
    fn try_out(&self, line: &str) {
        // `stvc setup` asks a question and changes the system.
        if cfg!(windows) || line == "stvc setup" {
            return;
        }
        let elsewhere = Sandbox::without_library();
        copy_folder(self.sandbox.folder(), elsewhere.folder());
        let bin = Path::new(env!("CARGO_BIN_EXE_stvc")).parent().unwrap();
        let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
        let mut shell = Command::new("sh");
        shell.args(["-c", line]).current_dir(elsewhere.library()).env_clear();
        for (name, value) in self.sandbox.command(&[]).get_envs() {
            shell.env(name, value.unwrap_or_default());
        }
        let done = answer(shell.env("PATH", path).output().unwrap());
        // `stvc doctor` exits with 1 if it finds errors.
        let is_done = done.code == 0 || line == "stvc doctor" && done.code == 1;
        assert!(is_done, "{line}\n{}{}", done.stdout, done.stderr);
    }
}

/// Returns the commands in an answer.
fn offered(answer: &Answer) -> Vec<String> {
    let output = format!("{}\n{}", answer.stdout, answer.stderr);
    let quoted = output.split('`').skip(1).step_by(2);
    let commands = quoted.filter(|words| words.starts_with("stvc "));
    let commands: Vec<_> = commands.map(|words| words.replace('\n', " ")).collect();
    for command in &commands {
        let is_blank = |word: &str| {
            word == "…"
                || word.len() > 2 && word.chars().all(|c| c.is_ascii_uppercase() || c == '.')
        };
        assert!(
            !command.split(' ').any(is_blank),
            "what is to be typed for it? {command}\n{output}"
        );
    }
    commands
}

#[test]
fn session_restores_a_lost_chat() {
    let mut session = Session::new(library());
    session.run(&["status"], 0);
    session.run(&["snapshot"], 0);
    let whole = session.sandbox.read(A);
    // SillyTavern overwrote it with an empty chat.
    session.sandbox.write(A, chat("Mira", 1, Some("Harbour")));
    let status = session.run(&["status"], 0).stdout;
    assert!(status.contains("12 → 1 msg "), "{status}");
    session.run(&["snapshot"], 0);
    session.run(&["log", "Tide Office"], 0);
    session.run(&["diff", "Tide Office~1", "Tide Office"], 0);
    session.run(&["restore", "Tide Office~1"], 4);
    session.run(&["restore", "Tide Office~1", "--overwrite"], 0);
    assert_eq!(session.sandbox.read(A), whole);
    // The other one is deleted.
    std::fs::remove_file(session.sandbox.path("chats/Mira/Storm.jsonl")).unwrap();
    session.run(&["status"], 0);
    session.run(&["timelines"], 0);
    session.run(&["restore", "Strom"], 1);
    session.run(&["restore", "Storm"], 0);
    session.run(&["status"], 0);
    session.run(&["undo"], 0);
    assert!(session.tried.len() >= 5, "{:?}", session.tried);
}

#[test]
fn session_forks_and_merges_a_chat() {
    let mut session = Session::new(library());
    session.run(&["snapshot"], 0);
    session.run(&["fork", "Tide Office", "--at", "4", "--dry-run"], 0);
    session.run(&["fork", "Tide Office", "--at", "4"], 0);
    session.run(&["fork", "Tide Office", "--at", "400"], 4);
    session.run(&["timelines", "--tree"], 0);
    session.sandbox.append("chats/Mira/Tide Office - Branch #1.jsonl", &message("other", 5));
    session.sandbox.write(
        "worlds/Harbour.json",
        r#"{"entries":{"0":{"uid":0,"comment":"Pier","content":"Stone."}}}"#,
    );
    session.run(&["snapshot"], 0);
    session.run(&["diff", "Mira/Tide Office...Branch #1"], 0);
    session.run(&["merge", "Branch #1", "Mira/Tide Office"], 0);
    session.run(&["merge", "Branch #1", "Mira/Tide Office", "--yes"], 0);
    session.run(&["restore", "Mira/Tide Office", "--as", "Branch #1"], 0);
    session.run(&["undo"], 0);
    session.run(&["doctor"], 0);
    session.run(&["log", "--graph"], 0);
    assert!(session.tried.len() >= 2, "{:?}", session.tried);
}

#[test]
fn session_syncs_two_computers() {
    let mut one = Session::new(library());
    let folder = one.sandbox.folder().join("shared");
    one.run(&["sync"], 2);
    one.run(&["sync", text(&folder), "--dry-run"], 0);
    one.run(&["sync", text(&folder)], 0);
    let mut two = Session::new(Sandbox::empty());
    two.run(&["sync", text(&folder)], 0);
    assert_eq!(two.sandbox.read(A), one.sandbox.read(A));
    one.sandbox.append(A, &message("one", 12));
    two.sandbox.append(A, &message("two", 12));
    one.run(&["sync"], 0);
    two.run(&["sync", "--dry-run"], 0);
    two.run(&["sync"], 0);
    two.run(&["status"], 0);
    two.run(&["timelines"], 0);
    one.run(&["sync"], 0);
    one.run(&["backup"], 0);
    one.run(&["backup", "--last"], 0);
    one.run(&["check"], 0);
}

/// Thirty branches of one story; three mention the bell, and one of them had other words before.
#[test]
fn session_finds_text_in_30_branches() {
    let sandbox = Sandbox::empty();
    let begin = String::from_utf8(chat("Mira", 8, Some("Harbour"))).unwrap();
    let bell = |n: usize, text: &str| message(&format!("branch {n}: {text}"), 8);
    let name = |n: usize| format!("chats/Mira/Tide Office - Branch #{n}.jsonl");
    sandbox.write(A, begin.clone());
    for n in 1..=30 {
        let text = if n % 10 == 0 { "the bell rings" } else { "nothing is heard" };
        sandbox.write(&name(n), format!("{begin}\n{}", bell(n, text)));
    }
    let mut session = Session::new(sandbox);
    session.run(&["snapshot"], 0);
    session.sandbox.write(&name(20), format!("{begin}\n{}", bell(20, "the horn sounds")));
    session.run(&["snapshot"], 0);
    let found = session.run(&["search", "bell rings"], 0).stdout;
    for n in [10, 20, 30] {
        assert!(found.contains(&format!("Branch #{n}")), "{found}");
    }
    assert!(!found.contains("Branch #11"), "{found}");
    // One of them no longer has it.
    let versions = session.run(&["log", "Branch #20", "--message", "8"], 0).stdout;
    assert!(versions.contains("bell") && versions.contains("horn"), "{versions}");
    assert!(!session.tried.is_empty(), "nothing was offered");
}

#[test]
fn session_shows_the_lorebook_of_two_weeks_ago() {
    let mut session = Session::new(library());
    session.run(&["snapshot"], 0);
    session.sandbox.wait(16 * 86_400);
    session.sandbox.append(A, &message("Mira", 12));
    session.sandbox.write(
        "worlds/Harbour.json",
        r#"{"entries":{"0":{"uid":0,"comment":"Pier","content":"Ashes."}}}"#,
    );
    session.run(&["snapshot"], 0);
    let then = session.run(&["lore", "Pier", "--at", "2 weeks ago"], 0).stdout;
    assert!(then.contains("Wood."), "{then}");
    let story = session.run(&["lore", "Pier"], 0).stdout;
    assert!(story.contains("Tide Office #12") && story.contains("Ashes"), "{story}");
    // Before the first snapshot nothing is known, and an error says so.
    let before = session.run(&["lore", "Pier", "--at", "2 months ago"], 1).stderr;
    assert!(before.contains("has no snapshot from that time"), "{before}");
}

#[test]
fn session_shows_an_earlier_version_of_a_message() {
    let mut session = Session::new(library());
    session.run(&["snapshot"], 0);
    let edited = String::from_utf8(session.sandbox.read(A)).unwrap().replace("Mira 7:", "Mira, 7:");
    session.sandbox.write(A, edited);
    session.run(&["snapshot"], 0);
    let versions = session.run(&["log", "Tide Office", "--message", "7"], 0);
    let [offered] = offered(&versions).try_into().unwrap();
    let arguments: Vec<_> = offered.split(' ').skip(1).collect();
    let whole = session.run(&arguments, 0).stdout;
    assert!(whole.contains("Mira 7:"), "{whole}");
}
