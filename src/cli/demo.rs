//! `stvc demo`: runs the main commands on a sample library and prints each command line.

use std::ffi::OsString;
use std::path::Path;
use std::{fs, io};

use super::error::Result;
use super::exit;
use super::output::{Output, bold, dim};
use super::wording::shell;
use stvc::hint::EXAMPLE_FOLDER;
use stvc::json_output::{Counts, Summary};
use stvc::stores::temporary_folder;
use stvc::{library, verbs};

macro_rules! sample {
    ($($path:literal),* $(,)?) => {
        &[$(($path, include_bytes!(concat!("../../fixtures/1.19.0/default-user/", $path)))),*]
    };
}

const CHAT: &str = "chats/Mira Voss/The Tide Office — part 1 (雨).jsonl";
const LOREBOOK: &str = "worlds/Tide Office Lore.json";

const FILES: &[(&str, &[u8])] = sample![
    "settings.json",
    "chats/Mira Voss/Before the ferry #1 @dawn xy.jsonl",
    "chats/Mira Voss/Mira Voss - 2026-11-14@23h57m31s408ms - Branch #1.jsonl",
    "chats/Mira Voss/Mira Voss - 2026-11-14@23h57m31s408ms - Checkpoint #1.jsonl",
    "chats/Mira Voss/The Tide Office — part 1 (雨).jsonl",
    "chats/Ærin 雪 🦊/Snow shrine 雪.jsonl",
    "group chats/Ferry main.jsonl",
    "groups/1794700910763.json",
    "worlds/Ferry Lore.json",
    "worlds/Snow Shrine.json",
    "worlds/Tide Office Lore.json",
];

fn write_sample(root: &Path) -> io::Result<()> {
    for (path, bytes) in FILES {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap_or(root))?;
        fs::write(path, bytes)?;
    }
    Ok(())
}

type Run = fn(&[OsString]) -> u8;

pub fn run(run: Run, out: &mut Output) -> Result<u8> {
    let folder = temporary_folder(&std::env::temp_dir()).map_err(verbs::Error::from)?;
    let library = folder.path().join("default-user");
    write_sample(&library).map_err(verbs::Error::at(&library))?;
    let mut demo = Demo { run, library: &library, out, steps: 0, failed: 0 };

    demo.print(
        "A sample library: a chat with a checkpoint and a branch, another character, a group.",
    );
    demo.step(&["snapshot"]);
    demo.print("The chat continues: one more message, and a longer lorebook entry.");
    let chat = library.join(CHAT);
    let (before, after) = write_on(&library).map_err(verbs::Error::at(&chat))?;
    demo.step(&["status"]);
    demo.step(&["snapshot", "-m", "The bell rings"]);
    demo.step(&["log", "--graph"]);
    demo.print("Compare the last two snapshots of the chat:");
    demo.step(&["diff", "Tide Office~1", "Tide Office"]);
    demo.print("The chat file is deleted by accident. Restore it:");
    #[expect(clippy::disallowed_methods, reason = "simulates a deletion by the user")]
    fs::remove_file(&chat).map_err(verbs::Error::at(&chat))?;
    demo.step(&["restore", "Tide Office"]);
    demo.expect(&chat, &after);
    demo.print("Start a new timeline from the earlier snapshot, with its own lorebook:");
    demo.step(&["restore", "Tide Office~1", "--as", "The bell never rang"]);
    demo.print(
        "Restore the earlier snapshot of the chat itself. The current state is saved first:",
    );
    demo.step(&["restore", "Tide Office~1", "--overwrite", "--only", "chat"]);
    demo.expect(&chat, &before);
    demo.step(&["check"]);

    let (steps, failed) = (demo.steps, demo.failed);
    if failed == 0 {
        out.say("Every step worked, and the restored files are identical to the originals.");
        out.say(format!("Try it with your own chats: `stvc --data {EXAMPLE_FOLDER} snapshot`"));
    }
    let counts = Counts(vec![("steps", steps.into()), ("failed", failed.into())]);
    out.end_with(Summary { command: "demo", ok: failed == 0, counts });
    Ok(if failed == 0 { exit::DONE } else { exit::FAILED })
}

struct Demo<'a> {
    run: Run,
    library: &'a Path,
    out: &'a mut Output,
    steps: usize,
    failed: usize,
}

impl Demo<'_> {
    fn print(&mut self, text: &str) {
        self.out.say(dim(format!("# {text}")));
    }

    fn step(&mut self, arguments: &[&str]) {
        let typed: Vec<_> = arguments.iter().map(|argument| shell(argument)).collect();
        self.out.say(bold(format!("$ stvc {}", typed.join(" "))));
        let library = self.library.display().to_string();
        // The store is passed as an option, so that `STVC_STORE` cannot select the user's own
        // store.
        let store = self.library.join(library::STORE).display().to_string();
        let mut line: Vec<String> =
            ["stvc", "--data", &library, "--store", &store].map(str::to_owned).into();
        if self.out.is_json() {
            line.push("--json".into());
        }
        line.extend(arguments.iter().map(|argument| (*argument).to_owned()));
        self.steps += 1;
        if (self.run)(&line.into_iter().map(Into::into).collect::<Vec<_>>()) != exit::DONE {
            self.failed += 1;
        }
        self.out.say("");
    }

    fn expect(&mut self, path: &Path, bytes: &[u8]) {
        if fs::read(path).ok().as_deref() != Some(bytes) {
            self.failed += 1;
            self.out.error_line(&format!("{} does not have the expected content", path.display()));
        }
    }
}

/// Adds a message to the chat and a sentence to the lorebook. Returns the bytes of the chat before
/// and after.
fn write_on(library: &Path) -> io::Result<(Vec<u8>, Vec<u8>)> {
    let chat = library.join(CHAT);
    let before = fs::read(&chat)?;
    let message = r#"{"name":"Mira Voss","is_user":false,"is_system":false,"send_date":"2026-11-15T00:10:00.000Z","mes":"*Far out, the ferry's bell rings twice.* \"That is us, then.\"","extra":{}}"#;
    let after = [before.as_slice(), b"\n", message.as_bytes()].concat();
    fs::write(&chat, &after)?;

    let book_path = library.join(LOREBOOK);
    let book = fs::read(&book_path)?;
    let first = library::Raw::parse(&book)
        .and_then(|book| book.get("entries")?.members()?.into_iter().next());
    if let Some(key) = first.map(|member| member.key.to_string_lossy()) {
        let path = ["entries", key.as_str(), "content"];
        let content = library::Raw::parse(&book)
            .and_then(|book| book.path(&path)?.string())
            .unwrap_or_default();
        let longer = format!("{content} Two strokes of the bell mean: come aboard.");
        let longer = serde_json::to_string(&longer)?;
        if let Some(edited) = library::replace(&book, &path, longer.as_bytes()) {
            fs::write(&book_path, edited)?;
        }
    }
    Ok((before, after))
}
