//! Every verb that writes, in every form, each on a small library of its own.

mod copies;
mod devices;
mod library;
mod store;

use crate::stage::Stage;

/// A git server, as a user names it; what answers there is the stage's own folder.
pub const SERVER: &str = "ssh://server/server.git";
/// The folder that two devices share, as they name it.
pub const SHARED: &str = "../../shared";

/// One command on one library.
pub struct Case {
    pub name: &'static str,
    /// What it is counted under.
    pub verb: &'static str,
    pub make: fn(&mut Stage) -> Scene,
}

/// How the command is run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Driver {
    /// To its end.
    #[default]
    Once,
    /// Until it has seen what it waits for.
    Watch,
}

/// What is tried, once the library is made; the command runs on the device `one`.
#[derive(Clone, Debug, Default)]
pub struct Scene {
    pub command: Vec<String>,
    pub driver: Driver,
    /// Run again when it is done, it does another thing.
    pub once: bool,
    /// Snapshots go by it.
    pub forgets: bool,
    /// It is about the past: all of it is compared, not only where it ends.
    pub history: bool,
    /// Copies elsewhere, below the disk.
    pub copies: Vec<&'static str>,
    /// Two devices, and where they meet.
    pub remote: Option<&'static str>,
    /// Files as the other device has them, which must not be lost: name, for the report, and bytes.
    pub contents: Vec<(String, Vec<u8>)>,
    /// Words that must stand in some file of each device.
    pub words: Vec<String>,
}

impl Scene {
    fn of(command: &[&str]) -> Self {
        Self { command: command.iter().map(|&part| part.to_owned()).collect(), ..Self::default() }
    }

    fn history(self) -> Self {
        Self { history: true, ..self }
    }

    fn once(self) -> Self {
        Self { once: true, ..self }
    }

    fn copy(self, copy: &'static str) -> Self {
        Self { copies: vec![copy], ..self }
    }
}

/// All of them.
pub fn all() -> Vec<Case> {
    [store::CASES, library::CASES, copies::CASES, devices::CASES]
        .into_iter()
        .flatten()
        .map(|&(verb, name, make)| Case { name, verb, make })
        .collect()
}

/// Verb, name, and how it is made.
type Listed = (&'static str, &'static str, fn(&mut Stage) -> Scene);
