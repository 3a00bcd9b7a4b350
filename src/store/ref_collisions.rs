//! Refs whose names a file system takes for one another.
//!
//! Git gives each ref a file of its own name. Windows and macOS know no case (`abc` and `ABC` are
//! one file), some file systems no difference between the forms of a letter (`é` in one code point
//! or in two), and some write a name back in another form than it was given. There a second ref
//! would take the first one's file, and a ref that is asked for would be answered by another's. But
//! `packed-refs` is a text, and tells all names apart. So:
//!
//! - Where the file system folds names, only a **plain** name (ASCII without capital letters: all
//!   of `refs/stvc/kept/`) has a file of its own. No two plain names fold into one. Every other ref
//!   stands in `packed-refs` alone. This asks nothing but the name, so two refs that are made at
//!   the same moment, or one after the other on two systems, need not know of each other.
//! - A ref's file is believed only if its folder lists it under just that name.
//!
//! Everywhere else refs have files as ever.

use std::fs;
use std::io;
use std::path::Path;
use std::sync::OnceLock;

use unicode_normalization::UnicodeNormalization;

use super::{Error, RefName, Result, Store};
use crate::durable;

/// How the file system of the store treats names; tested when it is needed.
#[derive(Default)]
pub(super) struct Folding {
    case: OnceLock<bool>,
    form: OnceLock<bool>,
}

impl Store {
    /// Whether a ref must be packed and have no file of its own. The caller holds the lock.
    pub(super) fn must_be_packed(&self, name: &RefName) -> bool {
        let name = name.as_str();
        !is_plain(name) && (self.folds_case() || (other_form(name).is_some() && self.folds_form()))
    }

    /// Whether there is a file of exactly this name.
    pub(super) fn has_own_file(&self, name: &RefName) -> Result<bool> {
        let name = name.as_str();
        Ok(self.git_dir.join(name).is_file() && !self.is_anothers_file(name)?)
    }

    pub(super) fn is_anothers_file(&self, name: &str) -> Result<bool> {
        // Only where the other form answers, too, can it be the other one's.
        let answers = |other: String| self.git_dir.join(other).exists();
        let in_doubt =
            !is_plain(name) && (self.folds_case() || other_form(name).is_some_and(answers));
        if !in_doubt {
            return Ok(false);
        }
        let mut folder = self.git_dir.clone();
        for part in name.split('/') {
            if !lists(&folder, part).map_err(Error::io(&folder))? {
                return Ok(true);
            }
            folder.push(part);
        }
        Ok(false)
    }

    pub(super) fn folds_names(&self) -> bool {
        self.folds_case() || self.folds_form()
    }

    /// Tests with names that nearly every store has, and none in capital letters.
    fn folds_case(&self) -> bool {
        *self.folding.case.get_or_init(|| {
            let capitals = ["OBJECTS", "REFS", "refs/HEADS", "refs/TAGS"];
            capitals.iter().any(|name| self.git_dir.join(name).exists())
        })
    }

    /// Tests with a new file.
    fn folds_form(&self) -> bool {
        *self.folding.form.get_or_init(|| {
            let private = self.private_dir();
            let path = |letter: &str| private.join(format!("form-{}-{letter}", std::process::id()));
            let (composed, decomposed) = (path("\u{e9}"), path("e\u{301}"));
            let made = durable::open_to_lock(&composed);
            let folds = made.is_err() || decomposed.exists();
            durable::remove_own(&composed);
            folds
        })
    }
}

fn is_plain(name: &str) -> bool {
    name.bytes().all(|byte| byte.is_ascii() && !byte.is_ascii_uppercase())
}

pub(super) fn folded(name: &str) -> String {
    name.nfd().flat_map(char::to_lowercase).nfc().collect()
}

fn other_form(name: &str) -> Option<String> {
    if name.is_ascii() {
        return None;
    }
    let composed: String = name.nfc().collect();
    let other = if composed == name { name.nfd().collect() } else { composed };
    Some(other).filter(|other| other != name)
}

fn lists(folder: &Path, part: &str) -> io::Result<bool> {
    for entry in fs::read_dir(folder)? {
        if entry?.file_name() == part {
            return Ok(true);
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> RefName {
        RefName::try_from(text.to_owned()).unwrap()
    }

    #[test]
    fn where_names_are_told_apart_refs_have_files() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::create(&folder.path().join("store")).unwrap();
        if store.folds_case() || store.folds_form() {
            eprintln!("skipped: this file system folds names");
            return;
        }
        for text in ["refs/heads/chats/Mira/ABC", "refs/tags/é", "refs/heads/chats/か\u{3099}"] {
            let path = store.git_dir.join(text);
            let name = name(text);
            assert!(!store.must_be_packed(&name));
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            assert!(!store.has_own_file(&name).unwrap());
            fs::write(&path, "").unwrap();
            assert!(store.has_own_file(&name).unwrap());
        }
        // Both forms are there, each a file of its own.
        fs::write(store.git_dir.join("refs/tags/e\u{301}"), "").unwrap();
        assert!(store.has_own_file(&name("refs/tags/é")).unwrap());
        assert_eq!(fs::read_dir(store.private_dir()).unwrap().count(), 1, "nothing is left over");
    }

    /// What a file system does that knows no case, as far as it can be played on one that does.
    #[cfg(unix)]
    #[test]
    fn where_case_is_not_known_only_plain_names_have_files() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::create(&folder.path().join("store")).unwrap();
        let _ = std::os::unix::fs::symlink("objects", store.git_dir.join("OBJECTS"));
        for packed in ["refs/heads/chats/Mira/a", "refs/tags/a%2Eb%2Flock%C3", "refs/tags/雪"] {
            assert!(store.must_be_packed(&name(packed)), "{packed}");
        }
        let kept = RefName::kept(super::super::ObjectId::null(gix::hash::Kind::Sha1));
        assert!(!store.must_be_packed(&kept));
        assert!(!store.must_be_packed(&name("refs/tags/part-1")));
        let (one, other) = ("refs/heads/chats/Mira/abc", "refs/heads/chats/Mira/ABC");
        fs::create_dir_all(store.git_dir.join("refs/heads/chats/Mira")).unwrap();
        fs::write(store.git_dir.join(one), "").unwrap();
        assert!(!store.is_anothers_file(one).unwrap());
        assert!(store.is_anothers_file(other).unwrap());
    }
}
