//! Packs again without some of their objects, quickly: what stays is copied as it stands, and only what was told by something that goes is packed anew.
//!
//! A volume holds the texts of several messages. It goes, whole, if one of these goes.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;

use gix::odb::pack::data;
use gix::odb::pack::data::entry::Header;

use super::fold_packs::sound_entries;
use super::pack::PackWriter;
use super::pack_file::{EntryBase, PackFile, StandingEntry, base_of};
use super::packer::{Effort, Placed, Standing};
use super::repack::Packed;
use super::{ObjectId, Result, Store};
use crate::progress::Monitor;

/// What became of packs that were stripped.
#[derive(Default)]
pub(super) struct Stripped {
    /// The index of the new pack; none if nothing of theirs stays.
    pub index: Option<PathBuf>,
    pub packed: Packed,
    pub lost_volumes: HashSet<ObjectId>,
}

impl Store {
    /// Writes one new pack of what these packs have of `objects`.
    pub(super) fn strip_packs(
        &self,
        packs: &[&PathBuf],
        objects: &[Placed],
        volumes: &HashSet<ObjectId>,
        monitor: &mut dyn Monitor,
    ) -> Result<Stripped> {
        let wanted: HashSet<_> = objects.iter().map(|object| object.id).collect();
        monitor.begin("packing", Some(objects.len() as u64));
        let mut writer = self.pack_writer();
        let mut standing = Standing::new();
        let (mut anew, mut lost_volumes) = (HashSet::new(), HashSet::new());
        for index in packs {
            let file = PackFile::new((*index).clone());
            match sound_entries(&file)? {
                Some((data, entries)) => {
                    let ids = entries.iter().map(|entry| entry.id);
                    lost_volumes.extend(ids.filter(|id| volumes.contains(id)));
                    let goes = |id: &ObjectId| !wanted.contains(id) && !volumes.contains(id);
                    let lost = volumes_lost(data, &entries, volumes, goes);
                    let goes =
                        |entry: &StandingEntry| goes(&entry.id) || lost.contains(&entry.span.start);
                    copy_rest(&mut writer, data, &entries, goes, &mut standing, &mut anew)?;
                }
                // Whatever can still be read of it is packed anew.
                None => {
                    let list = file.index()?.whole(index)?;
                    anew.extend(list.iter().map(|entry| entry.oid));
                }
            }
        }
        let is_anew =
            |object: &&Placed| anew.contains(&object.id) && !standing.contains_key(&object.id);
        let rest: Vec<_> = objects.iter().filter(is_anew).cloned().collect();
        let mut stripped = Stripped { lost_volumes, ..Stripped::default() };
        stripped.lost_volumes.retain(|id| !standing.contains_key(id));
        stripped.packed = self.pack_onto(&mut writer, &rest, &standing, Effort::Steady, monitor)?;
        stripped.packed.objects += standing.len();
        stripped.index = writer.finish()?;
        Ok(stripped)
    }
}

/// Returns where the volumes stand that hold the text of an object that goes.
fn volumes_lost(
    data: &data::File,
    entries: &[StandingEntry],
    volumes: &HashSet<ObjectId>,
    goes: impl Fn(&ObjectId) -> bool,
) -> HashSet<u64> {
    let places = entries.iter().filter(|entry| volumes.contains(&entry.id));
    let places: HashSet<_> = places.map(|entry| entry.span.start).collect();
    let gone = entries.iter().filter(|entry| goes(&entry.id));
    let bases = gone.filter_map(|entry| match base_of(data, entry.span.start) {
        EntryBase::At(base) => Some(base),
        EntryBase::None | EntryBase::Unknown => None,
    });
    bases.filter(|base| places.contains(base)).collect()
}

/// Copies what stays of a pack, and notes what has to be packed anew because its base goes.
fn copy_rest(
    writer: &mut PackWriter,
    data: &data::File,
    entries: &[StandingEntry],
    goes: impl Fn(&StandingEntry) -> bool,
    standing: &mut Standing,
    anew: &mut HashSet<ObjectId>,
) -> Result<()> {
    // Where objects of this pack stand in the new one, and how many deltas they are away from one that is none.
    let mut places: HashMap<u64, (u64, usize)> = HashMap::with_capacity(entries.len());
    for entry in entries.iter().filter(|entry| !goes(entry)) {
        let (id, at) = (entry.id, entry.span.start);
        if let Some(place) = standing.get(&id) {
            places.insert(at, *place);
            continue;
        }
        let base = match base_of(data, at) {
            EntryBase::None => Some(None),
            EntryBase::At(base) => places.get(&base).map(Some),
            EntryBase::Unknown => None,
        };
        let (Some(base), Ok(found)) = (base, data.entry(at)) else {
            anew.insert(id);
            continue;
        };
        let offset = writer.next_offset();
        let (header, depth) = match base {
            None => (found.header, 0),
            Some((base, depth)) => {
                (Header::OfsDelta { base_distance: offset - base }, depth.saturating_add(1))
            }
        };
        let compressed = data.entry_slice(found.data_offset..entry.span.end).unwrap_or_default();
        writer.append_entry(id, header, found.decompressed_size as usize, compressed)?;
        places.insert(at, (offset, depth));
        standing.insert(id, (offset, depth));
    }
    Ok(())
}
