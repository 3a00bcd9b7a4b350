//! What objects take on the disk.

use std::collections::HashMap;
use std::fs;

use super::find_files::files_ending;
use super::pack_file::{Opened, PackFile};
use super::{ObjectId, Result, Store};

impl Store {
    /// What every object in a pack takes there. Of one that stands in several, the smallest.
    pub fn packed_sizes(&self) -> Result<HashMap<ObjectId, u64>> {
        let dir = self.git_dir.join("objects").join("pack");
        let mut sizes: HashMap<ObjectId, u64> = HashMap::new();
        for path in files_ending(&dir, "idx")? {
            let Ok(pack) = fs::metadata(path.with_extension("pack")) else { continue };
            let file = PackFile::new(path);
            let Opened::Whole(list) = file.index()? else { continue };
            let mut objects: Vec<_> =
                list.iter().map(|entry| (entry.pack_offset, entry.oid)).collect();
            objects.sort_unstable();
            // The checksum ends the pack.
            let ends = objects.iter().skip(1).map(|(offset, _)| *offset);
            let ends = ends.chain([pack.len().saturating_sub(20)]).collect::<Vec<_>>();
            for ((offset, id), end) in objects.iter().zip(ends) {
                let size = end.saturating_sub(*offset);
                sizes.entry(*id).and_modify(|known| *known = size.min(*known)).or_insert(size);
            }
        }
        Ok(sizes)
    }

    /// What the whole repository takes.
    pub fn bytes_on_disk(&self) -> u64 {
        let mut total = 0;
        let mut open = vec![self.git_dir.clone()];
        while let Some(dir) = open.pop() {
            for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
                match entry.metadata() {
                    Ok(found) if found.is_dir() => open.push(entry.path()),
                    Ok(found) => total += found.len(),
                    Err(_) => {}
                }
            }
        }
        total
    }
}
