//! All objects into one pack, or behind what a pack has already: on all cores, each with a stretch of its own.

use std::collections::HashMap;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::mpsc::sync_channel;
use std::thread::Builder;

use gix::odb::pack::data::entry::Header;

use super::pack::{PackWriter, whole};
use super::packer::{BaseOf, Effort, Halt, Packer, Placed, Ready, Standing};
use super::{Error, Kind, ObjectId, Readers, Result, Store};
use crate::parallel::{cores, in_parts};
use crate::progress::Monitor;

#[derive(Clone, Debug, Default)]
pub struct Packed {
    pub objects: usize,
    pub deltas: usize,
    pub bytes: u64,
    /// The volumes in it: objects that nothing refers to.
    pub(super) volumes: Vec<ObjectId>,
}

impl Store {
    /// Write `objects` into one new pack: its index, and what it holds. Nothing else is changed.
    pub(super) fn write_packed(
        &self,
        objects: &[Placed],
        monitor: &mut dyn Monitor,
    ) -> Result<(Option<PathBuf>, Packed)> {
        monitor.begin("packing", Some(objects.len() as u64));
        let mut writer = self.pack_writer();
        let nothing = Standing::new();
        let packed = self.pack_onto(&mut writer, objects, &nothing, Effort::Thorough, monitor)?;
        Ok((writer.finish()?, packed))
    }

    /// Write `objects` behind what a pack has already. Those that are `standing` there are not written again; they only are what others may be deltas of.
    pub(super) fn pack_onto(
        &self,
        writer: &mut PackWriter,
        objects: &[Placed],
        standing: &Standing,
        effort: Effort,
        monitor: &mut dyn Monitor,
    ) -> Result<Packed> {
        let offset = |object: &Placed| standing.get(&object.id).map(|(offset, _)| *offset);
        let mut offsets: Vec<Option<u64>> = objects.iter().map(offset).collect();
        let mut volumes: HashMap<(usize, usize), u64> = HashMap::new();
        let mut packed = Packed { objects: objects.len(), ..Packed::default() };
        let readers = self.reader().shared();
        let parts = parts(objects, &readers)?;
        // A glance at every object has mapped all of every pack.
        readers.let_go();
        // The channel holds few, so that a slow disk does not fill the memory.
        let (sender, receiver) = sync_channel::<Result<Ready>>(64);
        std::thread::scope(|scope| -> Result<()> {
            for (n, part) in parts.into_iter().enumerate() {
                let (sender, readers) = (sender.clone(), &readers);
                let work = move || {
                    let mut packer = Packer::new(n, &sender, standing, effort);
                    if let Err(Halt::Failed(error)) = packer.pack_part(objects, part, readers) {
                        let _ = sender.send(Err(error));
                    }
                };
                Builder::new().spawn_scoped(scope, work).map_err(Error::io(&self.git_dir))?;
            }
            drop(sender);
            // Whatever fails here ends the loop and with it the channel, and nobody packs on for nothing.
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
                                // A delta of nothing would be found only when it is read.
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

/// Stretches of about the same size for all cores. They end where a slot does; the first object after a cut has no base, so there are no more than
/// needed.
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

/// What an object costs beside its bytes.
const SMALL: u64 = 200;
