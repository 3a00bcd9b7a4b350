//! Where objects are on the disk: in packs and in single files, of the store itself and of others
//! that it borrows from.
//!
//! Git's library passes over an index that it could not open just now, and then says that the
//! object is not there. But *could not read* and *is not there* are different things: whoever takes
//! the first for the second goes on from an older snapshot, and the newest is lost. Here an object
//! is missing only if every place was looked at; otherwise what the system said is the answer.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::SystemTime;
use std::{fs, io};

use gix::hash::Prefix;

use super::files::{files_ending, is_absent, is_file, unless_absent};
use super::loose::{loose_header, read_loose};
use super::pack_file::{Opened, PackFile, again};
use super::recent_objects::RecentObjects;
use super::{Error, Kind, Loss, ObjectId, Result};

/// Bounds the retries while other programs replace packs.
const ROUNDS: usize = 16;

/// Pages of a pack that were read stay mapped, and the system counts them as ours. So after this
/// many bytes of objects all packs are opened again.
const MUCH: u64 = 16 << 20;

/// The objects of a repository; shared by all readers.
pub(super) struct ObjectFiles {
    objects: PathBuf,
    listed: Mutex<Option<Arc<Listing>>>,
    /// Bytes that were read since packs were closed.
    read: AtomicU64,
}

pub(super) struct Listing {
    /// The folders of objects: its own, then those that it borrows from.
    folders: Vec<Folder>,
    /// The newest first: what was written last is asked for most.
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
        Self { objects, listed: Mutex::new(None), read: AtomicU64::new(0) }
    }

    pub(super) fn listing(&self) -> Result<Arc<Listing>> {
        let known = self.listed.lock().unwrap_or_else(PoisonError::into_inner).clone();
        match known {
            Some(listing) => Ok(listing),
            None => self.list_again(None),
        }
    }

    /// Closes and unmaps every pack: Windows removes no mapped file. Readers open them again.
    pub(super) fn let_go(&self) {
        *self.listed.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    pub(super) fn note_read(&self, bytes: usize) {
        let before = self.read.fetch_add(bytes as u64, Ordering::Relaxed);
        if before + bytes as u64 > MUCH {
            self.read.store(0, Ordering::Relaxed);
            self.let_go();
        }
    }

    /// Lists the folders again; returns `known` if nothing changed. Open packs stay open.
    fn list_again(&self, known: Option<&Arc<Listing>>) -> Result<Arc<Listing>> {
        let mut folders = vec![Folder { path: self.objects.clone(), fans: OnceLock::new() }];
        folders.extend(self.borrowed()?);
        let mut found = Vec::new();
        for folder in &folders {
            list_packs(&folder.path.join("pack"), &mut found)?;
        }
        // The newest first, and always in the same order.
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
            let folders_of = |folders: &[Folder]| {
                folders.iter().map(|folder| folder.path.clone()).collect::<Vec<_>>()
            };
            folders_of(&known.folders) == folders_of(&folders)
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
            None => Error::git(format!("reading {}", path.display()))(error),
        })?;
        Ok(found.into_iter().map(|path| Folder { path, fans: OnceLock::new() }).collect())
    }

    /// Tries all places of an object until `take` succeeds. A copy that is damaged or cannot be
    /// read may be valid elsewhere; otherwise a failure to read is reported before damage.
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

    /// Returns all objects with this prefix. Lists again if packs changed meanwhile.
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
    /// Only as long as the store itself has it: nobody else keeps packs open.
    listing: Weak<Listing>,
    /// The pack that had the last one: it rather has the next.
    recent: usize,
    pub(super) never_refresh: bool,
}

impl Listing {
    fn with_prefix(&self, prefix: Prefix) -> Result<Vec<ObjectId>> {
        let mut ids = Vec::new();
        for pack in &self.packs {
            if let Opened::Whole(index) = pack.index()? {
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

/// The error for an object that is nowhere: it could not be read, else is damaged, else missing.
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
    /// [`loose`](Self::loose), but which folders there are is looked at once.
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

    /// Windows removes no file that is mapped, and here it can be seen what is.
    #[test]
    fn what_is_let_go_is_mapped_by_nobody_and_read_again() {
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
        store.objects.let_go();
        assert!(!is_mapped(), "a reader keeps no pack open");
        assert_eq!(reader.blob(id).unwrap(), b"a text");
        store.objects.note_read(super::MUCH as usize);
        assert!(!is_mapped(), "what was read stays mapped");
        assert_eq!(reader.blob(id).unwrap(), b"a text");
        assert!(is_mapped());
    }
}
