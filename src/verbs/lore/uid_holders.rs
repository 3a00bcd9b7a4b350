//! Entries by their UID. SillyTavern gives the UID of a deleted entry to the next one, so several entries may have had it, one after the other.

use crate::archive::entry_lives::Life;
use crate::st::Key;

/// Returns the places of the entries that had a key at some time: the present one, or else the one that had it last, first.
pub(super) fn holders_of(lives: &[Life], key: &Key) -> Vec<usize> {
    let mut holders: Vec<_> = lives
        .iter()
        .enumerate()
        .filter_map(|(place, life)| Some((life.last_state_under(key)?, place)))
        .collect();
    holders.sort_unstable_by(|a, b| b.cmp(a));
    holders.into_iter().map(|(_, place)| place).collect()
}

/// Returns the name of the entry that had a key so many entries ago: `5`, `5~1`, `5~2`.
pub(super) fn uid_name(key: &Key, steps: usize) -> String {
    match steps {
        0 => key.to_string_lossy(),
        _ => format!("{}~{steps}", key.to_string_lossy()),
    }
}

/// Reads such a name. A key may itself end like one, so this is for names that no entry has.
pub(super) fn read_uid_name(text: &str) -> (Key, usize) {
    let key = |text: &str| Key::of_bytes(text.as_bytes().to_vec());
    let steps = text.rsplit_once('~').and_then(|(uid, steps)| Some((uid, steps.parse().ok()?)));
    match steps {
        Some((uid, steps)) => (key(uid), steps),
        None => (key(text), 0),
    }
}
