//! Packs objects on all cores, into a new pack or behind the entries of one.

use std::collections::HashMap;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::mpsc::sync_channel;
use std::thread::Builder;

use gix::odb::pack::data::entry::Header;

use super::compressor::Effort;
use super::pack::{PackWriter, whole};
use super::pack_entries::PackedEntries;
use super::packer::{BaseOf, Halt, Packer, Placed, Ready};
use super::{Error, Kind, ObjectId, Readers, Result, Store};
use crate::parallel::{cores, in_parts};
use crate::progress::Monitor;

#[derive(Clone, Debug, Default)]
pub struct Packed {
    pub objects: usize,
    pub deltas: usize,
    pub bytes: u64,
    pub(super) volumes: Vec<ObjectId>,
}

impl Store {
    pub(super) fn write_packed(
        &self,
        objects: &[Placed],
        monitor: &mut dyn Monitor,
    ) -> Result<(Option<PathBuf>, Packed)> {
        monitor.begin("packing", Some(objects.len() as u64));
        let mut writer = self.pack_writer();
        let none = PackedEntries::new();
        let packed = self.pack_onto(&mut writer, objects, &none, Effort::Thorough, monitor)?;
        Ok((writer.finish()?, packed))
    }

    /// Writes `objects` behind what a pack has. Those that are `there` only serve as bases.
    pub(super) fn pack_onto(
        &self,
        writer: &mut PackWriter,
        objects: &[Placed],
        there: &PackedEntries,
        effort: Effort,
        monitor: &mut dyn Monitor,
    ) -> Result<Packed> {
        let offset = |object: &Placed| there.get(&object.id).map(|there| there.offset);
        let mut offsets: Vec<Option<u64>> = objects.iter().map(offset).collect();
        let mut volumes: HashMap<(usize, usize), u64> = HashMap::new();
        let mut packed = Packed { objects: objects.len(), ..Packed::default() };
        let readers = self.reader().shared();
        let parts = parts(objects, &readers)?;
        // The lengths of all objects were read, and so every pack is mapped.
        readers.let_go();
        // The channel holds few, so that a slow disk does not fill the memory.
        let (sender, receiver) = sync_channel::<Result<Ready>>(64);
        std::thread::scope(|scope| -> Result<()> {
            for (n, part) in parts.into_iter().enumerate() {
                let (sender, readers) = (sender.clone(), &readers);
                let work = move || {
                    let mut packer = Packer::new(n, &sender, there, effort);
                    if let Err(Halt::Failed(error)) = packer.pack_part(objects, part, readers) {
                        let _ = sender.send(Err(error));
                    }
                };
                Builder::new().spawn_scoped(scope, work).map_err(Error::io(&self.git_dir))?;
            }
            drop(sender);
            // Whatever fails here ends the loop and with it the channel, and so all packers.
            for ready in receiver {
                let offset = writer.next_offset();
                match ready? {
                    Ready::Object { number, base, size, compressed } => {
                        offsets[number] = Some(offset);
                        packed.deltas += usize::from(base.is_some());
                        let header = match base {
                            Some(base) => {
                                let at = match base {
                                    BaseOf::Object(number) => offsets[number],
                                    BaseOf::Volume(part, number) => {
                                        volumes.get(&(part, number)).copied()
                                    }
                                };
                                // A delta without a base would be noticed only when it is read.
                                let at = at.filter(|at| *at < offset);
                                let at = at.ok_or_else(|| lost_base(objects[number].id))?;
                                Header::OfsDelta { base_distance: offset - at }
                            }
                            None => whole(objects[number].kind),
                        };
                        writer.append_entry(objects[number].id, header, size, &compressed)?;
                        monitor.advance(1);
                    }
                    Ready::Volume { part, number, id, size, compressed } => {
                        volumes.insert((part, number), offset);
                        packed.volumes.push(id);
                        writer.append_entry(id, whole(Kind::Blob), size, &compressed)?;
                    }
                }
            }
            Ok(())
        })?;
        packed.bytes = writer.bytes();
        Ok(packed)
    }
}

fn lost_base(id: ObjectId) -> Error {
    let why = "what it is a delta of was not written before it".to_owned();
    Error::Git { what: format!("packing object {id}"), why }
}

/// Returns a stretch of slots for each core; the first object of each has no base.
fn parts(objects: &[Placed], readers: &Readers) -> Result<Vec<Range<usize>>> {
    let lengths = |part: &[Placed]| {
        let reader = readers.reader();
        let length = |object: &Placed| {
            Ok(reader.look(object.id)?.map_or(0, |(_, length)| length).saturating_add(SMALL))
        };
        part.iter().map(length).collect::<Result<Vec<_>>>()
    };
    let lengths = in_parts(objects, 256, lengths).into_iter().collect::<Result<Vec<_>>>()?.concat();
    let share = lengths.iter().sum::<u64>() / cores() as u64 + 1;
    let mut parts = Vec::new();
    let (mut begin, mut held) = (0, 0);
    for (n, length) in lengths.iter().enumerate() {
        if held >= share && objects[n].slot != objects[n - 1].slot {
            parts.push(begin..n);
            (begin, held) = (n, 0);
        }
        held += length;
    }
    parts.push(begin..objects.len());
    Ok(parts)
}

/// Bytes that an object costs beside its own.
const SMALL: u64 = 200;
