//! SillyTavern's own backups of chats: `backups/chat_<key>_<date>-<time>.jsonl`.
//!
//! The key is the character's folder (for groups: the chat's name) with everything but ASCII letters and digits as `_`, so all chats
//! of a character share one, and a backup does not say which chat it is of.

use std::fs;
use std::path::{Path, PathBuf};

use chrono::NaiveDateTime;

use super::{Error, Result, sanitize};
use crate::durable;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Backup {
    pub path: PathBuf,
    pub file: String,
    /// Whose it is, mangled.
    pub key: String,
    /// When it was taken, in the local time of its machine.
    pub taken: NaiveDateTime,
    pub bytes: u64,
}

impl Backup {
    /// Whether its key can be that of the folder or group chat `name`.
    pub fn may_be_of(&self, name: &str) -> bool {
        let mangled = mangle(name);
        match self.key.strip_prefix(&mangled) {
            Some("") => true,
            // Names that are not ASCII get a hash, since 1.16; the letters are evidence enough.
            Some(rest) => {
                !name.is_ascii()
                    && rest.len() == 9
                    && rest[1..].bytes().all(|byte| byte.is_ascii_hexdigit())
            }
            None => false,
        }
    }
}

/// The backups in `dir`, oldest first. Files of other names are not looked at.
pub fn list_backups(dir: &Path) -> Result<Vec<Backup>> {
    let mut backups = Vec::new();
    for entry in fs::read_dir(dir).map_err(Error::io(dir))? {
        let entry = entry.map_err(Error::io(dir))?;
        let Some(file) = entry.file_name().to_str().map(str::to_owned) else { continue };
        let Some((key, taken)) = parse(&file) else { continue };
        let path = entry.path();
        let found = fs::metadata(&path).map_err(Error::io(&path))?;
        backups.push(Backup { path, file, key, taken, bytes: found.len() });
    }
    backups.sort_by(|a, b| (a.taken, &a.file).cmp(&(b.taken, &b.file)));
    Ok(backups)
}

/// Removes a file of the library that is not a timeline: a backup that SillyTavern made, or an answer to its page.
pub fn remove_file(root: &Path, path: &str) -> Result<()> {
    let full = root.join(path);
    let dir = durable::parent(&full);
    durable::remove(&full).and_then(|()| durable::sync_dir(dir)).map_err(Error::io(&full))
}

fn parse(file: &str) -> Option<(String, NaiveDateTime)> {
    let (key, moment) = file.strip_prefix("chat_")?.strip_suffix(".jsonl")?.rsplit_once('_')?;
    let taken = NaiveDateTime::parse_from_str(moment, "%Y%m%d-%H%M%S").ok()?;
    Some((key.to_owned(), taken))
}

fn mangle(name: &str) -> String {
    // JavaScript replaces UTF-16 units, so an emoji becomes two.
    let units = sanitize(name).encode_utf16().collect::<Vec<_>>();
    let letter = |unit: &u16| u8::try_from(*unit).ok().filter(u8::is_ascii_alphanumeric);
    units
        .iter()
        .map(|unit| letter(unit).map_or('_', |byte| char::from(byte.to_ascii_lowercase())))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(file: &str) -> Backup {
        let (key, taken) = parse(file).unwrap();
        Backup { path: PathBuf::new(), file: file.into(), key, taken, bytes: 0 }
    }

    #[test]
    fn names_are_taken_apart_as_sillytavern_made_them() {
        assert!(of("chat_mira_voss_20261115-000055.jsonl").may_be_of("Mira Voss"));
        assert!(of("chat__rin______bb066c6f_20261115-000047.jsonl").may_be_of("Ærin 雪 🦊"));
        assert!(
            of("chat_2026_11_15_00h01m50s750ms___branch__1_20261115-000159.jsonl")
                .may_be_of("2026-11-15@00h01m50s750ms - Branch #1")
        );
        assert!(!of("chat_mira_voss_20261115-000055.jsonl").may_be_of("Mira"));
        for odd in [
            "chat_x.jsonl",
            "chat_x_20269999-000000.jsonl",
            "settings_1.json",
            "chat_x_20261115-000055.json",
        ] {
            assert!(parse(odd).is_none(), "{odd}");
        }
    }
}
