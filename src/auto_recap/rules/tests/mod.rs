//! Every finding about a timeline's own files: what the rules say of the sound library with one thing changed. That the program passes
//! on what they say is shown in `tests/stvc/findings`.

mod lorebooks;
mod odd_values;
#[allow(dead_code, reason = "the program's tests need all of it")]
#[path = "../../../../tests/stvc/common/recap_library.rs"]
mod recap_library;
mod recaps;

use std::fs;
use std::path::Path;

use crate::rules::{ALL, of_files};
use crate::st::{Chat, Disk, Library, capture};
use recap_library::{Recap, RecapLibrary};

/// Code, level and words of the message of each finding that is expected.
type Expected<'a> = &'a [(&'a str, &'a str, &'a [&'a str])];

/// Code, level and message of a finding.
type Told = (String, String, String);

/// A user's folder with these files.
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

/// The files of a library.
fn files(library: &RecapLibrary) -> Vec<(String, String)> {
    let mut files = vec![(library.chat_path(), library.chat_bytes())];
    if library.book.is_some() {
        files.push((library.book_path(), library.book_bytes()));
    }
    files
}

/// What the rules say of each chat in a user's folder.
#[track_caller]
fn told(root: &Path) -> Vec<Told> {
    let library = Library::open(root, None).unwrap();
    let scan = library.scan().unwrap();
    let mut told = Vec::new();
    for timeline in &scan.chats {
        let captured = capture(&library, &scan.groups, timeline, &Disk).unwrap();
        let chat = Chat::split(&captured.files.main.bytes, false);
        for finding in of_files(&captured.files, &chat, ALL, library.book_template()) {
            let level = finding.level.as_str().to_owned();
            told.push((finding.code.to_string(), level, finding.message));
        }
    }
    told
}

/// The sound library with one thing changed: there are just these findings.
#[track_caller]
fn yields(change: impl FnOnce(&mut RecapLibrary), expected: Expected<'_>) {
    yields_with(None, change, expected);
}

/// The same with these settings of SillyTavern.
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

/// A user's folder with these files: there are just these findings.
#[track_caller]
fn of_these(files: &[(String, String)], expected: Expected<'_>) {
    let dir = folder(files);
    expect(&told(dir.path()), expected);
}

#[track_caller]
fn expect(found: &[Told], expected: Expected<'_>) {
    let codes: Vec<_> =
        found.iter().map(|(code, level, _)| (code.as_str(), level.as_str())).collect();
    let wanted: Vec<_> = expected.iter().map(|(code, level, _)| (*code, *level)).collect();
    assert_eq!(codes, wanted, "{found:#?}");
    for ((_, _, message), (_, _, words)) in found.iter().zip(expected) {
        for word in *words {
            assert!(message.contains(word), "{word:?} is missing: {message}");
        }
    }
}

fn more(key: &str, json: &str) -> (String, String) {
    (key.to_owned(), json.to_owned())
}

#[track_caller]
fn recap(library: &mut RecapLibrary) -> &mut Recap {
    library.recap.as_mut().unwrap()
}
