//! Every case of every rule about a timeline's own files: the findings about the valid library with
//! one change, without a process.

mod lorebooks;
mod odd_values;
mod recaps;

use std::fs;
use std::path::Path;

use stvc::internals::rules::{ALL, Finding, of_files};
use stvc::internals::st::{Disk, Library, capture};

use super::{Expected, Reported, assert_findings, more, recap};
use crate::common::recap_library::RecapLibrary;

/// Creates a user's folder with these files.
fn folder(files: &[(String, String)]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("chats")).unwrap();
    for (path, bytes) in files {
        put(dir.path(), path, bytes);
    }
    dir
}

fn put(root: &Path, path: &str, bytes: &str) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, bytes).unwrap();
}

fn files(library: &RecapLibrary) -> Vec<(String, String)> {
    let mut files = vec![(library.chat_path(), library.chat_bytes())];
    if library.book.is_some() {
        files.push((library.book_path(), library.book_bytes()));
    }
    files
}

/// Returns the findings of the rules about each chat in a user's folder.
#[track_caller]
pub(super) fn findings_of_files(root: &Path) -> Vec<Reported> {
    let library = Library::open(root, None).unwrap();
    let scan = library.scan().unwrap();
    let fields = |finding: Finding| {
        (finding.code.to_string(), finding.level.as_str().to_owned(), finding.message)
    };
    let mut found = Vec::new();
    for timeline in &scan.chats {
        let captured = capture(&library, &scan.groups, timeline, &Disk).unwrap();
        let chat = captured.files.split();
        let findings = of_files(&captured.files, &chat, ALL, library.book_template());
        found.extend(findings.into_iter().map(fields));
    }
    found
}

/// Asserts that the valid library with one change has exactly these findings.
#[track_caller]
fn yields(change: impl FnOnce(&mut RecapLibrary), expected: Expected<'_>) {
    yields_with(None, change, expected);
}

/// Asserts it for a library with these settings of SillyTavern.
#[track_caller]
fn yields_with(
    settings: Option<&str>,
    change: impl FnOnce(&mut RecapLibrary),
    expected: Expected<'_>,
) {
    let mut library = RecapLibrary::default();
    change(&mut library);
    let mut files = files(&library);
    files.extend(settings.map(|settings| ("settings.json".to_owned(), settings.to_owned())));
    of_these(&files, expected);
}

/// Asserts that a user's folder with these files has exactly these findings.
#[track_caller]
fn of_these(files: &[(String, String)], expected: Expected<'_>) {
    let dir = folder(files);
    assert_findings(&findings_of_files(dir.path()), expected);
}
