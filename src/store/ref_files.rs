//! Reads refs from their files: one file for each ref below `refs/`, and the file `packed-refs`,
//! which contains many refs.
//!
//! Git's library is not used, because with it one damaged file would hide all other refs. Here a
//! ref that cannot be read is reported, and all others are returned.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use super::files::{is_absent, unless_absent};
use super::{Error, ObjectId, RefName, Result, Store};
use crate::regular;

pub(super) const LOCK_ENDING: &str = ".lock";

#[derive(Debug, Default)]
pub struct RefList {
    pub refs: Vec<(RefName, ObjectId)>,
    pub broken: Vec<String>,
}

pub(super) enum Loose {
    Id(ObjectId),
    Missing,
    Broken,
}

impl Store {
    pub fn refs(&self, prefix: &str) -> Result<RefList> {
        let mut loose: BTreeMap<RefName, ObjectId> = BTreeMap::new();
        let mut broken = Vec::new();
        let mut damaged = Vec::new();
        for name in loose_names(&self.git_dir, prefix.trim_end_matches('/'))? {
            match (self.loose_ref(&name)?, RefName::try_from(name.clone())) {
                (Loose::Id(id), Ok(name)) => drop(loose.insert(name, id)),
                (Loose::Missing, _) => {}
                _ => damaged.push(name),
            }
        }
        // `packed-refs` is read last: git adds a ref to this file before it removes the ref's own
        // file, so no ref is missed.
        let packed = self.packed_refs()?;
        if packed.bad_lines > 0 {
            broken.push(format!("packed-refs: {} of its lines cannot be read", packed.bad_lines));
        }
        let only_packed = packed
            .refs
            .iter()
            .filter(|(name, _)| name.as_str().starts_with(prefix) && !loose.contains_key(name));
        let mut refs: Vec<_> = only_packed.cloned().collect();
        refs.extend(loose);
        refs.sort_unstable();
        for name in damaged {
            let older = refs.iter().any(|(known, _)| known.as_str() == name);
            let more = if older { "; an older value is in packed-refs" } else { "" };
            broken.push(format!("{name}: it does not contain an object id{more}"));
        }
        Ok(RefList { refs, broken })
    }

    /// Returns the target of a ref; `None` if the ref does not exist. If the file of the ref is
    /// damaged, returns the value in `packed-refs`, if any; [`Store::last_known`] has the values in
    /// the log. Fails if the path of the ref contains a link, because the caller may be about to
    /// change the ref.
    pub fn ref_target(&self, name: &RefName) -> Result<Option<ObjectId>> {
        self.refuse_links_to(name.as_str())?;
        match self.loose_ref(name.as_str())? {
            // Where the file system folds names, the file may belong to another ref.
            Loose::Id(id) if !self.is_anothers_file(name.as_str())? => Ok(Some(id)),
            _ => Ok(self.packed_refs()?.get(name)),
        }
    }

    /// Reads the file of a ref. Does not check whether the file belongs to another ref (see
    /// `ref_collisions`): the caller has the name from a listing, or checks this.
    pub(super) fn loose_ref(&self, name: &str) -> Result<Loose> {
        let path = self.git_dir.join(name);
        let text = match regular::read(&path) {
            Ok(text) => text,
            Err(error) if is_no_file(&error) => return Ok(Loose::Missing),
            // A pipe, for example, is not a ref, but it must not prevent reading the others.
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => return Ok(Loose::Broken),
            Err(source) => return Err(Error::Io { path, source }),
        };
        // Only an id and a line feed are accepted, as in git.
        let id = text.strip_suffix(b"\n").unwrap_or(&text);
        Ok(ObjectId::from_hex(id).map_or(Loose::Broken, Loose::Id))
    }

    /// Returns the content of `packed-refs`. The file is parsed again only after it has changed.
    fn packed_refs(&self) -> Result<Arc<PackedRefs>> {
        let path = self.git_dir.join("packed-refs");
        let Some(found) = unless_absent(fs::metadata(&path), &path)? else {
            return Ok(Arc::default());
        };
        let stamp = PackedStamp::of(&found);
        let mut known = self.packed.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if let Some((_, packed)) = known.as_ref().filter(|(known, _)| *known == stamp) {
            return Ok(Arc::clone(packed));
        }
        let text = match regular::read(&path) {
            Ok(text) => text,
            Err(error) if is_no_file(&error) => return Ok(Arc::default()),
            Err(source) => return Err(Error::Io { path, source }),
        };
        let packed = Arc::new(parse_packed(&text));
        *known = stamp.is_settled().then(|| (stamp, Arc::clone(&packed)));
        Ok(packed)
    }
}

#[derive(Default)]
pub(super) struct PackedRefs {
    refs: Vec<(RefName, ObjectId)>,
    bad_lines: usize,
}

impl PackedRefs {
    fn get(&self, name: &RefName) -> Option<ObjectId> {
        let found = self.refs.binary_search_by(|(known, _)| known.cmp(name));
        found.ok().map(|at| self.refs[at].1)
    }
}

pub(super) type PackedCache = Mutex<Option<(PackedStamp, Arc<PackedRefs>)>>;

/// Identifies a version of the file `packed-refs`. Its length is not enough, because a new target
/// does not change the length. The time of writing is not always enough, because it may be
/// imprecise.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct PackedStamp {
    length: u64,
    written: Option<SystemTime>,
    /// Inode number and change time (seconds, nanoseconds), which change when the file is replaced.
    /// `None` on systems other than Unix.
    file: Option<(u64, i64, i64)>,
}

impl PackedStamp {
    #[cfg(unix)]
    fn of(found: &fs::Metadata) -> Self {
        use std::os::unix::fs::MetadataExt;
        let file = Some((found.ino(), found.ctime(), found.ctime_nsec()));
        Self { length: found.len(), written: found.modified().ok(), file }
    }

    #[cfg(not(unix))]
    fn of(found: &fs::Metadata) -> Self {
        Self { length: found.len(), written: found.modified().ok(), file: None }
    }

    /// Whether the stamp detects every later change. Without `file`, this is certain only if the
    /// file is older than three seconds: some file systems record times in steps of two seconds.
    fn is_settled(&self) -> bool {
        let age = self.written.and_then(|written| written.elapsed().ok());
        self.file.is_some() || age.is_some_and(|age| age > Duration::from_secs(3))
    }
}

fn parse_packed(text: &[u8]) -> PackedRefs {
    let mut refs = Vec::new();
    let mut bad_lines = usize::from(!text.is_empty() && !text.starts_with(b"# pack-refs with:"));
    for line in text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        // A line with `^` contains the target of the tag object in the line above.
        if line.starts_with(b"#")
            || (line.starts_with(b"^") && ObjectId::from_hex(&line[1..]).is_ok())
        {
            continue;
        }
        let parsed = line.split_at_checked(41).and_then(|(id, name)| {
            let id = ObjectId::from_hex(id.strip_suffix(b" ")?).ok()?;
            let name = RefName::try_from(std::str::from_utf8(name).ok()?.to_owned()).ok()?;
            Some((name, id))
        });
        match parsed {
            Some(parsed) => refs.push(parsed),
            None => bad_lines += 1,
        }
    }
    // Git sorts the lines, but other programs may not. If a name occurs twice, the last line
    // counts.
    if !refs.is_sorted_by(|(a, _), (b, _): &(RefName, ObjectId)| a < b) {
        let refs_by_name: BTreeMap<_, _> = refs.drain(..).collect();
        refs.extend(refs_by_name);
    }
    PackedRefs { refs, bad_lines }
}

/// Returns the text of `packed-refs` with some refs changed, or removed (`None`). Damaged lines
/// stay.
pub(super) fn packed_text(text: &[u8], changes: &BTreeMap<&str, Option<ObjectId>>) -> Vec<u8> {
    let mut head: Vec<&[u8]> = Vec::new();
    let mut refs: BTreeMap<&[u8], Vec<u8>> = BTreeMap::new();
    let mut others: Vec<&[u8]> = Vec::new();
    let mut last: Option<&[u8]> = None;
    for line in text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        let is_ref = |name: &&[u8]| {
            !name.is_empty() && line[40] == b' ' && line[..40].iter().all(u8::is_ascii_hexdigit)
        };
        let name = line.get(41..).filter(is_ref);
        match (line[0], last) {
            (b'#', _) => head.push(line),
            // This line belongs to the ref in the line above.
            (b'^', Some(name)) => {
                let peeled = [b"\n", line].concat();
                refs.entry(name).or_default().extend(peeled);
            }
            _ => match name {
                Some(name) => {
                    refs.insert(name, line.to_vec());
                    last = Some(name);
                    continue;
                }
                None => others.push(line),
            },
        }
        last = None;
    }
    for (name, id) in changes {
        match id {
            Some(id) => refs.insert(name.as_bytes(), format!("{id} {name}").into_bytes()),
            None => refs.remove(name.as_bytes()),
        };
    }
    if head.is_empty() {
        head.push(PACKED_HEAD);
    }
    let lines = head.into_iter().chain(refs.values().map(Vec::as_slice)).chain(others);
    lines.flat_map(|line| [line, b"\n"]).flatten().copied().collect()
}

/// First line of a new `packed-refs`. It states that the refs are sorted and that the target of
/// every tag object is listed.
const PACKED_HEAD: &[u8] = b"# pack-refs with: peeled fully-peeled sorted ";

/// Returns the names of refs that have files below `root`, such as `refs/heads`. Lock files are
/// left out.
pub(super) fn loose_names(git_dir: &Path, root: &str) -> Result<Vec<String>> {
    let mut names = files_below(git_dir, root)?;
    names.retain(|name| !name.ends_with(LOCK_ENDING));
    Ok(names)
}

pub(super) fn files_below(git_dir: &Path, root: &str) -> Result<Vec<String>> {
    let mut names = Vec::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        let dir = git_dir.join(&folder);
        for entry in unless_absent(fs::read_dir(&dir), &dir)?.into_iter().flatten() {
            let entry = entry.map_err(Error::io(&dir))?;
            let Some(part) = entry.file_name().to_str().map(str::to_owned) else { continue };
            let is_dir = entry.file_type().map_err(Error::io(&dir))?.is_dir();
            let list = if is_dir { &mut folders } else { &mut names };
            list.push(format!("{folder}/{part}"));
        }
    }
    Ok(names)
}

/// Whether the error means that no file of this name exists. A folder of this name may exist.
fn is_no_file(error: &io::Error) -> bool {
    is_absent(error) || error.kind() == io::ErrorKind::IsADirectory
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_refs_are_written_as_git_does() {
        let id = |digit: &str| ObjectId::from_hex(digit.repeat(40).as_bytes()).unwrap();
        let [one, two, three] = ["1", "2", "3"].map(id);
        let changes = BTreeMap::from([("refs/tags/b", Some(two)), ("refs/heads/A", Some(one))]);
        let new = packed_text(b"", &changes);
        let head = "# pack-refs with: peeled fully-peeled sorted \n";
        let lines = format!("{head}{one} refs/heads/A\n{two} refs/tags/b\n");
        assert_eq!(String::from_utf8_lossy(&new), lines);

        // Git's first line, the targets of tag objects, and damaged lines stay.
        let old = format!(
            "# pack-refs with: peeled \n{one} refs/tags/b\n^{two}\n{two} refs/tags/c\n^{three}\nbad line\n"
        );
        let changes = BTreeMap::from([
            ("refs/tags/b", None),
            ("refs/tags/a", Some(three)),
            ("refs/tags/é", Some(one)),
            ("refs/tags/none", None),
        ]);
        let new = packed_text(old.as_bytes(), &changes);
        let expected = format!(
            "# pack-refs with: peeled \n{three} refs/tags/a\n{two} refs/tags/c\n^{three}\n{one} refs/tags/é\nbad line\n"
        );
        assert_eq!(String::from_utf8_lossy(&new), expected);
        let packed = parse_packed(&new);
        assert_eq!((packed.refs.len(), packed.bad_lines), (3, 1));
    }
}
