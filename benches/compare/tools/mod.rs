//! The compared tools; all read the same library, and each has its own store.

mod borg;
mod bup;
mod floor;
mod git;
mod program;
mod restic;
mod stvc;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use ::stvc::Workspace;

pub use git::git_in;
pub use stvc::Stvc;

use crate::measure::run;

/// A tool that stores states of a library. Methods return commands, so that callers can time them;
/// an empty list means that the tool has no such command.
pub trait Tool {
    fn name(&self) -> &'static str;
    fn place(&self) -> &Place;
    fn create(&self) {}
    fn save(&self) -> Vec<Command> {
        Vec::new()
    }
    /// Restores the latest state of one chat into the library or into `target`.
    fn restore(&self, _chat: &Path, _timeline: &str, _target: &Path) -> Vec<Command> {
        Vec::new()
    }
    fn log(&self) -> Vec<Command> {
        Vec::new()
    }
    /// Verifies everything.
    fn check(&self) -> Vec<Command> {
        Vec::new()
    }
    /// Makes the store as small as possible.
    fn gc(&self) -> Vec<Command> {
        Vec::new()
    }
    /// Exports everything into one file.
    fn backup(&self, _file: &Path) -> Vec<Command> {
        Vec::new()
    }
}

/// The folders of a tool.
#[derive(Clone)]
pub struct Place {
    pub library: PathBuf,
    pub home: PathBuf,
}

impl Place {
    /// Counted as the store; caches are outside.
    pub fn store(&self) -> PathBuf {
        self.home.join("store")
    }

    /// Returns a workspace for calling verbs without a process.
    pub fn workspace(&self, now: chrono::DateTime<chrono::Utc>) -> Workspace {
        Workspace {
            store: Some(self.store()),
            now: now.fixed_offset(),
            ..Workspace::at(&self.library, "stvc snapshot")
        }
    }

    pub fn clear(&self) {
        let _ = fs::remove_dir_all(&self.home);
        fs::create_dir_all(&self.home).expect("make a folder for a tool");
    }

    /// Copies everything to another folder.
    pub fn copy(&self, home: &Path) -> Place {
        let mut copy = Command::new("cp");
        copy.arg("-a").arg(&self.home).arg(home);
        run(copy);
        Place { library: self.library.clone(), home: home.to_owned() }
    }
}

/// Name, program, and the argument that prints the version.
fn programs() -> [(&'static str, &'static str, &'static str); 6] {
    [
        ("stvc", program::program(), "--version"),
        ("git", "git", "--version"),
        ("restic", "restic", "version"),
        ("borg", "borg", "--version"),
        ("bup", "bup", "--version"),
        ("zstd", "zstd", "--version"),
    ]
}

/// Returns every installed tool, stvc first.
pub fn all(dir: &Path, library: &Path) -> Vec<Box<dyn Tool>> {
    let place = |name: &str| Place { library: library.to_owned(), home: dir.join(name) };
    let states = place("cp").store();
    let before = Stvc::before(place("before")).map(|before| Box::new(before) as Box<dyn Tool>);
    let tools: [Box<dyn Tool>; 7] = [
        Box::new(Stvc::new(place("stvc"))),
        Box::new(git::Git(place("git"))),
        Box::new(restic::Restic(place("restic"))),
        Box::new(borg::Borg::new(place("borg"))),
        Box::new(bup::Bup(place("bup"))),
        Box::new(floor::Cp::new(place("cp"))),
        Box::new(floor::Zstd { place: place("zstd"), states }),
    ];
    let mut all: Vec<_> = tools.into_iter().filter(|tool| !is_missing(tool.name())).collect();
    all.splice(1..1, before);
    all.retain(|tool| is_asked(tool.name()));
    all
}

pub fn is_missing(tool: &str) -> bool {
    programs().iter().any(|(n, p, v)| *n == tool && version(p, v).is_none())
}

/// Restricts the tools.
const ONLY: &str = "STVC_TOOLS";

pub fn is_asked(tool: &str) -> bool {
    let asked = std::env::var(ONLY).ok();
    asked.is_none_or(|asked| asked.split(',').any(|name| name == tool))
}

/// Returns each tool's version, or that it is not installed.
pub fn versions() -> Vec<String> {
    let say = |(name, program, argument): &(&str, &str, &str)| match version(program, argument) {
        Some(text) if text.contains(name) => text,
        Some(text) => format!("{name} {text}"),
        None => format!("{name} is not installed: left out"),
    };
    programs().iter().map(say).collect()
}

fn version(program: &str, argument: &str) -> Option<String> {
    let output = Command::new(program).arg(argument).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = text.lines().next()?.trim_matches(|c: char| c == '*' || c == ' ');
    Some(line.split(" compiled").next()?.split(", by").next()?.to_owned())
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a path of ours")
}
