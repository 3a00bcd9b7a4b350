//! Packs as objects of the storage. The content of a pack is a backup file (docs/backup.md) that
//! contains only new objects. It is cut into parts, so that neither writing nor reading needs much
//! memory, and no storage needs to accept a large object.

use std::io::{self, Read, Write};

use super::PlainRemoteError;
use super::announcement::{LONGEST_OBJECT, Pack, Part};
use super::key::{RemoteKey, Result, damaged};
use crate::archive::backup::{BackupError, Decoder, Header, encode};
use crate::progress::Monitor;
use crate::storage::Storage;
use crate::store::{Kind, ObjectId, PackSlot, PackWriter, Reader};

/// Length of the content of a part. The content, its encrypted copy and the copy that is sent are
/// in memory together.
const PART: usize = 8 << 20;

pub(super) const PREFIX: &str = "packs/";

pub(super) fn object_name(part: &str) -> String {
    format!("{PREFIX}{part}")
}

/// The storage, the key and the device, for writing packs.
pub(super) struct PackStorage<'s> {
    pub storage: &'s dyn Storage,
    pub key: &'s RemoteKey,
    pub device: &'s str,
}

/// Collects the content of a pack and writes each full part.
struct PartWriter<'w> {
    to: &'w PackStorage<'w>,
    /// Called with the name of a part before the part is written.
    begun: &'w mut dyn FnMut(&str) -> Result<()>,
    buffer: Vec<u8>,
    parts: Vec<Part>,
    failed: Option<PlainRemoteError>,
}

impl PartWriter<'_> {
    fn write_part(&mut self) -> Result<()> {
        let object = self.to.key.seal(&self.buffer)?;
        self.buffer = Vec::new();
        let name = self.to.key.part_name(self.to.device, &object);
        (self.begun)(&name)?;
        self.to.storage.write(&object_name(&name), &object)?;
        self.parts.push(Part { name, bytes: object.len() as u64 });
        Ok(())
    }
}

impl Write for PartWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = bytes.len().min(PART - self.buffer.len());
        self.buffer.extend_from_slice(&bytes[..taken]);
        if self.buffer.len() == PART
            && let Err(error) = self.write_part()
        {
            self.failed = Some(error);
            return Err(io::ErrorKind::Other.into());
        }
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl PackStorage<'_> {
    /// Writes a pack. Every object is hashed when it is read. `begun` is called with the name of
    /// each part before the part is written.
    pub(super) fn write(
        &self,
        reader: &Reader,
        objects: &[PackSlot],
        time: &str,
        begun: &mut dyn FnMut(&str) -> Result<()>,
        monitor: &mut dyn Monitor,
    ) -> crate::engine::Result<Pack> {
        let snapshots = objects.iter().filter(|object| object.kind == Kind::Commit).count() as u64;
        let header = Header {
            program: "stvc".into(),
            taken: time.to_owned(),
            whole: false,
            timelines: Vec::new(),
            snapshots,
            objects: objects.len() as u64,
            refs: Default::default(),
        };
        let mut out =
            PartWriter { to: self, begun, buffer: Vec::new(), parts: Vec::new(), failed: None };
        let written = encode(&mut out, &header, objects, reader, monitor).map(drop);
        if let Some(error) = out.failed.take() {
            return Err(error.into());
        }
        match written {
            Ok(()) => {}
            Err(BackupError::Store(error)) => return Err(error.into()),
            Err(error) => return Err(damaged("the new pack", error.to_string()).into()),
        }
        if !out.buffer.is_empty() {
            out.write_part()?;
        }
        Ok(Pack { parts: out.parts, objects: header.objects, replaces: Vec::new() })
    }
}

/// Reads the parts of a pack one after the other.
struct PartReader<'r> {
    storage: &'r dyn Storage,
    key: &'r RemoteKey,
    device: &'r str,
    parts: std::slice::Iter<'r, Part>,
    buffer: io::Cursor<Vec<u8>>,
    failed: Option<PlainRemoteError>,
}

impl PartReader<'_> {
    fn read_part(&mut self, part: &Part) -> Result<Vec<u8>> {
        let name = object_name(&part.name);
        let object = self.storage.read(&name, part.bytes.min(LONGEST_OBJECT))?;
        if object.len() as u64 != part.bytes {
            return Err(damaged(&name, "its length is wrong"));
        }
        if self.key.part_name(self.device, &object) != part.name {
            return Err(damaged(&name, "its bytes do not match its name"));
        }
        self.key.open(&name, &object)
    }
}

impl Read for PartReader<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        loop {
            let read = self.buffer.read(bytes)?;
            if read > 0 || bytes.is_empty() {
                return Ok(read);
            }
            let Some(part) = self.parts.next() else { return Ok(0) };
            match self.read_part(part) {
                Ok(content) => self.buffer = io::Cursor::new(content),
                Err(error) => {
                    self.failed = Some(error);
                    return Err(io::ErrorKind::Other.into());
                }
            }
        }
    }
}

/// Reads a pack of a device and adds its objects to `out`. Each object gets the id that its bytes
/// have. Returns these ids.
pub(super) fn read(
    storage: &dyn Storage,
    key: &RemoteKey,
    device: &str,
    pack: &Pack,
    out: &mut PackWriter,
) -> crate::engine::Result<Vec<ObjectId>> {
    let mut parts = PartReader {
        storage,
        key,
        device,
        parts: pack.parts.iter(),
        buffer: io::Cursor::default(),
        failed: None,
    };
    let mut ids = Vec::new();
    let done = read_objects(&mut parts, out, &mut ids);
    let name = object_name(pack.name());
    match (parts.failed.take(), done) {
        (Some(error), _) => Err(error.into()),
        (None, Ok(())) if ids.len() as u64 == pack.objects => Ok(ids),
        (None, Ok(())) => Err(damaged(&name, "it has another number of objects").into()),
        (None, Err(BackupError::Store(error))) => Err(error.into()),
        (None, Err(error)) => Err(damaged(&name, error.to_string()).into()),
    }
}

fn read_objects(
    input: &mut PartReader<'_>,
    out: &mut PackWriter,
    ids: &mut Vec<ObjectId>,
) -> std::result::Result<(), BackupError> {
    let mut decoder = Decoder::new(input)?;
    while let Some((kind, bytes)) = decoder.next_object()? {
        ids.push(out.add(kind, bytes)?);
    }
    Ok(())
}
