//! What a verb may change, and how two states of it differ.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use crate::cases::Scene;
use crate::judge::Wrong;
use crate::stage::{Files, Stage, files};

/// All that a verb may change and that has an end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct State {
    pub library: Files,
    pub out: Files,
    pub refs: BTreeMap<String, String>,
    pub history: Vec<String>,
    pub copies: BTreeMap<&'static str, BTreeMap<String, String>>,
}

impl State {
    pub fn of(stage: &Stage, scene: &Scene) -> Self {
        let store = stage.store("one");
        let folder = |copy: &&&str| stage.disk().join(copy).join("refs").is_dir();
        Self {
            library: with_extension(stage.files("one")),
            out: files(&stage.disk().join("out")),
            refs: if store.exists() { stage.refs(&store) } else { BTreeMap::new() },
            history: if store.exists() { stage.history(&store) } else { Vec::new() },
            copies: scene
                .copies
                .iter()
                .filter(folder)
                .map(|copy| (*copy, stage.refs(&stage.disk().join(copy))))
                .collect(),
        }
    }

    /// How another state differs from this one; the past counts if it is asked for.
    pub fn differs(&self, found: &Self, history: bool) -> Vec<Wrong> {
        let mut wrong = Vec::new();
        if history && self.history != found.history {
            let words = format!("{} snapshots for {}", found.history.len(), self.history.len());
            wrong.push(Wrong { class: "refs", words });
        }
        for (expected, found) in [(&self.library, &found.library), (&self.out, &found.out)] {
            for path in both(expected, found) {
                let length = |files: &Files| files.get(path).map(Vec::len);
                if expected.get(path) != found.get(path) && !is_temporary(path) {
                    let words =
                        format!("{path}: {:?} bytes for {:?}", length(found), length(expected));
                    wrong.push(Wrong { class: "files", words });
                }
            }
        }
        let copies = self.copies.iter().map(|(copy, refs)| (*copy, refs, found.copies.get(copy)));
        let all = copies.chain([("store", &self.refs, Some(&found.refs))]);
        for (place, expected, found) in all {
            let none = BTreeMap::new();
            let found = found.unwrap_or(&none);
            for name in both(expected, found) {
                if expected.get(name) != found.get(name) {
                    let words = format!(
                        "{place}: {name} is {:?} for {:?}",
                        found.get(name),
                        expected.get(name)
                    );
                    wrong.push(Wrong { class: "refs", words });
                }
            }
        }
        wrong
    }
}

/// While the extension's folder is replaced, the former one waits beside it. It counts as long as no other is in its place: the next command brings it back.
fn with_extension(mut files: Files) -> Files {
    const PLACE: &str = "extensions/stvc/";
    if !files.keys().any(|path| path.starts_with(PLACE)) {
        let aside = |path: &String| path.replace("extensions/.stvc-replaced/stvc/", PLACE);
        files = files.into_iter().map(|(path, bytes)| (aside(&path), bytes)).collect();
    }
    files
}

pub fn both<'a, A, B>(
    one: &'a BTreeMap<String, A>,
    two: &'a BTreeMap<String, B>,
) -> BTreeSet<&'a String> {
    one.keys().chain(two.keys()).collect()
}

/// A temporary file of ours, which SillyTavern does not look at. Whether it stays is another question.
pub fn is_temporary(path: &str) -> bool {
    path.split('/').any(|part| part.starts_with(".stvc-"))
}

/// What an interrupted command may leave for a while and nobody may leave for good.
pub fn left_over(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let name = entry.file_name().to_string_lossy().into_owned();
        let beside = |ending: &str| path.with_extension(ending).exists();
        let left = name.starts_with(".stvc-")
            || name.starts_with("tmp_")
            || name.ends_with(".tmp")
            // Locks of the operating system stay where they are.
            || name.ends_with(".lock") && !folder.ends_with("stvc")
            || name.starts_with("pack-") && name.ends_with(".pack") && !beside("idx")
            || name.starts_with("pack-") && name.ends_with(".idx") && !beside("pack");
        if left {
            found.push(path);
        } else if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            left_over(&path, found);
        }
    }
}
