//! Names of objects: valid on every file system and in every URL without escapes.

use super::{Error, LONGEST_OBJECT, Result};
use crate::file_names;

const LONGEST_PART: usize = 100;
const LONGEST: usize = 400;
/// The deepest name has this many parts.
pub const DEEPEST: usize = 8;

/// Endings of files that synchronisers create beside the files that they copy.
const COPIES: [&str; 6] = [".tmp", ".part", ".partial", ".filepart", ".crdownload", ".icloud"];

/// Whether stvc would write an object of this name. Lists contain only such names.
pub fn is_valid(name: &str) -> bool {
    name.len() <= LONGEST && name.split('/').count() <= DEEPEST && name.split('/').all(is_part)
}

/// Whether the text may be a part of a name. Temporary and conflict files of synchronisers have
/// other names: they begin with a dot, contain spaces, or have an ending of their own.
pub fn is_part(part: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    (1..=LONGEST_PART).contains(&part.len())
        && part.bytes().all(is_plain)
        && !part.starts_with('.')
        && !part.ends_with('.')
        && !file_names::is_windows_device(part.as_bytes())
        && !part.contains(".sync-conflict-")
        && !COPIES.iter().any(|ending| part.ends_with(ending))
}

/// Fails if the name is not valid.
pub fn check(name: &str) -> Result<()> {
    if is_valid(name) { Ok(()) } else { Err(Error::Name { name: name.to_owned() }) }
}

/// Fails unless the prefix is empty or a valid name with `/` at its end.
pub fn check_prefix(prefix: &str) -> Result<()> {
    match prefix.strip_suffix('/') {
        None if prefix.is_empty() => Ok(()),
        Some(name) => check(name),
        None => Err(Error::Name { name: prefix.to_owned() }),
    }
}

/// Fails if the object is too large for any storage.
pub fn check_size(place: &str, name: &str, bytes: &[u8]) -> Result<()> {
    if bytes.len() as u64 <= LONGEST_OBJECT {
        return Ok(());
    }
    Err(Error::TooLarge { place: place.to_owned(), name: name.to_owned(), limit: LONGEST_OBJECT })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_valid_on_every_system() {
        for name in ["stvc-remote", "packs/0a1B", "devices/a_b/12", "a/b.c/d"] {
            assert!(is_valid(name), "{name}");
        }
        for name in [
            "",
            "/a",
            "a/",
            "a//b",
            "../a",
            "a/../b",
            "a/.",
            ".stfolder",
            "a\\b",
            "a b",
            "a\0",
            "雨",
            "CON",
            "a/nul.txt",
            "x.",
            "pack.sync-conflict-20261119-101010-ABCDEFG",
            "~syncthing~a.tmp",
            "a.abc123.partial",
            "a (1)",
            &"a".repeat(101),
            &"a/".repeat(8),
        ] {
            assert!(!is_valid(name), "{name}");
        }
        assert!(check_prefix("").is_ok() && check_prefix("packs/").is_ok());
        for prefix in ["packs", "/", "../", "a//"] {
            assert!(check_prefix(prefix).is_err(), "{prefix}");
        }
    }
}
