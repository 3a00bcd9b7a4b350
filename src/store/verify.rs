//! Is the repository sound? Every object of every file is read, unpacked and hashed.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};

use gix::odb::pack::data;
use gix::odb::pack::index::Version;

use super::checksum::Checksum;
use super::files::{files_ending, is_there};
use super::fold_packs::sound_entries;
use super::loose::{Loose, loose_objects, read_loose};
use super::object::verify;
use super::pack_file::{Opened, PackFile};
use super::recent_objects::RecentObjects;
use super::{Error, Loss, ObjectId, Result, Store};
use crate::parallel::in_parts;
use crate::progress::Monitor;

#[derive(Debug, Default)]
pub struct Health {
    /// How many objects were read.
    pub objects: u64,
    /// Objects of which no sound copy exists, and why.
    pub damaged: BTreeMap<ObjectId, String>,
    /// Files that are not as they should be.
    pub files: Vec<DamagedFile>,
    /// Indices whose packs are not there. If nothing is missing, that is a removal that a power cut left unfinished; `gc` ends it.
    pub without_pack: Vec<DamagedFile>,
    sound: HashSet<ObjectId>,
}

/// A file of the store that is damaged or does not belong there.
#[derive(Debug)]
pub struct DamagedFile {
    /// Where it is, from the store's folder.
    pub path: PathBuf,
    pub why: String,
    /// Whether something was lost by it, as far as the file alone tells.
    pub harmful: bool,
}

impl DamagedFile {
    fn new(store: &Store, path: &Path, why: impl Into<String>) -> Self {
        let path = path.strip_prefix(&store.git_dir).unwrap_or(path).to_owned();
        Self { path, why: why.into(), harmful: true }
    }
}

impl Health {
    /// Whether a sound copy of the object was read.
    pub fn is_sound(&self, id: ObjectId) -> bool {
        self.sound.contains(&id)
    }

    /// Something that is wrong, in words that name it: a file, or an object in one of these packs.
    pub(super) fn first_damage(&self, indices: &[PathBuf]) -> Option<(PathBuf, String)> {
        let file = self.files.first().map(|file| (file.path.clone(), file.why.clone()));
        let pack = || indices.first().cloned().unwrap_or_default();
        file.or_else(|| self.damaged.values().next().map(|why| (pack(), why.clone())))
    }

    /// What is damaged in one place and was read in another is not damaged.
    fn without_copies(mut self) -> Self {
        self.damaged.retain(|id, _| !self.sound.contains(id));
        self
    }

    fn damaged_file(&mut self, store: &Store, path: &Path, why: impl Into<String>) {
        self.files.push(DamagedFile::new(store, path, why));
    }
}

impl Store {
    /// Read every object that the repository holds. What could not be read is an error: it may be as sound as the rest.
    pub fn verify_objects(&self, monitor: &mut dyn Monitor) -> Result<Health> {
        let mut health = Health::default();
        let dir = self.pack_dir();
        for path in files_ending(&dir, "pack")? {
            if !is_there(&path.with_extension("idx"))? {
                let why = "it has no index, so git does not see it; a command was interrupted, or the index was lost";
                let file = DamagedFile::new(self, &path, why);
                health.files.push(DamagedFile { harmful: false, ..file });
            }
        }
        for index in files_ending(&dir, "idx")? {
            if is_there(&index.with_extension("pack"))? {
                self.verify_pack(&index, &mut health, monitor)?;
            } else {
                let file = DamagedFile::new(self, &index, "its pack is not there");
                health.without_pack.push(file);
            }
        }
        self.verify_loose(&mut health, monitor)?;
        Ok(health.without_copies())
    }

    /// Read every object of the packs with these indices.
    pub(super) fn verify_packs(
        &self,
        indices: &[PathBuf],
        monitor: &mut dyn Monitor,
    ) -> Result<Health> {
        let mut health = Health::default();
        for index in indices {
            self.verify_pack(index, &mut health, monitor)?;
        }
        Ok(health.without_copies())
    }

    /// Read every object of new packs, and see that all that were to be in them are.
    pub(super) fn read_back(
        &self,
        indices: &[PathBuf],
        mut wanted: impl Iterator<Item = ObjectId>,
        monitor: &mut dyn Monitor,
    ) -> Result<Health> {
        let health = self.verify_packs(indices, monitor)?;
        if let Some((path, why)) = health.first_damage(indices) {
            let why = format!("what was read back is not what was written: {why}");
            return Err(Error::DamagedPack { path, why });
        }
        match wanted.find(|id| !health.is_sound(*id)) {
            Some(id) => Err(Error::Missing { id }),
            None => Ok(health),
        }
    }

    fn verify_pack(
        &self,
        path: &Path,
        health: &mut Health,
        monitor: &mut dyn Monitor,
    ) -> Result<()> {
        let pack_path = path.with_extension("pack");
        let file = PackFile::new(path.to_owned());
        let (data, index) = match (file.data()?, file.index()?) {
            (Opened::Whole(data), Opened::Whole(index)) => (data, index),
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
        if !checksum_is_right(data) {
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
        // An object that stands in the wrong place is not found, though it can be read; and of two with one id, one takes the place of another.
        let mut entries = (0..).zip(index.iter());
        if !entries.all(|(place, entry)| index.lookup(entry.oid) == Some(place)) {
            health.damaged_file(self, path, "its objects are not in order, or one is there twice");
        }
        // The first version of the format has no checksums of objects. They are wrong in every pack that was changed, which is already said.
        let has_checksums = index.version() != Version::V1;
        if health.files.len() == former && has_checksums && sound_entries(&file)?.is_none() {
            health.damaged_file(self, path, "it has a wrong checksum of an object");
        }
        monitor.begin("reading objects", Some(u64::from(index.num_objects())));
        // In the order in which they stand, so that what many deltas are made of is made once.
        let mut objects: Vec<_> =
            index.iter().map(|entry| (entry.pack_offset, entry.oid)).collect();
        objects.sort_unstable();
        let read = |objects: &[(u64, ObjectId)]| {
            let (mut kept, mut buffer) = (RecentObjects::default(), Vec::new());
            let read = |(offset, id): &(u64, ObjectId)| {
                let kind = file.read(*id, *offset, &mut kept, &mut buffer)?;
                verify(*id, kind, &buffer)
            };
            objects.iter().map(read).collect::<Vec<_>>()
        };
        for stretch in objects.chunks(STRETCH) {
            let outcomes = in_parts(stretch, 256, read).into_iter().flatten();
            for ((_, id), outcome) in stretch.iter().zip(outcomes) {
                health.objects += 1;
                match outcome {
                    Ok(()) => drop(health.sound.insert(*id)),
                    Err(error) if error.is_loss() => {
                        let why = format!("{error} (in {})", file_name(&pack_path));
                        health.damaged.insert(*id, why);
                    }
                    Err(error) => return Err(error),
                }
            }
            monitor.advance(stretch.len() as u64);
        }
        Ok(())
    }

    fn verify_loose(&self, health: &mut Health, monitor: &mut dyn Monitor) -> Result<()> {
        monitor.begin("reading loose objects", None);
        let mut buffer = Vec::new();
        for Loose { id, path, .. } in loose_objects(&self.objects_dir())? {
            health.objects += 1;
            monitor.advance(1);
            let read = read_loose(id, &path, &mut buffer);
            match read.and_then(|kind| verify(id, kind, &buffer)) {
                Ok(()) => drop(health.sound.insert(id)),
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

/// So many objects are read before it is told how far it went.
const STRETCH: usize = 1 << 14;

/// Whether a pack ends with the hash of all that stands before.
fn checksum_is_right(data: &data::File) -> bool {
    let end = data.pack_end() as u64;
    data.entry_slice(0..end).is_some_and(|bytes| Checksum::of(bytes) == data.checksum())
}

fn file_name(path: &Path) -> String {
    path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::progress::Silent;
    use crate::store::checksum::Checksum;
    use crate::store::fuzzing::sample_pack;

    /// Returns what `check` says of the files of a store whose index was changed; the checksum of the index is right again.
    fn files_of_changed_index(change: impl FnOnce(&mut [u8])) -> Vec<String> {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::create(&folder.path().join("store")).unwrap();
        let index = sample_pack(&store).with_extension("idx");
        let mut bytes = fs::read(&index).unwrap();
        let end = bytes.len() - 20;
        change(&mut bytes[..end]);
        let checksum = Checksum::of(&bytes[..end]);
        bytes[end..].copy_from_slice(checksum.as_slice());
        fs::write(&index, bytes).unwrap();
        let store = Store::open(store.path()).unwrap();
        let health = store.verify_objects(&mut Silent).unwrap();
        health.files.into_iter().map(|file| file.why).collect()
    }

    #[test]
    fn index_with_an_offset_behind_its_end_is_damaged() {
        assert!(files_of_changed_index(|_| {}).is_empty());
        // Four objects: behind their ids and checksums, the high bit of the first offset.
        let files = files_of_changed_index(|bytes| bytes[8 + 1024 + 4 * 24] |= 0x80);
        assert!(files[0].contains("it cannot be opened"), "{files:?}");
    }

    #[test]
    fn index_of_another_pack_is_damaged() {
        let files = files_of_changed_index(|bytes| bytes[bytes.len() - 1] ^= 1);
        assert_eq!(files, ["it is the index of another pack"]);
    }

    #[test]
    fn index_with_a_wrong_checksum_of_an_object_is_damaged() {
        let files = files_of_changed_index(|bytes| bytes[8 + 1024 + 4 * 20] ^= 1);
        assert_eq!(files, ["it has a wrong checksum of an object"]);
    }

    #[test]
    fn index_with_an_id_in_the_place_of_another_is_damaged() {
        let files = files_of_changed_index(|bytes| {
            let first = bytes[8 + 1024..][..20].to_vec();
            bytes[8 + 1024 + 3 * 20..][..20].copy_from_slice(&first);
        });
        assert_eq!(files, ["its objects are not in order, or one is there twice"]);
    }

    #[test]
    fn index_whose_objects_are_not_in_order_is_damaged() {
        let files = files_of_changed_index(|bytes| {
            let (first, second) = (8 + 1024, 8 + 1024 + 20);
            let ids = bytes[first..second + 20].to_vec();
            bytes[first..second].copy_from_slice(&ids[20..]);
            bytes[second..second + 20].copy_from_slice(&ids[..20]);
        });
        assert_eq!(files, ["its objects are not in order, or one is there twice"]);
    }
}
