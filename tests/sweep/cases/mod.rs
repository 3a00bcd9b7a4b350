//! Every verb that writes, in every form, each on its own small library.

mod backups;
mod devices;
mod library;
mod store;

use crate::stage::Stage;

/// Address of the git server; the stage's own folder answers.
pub const SERVER: &str = "ssh://server/server.git";
/// Folder that two devices sync through, relative to the library.
pub const SHARED: &str = "../../shared";
/// Name of the remote on plain storage, which is in the folder [`SHARED`].
pub const REMOTE: &str = "remote";

pub struct Case {
    pub name: &'static str,
    /// Row of the report.
    pub verb: &'static str,
    pub make: fn(&mut Stage) -> Scene,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Driver {
    /// Runs until it exits.
    #[default]
    Once,
    /// Runs until it has seen the expected save.
    Watch,
}

/// The command to test on device `one`, and its expectations.
#[derive(Clone, Debug, Default)]
pub struct Scene {
    pub command: Vec<String>,
    pub driver: Driver,
    /// A second run does something else.
    pub not_repeatable: bool,
    /// The command deletes snapshots.
    pub deletes_snapshots: bool,
    /// Compare the complete history, not only the latest snapshots.
    pub compare_history: bool,
    /// Backup destinations below the disk.
    pub backups: Vec<&'static str>,
    /// Remote that two devices sync through.
    pub remote: Option<&'static str>,
    /// Files of the other device that must not be lost: name for the report, and bytes.
    pub contents: Vec<(String, Vec<u8>)>,
    /// Texts that some file of each device must contain.
    pub words: Vec<String>,
}

impl Scene {
    fn new(command: &[&str]) -> Self {
        Self { command: command.iter().map(|&part| part.to_owned()).collect(), ..Self::default() }
    }

    fn compare_history(self) -> Self {
        Self { compare_history: true, ..self }
    }

    fn not_repeatable(self) -> Self {
        Self { not_repeatable: true, ..self }
    }

    fn backup(self, backup: &'static str) -> Self {
        Self { backups: vec![backup], ..self }
    }
}

pub fn all() -> Vec<Case> {
    [store::CASES, library::CASES, backups::CASES, devices::CASES]
        .into_iter()
        .flatten()
        .map(|&(verb, name, make)| Case { name, verb, make })
        .collect()
}

/// Verb, name and constructor.
type CaseEntry = (&'static str, &'static str, fn(&mut Stage) -> Scene);
