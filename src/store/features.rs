//! Features that a store needs in addition to its format, listed in `stvc/features`. Later versions
//! of stvc may write this file. This version supports no features: it does not read a store that
//! lists one for reading, and does not write to a store that lists any. In addition, each snapshot
//! lists the features that it needs.

use super::files;
use super::{Error, Result, Store};

/// The features that this version supports.
const KNOWN: [&str; 0] = [];

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    Read,
    Write,
}

impl Store {
    /// Fails if the store needs an unsupported feature for this kind of access. A damaged feature
    /// list is ignored, because each snapshot lists the features that it needs.
    pub(super) fn must_be_known(&self, to: Access) -> Result<()> {
        let Some(text) = files::read(&self.private("features"))? else { return Ok(()) };
        for (needed_to, name) in features(&text).unwrap_or_default() {
            let matters = needed_to == Access::Read || to == Access::Write;
            if matters && !KNOWN.contains(&name.as_str()) {
                return Err(Error::UnknownFeature { path: self.path().to_owned(), name });
            }
        }
        Ok(())
    }
}

/// Parses the feature list: lines `read NAME` or `write NAME`, then a line `check` with the first 8
/// hex digits of the BLAKE3 hash of all lines before it. Returns `None` if the list is damaged.
fn features(text: &[u8]) -> Option<Vec<(Access, String)>> {
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
        Some(("read", name)) => Some((Access::Read, name.to_owned())),
        Some(("write", name)) => Some((Access::Write, name.to_owned())),
        _ => None,
    };
    Some(body.lines().filter_map(feature).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn store_with_unknown_required_feature_is_refused() {
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
