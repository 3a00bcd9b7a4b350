//! Writing objects: all that one command adds goes into one pack.
//!
//! One pack instead of loose files, because a loose object costs two syncs (file and fan-out
//! folder) and a pack costs four in all. The pack is written to a temporary file and gets its name
//! when it is complete and synced; its index follows. Git looks for indices, so a pack is there for
//! readers once its index is, and only then.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::path::PathBuf;

use gix::odb::pack::data::entry::Header;
use gix::odb::pack::data::{Version, header};
use sha1::{Digest, Sha1};

use super::compressor::{Compressor, Effort};
use super::limits::longest;
use super::object::hash;
use super::pack_folder::{TEMP_PREFIX, give_name};
use super::pack_index::{self, IndexEntry};
use super::similar_blobs::{NewBlob, Ready, compress_together, parts, worth_a_thread};
use super::tree::{self, TreeEntry};
use super::{Error, Kind, ObjectId, Reader, Result, Store};
use crate::durable::{self, Temp};
use crate::parallel::{both, in_parts, in_turn};
use crate::regular::read_some;

const HEADER_LEN: u64 = 12;
/// From this length on a pack is worth a second thread.
const LONG: u64 = 4 << 20;

/// Collects new objects into one pack. Dropped without [`finish`](PackWriter::finish), it leaves
/// nothing behind.
pub struct PackWriter {
    dir: PathBuf,
    known: Reader,
    out: Option<BufWriter<Temp>>,
    length: u64,
    entries: Vec<IndexEntry>,
    added: HashSet<ObjectId>,
    /// The store was found damaged: an object counts as stored only if it can be read.
    distrust: bool,
    compressor: Compressor,
    /// An object could not be written, so the pack is not what `entries` say.
    broken: bool,
}

impl Store {
    pub fn pack_writer(&self) -> PackWriter {
        PackWriter {
            dir: self.pack_dir(),
            // Opened again: packs may have been replaced while waiting for the lock. At worst an
            // object that another program packs meanwhile is written once more.
            known: Reader::of_now(self),
            out: None,
            length: 0,
            entries: Vec::new(),
            added: HashSet::new(),
            distrust: self.is_marked_damaged(),
            compressor: Compressor::new(Effort::Quick),
            broken: false,
        }
    }
}

impl PackWriter {
    /// Adds an object unless the store has it; returns its id either way.
    pub fn add(&mut self, kind: Kind, data: &[u8]) -> Result<ObjectId> {
        let id = hash(kind, data)?;
        if !self.has(id, kind)? {
            self.add_again(id, kind, data)?;
        }
        Ok(id)
    }

    pub fn add_tree(&mut self, entries: &[TreeEntry]) -> Result<ObjectId> {
        self.add(Kind::Tree, &tree::encode(entries))
    }

    pub(super) fn add_again(&mut self, id: ObjectId, kind: Kind, data: &[u8]) -> Result<()> {
        let compressed = self.compressor.compress(data)?;
        self.append(id, kind, data.len(), &compressed)
    }

    pub fn add_blobs(
        &mut self,
        blobs: &[&[u8]],
        stored: &HashSet<ObjectId>,
    ) -> Result<Vec<ObjectId>> {
        let hash_part = |part: &[&[u8]]| {
            part.iter().map(|blob| hash(Kind::Blob, blob)).collect::<Result<Vec<_>>>()
        };
        let least = worth_a_thread(blobs.iter().copied());
        let ids: Result<Vec<_>> = in_parts(blobs, least, hash_part).into_iter().collect();
        let ids = ids?.concat();
        let mut new = Vec::new();
        for (id, blob) in ids.iter().zip(blobs) {
            let known = !self.distrust && stored.contains(id);
            if !known && !self.has(*id, Kind::Blob)? {
                // Reserved at once: one chat may have a text twice.
                self.added.insert(*id);
                new.push((*id, *blob));
            }
        }
        let parts: Vec<_> = parts(&new).collect();
        let compress = |part: &&[_]| compress_together(part);
        let written = self.entries.len();
        let added = in_turn(&parts, compress, |part, ready| self.append_together(part, &ready?));
        if let Err(error) = added {
            // Whoever goes on with this pack must not take what is missing in it for written.
            let written: HashSet<_> =
                self.entries[written..].iter().map(|entry| entry.id).collect();
            for (id, _) in new.iter().filter(|(id, _)| !written.contains(id)) {
                self.added.remove(id);
            }
            return Err(error);
        }
        Ok(ids)
    }

    fn append_together(&mut self, blobs: &[NewBlob<'_>], ready: &[Ready]) -> Result<()> {
        let mut offsets = Vec::with_capacity(blobs.len());
        for ((id, blob), Ready { base, size, compressed }) in blobs.iter().zip(ready) {
            let at = self.next_offset();
            offsets.push(at);
            match base {
                Some(base) => {
                    let header = Header::OfsDelta { base_distance: at - offsets[*base] };
                    self.append_entry(*id, header, *size, compressed)?;
                }
                None => self.append(*id, Kind::Blob, blob.len(), compressed)?,
            }
        }
        Ok(())
    }

    /// Whether writing failed: then nothing can be added any more, nor the pack be finished.
    pub fn is_broken(&self) -> bool {
        self.broken
    }

    pub fn distrusts_store(&self) -> bool {
        self.distrust
    }

    pub fn objects(&self) -> usize {
        self.entries.len()
    }

    pub fn bytes(&self) -> u64 {
        self.length
    }

    /// Completes and syncs the pack and makes it visible; returns its index.
    pub fn finish(mut self) -> Result<Option<PathBuf>> {
        if self.broken {
            return Err(self.cannot_go_on());
        }
        let Some(out) = self.out.take() else {
            return Ok(None);
        };
        let dir = self.dir.clone();
        let failed = |error| Error::Io { path: dir.clone(), source: error };
        let mut pack = out.into_inner().map_err(|error| failed(error.into_error()))?;
        let checksum = seal(pack.file(), self.entries.len()).map_err(failed)?;
        let name = self.dir.join(format!("pack-{checksum}.pack"));
        // It may have open the file that has the name.
        drop(self.known);
        give_name(pack, &name).map_err(Error::io(&name))?;
        durable::sync_dir(&self.dir).map_err(failed)?;

        let index = pack_index::encode(&mut self.entries, checksum);
        let index_name = name.with_extension("idx");
        let write_index = || {
            let mut temp = Temp::within(&self.dir, TEMP_PREFIX)?;
            temp.write_all(&index)?;
            give_name(temp, &index_name)
        };
        if let Err(error) = write_index() {
            // Without its index a pack is of no use, and takes room where there may be none.
            durable::remove_own(&name);
            return Err(Error::Io { path: index_name, source: error });
        }
        durable::sync_dir(&self.dir).map_err(failed)?;
        Ok(Some(index_name))
    }

    pub(super) fn next_offset(&self) -> u64 {
        self.length.max(HEADER_LEN)
    }

    pub(super) fn append_raw(&mut self, id: ObjectId, raw: &[u8]) -> Result<()> {
        if self.added.insert(id) {
            self.write(id, crc32fast::hash(raw), &[raw])?;
        }
        Ok(())
    }

    pub(super) fn has(&self, id: ObjectId, kind: Kind) -> Result<bool> {
        if self.added.contains(&id) {
            return Ok(true);
        }
        if self.distrust { self.known.is_sound(id, kind) } else { self.known.has(id) }
    }

    fn append(&mut self, id: ObjectId, kind: Kind, size: usize, compressed: &[u8]) -> Result<()> {
        // An object that nobody could read again must not be acknowledged.
        if size as u64 > longest(kind) {
            return Err(Error::TooLong { kind, bytes: size as u64 });
        }
        self.added.insert(id);
        self.append_entry(id, whole(kind), size, compressed)
    }

    pub(super) fn append_entry(
        &mut self,
        id: ObjectId,
        header: Header,
        size: usize,
        compressed: &[u8],
    ) -> Result<()> {
        let mut head = Vec::with_capacity(16);
        header.write_to(size as u64, &mut head).map_err(Error::io(&self.dir))?;
        let mut crc = crc32fast::Hasher::new();
        crc.update(&head);
        crc.update(compressed);
        self.write(id, crc.finalize(), &[&head, compressed])
    }

    fn write(&mut self, id: ObjectId, crc32: u32, parts: &[&[u8]]) -> Result<()> {
        if self.broken {
            return Err(self.cannot_go_on());
        }
        // Until all of it is written.
        self.broken = true;
        let dir = &self.dir;
        let out = match &mut self.out {
            Some(out) => out,
            None => {
                let mut temp = Temp::within(dir, TEMP_PREFIX).map_err(Error::io(dir))?;
                // Room for the header: the number of objects is known at the end.
                temp.write_all(&[0; HEADER_LEN as usize]).map_err(Error::io(dir))?;
                self.length = HEADER_LEN;
                self.out.insert(BufWriter::with_capacity(1 << 16, temp))
            }
        };
        self.entries.push(IndexEntry { id, crc32, offset: self.length });
        for part in parts {
            out.write_all(part).map_err(Error::io(dir))?;
            self.length += part.len() as u64;
        }
        self.broken = false;
        Ok(())
    }

    fn cannot_go_on(&self) -> Error {
        let source = io::Error::other("an object could not be written into the pack before");
        Error::Io { path: self.dir.clone(), source }
    }
}

pub(super) fn whole(kind: Kind) -> Header {
    match kind {
        Kind::Blob => Header::Blob,
        Kind::Tree => Header::Tree,
        Kind::Commit => Header::Commit,
        Kind::Tag => Header::Tag,
    }
}

fn seal(file: &mut File, objects: usize) -> io::Result<ObjectId> {
    let count = u32::try_from(objects)
        .map_err(|_| io::Error::other("more than 2^32 objects in one pack"))?;
    let length = file.stream_position()?;
    file.seek(SeekFrom::Start(0))?;
    file.write_all(&header::encode(Version::V2, count))?;
    file.seek(SeekFrom::Start(0))?;
    let checksum = if length < LONG {
        checksum(file)?
    } else {
        // The disk has much to do meanwhile.
        let same = file.try_clone()?;
        let (checksum, synced) = both(|| checksum(file), || same.sync_data());
        synced?;
        checksum?
    };
    file.write_all(checksum.as_slice())?;
    Ok(checksum)
}

fn checksum(file: &mut File) -> io::Result<ObjectId> {
    let mut hasher = Sha1::new();
    let mut buffer = vec![0; 1 << 16];
    loop {
        match read_some(file, &mut buffer)? {
            0 => return Ok(ObjectId::Sha1(hasher.finalize().into())),
            read => hasher.update(&buffer[..read]),
        }
    }
}
