//! Verifies the repository: reads, decompresses and hashes every object in every pack and loose
//! file.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use gix::odb::pack::index::Version;
use sha1::{Digest, Sha1};

use super::files::{exists, files_ending};
use super::id_set::IdSet;
use super::loose::{Loose, loose_objects, read_loose};
use super::object::verify;
use super::pack_entries::{PackEntries, PackEntry};
use super::pack_file::{OpenResult, PackFile};
use super::recent_objects::RecentObjects;
use super::{Error, Loss, ObjectId, Result, Store};
use crate::parallel::in_parts;
use crate::progress::Monitor;

#[derive(Debug, Default)]
pub struct Health {
    pub objects: u64,
    /// Objects without a valid copy, with the reason.
    pub damaged: BTreeMap<ObjectId, String>,
    pub files: Vec<DamagedFile>,
    /// Indices without packs. If no object is missing, they remain from an interrupted removal,
    /// which `gc` completes.
    pub without_pack: Vec<DamagedFile>,
    sound: IdSet,
}

#[derive(Debug)]
pub struct DamagedFile {
    pub path: PathBuf,
    pub why: String,
    pub harmful: bool,
}

impl DamagedFile {
    fn new(store: &Store, path: &Path, why: impl Into<String>) -> Self {
        let path = path.strip_prefix(&store.git_dir).unwrap_or(path).to_owned();
        Self { path, why: why.into(), harmful: true }
    }
}

impl Health {
    pub fn is_valid(&self, id: ObjectId) -> bool {
        self.sound.contains(&id)
    }

    /// Completes the report: an object counts as damaged only if all its copies are.
    fn with_sound(mut self, sound: Vec<ObjectId>) -> Self {
        self.sound = IdSet::new(sound);
        self.damaged.retain(|id, _| !self.sound.contains(id));
        self
    }

    fn damaged_file(&mut self, store: &Store, path: &Path, why: impl Into<String>) {
        self.files.push(DamagedFile::new(store, path, why));
    }
}

impl Store {
    /// Reads every object. Fails on a temporary failure to read, because the object may be valid.
    pub fn verify_objects(&self, monitor: &mut dyn Monitor) -> Result<Health> {
        let (mut health, mut sound) = (Health::default(), Vec::new());
        let dir = self.pack_dir();
        for path in files_ending(&dir, "pack")? {
            if !exists(&path.with_extension("idx"))? {
                let why = "its index is missing, so git ignores it: a command was interrupted, or the index was lost";
                let file = DamagedFile::new(self, &path, why);
                health.files.push(DamagedFile { harmful: false, ..file });
            }
        }
        for index in files_ending(&dir, "idx")? {
            if exists(&index.with_extension("pack"))? {
                self.verify_pack(&index, &mut health, &mut sound, monitor)?;
            } else {
                let file = DamagedFile::new(self, &index, "its pack is missing");
                health.without_pack.push(file);
            }
        }
        self.verify_loose(&mut health, &mut sound, monitor)?;
        Ok(health.with_sound(sound))
    }

    /// Reads every object of new packs, which must contain the objects `wanted`.
    pub(super) fn read_back(
        &self,
        indices: &[PathBuf],
        mut wanted: impl Iterator<Item = ObjectId>,
        monitor: &mut dyn Monitor,
    ) -> Result<Health> {
        let (mut health, mut sound) = (Health::default(), Vec::new());
        for index in indices {
            self.verify_pack(index, &mut health, &mut sound, monitor)?;
        }
        let health = health.with_sound(sound);
        let file = health.files.first().map(|file| (file.path.clone(), &file.why));
        let pack = || indices.first().cloned().unwrap_or_default();
        let damage = file.or_else(|| health.damaged.values().next().map(|why| (pack(), why)));
        if let Some((path, why)) = damage {
            let why = format!("it differs from the data that was written: {why}");
            return Err(Error::DamagedPack { path, why });
        }
        match wanted.find(|id| !health.is_valid(*id)) {
            Some(id) => Err(Error::Missing { id }),
            None => Ok(health),
        }
    }

    fn verify_pack(
        &self,
        path: &Path,
        health: &mut Health,
        sound: &mut Vec<ObjectId>,
        monitor: &mut dyn Monitor,
    ) -> Result<()> {
        let pack_path = path.with_extension("pack");
        let file = PackFile::new(path.to_owned());
        let (data, index) = match (file.data()?, file.index()?) {
            (OpenResult::Whole(data), OpenResult::Whole(index)) => (data, index),
            (data, index) => {
                let (subject, why) = match data.problem() {
                    Some(why) => (pack_path.as_path(), why),
                    None => (path, index.problem().unwrap_or_default()),
                };
                health.damaged_file(self, subject, format!("it cannot be opened: {why}"));
                return Ok(());
            }
        };
        let former = health.files.len();
        let entries = PackEntries::new(index, data.pack_end() as u64);
        let mut whole = Sha1::new();
        let are_valid = entries.are_valid(&pack_path, |bytes| whole.update(bytes));
        let are_valid = are_valid.map_err(Error::io(&pack_path))?;
        if ObjectId::Sha1(whole.finalize().into()) != data.checksum() {
            health.damaged_file(self, &pack_path, "its checksum is wrong");
        }
        let mut quiet = gix::progress::Discard;
        let never = std::sync::atomic::AtomicBool::new(false);
        if let Err(error) = index.verify_checksum(&mut quiet, &never) {
            health.damaged_file(self, path, format!("its checksum is wrong: {error}"));
        }
        if index.pack_checksum() != data.checksum() {
            health.damaged_file(self, path, "it is the index of another pack");
        }
        // A lookup does not find an id that is out of order. If an id is listed twice, one entry
        // hides the other.
        let mut listed = (0..).zip(index.iter());
        if !listed.all(|(place, entry)| index.lookup(entry.oid) == Some(place)) {
            health.damaged_file(self, path, "its objects are out of order, or one is listed twice");
        }
        // Indices of version 1 have no checksums of objects. If other damage was found, these
        // checksums may be wrong, too, and are not reported again.
        let has_checksums = index.version() != Version::V1;
        if health.files.len() == former && has_checksums && !are_valid {
            health.damaged_file(self, path, "the checksum of one of its objects is wrong");
        }
        monitor.begin("reading objects", Some(u64::from(index.num_objects())));
        // Objects are read in the order of their offsets, so that a base of many deltas is decoded
        // once.
        file.in_windows(entries.stretches(STRETCH), |positions, _, file| {
            let objects: Vec<_> = positions.map(|n| entries.at(n)).collect();
            let read = |objects: &[PackEntry]| {
                let (mut kept, mut buffer) = (RecentObjects::in_order(), Vec::new());
                let read = |PackEntry { id, span, .. }: &PackEntry| {
                    if file.long_blob(*id, span.start)?.is_some() {
                        return Ok(());
                    }
                    let kind = file.read(*id, span.start, &mut kept, &mut buffer)?;
                    verify(*id, kind, &buffer)
                };
                objects.iter().map(read).collect::<Vec<_>>()
            };
            let outcomes = in_parts(&objects, 256, read).into_iter().flatten();
            for (PackEntry { id, .. }, outcome) in objects.iter().zip(outcomes) {
                health.objects += 1;
                match outcome {
                    Ok(()) => sound.push(*id),
                    Err(error) if error.is_loss() => {
                        let why = format!(
                            "{error} (in {})",
                            pack_path.file_name().unwrap_or_default().to_string_lossy()
                        );
                        health.damaged.insert(*id, why);
                    }
                    Err(error) => return Err(error),
                }
            }
            monitor.advance(objects.len() as u64);
            Ok(())
        })
    }

    fn verify_loose(
        &self,
        health: &mut Health,
        sound: &mut Vec<ObjectId>,
        monitor: &mut dyn Monitor,
    ) -> Result<()> {
        monitor.begin("reading loose objects", None);
        let mut buffer = Vec::new();
        for Loose { id, path, .. } in loose_objects(&self.objects_dir())? {
            health.objects += 1;
            monitor.advance(1);
            let read = read_loose(id, &path, &mut buffer);
            match read.and_then(|kind| verify(id, kind, &buffer)) {
                Ok(()) => sound.push(id),
                Err(error) if error.is_loss() => {
                    health.damaged_file(self, &path, error.to_string());
                    health.damaged.insert(id, error.to_string());
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// Maximum number of objects between two progress reports.
const STRETCH: usize = 1 << 14;

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::progress::NoProgress;
    use crate::store::fuzzing::sample_pack;
    use crate::store::pack_index::checksum;

    /// Changes the index of a sample pack and corrects its checksum. Returns the problems that
    /// `check` finds in the store's files.
    fn files_of_changed_index(change: impl FnOnce(&mut [u8])) -> Vec<String> {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::create(&folder.path().join("store")).unwrap();
        let index = sample_pack(&store).with_extension("idx");
        let mut bytes = fs::read(&index).unwrap();
        let end = bytes.len() - 20;
        change(&mut bytes[..end]);
        let checksum = checksum(&bytes[..end]);
        bytes[end..].copy_from_slice(checksum.as_slice());
        fs::write(&index, bytes).unwrap();
        let store = Store::open(store.path()).unwrap();
        let health = store.verify_objects(&mut NoProgress).unwrap();
        health.files.into_iter().map(|file| file.why).collect()
    }

    #[test]
    fn index_with_an_offset_beyond_its_end_is_damaged() {
        assert!(files_of_changed_index(|_| {}).is_empty());
        // Sets the high bit of the first offset, which comes after the ids and checksums of the
        // four objects.
        let files = files_of_changed_index(|bytes| bytes[8 + 1024 + 4 * 24] |= 0x80);
        assert!(files[0].contains("it cannot be opened"), "{files:?}");
    }

    #[test]
    fn index_of_another_pack_is_damaged() {
        let files = files_of_changed_index(|bytes| bytes[bytes.len() - 1] ^= 1);
        assert_eq!(files, ["it is the index of another pack"]);
    }

    #[test]
    fn index_with_a_wrong_object_checksum_is_damaged() {
        let files = files_of_changed_index(|bytes| bytes[8 + 1024 + 4 * 20] ^= 1);
        assert_eq!(files, ["the checksum of one of its objects is wrong"]);
    }

    #[test]
    fn index_with_a_duplicate_id_is_damaged() {
        let files = files_of_changed_index(|bytes| {
            let first = bytes[8 + 1024..][..20].to_vec();
            bytes[8 + 1024 + 3 * 20..][..20].copy_from_slice(&first);
        });
        assert_eq!(files, ["its objects are out of order, or one is listed twice"]);
    }

    #[test]
    fn index_whose_objects_are_not_in_order_is_damaged() {
        let files = files_of_changed_index(|bytes| {
            let (first, second) = (8 + 1024, 8 + 1024 + 20);
            let ids = bytes[first..second + 20].to_vec();
            bytes[first..second].copy_from_slice(&ids[20..]);
            bytes[second..second + 20].copy_from_slice(&ids[..20]);
        });
        assert_eq!(files, ["its objects are out of order, or one is listed twice"]);
    }
}
