//! A backup of any kind, verified: what a file holds is unpacked into a store of its own, which is gone when dropped; a folder is read where it is. Nothing of it is believed
//! before all of it was held against the format.

use std::collections::HashSet;
use std::io::BufReader;
use std::path::Path;

use chrono::DateTime;
use tempfile::TempDir;

use super::chosen::{HEADS, Refs, TAGS, in_words, ours};
use super::{Place, about};
use crate::archive::backup::{
    self, BackupError, Decoder, Given, Header, Lengths, Passphrase, Verified, unseal,
};
use crate::archive::{History, Snapshot};
use crate::ops::{Error, Result, Workspace};
use crate::progress::Monitor;
use crate::regular;
use crate::store::{
    Effect, Kind, Loss, ObjectId, RefChange, Store, Transit, folder_for_now, ours_of,
};

/// A backup that was found sound.
pub struct Incoming {
    /// What it says of itself.
    pub header: Header,
    /// Its objects, branches and tags.
    pub store: Store,
    /// The objects that were looked at: all of them, or those that are not here.
    pub objects: Vec<(ObjectId, Kind)>,
    /// The snapshots that these are.
    pub snapshots: usize,
    // Last, so that no file in it is open any more when it goes.
    _folder: Option<TempDir>,
}

/// What of a backup need not be looked at: snapshots that the store has.
type Known = HashSet<ObjectId>;

/// All snapshots of a store.
fn known_of(store: Option<&Store>) -> Result<Known> {
    let Some(store) = store else { return Ok(Known::new()) };
    Ok(History::load(store)?.iter().map(|snapshot| snapshot.id.0).collect())
}

/// Where a backup is read from, and what is known of it before.
pub struct Source<'s> {
    /// Where it is.
    pub place: &'s Place,
    /// What opens it, if it is encrypted.
    pub passphrase: Option<&'s Passphrase>,
    /// Whether git may ask on the terminal.
    pub asks: bool,
    /// If it has to be unpacked, into a folder in this one.
    pub beside: &'s Path,
    /// The store that has some of it, if there is one.
    pub store: Option<&'s Store>,
}

/// Read a backup and verify all of it that the store does not have.
pub fn receive(
    workspace: &Workspace,
    source: &Source<'_>,
    monitor: &mut dyn Monitor,
) -> Result<Incoming> {
    let Source { place, passphrase, asks, beside, store } = *source;
    let known = known_of(store)?;
    match place {
        Place::File(path) => unpack(workspace, path, passphrase, beside, monitor),
        Place::Folder(path) => {
            let store = Store::open(path)?;
            verify(store, None, path, &known, monitor)
        }
        Place::Remote(url) => {
            monitor.begin("fetching", None);
            let transit = Transit::new(beside, store, url, asks)?;
            ours_of(&transit.list()?, url)?;
            let refspecs = [HEADS, TAGS].map(|prefix| format!("+{prefix}*:{prefix}*"));
            let have: Vec<_> = match store {
                Some(store) => ours(store)?.into_values().collect(),
                None => Vec::new(),
            };
            transit.fetch(&refspecs, &have)?;
            let (store, folder) = transit.into_store()?;
            verify(store, Some(folder), Path::new(&url.to_string()), &known, monitor)
        }
        Place::Output => Err(Error::UnknownDestination {
            destination: "-".into(),
            why: "a backup is not read from standard input",
        }),
    }
}

/// Hold what a repository has against the format.
fn verify(
    store: Store,
    folder: Option<TempDir>,
    path: &Path,
    known: &Known,
    monitor: &mut dyn Monitor,
) -> Result<Incoming> {
    monitor.begin("looking for objects", None);
    let refs = ours(&store)?;
    let Verified { snapshots, objects } =
        backup::verify(&store, &refs, &Given::Beyond(known), monitor).map_err(hostile(path))?;
    let header = header_of(&store, &refs, &snapshots, objects.len())?;
    Ok(Incoming { header, store, objects, snapshots: snapshots.len(), _folder: folder })
}

/// What a backup file would say of itself. Its day is that of its newest snapshot.
fn header_of(store: &Store, refs: &Refs, snapshots: &[Snapshot], objects: usize) -> Result<Header> {
    let heads = crate::archive::history::heads(store)?;
    let newest =
        heads.iter().chain(snapshots).map(|snapshot| snapshot.time).max_by_key(|time| time.seconds);
    let newest = newest.and_then(|time| DateTime::from_timestamp(time.seconds, 0));
    let mut timelines: Vec<_> = heads.iter().map(|head| head.timeline.to_string()).collect();
    timelines.sort();
    Ok(Header {
        program: "stvc".into(),
        taken: newest.map_or_else(String::new, |time| time.to_rfc3339()),
        whole: true,
        timelines,
        snapshots: snapshots.len() as u64,
        objects: objects as u64,
        refs: in_words(refs),
    })
}

/// What others refer to and is lost is the backup's fault, not the store's. What could not be read is nobody's.
fn hostile(path: &Path) -> impl FnOnce(BackupError) -> Error {
    let path = path.to_owned();
    move |error| match error {
        BackupError::Store(error) if error.is_loss() => {
            about(&path)(BackupError::Hostile { why: error.to_string() })
        }
        BackupError::Store(error) => error.into(),
        error => about(&path)(error),
    }
}

/// Unpack the backup at `source` into a folder in `beside` and verify all of it. Whatever is wrong with it, nothing of it is left.
pub fn unpack(
    workspace: &Workspace,
    source: &Path,
    passphrase: Option<&Passphrase>,
    beside: &Path,
    monitor: &mut dyn Monitor,
) -> Result<Incoming> {
    let file = regular::open(source).map_err(BackupError::Io).map_err(about(source))?;
    let input = unseal(BufReader::new(file), passphrase).map_err(about(source))?;
    let mut decoder = Decoder::new(input).map_err(about(source))?;
    let folder = folder_for_now(beside)?;
    let store = Store::create(&folder.path().join("store"))?;
    let mut pack = store.pack_writer();
    let mut lengths = Lengths::new();
    monitor.begin("unpacking the backup", Some(decoder.header().objects));
    while let Some((kind, bytes)) = decoder.next_object().map_err(about(source))? {
        let id = pack.add(kind, bytes)?;
        if lengths.insert(id, (kind, bytes.len() as u64)).is_some() {
            let why = format!("object {id} twice");
            return Err(about(source)(BackupError::Hostile { why }));
        }
        monitor.advance(1);
    }
    pack.finish()?;
    let header = decoder.header().clone();
    let refs = header.refs().map_err(about(source))?;
    // Opened anew: a handle does not see a pack that came after it.
    let store = Store::open(store.path())?;
    let Verified { snapshots, objects } =
        backup::verify(&store, &refs, &Given::All(&lengths), monitor).map_err(hostile(source))?;
    let moves = refs
        .into_iter()
        .map(|(name, id)| RefChange { name, before: None, after: Some(id) })
        .collect();
    let lock = workspace.lock(&store)?;
    store.transact(&lock, workspace.timestamp(), Effect::moves(moves))?;
    drop(lock);
    Ok(Incoming { header, store, objects, snapshots: snapshots.len(), _folder: Some(folder) })
}
