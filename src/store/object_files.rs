//! Finds objects on the disk: in packs and loose files, of the store itself and of stores that it
//! borrows from.
//!
//! Git's library skips an index that it cannot open at the moment, and then reports its objects as
//! missing. A caller that trusts this report would continue from an older snapshot, and the latest
//! snapshot would be lost. So this module reports an object as missing only if every place could be
//! searched. Otherwise it returns the error of the system.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::SystemTime;
use std::{fs, io};

use gix::hash::Prefix;

use super::files::{files_ending, is_absent, is_file, unless_absent};
use super::loose::{loose_header, read_loose};
use super::pack_file::{OpenResult, PackFile, again};
use super::recent_objects::RecentObjects;
use super::{Error, Kind, Loss, ObjectId, Result};

/// Maximum number of searches for an object while other programs replace packs.
const ROUNDS: usize = 16;

/// Number of bytes of objects after which all packs are closed, to be opened again when needed.
/// Pages of a pack that were read stay mapped until then, and the system counts them as memory of
/// this process.
const MAX_MAPPED_BYTES: u64 = 8 << 20;

/// The object files of a repository; shared by all readers.
pub(super) struct ObjectFiles {
    objects: PathBuf,
    listed: Mutex<Option<Arc<Listing>>>,
    /// Another listing of this repository. The first listing shares its open packs.
    other: Weak<Listing>,
    /// Number of bytes read since the packs were last closed.
    read: AtomicU64,
}

pub(super) struct Listing {
    /// Object folders: first that of the repository, then those of its alternates.
    folders: Vec<Folder>,
    /// All packs, newest first, because recent objects are read most often.
    packs: Vec<Arc<PackFile>>,
}

struct Folder {
    path: PathBuf,
    fans: OnceLock<[bool; 256]>,
}

pub(super) enum ObjectPlace<'p> {
    Packed { pack: &'p PackFile, offset: u64 },
    Loose { file: PathBuf },
}

impl ObjectFiles {
    pub(super) fn at(objects: PathBuf) -> Self {
        Self { objects, listed: Mutex::new(None), other: Weak::new(), read: AtomicU64::new(0) }
    }

    /// Returns the object files of this repository, not listed yet.
    pub(super) fn unlisted(&self) -> Self {
        let listed = self.listed.lock().unwrap_or_else(PoisonError::into_inner);
        let other = listed.as_ref().map(Arc::downgrade).unwrap_or_default();
        Self { other, ..Self::at(self.objects.clone()) }
    }

    pub(super) fn listing(&self) -> Result<Arc<Listing>> {
        let known = self.listed.lock().unwrap_or_else(PoisonError::into_inner).clone();
        match known {
            Some(listing) => Ok(listing),
            None => self.list_again(self.other.upgrade().as_ref()),
        }
    }

    /// Closes and unmaps every pack, because Windows cannot remove a mapped file. Readers open
    /// packs again when needed.
    pub(super) fn close_packs(&self) {
        *self.listed.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    pub(super) fn note_read(&self, bytes: usize) {
        let before = self.read.fetch_add(bytes as u64, Ordering::Relaxed);
        if before + bytes as u64 > MAX_MAPPED_BYTES {
            self.read.store(0, Ordering::Relaxed);
            self.close_packs();
        }
    }

    /// Lists the packs again. Returns `known` if nothing changed. Packs that are open stay open.
    fn list_again(&self, known: Option<&Arc<Listing>>) -> Result<Arc<Listing>> {
        let mut folders = vec![Folder { path: self.objects.clone(), fans: OnceLock::new() }];
        folders.extend(self.borrowed()?);
        let mut found = Vec::new();
        for folder in &folders {
            list_packs(&folder.path.join("pack"), &mut found)?;
        }
        // Newest first, then by path, so that the order is deterministic.
        found.sort_by(|a, b| b.cmp(a));
        let reused = |path: &Path| {
            let known = known?.packs.iter().find(|pack| pack.path() == path)?;
            (!known.is_gone()).then(|| Arc::clone(known))
        };
        let packs: Vec<_> = found
            .into_iter()
            .map(|(_, path)| reused(&path).unwrap_or_else(|| Arc::new(PackFile::new(path))))
            .collect();
        let is_same = |known: &&Arc<Listing>| {
            let paths = folders.iter().map(|folder| &folder.path);
            known.folders.iter().map(|folder| &folder.path).eq(paths)
                && known.packs.len() == packs.len()
                && packs.iter().all(|pack| known.packs.iter().any(|old| Arc::ptr_eq(old, pack)))
        };
        let listing = match known.filter(is_same) {
            Some(known) => Arc::clone(known),
            None => Arc::new(Listing { folders, packs }),
        };
        let mut listed = self.listed.lock().unwrap_or_else(PoisonError::into_inner);
        *listed = Some(Arc::clone(&listing));
        Ok(listing)
    }

    fn borrowed(&self) -> Result<Vec<Folder>> {
        let path = self.objects.join("info").join("alternates");
        if !is_file(&path)? {
            return Ok(Vec::new());
        }
        let here = std::env::current_dir().map_err(Error::io(&path))?;
        let found = gix::odb::alternate::resolve(self.objects.clone(), &here);
        let found = found.map_err(|error| match error.downcast_any_ref::<io::Error>() {
            Some(error) => Error::Io { path: path.clone(), source: again(error) },
            None => Error::git(format!("cannot read {}", path.display()))(error),
        })?;
        Ok(found.into_iter().map(|path| Folder { path, fans: OnceLock::new() }).collect())
    }

    /// Calls `take` with each place of an object until one call succeeds: an object that is damaged
    /// or unreadable in one place may be valid in another. If all calls fail, returns a failure to
    /// read rather than damage. Lists the packs again and retries if they changed in the meantime.
    pub(super) fn find<T>(
        &self,
        id: ObjectId,
        known: &mut LastListing,
        take: &mut dyn FnMut(ObjectPlace<'_>) -> Result<T>,
    ) -> Result<T> {
        let mut listing = match known.listing.upgrade() {
            Some(listing) => listing,
            None => self.listing()?,
        };
        for _ in 0..ROUNDS {
            let found = listing.find(id, known, take);
            let error = match found {
                Ok(found) => {
                    known.listing = Arc::downgrade(&listing);
                    return Ok(found);
                }
                Err(error) => error,
            };
            let now = if known.never_refresh {
                Arc::clone(&listing)
            } else {
                self.list_again(Some(&listing))?
            };
            known.listing = Arc::downgrade(&now);
            if Arc::ptr_eq(&now, &listing) {
                return Err(error);
            }
            known.recent = 0;
            listing = now;
        }
        Err(Error::Io {
            path: self.objects.join("pack"),
            source: io::ErrorKind::ResourceBusy.into(),
        })
    }

    /// Returns all object ids that begin with `prefix`, sorted. Searches again if packs changed in
    /// the meantime.
    pub(super) fn with_prefix(&self, prefix: Prefix) -> Result<Vec<ObjectId>> {
        let known = self.listing()?;
        let mut listing = self.list_again(Some(&known))?;
        let mut ids = Vec::new();
        for _ in 0..ROUNDS {
            ids.extend(listing.with_prefix(prefix)?);
            let now = self.list_again(Some(&listing))?;
            if Arc::ptr_eq(&now, &listing) {
                break;
            }
            listing = now;
        }
        ids.sort();
        ids.dedup();
        Ok(ids)
    }
}

#[derive(Default)]
pub(super) struct LastListing {
    /// The listing of the last search. Weak, so that a reader does not keep packs open that
    /// [`ObjectFiles`] has closed.
    listing: Weak<Listing>,
    /// Position in `packs` of the pack that contained the last object. It likely contains the next
    /// one.
    recent: usize,
    pub(super) never_refresh: bool,
}

impl Listing {
    fn with_prefix(&self, prefix: Prefix) -> Result<Vec<ObjectId>> {
        let mut ids = Vec::new();
        for pack in &self.packs {
            if let OpenResult::Whole(index) = pack.index()? {
                let mut places = 0..0;
                let _ = index.lookup_prefix(prefix, Some(&mut places));
                ids.extend(places.map(|place| index.oid_at_index(place).to_owned()));
            }
        }
        for folder in &self.folders {
            let loose = super::loose::loose_objects(&folder.path)?.into_iter();
            ids.extend(loose.map(|loose| loose.id).filter(|id| prefix.cmp_oid(id).is_eq()));
        }
        Ok(ids)
    }

    fn find<T>(
        &self,
        id: ObjectId,
        known: &mut LastListing,
        take: &mut dyn FnMut(ObjectPlace<'_>) -> Result<T>,
    ) -> Result<T> {
        let mut problem = Problem::default();
        let recent = known.recent.min(self.packs.len());
        let order =
            (recent..self.packs.len()).take(1).chain(0..recent).chain(recent + 1..self.packs.len());
        for place in order {
            let pack = &self.packs[place];
            let taken = match pack.offset_of(id) {
                Ok(Some(offset)) => take(ObjectPlace::Packed { pack, offset }),
                Ok(None) => continue,
                Err(error) => Err(error),
            };
            match taken {
                Ok(taken) => {
                    known.recent = place;
                    return Ok(taken);
                }
                Err(error) => problem.add(error),
            }
        }
        for folder in &self.folders {
            let file = if known.never_refresh { folder.listed_loose(id) } else { folder.loose(id) };
            let taken = match file {
                Ok(Some(file)) => take(ObjectPlace::Loose { file }),
                Ok(None) => continue,
                Err(error) => Err(error),
            };
            match taken {
                Ok(taken) => return Ok(taken),
                Err(error) => problem.add(error),
            }
        }
        Err(problem.0.unwrap_or(Error::Missing { id }))
    }
}

/// The error for an object that was not found: the most severe one of all places. A failure to read
/// is more severe than damage, and damage is more severe than a missing object.
#[derive(Default)]
struct Problem(Option<Error>);

impl Problem {
    fn add(&mut self, error: Error) {
        let rank = |error: &Error| match error {
            Error::Missing { .. } => 0,
            error if error.is_loss() => 1,
            _ => 2,
        };
        if self.0.as_ref().is_none_or(|known| rank(&error) > rank(known)) {
            self.0 = Some(error);
        }
    }
}

impl Folder {
    /// Like [`loose`](Self::loose), but looks only into fan-out folders that existed at the first
    /// call.
    fn listed_loose(&self, id: ObjectId) -> Result<Option<PathBuf>> {
        if self.fans()?[usize::from(id.as_slice()[0])] { self.loose(id) } else { Ok(None) }
    }

    fn loose(&self, id: ObjectId) -> Result<Option<PathBuf>> {
        let hex = id.to_string();
        let file = self.path.join(&hex[..2]).join(&hex[2..]);
        Ok(is_file(&file)?.then_some(file))
    }

    fn fans(&self) -> Result<&[bool; 256]> {
        if let Some(fans) = self.fans.get() {
            return Ok(fans);
        }
        let mut fans = [false; 256];
        for entry in fs::read_dir(&self.path).map_err(Error::io(&self.path))? {
            let name = entry.map_err(Error::io(&self.path))?.file_name();
            let name = name.to_str().filter(|name| name.len() == 2);
            if let Some(fan) = name.and_then(|name| u8::from_str_radix(name, 16).ok()) {
                fans[usize::from(fan)] = true;
            }
        }
        Ok(self.fans.get_or_init(|| fans))
    }
}

fn list_packs(dir: &Path, found: &mut Vec<(Option<SystemTime>, PathBuf)>) -> Result<()> {
    let indices = match files_ending(dir, "idx") {
        Err(Error::Io { source, .. }) if is_absent(&source) => return Ok(()),
        indices => indices?,
    };
    for path in indices {
        let pack = path.with_extension("pack");
        let pack = unless_absent(fs::metadata(&pack), &pack)?.filter(fs::Metadata::is_file);
        found.extend(pack.map(|pack| (pack.modified().ok(), path)));
    }
    Ok(())
}

impl ObjectPlace<'_> {
    pub(super) fn read(
        &self,
        id: ObjectId,
        kept: &mut RecentObjects,
        out: &mut Vec<u8>,
    ) -> Result<Kind> {
        match self {
            Self::Packed { pack, offset } => pack.read(id, *offset, kept, out),
            Self::Loose { file } => read_loose(id, file, out),
        }
    }

    pub(super) fn header(&self, id: ObjectId, kept: &mut RecentObjects) -> Result<(Kind, u64)> {
        match self {
            Self::Packed { pack, offset } => pack.header(id, *offset, kept),
            Self::Loose { file } => loose_header(id, file),
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::super::{Kind, Store};

    /// Windows cannot remove a mapped file. On Linux, `/proc/self/maps` shows which files are
    /// mapped.
    #[test]
    fn released_packs_are_unmapped_and_can_be_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().canonicalize().unwrap().join("store");
        let store = Store::create(&path).unwrap();
        let mut writer = store.pack_writer();
        let id = writer.add(Kind::Blob, b"a text").unwrap();
        writer.finish().unwrap();
        let reader = store.reader();
        assert_eq!(reader.blob(id).unwrap(), b"a text");
        let is_mapped = || {
            let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
            maps.lines().any(|line| line.contains(&*path.to_string_lossy()))
        };
        assert!(is_mapped());
        store.objects.close_packs();
        assert!(!is_mapped(), "a reader keeps no pack open");
        assert_eq!(reader.blob(id).unwrap(), b"a text");
        store.objects.note_read(super::MAX_MAPPED_BYTES as usize);
        assert!(!is_mapped(), "what was read stays mapped");
        assert_eq!(reader.blob(id).unwrap(), b"a text");
        assert!(is_mapped());
    }
}
