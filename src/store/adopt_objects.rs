//! Taking over the objects of another repository.

use super::files::{files_ending, is_there};
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
        let dir = other.pack_dir();
        let (reader, mut buffer) = (other.reader(), Vec::new());
        for path in files_ending(&dir, "idx")? {
            // A removal that was cut short.
            if !is_there(&path.with_extension("pack"))? {
                continue;
            }
            let damaged = |why: String| Error::DamagedPack { path: path.clone(), why };
            let file = PackFile::new(path.clone());
            let (index, pack) = (file.index()?.whole(&path)?, file.data()?.whole(&path)?);
            for entry in as_they_stand(index, pack.pack_end() as u64) {
                let (id, found) = (entry.id, pack.entry(entry.span.start));
                let found = found.map_err(|error| damaged(error.to_string()))?;
                match found.header.as_kind() {
                    Some(kind) if self.has(id, kind)? => {}
                    Some(_) => {
                        let raw = entry.sound_bytes(pack);
                        let raw = raw.ok_or_else(|| damaged(format!("its object {id}")))?;
                        self.append_raw(id, raw)?;
                    }
                    None => {
                        let kind = reader.kind(id)?.ok_or(Error::Missing { id })?;
                        self.adopt_one(&reader, id, kind, &mut buffer)?;
                    }
                }
            }
        }
        Ok(())
    }
}
