//! The state that a verb may change, and comparisons of two states.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use crate::cases::Scene;
use crate::judge::Violation;
use crate::stage::{Files, Stage, files};

/// Everything that a verb may change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct State {
    pub library: Files,
    pub out: Files,
    pub refs: BTreeMap<String, String>,
    pub history: Vec<String>,
    pub backups: BTreeMap<&'static str, BTreeMap<String, String>>,
}

impl State {
    pub fn read(stage: &Stage, scene: &Scene) -> Self {
        let store = stage.store("one");
        let folder = |copy: &&&str| stage.disk().join(copy).join("refs").is_dir();
        Self {
            library: with_extension(stage.files("one")),
            out: files(&stage.disk().join("out")),
            refs: if store.exists() { stage.refs(&store) } else { BTreeMap::new() },
            history: if store.exists() { stage.history(&store) } else { Vec::new() },
            backups: scene
                .backups
                .iter()
                .filter(folder)
                .map(|copy| (*copy, stage.refs(&stage.disk().join(copy))))
                .collect(),
        }
    }

    /// Lists the differences of `found`; compares the history only on request.
    pub fn differences(&self, found: &Self, history: bool) -> Vec<Violation> {
        let mut violations = Vec::new();
        if history && self.history != found.history {
            let words = format!("{} snapshots for {}", found.history.len(), self.history.len());
            violations.push(Violation { class: "refs", words });
        }
        for (expected, found) in [(&self.library, &found.library), (&self.out, &found.out)] {
            for path in all_keys(expected, found) {
                let length = |files: &Files| files.get(path).map(Vec::len);
                if expected.get(path) != found.get(path) && !is_temporary(path) {
                    let words =
                        format!("{path}: {:?} bytes for {:?}", length(found), length(expected));
                    violations.push(Violation { class: "files", words });
                }
            }
        }
        let backups =
            self.backups.iter().map(|(copy, refs)| (*copy, refs, found.backups.get(copy)));
        let all = backups.chain([("store", &self.refs, Some(&found.refs))]);
        for (place, expected, found) in all {
            let none = BTreeMap::new();
            let found = found.unwrap_or(&none);
            for name in all_keys(expected, found) {
                if expected.get(name) != found.get(name) {
                    let words = format!(
                        "{place}: {name} is {:?} for {:?}",
                        found.get(name),
                        expected.get(name)
                    );
                    violations.push(Violation { class: "refs", words });
                }
            }
        }
        violations
    }
}

/// Undoes an interrupted replacement of the extension's folder. The previous folder waits beside
/// its place, and counts while the place is empty: the next command moves it back.
fn with_extension(mut files: Files) -> Files {
    const PLACE: &str = "extensions/stvc/";
    if !files.keys().any(|path| path.starts_with(PLACE)) {
        let aside = |path: &String| path.replace("extensions/.stvc-replaced/stvc/", PLACE);
        files = files.into_iter().map(|(path, bytes)| (aside(&path), bytes)).collect();
    }
    files
}

pub fn all_keys<'a, A, B>(
    one: &'a BTreeMap<String, A>,
    two: &'a BTreeMap<String, B>,
) -> BTreeSet<&'a String> {
    one.keys().chain(two.keys()).collect()
}

/// Whether `path` is a temporary file of stvc, which SillyTavern ignores. `collect_leftovers` finds
/// those that remain.
pub fn is_temporary(path: &str) -> bool {
    path.split('/').any(|part| part.starts_with(".stvc-"))
}

/// Collects files that an interrupted command may leave until the next collection.
pub fn collect_leftovers(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let name = entry.file_name().to_string_lossy().into_owned();
        let beside = |ending: &str| path.with_extension(ending).exists();
        let left = name.starts_with(".stvc-")
            || name.starts_with("tmp_")
            || name.ends_with(".tmp")
            // Lock files of the operating system stay in place.
            || name.ends_with(".lock") && !folder.ends_with("stvc")
            || name.starts_with("pack-") && name.ends_with(".pack") && !beside("idx")
            || name.starts_with("pack-") && name.ends_with(".idx") && !beside("pack");
        if left {
            found.push(path);
        } else if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            collect_leftovers(&path, found);
        }
    }
}
