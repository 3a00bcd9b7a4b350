//! Snapshots that must come back, and stores that must be sound.

use std::fs;

use stvc::progress::Silent;
use stvc::verbs::{check, restore};

use super::{Sandbox, fsck};

/// A snapshot that was acknowledged, and the bytes it must give back.
#[derive(Clone, Debug)]
pub struct Stored {
    pub id: String,
    pub path: String,
    pub bytes: Vec<u8>,
}

impl Stored {
    /// The timeline's newest snapshot, which must be what its file holds.
    #[track_caller]
    pub fn take(sandbox: &Sandbox, path: &str) -> Self {
        let answer = sandbox.json(&["snapshot", path]).exits(0);
        let id = answer.of_type("snapshot")[0]["id"].as_str().unwrap().to_owned();
        Self { id, path: path.to_owned(), bytes: sandbox.read(path) }
    }

    /// Restore it into a folder of its own, without a process; whether that worked. Either all of it comes back or nothing does.
    #[track_caller]
    pub fn comes_back(&self, sandbox: &Sandbox) -> bool {
        let folder = tempfile::tempdir_in(sandbox.folder()).unwrap();
        let target = folder.path().join("out");
        let options = restore::Options {
            snapshot: self.id.clone(),
            target: restore::Target::Folder { dir: target.clone(), only: None },
            ..Default::default()
        };
        match restore::restore(&sandbox.workspace(), &options, &mut Silent) {
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
    pub fn must_come_back(&self, sandbox: &Sandbox) {
        assert!(self.comes_back(sandbox), "{} {}", self.id, self.path);
    }
}

/// All that `check` says, and the exit code that it comes to, without a process.
#[track_caller]
pub fn check(sandbox: &Sandbox) -> (i32, String) {
    let workspace = sandbox.workspace();
    let report = match check::check(&workspace, &mut Silent) {
        Ok(report) => report,
        Err(error) => return (1, format!("{error}\n")),
    };
    let notices = workspace.take_notices();
    let found = report.findings.iter().chain(&notices);
    let words = found.map(|finding| format!("{} {}\n", finding.subject, finding.message));
    (i32::from(!report.is_sound()), words.collect::<String>().replace('\\', "/"))
}

/// Git and `check` find nothing wrong.
#[track_caller]
pub fn sound(sandbox: &Sandbox) {
    fsck(sandbox);
    let (code, words) = check(sandbox);
    assert_eq!(code, 0, "{words}");
}

/// As if the last operation had been interrupted: its log does not say that it is finished.
pub fn unfinished(sandbox: &Sandbox) {
    let log = sandbox.store().join("stvc/operations.jsonl");
    let text = fs::read(&log).unwrap();
    let lines = text.split_inclusive(|byte| *byte == b'\n');
    let kept: Vec<_> = lines.filter(|line| !line.starts_with(b"{\"finished\"")).collect();
    fs::write(&log, kept.concat()).unwrap();
}
