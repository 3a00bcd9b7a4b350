//! Copies, lists and compares files and folders.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

pub fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures")
}

/// Copies a folder recursively.
pub fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_folder(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), &target).unwrap();
        }
    }
}

/// Reads every file below a folder, by its path with `/`. Skips a store.
pub fn files(root: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut open = vec![(root.to_owned(), String::new())];
    while let Some((dir, prefix)) = open.pop() {
        for entry in fs::read_dir(dir).unwrap() {
            let entry = entry.unwrap();
            let name = entry.file_name().into_string().unwrap();
            if entry.file_type().unwrap().is_dir() {
                if name != ".stvc" {
                    open.push((entry.path(), format!("{prefix}{name}/")));
                }
            } else {
                found.insert(format!("{prefix}{name}"), fs::read(entry.path()).unwrap());
            }
        }
    }
    found
}

/// Compares files by their bytes. The failure message names the paths that differ, not their bytes.
#[track_caller]
pub fn assert_same(found: &BTreeMap<String, Vec<u8>>, expected: &BTreeMap<String, Vec<u8>>) {
    let paths: std::collections::BTreeSet<_> = found.keys().chain(expected.keys()).collect();
    let differing: Vec<_> = paths
        .into_iter()
        .filter(|path| found.get(*path) != expected.get(*path))
        .map(|path| {
            let length = |files: &BTreeMap<String, Vec<u8>>| files.get(path).map(Vec::len);
            format!("{path}: {:?} bytes for {:?}", length(found), length(expected))
        })
        .collect();
    assert!(differing.is_empty(), "{differing:#?}");
}

/// Reads every file and folder below `root`; folders have no bytes.
pub fn tree(root: &Path) -> BTreeMap<String, Option<Vec<u8>>> {
    let mut found = BTreeMap::new();
    let mut open = vec![root.to_owned()];
    while let Some(path) = open.pop() {
        let name = path.strip_prefix(root).unwrap().to_string_lossy().into_owned();
        if path.is_dir() {
            open.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
            found.insert(name, None);
        } else {
            found.insert(name, Some(fs::read(&path).unwrap()));
        }
    }
    found
}

/// Lists the files below `dir` with this extension.
pub fn files_with_extension(dir: &Path, extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files_with_extension(&path, extension));
        } else if path.extension().unwrap_or_default() == extension {
            found.push(path);
        }
    }
    found.sort();
    found
}

pub fn file_size(path: &Path) -> usize {
    usize::try_from(fs::metadata(path).unwrap().len()).unwrap()
}

/// Makes a file writable: git writes its object files read-only.
pub fn make_writable(path: &Path) {
    let mut permissions = fs::metadata(path).unwrap().permissions();
    #[expect(clippy::permissions_set_readonly_false, reason = "a file in a temporary folder")]
    permissions.set_readonly(false);
    fs::set_permissions(path, permissions).unwrap();
}

pub fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Lists the Rust sources below a folder.
pub fn rust_files(dir: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(rust_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files
}
