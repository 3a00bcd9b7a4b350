//! Helpers of the fuzz targets: fixtures, and folders that are reset after each input.

#![allow(clippy::expect_used, reason = "a fuzz target fails loudly")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

pub(crate) fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(name)
}

/// Copies a folder and its contents.
pub(crate) fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder can be made");
    for entry in fs::read_dir(from).expect("a folder can be listed") {
        let entry = entry.expect("a folder can be listed");
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        if from.is_dir() {
            copy_folder(&from, &to)
        } else {
            fs::copy(&from, &to).expect("a file can be copied");
        }
    }
}

/// The contents of a folder: the bytes of each file, and `None` for each subfolder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Contents(BTreeMap<PathBuf, Option<Vec<u8>>>);

impl Contents {
    /// Reads a folder. Links are not followed.
    pub(crate) fn of(folder: &Path) -> Self {
        let mut contents = Self::default();
        contents.read(folder, Path::new(""));
        contents
    }

    fn read(&mut self, folder: &Path, path: &Path) {
        for entry in fs::read_dir(folder.join(path)).expect("a folder can be listed") {
            let entry = entry.expect("a folder can be listed");
            let path = path.join(entry.file_name());
            if entry.file_type().expect("a file has a type").is_dir() {
                self.0.insert(path.clone(), None);
                self.read(folder, &path);
            } else {
                let bytes = fs::read(entry.path()).expect("a file can be read");
                self.0.insert(path, Some(bytes));
            }
        }
    }

    /// Returns the paths that differ between two folders.
    pub(crate) fn differing<'c>(&'c self, other: &'c Self) -> Vec<&'c Path> {
        let gone = self.0.iter().filter(|(path, bytes)| other.0.get(*path) != Some(bytes));
        let new = other.0.keys().filter(|path| !self.0.contains_key(*path));
        gone.map(|(path, _)| path.as_path()).chain(new.map(PathBuf::as_path)).collect()
    }

    /// Resets a folder to these contents.
    pub(crate) fn put_back(&self, folder: &Path) {
        let now = Self::of(folder);
        // The reverse order removes the files of a folder before the folder.
        for path in now.0.keys().rev().filter(|path| !self.0.contains_key(*path)) {
            let path = folder.join(path);
            let removed = match path.is_dir() {
                true => fs::remove_dir(&path),
                #[expect(clippy::disallowed_methods, reason = "nobody else has it open")]
                false => fs::remove_file(&path),
            };
            removed.expect("a file can be removed");
        }
        for (path, bytes) in &self.0 {
            if now.0.get(path) == Some(bytes) {
                continue;
            }
            let path = folder.join(path);
            match bytes {
                None => fs::create_dir_all(&path).expect("a folder can be made"),
                Some(bytes) => fs::write(&path, bytes).expect("a file can be written"),
            }
        }
    }
}
