//! SillyTavern's own backups of chats: `backups/chat_<key>_<date>-<time>.jsonl`.
//!
//! The key is the name of the character's folder (for groups: of the chat) in lower case, in which
//! `_` replaces everything but ASCII letters and digits. All chats of a character share one key,
//! and a backup does not name its chat. Two characters may share a key, too: `Mira Voss` and
//! `Mira-Voss`.

use std::fs;
use std::path::{Path, PathBuf};

use chrono::{DateTime, Local, NaiveDateTime};
use sha2::{Digest, Sha256};

use super::{Error, Result, Stamp, list_existing, sanitize};
use crate::durable;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Backup {
    pub path: PathBuf,
    pub file: String,
    pub key: String,
    /// Time of the backup, in the local time of the machine that created it.
    pub taken: NaiveDateTime,
    /// Whether `taken` is the date in the file name. If the file name has an impossible date,
    /// `taken` is the time at which the file was written.
    pub is_dated: bool,
    pub bytes: u64,
}

impl Backup {
    /// Returns whether SillyTavern creates this key for `name`, the folder of a character or the
    /// name of a group chat. Since 1.19, SillyTavern adds eight digits of the SHA-256 to the key if
    /// the name is not printable ASCII.
    pub fn may_be_of(&self, name: &str) -> bool {
        let Some(rest) = self.key.strip_prefix(&mangle(name)) else { return false };
        let is_plain = name.bytes().all(|byte| matches!(byte, b' '..=b'~'));
        let hash = || format!("_{:.8}", format!("{:x}", Sha256::digest(name.as_bytes())));
        rest.is_empty() || (!is_plain && rest == hash())
    }
}

/// Returns the backups in `dir`, oldest first.
pub fn list_backups(dir: &Path) -> Result<Vec<Backup>> {
    let mut backups = Vec::new();
    for entry in list_existing(dir).map_err(Error::io(dir))? {
        let Some(file) = entry.file_name().to_str().map(str::to_owned) else { continue };
        let Some((key, taken)) = parse(&file) else { continue };
        let key = key.to_owned();
        let path = entry.path();
        // Reading the backup will report a link without a target.
        let found = fs::metadata(&path).or_else(|_| fs::symlink_metadata(&path));
        let found = found.map_err(Error::io(&path))?;
        let is_dated = taken.is_some();
        let taken = taken.unwrap_or_else(|| written(&found));
        backups.push(Backup { path, file, key, taken, is_dated, bytes: found.len() });
    }
    backups.sort_by(|a, b| (a.taken, &a.file).cmp(&(b.taken, &b.file)));
    Ok(backups)
}

/// Removes a file of the library that does not belong to a timeline: one of SillyTavern's backups,
/// or an answer to SillyTavern's page.
pub fn remove_file(root: &Path, path: &str) -> Result<()> {
    let full = root.join(path);
    let dir = durable::parent(&full);
    durable::remove(&full).and_then(|()| durable::sync_dir(dir)).map_err(Error::io(&full))
}

/// Returns the key and the date in the file name of a backup. The date is `None` if it is
/// impossible.
fn parse(file: &str) -> Option<(&str, Option<NaiveDateTime>)> {
    let (key, moment) = file.strip_prefix("chat_")?.strip_suffix(".jsonl")?.rsplit_once('_')?;
    let (date, time) = moment.split_once('-')?;
    let has_digits = |text: &str, n| text.len() == n && text.bytes().all(|it| it.is_ascii_digit());
    if !has_digits(date, 8) || !has_digits(time, 6) {
        return None;
    }
    let taken = NaiveDateTime::parse_from_str(moment, "%Y%m%d-%H%M%S").ok();
    // Git cannot store times before 1970. The limit is one day later because local time may differ
    // from UTC by some hours.
    Some((key, taken.filter(|taken| taken.and_utc().timestamp() >= DAY)))
}

const DAY: i64 = 24 * 60 * 60;

/// Returns the time at which a file was written, in local time.
fn written(file: &fs::Metadata) -> NaiveDateTime {
    let seconds = Stamp::of(file).mtime_ns / 1_000_000_000;
    let written = DateTime::from_timestamp(seconds.max(DAY), 0).unwrap_or_default();
    written.with_timezone(&Local).naive_local()
}

fn mangle(name: &str) -> String {
    // JavaScript replaces each UTF-16 unit, so an emoji becomes two underscores.
    let letter = |unit: u16| u8::try_from(unit).ok().filter(u8::is_ascii_alphanumeric);
    let mangled = |unit| letter(unit).map_or('_', |byte| char::from(byte.to_ascii_lowercase()));
    sanitize(name).encode_utf16().map(mangled).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(file: &str) -> Backup {
        let (key, taken) = parse(file).unwrap();
        let taken = taken.unwrap();
        let (path, key) = (PathBuf::new(), key.to_owned());
        Backup { path, file: file.into(), key, taken, is_dated: true, bytes: 0 }
    }

    #[test]
    fn backup_file_matches_names_by_their_sillytavern_key() {
        assert!(of("chat_mira_voss_20261115-000055.jsonl").may_be_of("Mira Voss"));
        assert!(of("chat__rin______bb066c6f_20261115-000047.jsonl").may_be_of("Ærin 雪 🦊"));
        assert!(
            of("chat_2026_11_15_00h01m50s750ms___branch__1_20261115-000159.jsonl")
                .may_be_of("2026-11-15@00h01m50s750ms - Branch #1")
        );
        assert!(!of("chat_mira_voss_20261115-000055.jsonl").may_be_of("Mira"));
        assert!(!of("chat__rin______bb066c6f_20261115-000047.jsonl").may_be_of("Ørin 雨 🦊"));
        assert!(of("chat__rin______20261115-000047.jsonl").may_be_of("Ærin 雪 🦊"), "before 1.19");
        for odd in [
            "chat_x.jsonl",
            "chat_x_2026-11-15.jsonl",
            "chat_x_20261115-00005x.jsonl",
            "settings_1.json",
            "chat_x_20261115-000055.json",
        ] {
            assert!(parse(odd).is_none(), "{odd}");
        }
        for impossible in
            ["20269999-000000", "20260230-000000", "20261115-250000", "00010101-000000"]
        {
            assert_eq!(parse(&format!("chat_x_{impossible}.jsonl")), Some(("x", None)));
        }
    }
}
