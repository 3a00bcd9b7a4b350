//! Reading refs from their files: one file each below `refs/`, and `packed-refs`, which git makes of many.
//!
//! Read here and not by git's library, because one damaged file must not hide all the others: what cannot be read is named and
//! passed over.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use super::{Error, ObjectId, RefName, Result, Store};
use crate::regular;

/// All refs below a prefix.
#[derive(Debug, Default)]
pub struct RefList {
    /// Name and target, sorted by name.
    pub refs: Vec<(RefName, ObjectId)>,
    /// What could not be read, in words that name it.
    pub broken: Vec<String>,
}

/// What the file of one ref says.
enum Loose {
    Id(ObjectId),
    Missing,
    Broken,
}

impl Store {
    /// All refs that begin with `prefix`, such as `refs/heads/`.
    pub fn refs(&self, prefix: &str) -> Result<RefList> {
        let mut found: BTreeMap<RefName, ObjectId> = BTreeMap::new();
        let mut broken = Vec::new();
        let mut names = Vec::new();
        let root = prefix.trim_end_matches('/');
        list_below(&self.git_dir.join(root), root, &mut names)?;
        let mut damaged = Vec::new();
        for name in names {
            match (self.loose_ref(&name)?, RefName::try_from(name.clone())) {
                (Loose::Id(id), Ok(name)) => drop(found.insert(name, id)),
                (Loose::Missing, _) => {}
                _ => damaged.push(name),
            }
        }
        // Only now the packed ones: git packs a ref first and then removes its file, so in this order none is missed.
        let packed = self.packed_refs()?;
        if packed.1 > 0 {
            broken.push(format!("packed-refs: {} of its lines cannot be read", packed.1));
        }
        for (name, id) in packed.0.iter().filter(|(name, _)| name.as_str().starts_with(prefix)) {
            found.entry(name.clone()).or_insert(*id);
        }
        for name in damaged {
            let older = found.keys().any(|known| known.as_str() == name);
            let more = if older { "; an older value is in packed-refs" } else { "" };
            broken.push(format!("{name}: it holds no object id{more}"));
        }
        Ok(RefList { refs: found.into_iter().collect(), broken })
    }

    /// Where a ref points. One whose file is damaged counts as not there: see [`Store::last_known`].
    ///
    /// Whoever moves a ref asks for it before, so this is also where no link on the way to it is followed.
    pub fn ref_target(&self, name: &RefName) -> Result<Option<ObjectId>> {
        self.refuse_links_to(name.as_str())?;
        match self.loose_ref(name.as_str())? {
            Loose::Id(id) => Ok(Some(id)),
            Loose::Missing | Loose::Broken => Ok(self.packed_refs()?.0.get(name).copied()),
        }
    }

    fn loose_ref(&self, name: &str) -> Result<Loose> {
        let path = self.git_dir.join(name);
        let text = match regular::read(&path) {
            Ok(text) => text,
            Err(error) if is_absent(&error) => return Ok(Loose::Missing),
            // A pipe, say, is no ref; it must not hide the others.
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => return Ok(Loose::Broken),
            Err(source) => return Err(Error::Io { path, source }),
        };
        // As strict as git: an id, a line feed, nothing else.
        let id = text.strip_suffix(b"\n").unwrap_or(&text);
        Ok(ObjectId::from_hex(id).map_or(Loose::Broken, Loose::Id))
    }

    /// The refs that git packed, and how many lines of the file mean nothing. Parsed once, as long as the file stays the same.
    fn packed_refs(&self) -> Result<Arc<Packed>> {
        let path = self.git_dir.join("packed-refs");
        let stamp = match fs::metadata(&path) {
            Ok(found) => (found.len(), found.modified().ok()),
            Err(error) if is_absent(&error) => return Ok(Arc::default()),
            Err(source) => return Err(Error::Io { path, source }),
        };
        let mut known = self.packed.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if let Some((_, packed)) = known.as_ref().filter(|(known, _)| *known == stamp) {
            return Ok(Arc::clone(packed));
        }
        let text = match regular::read(&path) {
            Ok(text) => text,
            Err(error) if is_absent(&error) => return Ok(Arc::default()),
            Err(source) => return Err(Error::Io { path, source }),
        };
        let packed = Arc::new(parse_packed(&text));
        *known = Some((stamp, Arc::clone(&packed)));
        Ok(packed)
    }
}

/// The refs that git packed, and how many lines of the file mean nothing.
type Packed = (BTreeMap<RefName, ObjectId>, usize);

/// What is remembered of `packed-refs`: its length and time, and what it says.
pub(super) type PackedCache = Mutex<Option<((u64, Option<SystemTime>), Arc<Packed>)>>;

fn parse_packed(text: &[u8]) -> Packed {
    let mut refs = BTreeMap::new();
    let mut bad = usize::from(!text.is_empty() && !text.starts_with(b"# pack-refs with:"));
    for line in text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        // A line with `^` says what the tag above it leads to.
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
            Some((name, id)) => drop(refs.insert(name, id)),
            None => bad += 1,
        }
    }
    (refs, bad)
}

fn list_below(dir: &Path, name: &str, names: &mut Vec<String>) -> Result<()> {
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if is_absent(&error) => return Ok(()),
        Err(source) => return Err(Error::Io { path: dir.to_owned(), source }),
    };
    for entry in entries {
        let entry = entry.map_err(Error::io(dir))?;
        let Some(part) = entry.file_name().to_str().map(str::to_owned) else { continue };
        let name = format!("{name}/{part}");
        if entry.file_type().map_err(Error::io(dir))?.is_dir() {
            list_below(&entry.path(), &name, names)?;
        } else if !part.ends_with(".lock") {
            // A lock that somebody left among the refs is no ref.
            names.push(name);
        }
    }
    Ok(())
}

fn is_absent(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory | io::ErrorKind::IsADirectory
    )
}
