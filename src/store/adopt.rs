//! Taking over the objects of another repository.

use std::fs;

use gix::odb::pack::{data, index};

use super::{Error, Kind, ObjectId, PackWriter, Reader, Result, Store};

impl Reader {
    /// Kind and length of an object, without reading all of it.
    pub fn header(&self, id: ObjectId) -> Option<(Kind, u64)> {
        Some((self.kind(id)?, self.length(id)))
    }
}

impl PackWriter {
    /// Add these objects of another store, each hashed as it is read.
    pub fn adopt_some(&mut self, other: &Store, objects: &[(ObjectId, Kind)]) -> Result<()> {
        let reader = other.reader();
        let mut buffer = Vec::new();
        for (id, kind) in objects {
            if !self.has(*id, *kind) {
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
        for found in fs::read_dir(&dir).map_err(Error::io(&dir))?.flatten() {
            let path = found.path();
            if path.extension().is_none_or(|extension| extension != "idx") {
                continue;
            }
            let damaged = |why: String| Error::DamagedPack { path: path.clone(), why };
            let index = index::File::at(&path, gix::hash::Kind::Sha1)
                .map_err(|error| damaged(error.to_string()))?;
            let pack = data::File::at(path.with_extension("pack"), gix::hash::Kind::Sha1)
                .map_err(|error| damaged(error.to_string()))?;
            let mut entries: Vec<_> = index.iter().collect();
            entries.sort_by_key(|entry| entry.pack_offset);
            let ends = entries.iter().skip(1).map(|entry| entry.pack_offset);
            let ends: Vec<_> = ends.chain([pack.pack_end() as u64]).collect();
            for (entry, end) in entries.iter().zip(ends) {
                let header =
                    pack.entry(entry.pack_offset).map_err(|error| damaged(error.to_string()))?;
                match header.header.as_kind() {
                    Some(kind) if self.has(entry.oid, kind) => {}
                    Some(_) => {
                        let raw = pack.entry_slice(entry.pack_offset..end);
                        let raw = raw
                            .filter(|raw| entry.crc32 == Some(crc32fast::hash(raw)))
                            .ok_or_else(|| damaged(format!("its object {}", entry.oid)))?;
                        self.append_raw(entry.oid, raw)?;
                    }
                    None => {
                        let kind =
                            reader.kind(entry.oid).ok_or(Error::Missing { id: entry.oid })?;
                        if !self.has(entry.oid, kind) {
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
