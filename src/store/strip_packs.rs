//! Writes packs again without some of their objects, quickly: what stays is copied as it stands,
//! and only deltas of something that goes are packed again.
//!
//! A volume holds the texts of several messages. It goes, whole, if one of these goes.

use std::collections::HashSet;
use std::path::PathBuf;

use super::compressor::Effort;
use super::pack_entries::{PackEntry, PackedEntries, copy_entries, sound_entries};
use super::pack_file::PackFile;
use super::packer::Placed;
use super::repack::Packed;
use super::{ObjectId, Result, Store};
use crate::progress::Monitor;

pub(super) struct Stripped {
    /// The index of the new pack; `None` if no object stays.
    pub index: Option<PathBuf>,
    pub packed: Packed,
    pub lost_volumes: HashSet<ObjectId>,
}

impl Store {
    pub(super) fn strip_packs(
        &self,
        packs: &[&PathBuf],
        objects: &[Placed],
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
            let Some((data, entries)) = sound_entries(&file)? else {
                // Whatever can still be read of it is packed again.
                let list = file.index()?.whole(index)?;
                again.extend(list.iter().map(|entry| entry.oid));
                continue;
            };
            lost_volumes.extend(entries.iter().map(|entry| entry.id));
            let gone = entries.iter().filter(|entry| goes(entry));
            // Where the volumes stand, among others, that hold the text of an object that goes.
            let lost: HashSet<_> = gone.filter_map(|entry| entry.base_offset(data)).collect();
            let stays = |entry: &PackEntry| {
                let is_lost = volumes.contains(&entry.id) && lost.contains(&entry.span.start);
                !goes(entry) && !is_lost
            };
            again.extend(copy_entries(&mut writer, data, &entries, stays, &mut copied)?);
        }
        lost_volumes.retain(|id| volumes.contains(id) && !copied.contains_key(id));
        let is_again =
            |object: &&Placed| again.contains(&object.id) && !copied.contains_key(&object.id);
        let rest: Vec<_> = objects.iter().filter(is_again).copied().collect();
        let mut packed = self.pack_onto(&mut writer, &rest, &copied, Effort::Steady, monitor)?;
        packed.objects += copied.len();
        Ok(Stripped { index: writer.finish()?, packed, lost_volumes })
    }
}
