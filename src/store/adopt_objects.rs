//! Taking over the objects of another repository.

use super::find_files::files_ending;
use super::pack_file::PackFile;
use super::{Error, Kind, ObjectId, PackWriter, Result, Store};

impl PackWriter {
    /// Add these objects of another store, each hashed as it is read.
    pub fn adopt_some(&mut self, other: &Store, objects: &[(ObjectId, Kind)]) -> Result<()> {
        let reader = other.reader();
        let mut buffer = Vec::new();
        for (id, kind) in objects {
            if !self.has(*id, *kind)? {
                let bytes = reader.read(*id, *kind, &mut buffer)?;
                self.add(*kind, bytes)?;
            }
        }
        Ok(())
    }

    /// Add every object of another store's packs that this store does not have. What is no delta is copied as it stands, checked against the index's checksum.
    pub fn adopt(&mut self, other: &Store) -> Result<()> {
        let dir = other.git_dir.join("objects").join("pack");
        let reader = other.reader();
        for path in files_ending(&dir, "idx")? {
            let damaged = |why: String| Error::DamagedPack { path: path.clone(), why };
            let file = PackFile::new(path.clone());
            let (index, pack) = (file.index()?.whole(&path)?, file.data()?.whole(&path)?);
            let mut entries: Vec<_> = index.iter().collect();
            entries.sort_by_key(|entry| entry.pack_offset);
            let ends = entries.iter().skip(1).map(|entry| entry.pack_offset);
            let ends: Vec<_> = ends.chain([pack.pack_end() as u64]).collect();
            for (entry, end) in entries.iter().zip(ends) {
                let header =
                    pack.entry(entry.pack_offset).map_err(|error| damaged(error.to_string()))?;
                match header.header.as_kind() {
                    Some(kind) if self.has(entry.oid, kind)? => {}
                    Some(_) => {
                        let raw = pack.entry_slice(entry.pack_offset..end);
                        let raw = raw
                            .filter(|raw| entry.crc32 == Some(crc32fast::hash(raw)))
                            .ok_or_else(|| damaged(format!("its object {}", entry.oid)))?;
                        self.append_raw(entry.oid, raw)?;
                    }
                    None => {
                        let kind =
                            reader.kind(entry.oid)?.ok_or(Error::Missing { id: entry.oid })?;
                        if !self.has(entry.oid, kind)? {
                            let mut buffer = Vec::new();
                            let bytes = reader.read(entry.oid, kind, &mut buffer)?;
                            self.add(kind, bytes)?;
                        }
                    }
                }
            }
        }
        Ok(())
    }
}
