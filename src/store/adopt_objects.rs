//! Taking over the objects of another repository.

use super::find_files::{files_ending, is_there};
use super::pack_file::{PackFile, as_they_stand};
use super::{Error, Kind, ObjectId, PackWriter, Reader, Result, Store};

impl PackWriter {
    /// Add these objects of another store, each hashed as it is read.
    pub fn adopt_some(&mut self, other: &Store, objects: &[(ObjectId, Kind)]) -> Result<()> {
        let reader = other.reader();
        let mut buffer = Vec::new();
        for (id, kind) in objects {
            self.adopt_one(&reader, *id, *kind, &mut buffer)?;
        }
        Ok(())
    }

    fn adopt_one(
        &mut self,
        reader: &Reader,
        id: ObjectId,
        kind: Kind,
        buffer: &mut Vec<u8>,
    ) -> Result<()> {
        if !self.has(id, kind)? {
            self.add(kind, reader.read(id, kind, buffer)?)?;
        }
        Ok(())
    }

    /// Add every object of another store's packs that this store does not have. What is no delta is copied as it stands, checked against the index's checksum.
    pub fn adopt(&mut self, other: &Store) -> Result<()> {
        let dir = other.git_dir.join("objects").join("pack");
        let (reader, mut buffer) = (other.reader(), Vec::new());
        for path in files_ending(&dir, "idx")? {
            // A removal that was cut short.
            if !is_there(&path.with_extension("pack"))? {
                continue;
            }
            let damaged = |why: String| Error::DamagedPack { path: path.clone(), why };
            let file = PackFile::new(path.clone());
            let (index, pack) = (file.index()?.whole(&path)?, file.data()?.whole(&path)?);
            for (entry, end) in as_they_stand(index, pack.pack_end() as u64) {
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
                        self.adopt_one(&reader, entry.oid, kind, &mut buffer)?;
                    }
                }
            }
        }
        Ok(())
    }
}
