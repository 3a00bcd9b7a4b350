//! Writes objects: all objects that one command adds go into one pack. A loose object would cost
//! two syncs (of its file and its fan-out folder). A pack costs four syncs, whatever the number of
//! objects.
//!
//! The pack is written to a temporary file, synced and renamed. Then its index is written in the
//! same way. Readers look for indices, so they see the pack only when both files are complete.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use gix::odb::pack::data::entry::Header;
use gix::odb::pack::data::{Version, header};
use sha1::{Digest, Sha1};

use super::compressor::{Compressor, Effort};
use super::limits::longest;
use super::long_blob::LongBlob;
use super::object::hash;
use super::pack_folder::{TEMP_PREFIX, give_name};
use super::pack_index::{self, IndexEntry};
use super::packed_mark::PackedMark;
use super::similar_blobs::{
    BlobBase, EncodedPart, NewBlob, ShortBlobs, compress_together, parts, worth_a_thread,
};
use super::tree::{self, TreeEntry};
use super::volume::EncodedVolume;
use super::{Error, Kind, ObjectId, Reader, Result, Store};
use crate::durable::{self, Temp};
use crate::parallel::{both, in_parts, in_turn};
use crate::regular::read_some;

const HEADER_LEN: u64 = 12;
/// Length of a pack, in bytes, from which a second thread syncs it while its checksum is computed.
const LONG: u64 = 4 << 20;

/// Collects new objects into one pack. If dropped without [`finish`](PackWriter::finish), it leaves
/// no file behind.
pub struct PackWriter {
    dir: PathBuf,
    known: Reader,
    out: Option<BufWriter<Temp>>,
    length: u64,
    entries: Vec<IndexEntry>,
    added: HashSet<ObjectId>,
    /// Whether the store is known to be damaged. If so, an object counts as stored only if it can
    /// be read.
    distrust: bool,
    compressor: Compressor,
    /// Path of the packed mark, which lists volumes.
    mark: PathBuf,
    volumes: Vec<ObjectId>,
    /// Whether writing an object failed, so that the pack does not match `entries`.
    broken: bool,
}

impl Store {
    pub fn pack_writer(&self) -> PackWriter {
        PackWriter {
            dir: self.pack_dir(),
            // Lists the packs again: they may have been replaced while this process waited for the
            // lock. If another program packs an object later, the object is at worst written twice.
            known: Reader::with_fixed_packs(self),
            out: None,
            length: 0,
            entries: Vec::new(),
            added: HashSet::new(),
            distrust: self.is_marked_damaged(),
            compressor: Compressor::new(Effort::Quick),
            mark: self.packed_mark(),
            volumes: Vec::new(),
            broken: false,
        }
    }
}

impl PackWriter {
    /// Adds an object unless the store has it. Returns the id of the object in both cases.
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
                // Recorded before it is written, because one chat may contain the same text twice.
                self.added.insert(*id);
                new.push((*id, *blob));
            }
        }
        let short = ShortBlobs::of(&new);
        let parts: Vec<_> = parts(&new).collect();
        let compress = |part: &&[_]| compress_together(part, short);
        let written = self.entries.len();
        let added = in_turn(&parts, compress, |part, ready| self.append_together(part, &ready?));
        if let Err(error) = added {
            // Later calls must not assume that the objects after the failure were written.
            let written: HashSet<_> =
                self.entries[written..].iter().map(|entry| entry.id).collect();
            for (id, _) in new.iter().filter(|(id, _)| !written.contains(id)) {
                self.added.remove(id);
            }
            return Err(error);
        }
        Ok(ids)
    }

    /// Appends the blobs of a part in their order, and each volume before its first member.
    fn append_together(&mut self, blobs: &[NewBlob<'_>], part: &EncodedPart) -> Result<()> {
        let mut offsets = Vec::with_capacity(blobs.len());
        let mut volumes: Vec<Option<u64>> = vec![None; part.volumes.len()];
        for ((id, blob), ready) in blobs.iter().zip(&part.blobs) {
            let base = match ready.base {
                None => None,
                Some(BlobBase::Blob(number)) => Some(offsets[number]),
                Some(BlobBase::Volume(number)) => match volumes[number] {
                    Some(offset) => Some(offset),
                    None => {
                        Some(*volumes[number].insert(self.append_volume(&part.volumes[number])?))
                    }
                },
            };
            let at = self.next_offset();
            offsets.push(at);
            match base {
                Some(base) => {
                    let header = Header::OfsDelta { base_distance: at - base };
                    self.append_entry(*id, header, ready.size, &ready.compressed)?;
                }
                None => self.append(*id, Kind::Blob, blob.len(), &ready.compressed)?,
            }
        }
        Ok(())
    }

    /// Appends a volume and returns its offset.
    pub(super) fn append_volume(&mut self, volume: &EncodedVolume) -> Result<u64> {
        let offset = self.next_offset();
        self.append_entry(volume.id, whole(Kind::Blob), volume.size, &volume.compressed)?;
        self.volumes.push(volume.id);
        Ok(offset)
    }

    /// Whether writing an object failed, so that no object can be added and the pack cannot be
    /// finished.
    pub fn is_broken(&self) -> bool {
        self.broken
    }

    /// Returns a reader of the objects that were stored when this writer was created.
    pub fn reader(&self) -> &Reader {
        &self.known
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

    /// Completes and syncs the pack and makes it visible to readers. Returns the path of its index;
    /// `None` if no object was added.
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
        // The reader may have an existing pack of this name open.
        drop(self.known);
        give_name(pack, &name).map_err(Error::io(&name))?;
        durable::sync_dir(&self.dir).map_err(failed)?;

        let index = pack_index::encode(&mut self.entries, checksum);
        let index_name = name.with_extension("idx");
        let write_index = || {
            let write_temp = || {
                let mut temp = Temp::within(&self.dir, TEMP_PREFIX)?;
                temp.write_all(&index)?;
                Ok(temp)
            };
            let temp = write_temp().map_err(Error::io(&index_name))?;
            // Volumes are listed before readers see them, because a volume that is not listed
            // counts as unreachable.
            list_volumes(&self.mark, &index_name, &self.volumes)?;
            give_name(temp, &index_name).map_err(Error::io(&index_name))
        };
        if let Err(error) = write_index() {
            // A pack without an index is useless, and the disk may be full.
            durable::remove_own(&name);
            return Err(error);
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

    /// Appends an entry of another pack, with the checksum that the index of that pack records.
    pub(super) fn append_copy(&mut self, id: ObjectId, crc32: u32, raw: &[u8]) -> Result<()> {
        self.write(id, crc32, &[raw])
    }

    /// Appends a blob of another pack. Its compressed bytes are copied unchanged, in pieces.
    pub(super) fn append_long(&mut self, id: ObjectId, blob: &LongBlob) -> Result<()> {
        let mut head = Vec::with_capacity(16);
        Header::Blob.write_to(blob.size(), &mut head).map_err(Error::io(&self.dir))?;
        let mut crc = crc32fast::Hasher::new();
        crc.update(&head);
        self.write(id, 0, &[&head])?;
        let Some(out) = &mut self.out else { return Ok(()) };
        self.broken = true;
        blob.for_each_compressed(|bytes| {
            crc.update(bytes);
            self.length += bytes.len() as u64;
            out.write_all(bytes).map_err(Error::io(&self.dir))
        })?;
        self.broken = false;
        if let Some(entry) = self.entries.last_mut() {
            entry.crc32 = crc.finalize();
        }
        Ok(())
    }

    pub(super) fn has(&self, id: ObjectId, kind: Kind) -> Result<bool> {
        if self.added.contains(&id) {
            return Ok(true);
        }
        if self.distrust { self.known.is_valid(id, kind) } else { self.known.has(id) }
    }

    fn append(&mut self, id: ObjectId, kind: Kind, size: usize, compressed: &[u8]) -> Result<()> {
        // A longer object could not be read again.
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
        // Reset below, when the entry is completely written.
        self.broken = true;
        let dir = &self.dir;
        let out = match &mut self.out {
            Some(out) => out,
            None => {
                let mut temp = Temp::within(dir, TEMP_PREFIX).map_err(Error::io(dir))?;
                // Space for the header, which contains the number of objects and is written at the
                // end.
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
        let source = io::Error::other("an earlier object could not be written to the pack");
        Error::Io { path: self.dir.clone(), source }
    }
}

fn list_volumes(mark: &Path, index: &Path, volumes: &[ObjectId]) -> Result<()> {
    if volumes.is_empty() {
        return Ok(());
    }
    PackedMark::read(mark)?.with_joined(index, volumes).write(mark)
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
        .map_err(|_| io::Error::other("a pack cannot hold more than 2^32 objects"))?;
    let length = file.stream_position()?;
    file.seek(SeekFrom::Start(0))?;
    file.write_all(&header::encode(Version::V2, count))?;
    file.seek(SeekFrom::Start(0))?;
    let checksum = if length < LONG {
        checksum(file)?
    } else {
        // A second thread syncs the file while this one computes the checksum.
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
