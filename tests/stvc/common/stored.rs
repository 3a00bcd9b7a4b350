//! Snapshots that must restore, and stores that must be valid.

use std::fs;

use stvc::progress::NoProgress;
use stvc::verbs::{check, restore};

use super::{Sandbox, fsck};

/// A snapshot that was acknowledged, and the bytes that it must restore.
#[derive(Clone, Debug)]
pub struct Stored {
    pub id: String,
    pub path: String,
    pub bytes: Vec<u8>,
}

impl Stored {
    /// Takes a snapshot of the timeline at `path`.
    #[track_caller]
    pub fn take(sandbox: &Sandbox, path: &str) -> Self {
        let answer = sandbox.json(&["snapshot", path]).exits(0);
        let id = answer.of_type("snapshot")[0]["id"].as_str().unwrap().to_owned();
        Self { id, path: path.to_owned(), bytes: sandbox.read(path) }
    }

    /// Restores into a new folder without a process and returns whether that succeeded. A failed
    /// restore must not leave files.
    #[track_caller]
    pub fn restores(&self, sandbox: &Sandbox) -> bool {
        let folder = tempfile::tempdir_in(sandbox.folder()).unwrap();
        let target = folder.path().join("out");
        let options = restore::Options {
            snapshot: self.id.clone(),
            target: restore::Target::Folder { dir: target.clone(), only: None },
            ..Default::default()
        };
        match restore::restore(&sandbox.workspace(), &options, &mut NoProgress) {
            Ok(_) => {
                assert_eq!(fs::read(target.join(&self.path)).unwrap(), self.bytes, "{}", self.path);
                true
            }
            Err(error) => {
                let left = fs::read_dir(&target).map_or(0, Iterator::count);
                assert_eq!(left, 0, "a restore that failed left files behind: {error}");
                false
            }
        }
    }

    #[track_caller]
    pub fn assert_restores(&self, sandbox: &Sandbox) {
        assert!(self.restores(sandbox), "{} {}", self.id, self.path);
    }
}

/// Runs `check` without a process and returns its exit code and findings.
#[track_caller]
pub fn check(sandbox: &Sandbox) -> (i32, String) {
    let workspace = sandbox.workspace();
    let report = match check::check(&workspace, &mut NoProgress) {
        Ok(report) => report,
        Err(error) => return (1, format!("{error}\n")),
    };
    let notices = workspace.take_notices();
    let found = report.findings.iter().chain(&notices);
    let words = found.map(|finding| format!("{} {}\n", finding.subject, finding.message));
    (i32::from(!report.is_valid()), words.collect::<String>().replace('\\', "/"))
}

/// Asserts that neither git nor `check` reports a problem.
#[track_caller]
pub fn assert_valid(sandbox: &Sandbox) {
    fsck(sandbox);
    let (code, words) = check(sandbox);
    assert_eq!(code, 0, "{words}");
}

/// Removes the `finished` records from the log, as if the last operation had been interrupted.
pub fn mark_last_operation_unfinished(sandbox: &Sandbox) {
    let log = sandbox.store().join("stvc/operations.jsonl");
    let text = fs::read(&log).unwrap();
    let lines = text.split_inclusive(|byte| *byte == b'\n');
    let kept: Vec<_> = lines.filter(|line| !line.starts_with(b"{\"finished\"")).collect();
    fs::write(&log, kept.concat()).unwrap();
}
