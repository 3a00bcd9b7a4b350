//! What objects take on the disk.

use std::collections::HashMap;
use std::fs;

use super::files::files_ending;
use super::pack_file::{Opened, PackFile, as_they_stand};
use super::{ObjectId, Result, Store};

impl Store {
    /// What every object in a pack takes there. Of one that stands in several, the smallest.
    pub fn packed_sizes(&self) -> Result<HashMap<ObjectId, u64>> {
        let dir = self.pack_dir();
        let mut sizes: HashMap<ObjectId, u64> = HashMap::new();
        for path in files_ending(&dir, "idx")? {
            let Ok(pack) = fs::metadata(path.with_extension("pack")) else { continue };
            let file = PackFile::new(path);
            let Opened::Whole(list) = file.index()? else { continue };
            // The checksum ends the pack.
            for entry in as_they_stand(list, pack.len().saturating_sub(20)) {
                let size = entry.span.end.saturating_sub(entry.span.start);
                let known = sizes.entry(entry.id).or_insert(size);
                *known = size.min(*known);
            }
        }
        Ok(sizes)
    }

    /// Returns how much the whole repository takes, without the reserve.
    pub fn bytes_on_disk(&self) -> u64 {
        let reserve = fs::symlink_metadata(self.reserve_path()).map_or(0, |found| found.len());
        let mut total: u64 = 0;
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
        total.saturating_sub(reserve)
    }
}
