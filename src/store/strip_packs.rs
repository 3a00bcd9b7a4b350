//! Rewrites packs without some of their objects, quickly: the remaining entries are copied
//! unchanged, and only deltas whose base is removed are packed again.
//!
//! A volume contains the text of several messages (see `volume`). It is removed if one of these
//! messages is removed.

use std::collections::HashSet;
use std::path::PathBuf;

use super::compressor::Effort;
use super::measured_objects::PackSlot;
use super::pack_entries::{PackEntry, PackedEntries, copy_entries, valid_entries};
use super::pack_file::PackFile;
use super::repack::PackStats;
use super::{ObjectId, Result, Store};
use crate::progress::Monitor;

pub(super) struct Stripped {
    /// Path of the new pack's index; `None` if no object remains.
    pub index: Option<PathBuf>,
    pub packed: PackStats,
    pub lost_volumes: HashSet<ObjectId>,
}

impl Store {
    pub(super) fn strip_packs(
        &self,
        packs: &[&PathBuf],
        objects: &[PackSlot],
        volumes: &HashSet<ObjectId>,
        monitor: &mut dyn Monitor,
    ) -> Result<Stripped> {
        let wanted: HashSet<_> = objects.iter().map(|object| object.id).collect();
        let goes = |entry: &PackEntry| !wanted.contains(&entry.id) && !volumes.contains(&entry.id);
        monitor.begin("packing", Some(objects.len() as u64));
        let mut writer = self.pack_writer();
        let mut copied = PackedEntries::new();
        let (mut again, mut lost_volumes) = (HashSet::new(), HashSet::new());
        for index in packs {
            let file = PackFile::new((*index).clone());
            let Some(entries) = valid_entries(&file)? else {
                // The pack is damaged, so its entries are not copied: its objects are packed again.
                let list = file.index()?.whole(index)?;
                again.extend(list.iter().map(|entry| entry.oid));
                continue;
            };
            lost_volumes
                .extend(entries.iter().map(|entry| entry.id).filter(|id| volumes.contains(id)));
            // Offsets of the bases of removed objects. A volume at one of these offsets contains
            // the text of a removed object.
            let mut lost = HashSet::new();
            file.in_windows(entries.stretches(usize::MAX), |positions, data, _| {
                let gone = positions.map(|n| entries.at(n)).filter(|entry| goes(entry));
                lost.extend(gone.filter_map(|entry| entry.base_offset(data)));
                Ok(())
            })?;
            let stays = |entry: &PackEntry| {
                let is_lost = volumes.contains(&entry.id) && lost.contains(&entry.span.start);
                !goes(entry) && !is_lost
            };
            again.extend(copy_entries(&mut writer, &file, &entries, stays, &mut copied)?);
        }
        lost_volumes.retain(|id| !copied.contains_key(id));
        let is_again =
            |object: &&PackSlot| again.contains(&object.id) && !copied.contains_key(&object.id);
        let rest: Vec<_> = objects.iter().filter(is_again).copied().collect();
        let mut packed = self.pack_onto(&mut writer, &rest, &copied, Effort::Steady, monitor)?;
        packed.objects += copied.len();
        Ok(Stripped { index: writer.finish()?, packed, lost_volumes })
    }
}
