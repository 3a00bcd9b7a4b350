//! The tools that are compared, each over the same library and with a store of its own.

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

/// A tool that keeps states of a library. What it does is given as commands, so that others can time them; none where
/// it has no such thing.
pub trait Tool {
    fn name(&self) -> &'static str;
    fn place(&self) -> &Place;
    /// Make the store.
    fn create(&self) {}
    /// Store the library as it is now.
    fn save(&self) -> Vec<Command> {
        Vec::new()
    }
    /// Bring back the newest state of one chat: below the library, or below `target`.
    fn restore(&self, _chat: &Path, _timeline: &str, _target: &Path) -> Vec<Command> {
        Vec::new()
    }
    /// List all that is stored.
    fn log(&self) -> Vec<Command> {
        Vec::new()
    }
    /// Read everything and see whether it is sound.
    fn check(&self) -> Vec<Command> {
        Vec::new()
    }
    /// Make the store as small as it gets.
    fn gc(&self) -> Vec<Command> {
        Vec::new()
    }
    /// All that is stored, as one file to carry away.
    fn backup(&self, _file: &Path) -> Vec<Command> {
        Vec::new()
    }
}

/// Where a tool finds the library and keeps its things.
#[derive(Clone)]
pub struct Place {
    pub library: PathBuf,
    /// The folder of all that belongs to the tool.
    pub home: PathBuf,
}

impl Place {
    /// What counts as its store; caches are beside it.
    pub fn store(&self) -> PathBuf {
        self.home.join("store")
    }

    /// What stvc's verbs work on, without a process for each.
    pub fn workspace(&self, now: chrono::DateTime<chrono::Utc>) -> Workspace {
        Workspace {
            store: Some(self.store()),
            now: now.fixed_offset(),
            ..Workspace::at(&self.library, "stvc snapshot")
        }
    }

    /// Forget everything.
    pub fn clear(&self) {
        let _ = fs::remove_dir_all(&self.home);
        fs::create_dir_all(&self.home).expect("make a folder for a tool");
    }

    /// All that is here once more, at another place.
    pub fn copy(&self, home: &Path) -> Place {
        let mut copy = Command::new("cp");
        copy.arg("-a").arg(&self.home).arg(home);
        run(copy);
        Place { library: self.library.clone(), home: home.to_owned() }
    }
}

/// Returns the name of each tool, its program, and the argument that prints its version.
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

/// Every tool that is installed, stvc first.
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
    let missing =
        |name: &str| programs().iter().any(|(n, p, v)| *n == name && version(p, v).is_none());
    let mut all: Vec<_> = tools.into_iter().filter(|tool| !missing(tool.name())).collect();
    all.splice(1..1, before);
    let asked = std::env::var(ONLY).ok();
    all.retain(|tool| {
        asked.as_ref().is_none_or(|asked| asked.split(',').any(|name| name == tool.name()))
    });
    all
}

/// Which of them take part, if not all.
const ONLY: &str = "STVC_TOOLS";

/// What each tool says of itself, or that it is not there.
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

/// A path as an argument.
fn text(path: &Path) -> &str {
    path.to_str().expect("a path of ours")
}
