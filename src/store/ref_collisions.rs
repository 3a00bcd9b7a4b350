//! Refs whose names are equal to the file system.
//!
//! Git stores each ref in a file of its name. Windows and macOS ignore case: `abc` and `ABC` are
//! one file. Some file systems ignore the Unicode form of a letter (`é` as one code point or two),
//! and some change the form of a name. All of these *fold* names. There, a second ref would
//! overwrite the file of the first, and reading a ref could return the value of another. But
//! `packed-refs` is a text file that distinguishes all names. So:
//!
//! - Where the file system folds names, only a *plain* name has its own file: ASCII without capital
//!   letters, such as all names below `refs/stvc/kept/`. No two plain names are folded into one.
//!   Every other ref is stored only in `packed-refs`. This rule depends on nothing but the name, so
//!   it also works if two refs are created at the same time, or on two systems.
//! - The file of a ref is used only if its folder lists it under exactly that name.
//!
//! On all other file systems each ref has its own file.

use std::fs;
use std::io;
use std::path::Path;
use std::sync::OnceLock;

use unicode_normalization::UnicodeNormalization;

use super::{Error, RefName, Result, Store};
use crate::durable;

/// Whether the file system of the store ignores the case of names, and their Unicode form. Both are
/// tested at first use.
#[derive(Default)]
pub(super) struct Folding {
    case: OnceLock<bool>,
    form: OnceLock<bool>,
}

impl Store {
    /// Whether a ref must be stored only in `packed-refs`, without its own file. The caller holds
    /// the lock.
    pub(super) fn must_be_packed(&self, name: &RefName) -> bool {
        let name = name.as_str();
        !is_plain(name) && (self.folds_case() || (other_form(name).is_some() && self.folds_form()))
    }

    /// Whether a file of exactly this name exists.
    pub(super) fn has_own_file(&self, name: &RefName) -> Result<bool> {
        let name = name.as_str();
        Ok(self.git_dir.join(name).is_file() && !self.is_anothers_file(name)?)
    }

    pub(super) fn is_anothers_file(&self, name: &str) -> Result<bool> {
        // If the names differ only in their Unicode form, the file can belong to another ref only
        // if the other form of the name exists, too.
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

    /// Looks for folders that nearly every store has, by their names in capital letters.
    fn folds_case(&self) -> bool {
        *self.folding.case.get_or_init(|| {
            let capitals = ["OBJECTS", "REFS", "refs/HEADS", "refs/TAGS"];
            capitals.iter().any(|name| self.git_dir.join(name).exists())
        })
    }

    /// Creates a file and looks for it by another Unicode form of its name. If the file cannot be
    /// created, names are assumed to be folded.
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
    fn each_ref_has_its_own_file_on_case_sensitive_file_systems() {
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
        // Both Unicode forms exist, each as its own file.
        fs::write(store.git_dir.join("refs/tags/e\u{301}"), "").unwrap();
        assert!(store.has_own_file(&name("refs/tags/é")).unwrap());
        assert_eq!(fs::read_dir(store.private_dir()).unwrap().count(), 1, "nothing is left over");
    }

    /// Simulates a case-insensitive file system as far as possible on a case-sensitive one.
    #[cfg(unix)]
    #[test]
    fn only_lower_case_ascii_refs_have_files_on_case_insensitive_systems() {
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
