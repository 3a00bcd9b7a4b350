//! Keeping packs few. Every snapshot adds a small pack, and reading looks through all of them; so once there are many,
//! the small ones are copied into one. No object is compressed anew, and each is copied about log2(n) times in a store's life.

use std::fs;
use std::path::{Path, PathBuf};

use gix::odb::pack::{data, index};

use super::gc::loose_objects;
use super::{Error, Lock, ObjectId, Result, Store};
use crate::durable;

/// Fold when there are more packs than this.
const MANY: usize = 20;
/// So many loose objects are left as they are.
const MANY_LOOSE: usize = 500;
/// Packs this large are left alone, for `gc`.
const LARGE: u64 = 64 << 20;

impl Store {
    /// Fold small packs into one if there are many. A damaged pack is left alone, whole.
    pub fn fold_packs(&self, _lock: &Lock) -> Result<usize> {
        self.fold_loose()?;
        let dir = self.git_dir.join("objects").join("pack");
        let mut packs = small_packs(&dir)?;
        if packs.len() <= MANY {
            return Ok(0);
        }
        packs.sort_by_key(|pack| pack.bytes);
        // Like git's geometric repacking: take packs as long as the next is not larger than all smaller ones together,
        // so that large packs are not copied for the sake of a few small ones.
        let mut together = 0;
        let mut count = 0;
        for (position, pack) in packs.iter().enumerate() {
            together += pack.bytes;
            let next = packs.get(position + 1).map_or(u64::MAX, |next| next.bytes);
            count = position + 1;
            if packs.len() - count <= MANY / 2 && next > together {
                break;
            }
        }
        packs.truncate(count);

        let mut writer = self.pack_writer();
        let mut folded = Vec::new();
        for pack in &packs {
            // Copied only when all of it can be read and nothing in it is a delta.
            if let Some(entries) = entries_of(&pack.index) {
                for (id, raw) in entries {
                    writer.append_raw(id, &raw)?;
                }
                folded.push(&pack.index);
            }
        }
        let Some(new_index) = writer.finish()? else {
            return Ok(0);
        };
        forget_multi_pack_index(&dir)?;
        for index in folded.iter().filter(|index| ***index != new_index) {
            remove_pack(index)?;
        }
        durable::sync_dir(&dir).map_err(Error::io(&dir))?;
        Ok(folded.len())
    }
}

impl Store {
    /// Take loose objects, which a git may have written, into a pack if there are many.
    fn fold_loose(&self) -> Result<()> {
        let loose = loose_objects(&self.git_dir.join("objects"))?;
        if loose.len() <= MANY_LOOSE {
            return Ok(());
        }
        let reader = self.reader();
        let mut writer = self.pack_writer();
        let mut taken = Vec::new();
        for object in &loose {
            let mut data = Vec::new();
            // One that is damaged is left where it is.
            let read = reader.kind(object.id).and_then(|kind| {
                let length = reader.read(object.id, kind, &mut data).ok()?.len();
                Some((kind, length))
            });
            if let Some((kind, length)) = read {
                writer.add_again(object.id, kind, &data[..length])?;
                taken.push(&object.path);
            }
        }
        writer.finish()?;
        taken.into_iter().try_for_each(|path| remove(path))
    }
}

/// Git may have made an index over all packs. It names packs that are about to go, and git makes it anew when it wants it.
pub(super) fn forget_multi_pack_index(dir: &Path) -> Result<()> {
    let mut found = false;
    for entry in fs::read_dir(dir).map_err(Error::io(dir))?.flatten() {
        let name = entry.file_name();
        if name == "multi-pack-index.d" {
            fs::remove_dir_all(entry.path()).map_err(Error::io(entry.path()))?;
            found = true;
        } else if name.to_string_lossy().starts_with("multi-pack-index") {
            remove(&entry.path())?;
            found = true;
        }
    }
    if found { durable::sync_dir(dir).map_err(Error::io(dir)) } else { Ok(()) }
}

/// Remove a pack. The index first: a pack without one is nothing to git, an index without its pack is an error.
pub(super) fn remove_pack(index: &Path) -> Result<()> {
    for extension in ["idx", "pack", "rev", "bitmap", "mtimes"] {
        remove(&index.with_extension(extension))?;
    }
    Ok(())
}

pub(super) fn remove(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(Error::Io { path: path.to_owned(), source: error })
        }
        _ => Ok(()),
    }
}

struct SmallPack {
    index: PathBuf,
    bytes: u64,
}

fn small_packs(dir: &Path) -> Result<Vec<SmallPack>> {
    let mut packs = Vec::new();
    for entry in fs::read_dir(dir).map_err(Error::io(dir))?.flatten() {
        let index = entry.path();
        let bytes =
            fs::metadata(index.with_extension("pack")).map_or(u64::MAX, |found| found.len());
        // Someone asked for a `.keep` pack to stay.
        let kept = ["keep", "promisor"].iter().any(|mark| index.with_extension(mark).exists());
        if index.extension().is_some_and(|extension| extension == "idx") && bytes < LARGE && !kept {
            packs.push(SmallPack { index, bytes });
        }
    }
    Ok(packs)
}

/// Every object of a pack as it stands there, checked against the checksum that the index keeps of it.
fn entries_of(path: &Path) -> Option<Vec<(ObjectId, Vec<u8>)>> {
    let index = index::File::at(path, gix::hash::Kind::Sha1).ok()?;
    let pack = data::File::at(path.with_extension("pack"), gix::hash::Kind::Sha1).ok()?;
    let mut entries: Vec<_> = index.iter().collect();
    entries.sort_by_key(|entry| entry.pack_offset);
    let ends =
        entries.iter().skip(1).map(|entry| entry.pack_offset).chain([pack.pack_end() as u64]);
    entries
        .iter()
        .zip(ends)
        .map(|(entry, end)| {
            let raw = pack.entry_slice(entry.pack_offset..end)?;
            let sound = entry.crc32 == Some(crc32fast::hash(raw));
            let whole = pack.entry(entry.pack_offset).ok()?.header.is_base();
            (sound && whole).then(|| (entry.oid, raw.to_vec()))
        })
        .collect()
}
