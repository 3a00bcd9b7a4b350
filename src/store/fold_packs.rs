//! Keeping packs few. Every snapshot adds a small pack, and reading looks through all of them; so once there are many,
//! the small ones are copied into one. No object is compressed anew, and each is copied about log2(n) times in a store's life.

use std::fs;
use std::path::{Path, PathBuf};

use super::find_files::{files_ending, unless_absent};
use super::loose::{loose_objects, refuse_linked};
use super::pack_file::{Opened, PackFile, as_they_stand};
use super::pack_folder::{forget_multi_pack_index, is_kept};
use super::{Error, Lock, ObjectId, Result, Store, unless_lost};
use crate::durable;

/// Fold when there are more packs than this.
const MANY: usize = 20;
/// So many loose objects are left as they are.
const MANY_LOOSE: usize = 500;
/// Packs this large are left alone, for `gc`.
const LARGE: u64 = 64 << 20;

impl Store {
    /// Fold small packs into one if there are many. A damaged pack is left alone, whole.
    pub(super) fn fold_packs(&self, _lock: &Lock) -> Result<usize> {
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
            if let Some(entries) = entries_of(&pack.index)? {
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
        self.remove_packs(folded.iter().copied().filter(|index| **index != new_index))?;
        durable::sync_dir(&dir).map_err(Error::io(&dir))?;
        Ok(folded.len())
    }

    /// Take loose objects, which a git may have written, into a pack if there are many.
    fn fold_loose(&self) -> Result<()> {
        let loose = loose_objects(&self.git_dir.join("objects"))?;
        if loose.len() <= MANY_LOOSE {
            return Ok(());
        }
        refuse_linked(&loose)?;
        let reader = self.reader();
        let mut writer = self.pack_writer();
        let mut taken = Vec::new();
        for object in &loose {
            let Some(kind) = reader.kind(object.id)? else { continue };
            let mut data = Vec::new();
            // One that is damaged is left where it is.
            if let Some(data) = unless_lost(reader.read(object.id, kind, &mut data))? {
                writer.add_again(object.id, kind, data)?;
                taken.push(&object.path);
            }
        }
        writer.finish()?;
        taken.into_iter().try_for_each(|path| unless_absent(durable::remove(path), path).map(drop))
    }
}

struct SmallPack {
    index: PathBuf,
    bytes: u64,
}

fn small_packs(dir: &Path) -> Result<Vec<SmallPack>> {
    let mut packs = Vec::new();
    for index in files_ending(dir, "idx")? {
        let bytes =
            fs::metadata(index.with_extension("pack")).map_or(u64::MAX, |found| found.len());
        // Someone asked for a `.keep` pack to stay.
        if bytes < LARGE && !is_kept(&index)? {
            packs.push(SmallPack { index, bytes });
        }
    }
    Ok(packs)
}

/// An object, and its entry as it stands in a pack.
type Raw = (ObjectId, Vec<u8>);

/// Every object of a pack as it stands there, checked against the checksum that the index keeps of it; `None` if it is damaged or has deltas.
fn entries_of(path: &Path) -> Result<Option<Vec<Raw>>> {
    let file = PackFile::new(path.to_owned());
    let (Opened::Whole(index), Opened::Whole(pack)) = (file.index()?, file.data()?) else {
        return Ok(None);
    };
    let entries = as_they_stand(index, pack.pack_end() as u64).into_iter().map(|(entry, end)| {
        let raw = pack.entry_slice(entry.pack_offset..end)?;
        let sound = entry.crc32 == Some(crc32fast::hash(raw));
        let whole = pack.entry(entry.pack_offset).ok()?.header.is_base();
        (sound && whole).then(|| (entry.oid, raw.to_vec()))
    });
    Ok(entries.collect())
}
