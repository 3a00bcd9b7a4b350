//! Reads objects and hashes them again, so that damage is detected.

use std::cell::RefCell;
use std::sync::Arc;

use super::object::verify;
use super::object_files::{LastListing, ObjectFiles, ObjectPlace};
use super::recent_objects::RecentObjects;
use super::tree::{self, RawTree};
use super::{Commit, Error, Kind, LongBlob, ObjectId, Result, Store, commit, unless_lost};

/// Reads objects. Each thread needs its own reader.
pub struct Reader {
    files: Arc<ObjectFiles>,
    known: RefCell<LastListing>,
    kept: RefCell<RecentObjects>,
}

impl Store {
    pub fn reader(&self) -> Reader {
        Reader::over(Arc::clone(&self.objects))
    }
}

/// Creates readers in other threads, because a [`Reader`] cannot be shared between threads.
pub struct Readers(Arc<ObjectFiles>);

impl Readers {
    pub fn reader(&self) -> Reader {
        Reader::over(Arc::clone(&self.0))
    }

    /// Returns a reader with a small cache, for objects that are read in the order of a pack.
    pub fn reader_in_order(&self) -> Reader {
        Reader { kept: RefCell::new(RecentObjects::in_order()), ..self.reader() }
    }

    pub(super) fn close_packs(&self) {
        self.0.close_packs();
    }
}

impl Reader {
    fn over(files: Arc<ObjectFiles>) -> Self {
        Self { files, known: RefCell::default(), kept: RefCell::default() }
    }

    /// Returns a reader that lists the packs only once. For callers that expect most objects to be
    /// missing: another reader would list the packs again for each missing object.
    pub(super) fn with_fixed_packs(store: &Store) -> Self {
        let reader = Self::over(Arc::new(store.objects.unlisted()));
        reader.known.borrow_mut().never_refresh = true;
        reader
    }

    pub fn shared(&self) -> Readers {
        Readers(Arc::clone(&self.files))
    }

    fn find<T>(
        &self,
        id: ObjectId,
        mut take: impl FnMut(ObjectPlace<'_>, &mut RecentObjects) -> Result<T>,
    ) -> Result<T> {
        let (mut known, mut kept) = (self.known.borrow_mut(), self.kept.borrow_mut());
        self.files.find(id, &mut known, &mut |place| take(place, &mut kept))
    }

    /// Reads the object `id`, which must be of `kind`, into `buffer` and returns its bytes.
    pub fn read<'b>(&self, id: ObjectId, kind: Kind, buffer: &'b mut Vec<u8>) -> Result<&'b [u8]> {
        self.find(id, |place, kept| {
            let found = place.read(id, kept, buffer)?;
            verify(id, found, buffer)?;
            if found == kind {
                Ok(())
            } else {
                Err(Error::Damaged { id, why: format!("it is a {found}, not a {kind}") })
            }
        })?;
        self.files.note_read(buffer.len());
        Ok(buffer)
    }

    /// Reads a blob without hashing it. For callers that verify the hash of the complete file, or
    /// only measure the blob.
    pub fn read_unchecked<'b>(&self, id: ObjectId, buffer: &'b mut Vec<u8>) -> Result<&'b [u8]> {
        self.find(id, |place, kept| place.read(id, kept, buffer))?;
        self.files.note_read(buffer.len());
        Ok(buffer)
    }

    pub fn blob(&self, id: ObjectId) -> Result<Vec<u8>> {
        let mut buffer = Vec::new();
        self.read(id, Kind::Blob, &mut buffer)?;
        Ok(buffer)
    }

    /// Returns a long blob, which can be read in pieces. `None` if the blob is short or stored in a
    /// form that must be read as a whole. Fails if the blob is damaged.
    pub fn long_blob(&self, id: ObjectId) -> Result<Option<LongBlob>> {
        self.find(id, |place, _| match place {
            ObjectPlace::Packed { pack, offset } => pack.long_blob(id, offset),
            ObjectPlace::Loose { .. } => Ok(None),
        })
    }

    pub fn raw_tree(&self, id: ObjectId) -> Result<RawTree> {
        let mut buffer = Vec::new();
        tree::decode_raw(id, self.read(id, Kind::Tree, &mut buffer)?)
    }

    pub fn commit(&self, id: ObjectId) -> Result<Commit> {
        let mut buffer = Vec::new();
        commit::decode(id, self.read(id, Kind::Commit, &mut buffer)?)
    }

    pub fn has(&self, id: ObjectId) -> Result<bool> {
        Ok(unless_lost(self.find(id, |_, _| Ok(())))?.is_some())
    }

    pub fn tag_target(&self, id: ObjectId) -> Result<ObjectId> {
        let mut buffer = Vec::new();
        let text = self.read(id, Kind::Tag, &mut buffer)?;
        let target = text.strip_prefix(b"object ").and_then(|rest| rest.get(..40));
        let target = target.and_then(|hex| ObjectId::from_hex(hex).ok());
        target.ok_or(Error::Damaged { id, why: "it does not name an object".into() })
    }

    /// Returns the kind and length of an object; `None` if the object is missing or damaged.
    pub fn look(&self, id: ObjectId) -> Result<Option<(Kind, u64)>> {
        unless_lost(self.header(id))
    }

    /// Returns the kind and length of an object, without decoding all its bytes.
    pub fn header(&self, id: ObjectId) -> Result<(Kind, u64)> {
        self.find(id, |place, kept| place.header(id, kept))
    }

    pub fn kind(&self, id: ObjectId) -> Result<Option<Kind>> {
        Ok(self.look(id)?.map(|(kind, _)| kind))
    }

    pub fn is_valid(&self, id: ObjectId, kind: Kind) -> Result<bool> {
        Ok(unless_lost(self.read(id, kind, &mut Vec::new()).map(drop))?.is_some())
    }

    pub fn with_prefix(&self, prefix: &str, kind: Kind) -> Result<Vec<ObjectId>> {
        let Ok(prefix) = gix::hash::Prefix::from_hex(prefix) else {
            return Ok(Vec::new());
        };
        let mut ids = Vec::new();
        for id in self.files.with_prefix(prefix)? {
            let is_kind = match self.kind(id)? {
                Some(found) => found == kind,
                None => self.is_valid(id, kind)?,
            };
            if is_kind {
                ids.push(id);
            }
        }
        Ok(ids)
    }
}
