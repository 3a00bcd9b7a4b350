//! Copying objects from one store to another: whole packs where most of one is wanted, so that deltas stay deltas; the rest in a pack of its own. All of it is read back and
//! hashed before anybody may refer to it.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use gix::odb::pack::index;

use super::fold::remove_pack;
use super::{Error, Lock, ObjectId, Placed, Result, Store, pack};
use crate::durable::{self, Existing, Temp};
use crate::progress::Monitor;

/// What was copied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Copied {
    /// How many objects, also those that came along in their pack.
    pub objects: u64,
    /// What they take.
    pub bytes: u64,
}

impl Store {
    /// Copy these objects of `other`, which are not here. Returns when they survive a power cut and were read back; on any failure nothing of them is left.
    pub fn copy_from(
        &self,
        _lock: &Lock,
        other: &Store,
        wanted: &[Placed],
        monitor: &mut dyn Monitor,
    ) -> Result<Copied> {
        let packs = indices(&other.git_dir.join("objects").join("pack"))?;
        // A pack of the same name that was here, perhaps damaged, may still have what nothing else has.
        let here: HashSet<_> =
            indices(&self.git_dir.join("objects").join("pack"))?.into_iter().collect();
        let mut attempt = |packs: &[PathBuf]| {
            let mut made = Vec::new();
            let copied = self.copy_and_verify(other, wanted, packs, &mut made, monitor);
            if copied.is_err() {
                for index in made.iter().filter(|index| !here.contains(*index)) {
                    let _ = remove_pack(index);
                }
            }
            copied
        };
        match attempt(&packs) {
            // What is damaged in one pack may be sound in another: object by object that is found.
            Err(Error::DamagedPack { .. }) => attempt(&[]),
            done => done,
        }
    }

    fn copy_and_verify(
        &self,
        other: &Store,
        wanted: &[Placed],
        packs: &[PathBuf],
        made: &mut Vec<PathBuf>,
        monitor: &mut dyn Monitor,
    ) -> Result<Copied> {
        let mut open: HashSet<ObjectId> = wanted.iter().map(|object| object.id).collect();
        monitor.begin("copying", Some(open.len() as u64));
        for index in packs {
            if open.is_empty() {
                break;
            }
            let Some(ids) = ids_if_most(index, &open) else { continue };
            made.extend(self.copy_pack(index)?);
            monitor.advance(ids.iter().filter(|id| open.remove(*id)).count() as u64);
        }
        let reader = other.reader();
        let mut pack = self.pack_writer();
        let mut buffer = Vec::new();
        for object in wanted.iter().filter(|object| open.contains(&object.id)) {
            let bytes = reader.read(object.id, object.kind, &mut buffer)?;
            // A copy that is here and damaged must not be taken for one.
            pack.add_again(object.id, object.kind, bytes)?;
            monitor.advance(1);
        }
        made.extend(pack.finish()?);
        let health = self.verify_packs(made, monitor);
        let damaged = health.files.iter().map(|file| (file.path.clone(), file.why.clone()));
        let pack = || made.first().cloned().unwrap_or_default();
        let mut damaged = damaged.chain(health.damaged.values().map(|why| (pack(), why.clone())));
        if let Some((path, why)) = damaged.next() {
            let why = format!("what was read back is not what was written: {why}");
            return Err(Error::DamagedPack { path, why });
        }
        if let Some(object) = wanted.iter().find(|object| !health.is_sound(object.id)) {
            return Err(Error::Missing { id: object.id });
        }
        self.take_over_mark(other, made);
        let length = |index: &PathBuf| {
            let both = [index.clone(), index.with_extension("pack")];
            both.iter()
                .filter_map(|path| fs::metadata(path).ok())
                .map(|found| found.len())
                .sum::<u64>()
        };
        Ok(Copied { objects: health.objects, bytes: made.iter().map(length).sum() })
    }

    /// A pack's file and its index, in this order: a pack is there for readers once its index is.
    fn copy_pack(&self, index: &Path) -> Result<Option<PathBuf>> {
        let dir = self.git_dir.join("objects").join("pack");
        let Some(name) = index.file_name() else { return Ok(None) };
        let target = dir.join(name);
        let copy = |from: &Path, to: &Path| {
            let mut temp = Temp::within(&dir, pack::TEMP_PREFIX)?;
            io::copy(&mut File::open(from)?, temp.file())?;
            temp.finish(to, Existing::Replace)?;
            durable::sync_dir(&dir)
        };
        let pack = target.with_extension("pack");
        let was_here = pack.exists();
        copy(&index.with_extension("pack"), &pack).map_err(Error::io(&pack))?;
        if let Err(source) = copy(index, &target) {
            // Without its index it is of no use, and takes room where there may be none.
            if !was_here {
                let _ = fs::remove_file(&pack);
            }
            return Err(Error::Io { path: target, source });
        }
        Ok(Some(target))
    }

    /// If the pack that `gc` made there was copied, readers here should know it, too. That it fails costs speed and nothing else.
    fn take_over_mark(&self, other: &Store, made: &[PathBuf]) {
        let Ok(text) = fs::read(other.packed_mark()) else { return };
        let name = text.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let names = made.iter().filter_map(|index| index.file_name());
        let copied = names.map(|made| made.as_encoded_bytes()).any(|made| made == name);
        if copied && !self.packed_mark().exists() {
            let _ = durable::write(&self.packed_mark(), &text, Existing::Replace);
        }
    }
}

/// The indices of all packs in a folder.
fn indices(dir: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(dir).map_err(Error::io(dir))?.flatten().map(|entry| entry.path());
    let mut found: Vec<_> = entries
        .filter(|path| path.extension().is_some_and(|extension| extension == "idx"))
        .collect();
    found.sort();
    Ok(found)
}

/// The objects of a pack, if at least half of them are wanted. One that cannot be read is looked at object by object.
fn ids_if_most(index: &Path, wanted: &HashSet<ObjectId>) -> Option<Vec<ObjectId>> {
    let index = index::File::at(index, gix::hash::Kind::Sha1).ok()?;
    let ids: Vec<_> = index.iter().map(|entry| entry.oid).collect();
    let hits = ids.iter().filter(|id| wanted.contains(*id)).count();
    (hits > 0 && hits * 2 >= ids.len()).then_some(ids)
}
