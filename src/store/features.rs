//! Features that a store needs of programs beyond its format (`stvc/features`), written by later
//! programs. Each snapshot names its own; here are those of the whole store. This program knows
//! none yet, and must not touch a store with an unknown one.

use super::files;
use super::{Error, Result, Store};

/// The features that this program knows.
const KNOWN: [&str; 0] = [];

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Use {
    Read,
    Write,
}

impl Store {
    /// Refuses a store that needs something for this which is not known here. A file that is
    /// damaged says nothing: what its snapshots need, they say themselves.
    pub(super) fn must_be_known(&self, to: Use) -> Result<()> {
        let path = self.private_dir().join("features");
        let Some(text) = files::read(&path)? else { return Ok(()) };
        for (needed_to, name) in features(&text).unwrap_or_default() {
            let matters = needed_to == Use::Read || to == Use::Write;
            if matters && !KNOWN.contains(&name.as_str()) {
                return Err(Error::UnknownFeature { path: self.path().to_owned(), name });
            }
        }
        Ok(())
    }
}

/// Lines of `read NAME` or `write NAME`, then `check` and the first 8 hex digits of the BLAKE3 of
/// what is before that line.
fn features(text: &[u8]) -> Option<Vec<(Use, String)>> {
    let text = std::str::from_utf8(text).ok()?;
    let body = text.strip_suffix('\n')?;
    let (body, check) = match body.rsplit_once('\n') {
        Some((lines, last)) => (&text[..lines.len() + 1], last),
        None => ("", body),
    };
    let hash = blake3::hash(body.as_bytes()).to_hex();
    if check.strip_prefix("check ")? != &hash[..8] {
        return None;
    }
    let feature = |line: &str| match line.split_once(' ') {
        Some(("read", name)) => Some((Use::Read, name.to_owned())),
        Some(("write", name)) => Some((Use::Write, name.to_owned())),
        _ => None,
    };
    Some(body.lines().filter_map(feature).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_known_is_not_touched() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store");
        let store = Store::create(&path).unwrap();
        let write = |lines: &str, check: &str| {
            let hash = blake3::hash(lines.as_bytes()).to_hex();
            let check = if check.is_empty() { &hash[..8] } else { check };
            let text = format!("{lines}check {check}\n");
            std::fs::write(store.private_dir().join("features"), text).unwrap();
        };
        let lock =
            || Store::open(&path)?.lock(&[], "now", std::time::Duration::ZERO, &|_| None).map(drop);
        write("", "");
        lock().unwrap();
        write("write moods\n", "");
        assert!(matches!(lock(), Err(Error::UnknownFeature { name, .. }) if name == "moods"));
        Store::open(&path).unwrap();
        write("write moods\nread dreams\n", "");
        let refused = Store::open(&path);
        assert!(matches!(refused, Err(Error::UnknownFeature { name, .. }) if name == "dreams"));
        write("read dreams\n", "00000000");
        lock().unwrap();
    }
}
