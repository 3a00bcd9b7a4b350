//! Reading objects. Every object is hashed again when it is read: what comes out of the store is what went in, or an
//! error that names the object.

use std::cell::RefCell;
use std::sync::{Arc, Mutex};

use gix::objs::Find;

use super::delta_pack::{DeltaPack, Kept};
use super::tree::{self, TreeEntry};
use super::{Commit, Error, Kind, ObjectId, Result, Store, commit};

/// Reads objects; one for each thread.
pub struct Reader {
    odb: gix::odb::Handle,
    /// The pack that `gc` made, which is asked first.
    deltas: Option<Arc<DeltaPack>>,
    kept: RefCell<Kept>,
}

impl Clone for Reader {
    /// Another one, which has read nothing yet.
    fn clone(&self) -> Self {
        Self::over(self.odb.clone(), self.deltas.clone())
    }
}

impl Store {
    /// A reader of this store's objects.
    pub fn reader(&self) -> Reader {
        Reader::over(self.odb.clone(), self.delta_pack())
    }
}

/// Makes readers in other threads: a reader itself stays in one.
pub struct Readers {
    odb: Mutex<gix::odb::Handle>,
    deltas: Option<Arc<DeltaPack>>,
}

impl Readers {
    /// One more reader.
    pub fn reader(&self) -> Reader {
        let odb = self.odb.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        Reader::over(odb.clone(), self.deltas.clone())
    }
}

impl Reader {
    /// Readers for other threads.
    pub fn shared(&self) -> Readers {
        Readers { odb: Mutex::new(self.odb.clone()), deltas: self.deltas.clone() }
    }

    /// The bytes of the object `id`, which must be of `kind`, in `buffer`.
    pub fn read<'b>(&self, id: ObjectId, kind: Kind, buffer: &'b mut Vec<u8>) -> Result<&'b [u8]> {
        let length = match self.read_any_copy(id, kind, buffer) {
            Ok(length) => length,
            // What is damaged in one pack may be sound in another.
            Err(error @ Error::Damaged { .. }) => {
                self.read_sound_copy(id, kind, buffer).ok_or(error)?
            }
            Err(error) => return Err(error),
        };
        Ok(&buffer[..length])
    }

    /// Like [`read`](Reader::read) for a blob, but not hashed again: for those who hash the whole that it is a part of.
    pub fn read_unchecked<'b>(&self, id: ObjectId, buffer: &'b mut Vec<u8>) -> Result<&'b [u8]> {
        if self.read_deltas(id, buffer).is_some() {
            return Ok(buffer);
        }
        let found = self
            .odb
            .try_find(&id, buffer)
            .map_err(|error| Error::Damaged { id, why: error.to_string() })?;
        Ok(found.ok_or(Error::Missing { id })?.data)
    }

    /// The object from the pack that `gc` made, if it is there and can be read.
    fn read_deltas(&self, id: ObjectId, buffer: &mut Vec<u8>) -> Option<Kind> {
        self.deltas.as_ref()?.read(id, &mut self.kept.borrow_mut(), buffer)
    }

    /// The copy that git's library finds first: at the beginning of `buffer`, and its length.
    fn read_any_copy(&self, id: ObjectId, kind: Kind, buffer: &mut Vec<u8>) -> Result<usize> {
        if let Some(found) = self.read_deltas(id, buffer)
            && found == kind
            && verify(id, kind, buffer).is_ok()
        {
            return Ok(buffer.len());
        }
        let found = self
            .odb
            .try_find(&id, buffer)
            .map_err(|error| Error::Damaged { id, why: error.to_string() })?;
        let object = found.ok_or(Error::Missing { id })?;
        verify(id, object.kind, object.data)?;
        if object.kind != kind {
            return Err(Error::Damaged {
                id,
                why: format!("it is a {}, not a {kind}", object.kind),
            });
        }
        Ok(object.data.len())
    }

    /// Look through every pack and the loose objects, one by one. Slow, and only for what is damaged.
    fn read_sound_copy(&self, id: ObjectId, kind: Kind, buffer: &mut Vec<u8>) -> Option<usize> {
        let objects = self.odb.store_ref().path().to_owned();
        let sound = |data: &gix::objs::Data<'_>| {
            (data.kind == kind && verify(id, data.kind, data.data).is_ok())
                .then_some(data.data.len())
        };
        for entry in std::fs::read_dir(objects.join("pack")).ok()?.flatten() {
            let path = entry.path();
            if path.extension().is_none_or(|extension| extension != "idx") {
                continue;
            }
            let Ok(bundle) = gix::odb::pack::Bundle::at(&path, gix::hash::Kind::Sha1) else {
                continue;
            };
            let (mut inflate, mut cache) = (Default::default(), gix::odb::pack::cache::Never);
            if let Ok(Some((data, _))) = bundle.find(&id, buffer, &mut inflate, &mut cache)
                && let Some(length) = sound(&data)
            {
                return Some(length);
            }
        }
        let loose = gix::odb::loose::Store::at(objects, gix::hash::Kind::Sha1);
        loose.try_find(&id, buffer).ok()?.as_ref().and_then(sound)
    }

    /// The blob `id`.
    pub fn blob(&self, id: ObjectId) -> Result<Vec<u8>> {
        let mut buffer = Vec::new();
        let length = self.read(id, Kind::Blob, &mut buffer)?.len();
        buffer.truncate(length);
        Ok(buffer)
    }

    /// The entries of the tree `id`.
    pub fn tree(&self, id: ObjectId) -> Result<Vec<TreeEntry>> {
        let mut buffer = Vec::new();
        tree::decode(id, self.read(id, Kind::Tree, &mut buffer)?)
    }

    /// The commit `id`.
    pub fn commit(&self, id: ObjectId) -> Result<Commit> {
        let mut buffer = Vec::new();
        commit::decode(id, self.read(id, Kind::Commit, &mut buffer)?)
    }

    /// Whether there is an object `id`, of whatever kind and health.
    pub fn exists(&self, id: ObjectId) -> bool {
        gix::objs::Exists::exists(&self.odb, &id)
    }

    /// What a tag of git's own names.
    pub fn tag_target(&self, id: ObjectId) -> Result<ObjectId> {
        let mut buffer = Vec::new();
        let text = self.read(id, Kind::Tag, &mut buffer)?;
        let target = text.strip_prefix(b"object ").and_then(|rest| rest.get(..40));
        let target = target.and_then(|hex| ObjectId::from_hex(hex).ok());
        target.ok_or(Error::Damaged { id, why: "it names no object".into() })
    }

    /// Of which kind an object is.
    pub fn kind(&self, id: ObjectId) -> Option<Kind> {
        gix::objs::FindHeader::try_header(&self.odb, &id).ok().flatten().map(|header| header.kind)
    }

    /// How long an object is, as far as that can be told without reading it; 0 if it is not there.
    pub(super) fn length(&self, id: ObjectId) -> u64 {
        let header = gix::objs::FindHeader::try_header(&self.odb, &id);
        header.ok().flatten().map_or(0, |header| header.size)
    }

    /// Whether the object can be read and is what its id says.
    pub(super) fn is_sound(&self, id: ObjectId, kind: Kind) -> bool {
        self.read(id, kind, &mut Vec::new()).is_ok()
    }

    /// All objects of `kind` whose id begins with the hexadecimal `prefix`.
    pub fn with_prefix(&self, prefix: &str, kind: Kind) -> Vec<ObjectId> {
        let Ok(prefix) = gix::hash::Prefix::from_hex(prefix) else {
            return Vec::new();
        };
        let mut candidates = std::collections::HashSet::default();
        // The answer tells one match from several; the set has them all.
        let _ = self.odb.lookup_prefix(prefix, Some(&mut candidates));
        let is_kind = |id: &ObjectId| match gix::objs::FindHeader::try_header(&self.odb, id) {
            Ok(found) => found.is_some_and(|header| header.kind == kind),
            Err(_) => self.is_sound(*id, kind),
        };
        let mut ids: Vec<_> = candidates.into_iter().filter(is_kind).collect();
        ids.sort();
        ids
    }
}

/// Check that `data` is what `id` names.
pub(super) fn verify(id: ObjectId, kind: Kind, data: &[u8]) -> Result<()> {
    let actual = hash(kind, data)?;
    if actual == id {
        Ok(())
    } else {
        Err(Error::Damaged { id, why: format!("its bytes hash to {actual}") })
    }
}

/// The id of an object. Fails only on bytes made to collide.
pub fn hash(kind: Kind, data: &[u8]) -> Result<ObjectId> {
    gix::objs::compute_hash(gix::hash::Kind::Sha1, kind, data)
        .map_err(Error::git("hashing an object"))
}

impl Reader {
    /// A reader over a handle with settings of its own.
    pub(super) fn over(odb: gix::odb::Handle, deltas: Option<Arc<DeltaPack>>) -> Self {
        Self { odb, deltas, kept: RefCell::default() }
    }
}
