//! Packs objects on all cores, into a new pack or at the end of a pack that is being written.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::mpsc::sync_channel;
use std::thread::Builder;

use gix::odb::pack::data::entry::Header;

use super::compressor::Effort;
use super::measured_objects::{MeasuredObjects, PackSlot};
use super::pack::{PackWriter, whole};
use super::pack_entries::PackedEntries;
use super::packer::{BaseOf, PackRecord, Packer};
use super::{Error, ObjectId, Result, Store};
use crate::parallel::cores;
use crate::progress::Monitor;

#[derive(Clone, Debug, Default)]
pub struct PackStats {
    pub objects: usize,
    pub deltas: usize,
    pub bytes: u64,
    pub(super) volumes: Vec<ObjectId>,
}

impl Store {
    pub(super) fn write_packed(
        &self,
        objects: &[PackSlot],
        monitor: &mut dyn Monitor,
    ) -> Result<(Option<PathBuf>, PackStats)> {
        monitor.begin("packing", Some(objects.len() as u64));
        let mut writer = self.pack_writer();
        let none = PackedEntries::new();
        let packed = self.pack_onto(&mut writer, objects, &none, Effort::Thorough, monitor)?;
        Ok((writer.finish()?, packed))
    }

    /// Appends `objects` to the pack of `writer`. Objects in `there` are already in that pack and
    /// only serve as bases.
    pub(super) fn pack_onto(
        &self,
        writer: &mut PackWriter,
        objects: &[PackSlot],
        there: &PackedEntries,
        effort: Effort,
        monitor: &mut dyn Monitor,
    ) -> Result<PackStats> {
        let objects = MeasuredObjects { objects, lengths: &self.lengths(objects)? };
        self.pack_measured(writer, objects, there, effort, monitor)
    }

    /// Like [`pack_onto`](Self::pack_onto), for objects whose lengths are known.
    pub(super) fn pack_measured(
        &self,
        writer: &mut PackWriter,
        measured: MeasuredObjects<'_>,
        there: &PackedEntries,
        effort: Effort,
        monitor: &mut dyn Monitor,
    ) -> Result<PackStats> {
        let objects = measured.objects;
        // Offset of each object in the pack; `NOWHERE` if it is not there yet.
        let offset =
            |object: &PackSlot| there.get(&object.id).map_or(NOWHERE, |there| there.offset);
        let mut offsets: Vec<u64> = objects.iter().map(offset).collect();
        let mut volumes: HashMap<(usize, usize), u64> = HashMap::new();
        let mut packed = PackStats { objects: objects.len(), ..PackStats::default() };
        let readers = self.reader().shared();
        let share = measured.cost(0..objects.len()) / cores() as u64 + 1;
        let parts = measured.ranges(share);
        // The channel has room for few records, so that they do not fill the memory if the disk is
        // slow.
        let (sender, receiver) = sync_channel::<Result<PackRecord>>(64);
        std::thread::scope(|scope| -> Result<()> {
            for (n, part) in parts.into_iter().enumerate() {
                let (sender, readers) = (sender.clone(), &readers);
                let work = move || {
                    let mut packer = Packer::new(n, &sender, there, effort);
                    if let Err(Some(error)) = packer.pack_part(measured, part, readers) {
                        let _ = sender.send(Err(error));
                    }
                };
                Builder::new().spawn_scoped(scope, work).map_err(Error::io(&self.git_dir))?;
            }
            drop(sender);
            // Any failure ends the loop, which closes the channel and stops all packers.
            for ready in receiver {
                let offset = writer.next_offset();
                match ready? {
                    PackRecord::Object { number, base, size, compressed } => {
                        offsets[number] = offset;
                        packed.deltas += usize::from(base.is_some());
                        let header = match base {
                            Some(base) => {
                                let at = match base {
                                    BaseOf::Object(number) => Some(offsets[number]),
                                    BaseOf::Volume(part, number) => {
                                        volumes.get(&(part, number)).copied()
                                    }
                                };
                                // This is checked here, because a delta without a base would be
                                // noticed only when it is read.
                                let at = at.filter(|at| *at < offset);
                                let at = at.ok_or_else(|| lost_base(objects[number].id))?;
                                Header::OfsDelta { base_distance: offset - at }
                            }
                            None => whole(objects[number].kind),
                        };
                        writer.append_entry(objects[number].id, header, size, &compressed)?;
                        monitor.advance(1);
                    }
                    PackRecord::LongBlob { number, blob } => {
                        offsets[number] = offset;
                        writer.append_long(objects[number].id, &blob)?;
                        monitor.advance(1);
                    }
                    PackRecord::Volume { part, number, volume } => {
                        volumes.insert((part, number), offset);
                        packed.volumes.push(volume.id);
                        writer.append_volume(&volume)?;
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
    let why = "its delta base was not written before it".to_owned();
    Error::Git { what: format!("cannot pack object {id}"), why }
}

/// Offset of an object that is not in the pack: no pack is that long.
const NOWHERE: u64 = u64::MAX;
