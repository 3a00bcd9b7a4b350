//! A backup, unpacked into a store of its own and verified; it is gone when dropped.

use std::fs::{self, File};
use std::io::BufReader;
use std::path::Path;
use std::time::Duration;

use tempfile::TempDir;

use super::about;
use crate::archive::backup::{self, BackupError, Decoder, Header, Lengths, Passphrase, unseal};
use crate::ops::{Result, Workspace};
use crate::progress::Monitor;
use crate::store::{Effect, RefChange, Store};

/// How the folder is called for as long as it is there.
const PREFIX: &str = ".stvc-incoming-";
/// One that is older was left behind by a process that was killed.
const LONG_AGO: Duration = Duration::from_secs(86_400);

/// A backup that was unpacked and found sound.
pub struct Incoming {
    /// What it says of itself.
    pub header: Header,
    /// Its objects, branches and tags.
    pub store: Store,
    /// How many objects it has.
    pub objects: u64,
    /// How many snapshots it has.
    pub snapshots: usize,
    // Last, so that no file in it is open any more when it goes.
    _folder: TempDir,
}

/// Unpack the backup at `source` into a folder in `beside` and verify all of it. Whatever is wrong with it, nothing of it is left.
pub fn unpack(
    workspace: &Workspace,
    source: &Path,
    passphrase: Option<&Passphrase>,
    beside: &Path,
    monitor: &mut dyn Monitor,
) -> Result<Incoming> {
    let file = File::open(source).map_err(BackupError::Io).map_err(about(source))?;
    let input = unseal(BufReader::new(file), passphrase).map_err(about(source))?;
    let mut decoder = Decoder::new(input).map_err(about(source))?;
    clear_left_behind(beside);
    let folder = tempfile::Builder::new()
        .prefix(PREFIX)
        .tempdir_in(beside)
        .map_err(|source| crate::store::Error::Io { path: beside.to_owned(), source })?;
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
    let snapshots =
        backup::verify(&store, &refs, &lengths, monitor).map_err(|error| match error {
            // What others refer to and cannot be read is the backup's fault, not the store's.
            BackupError::Store(error) => {
                about(source)(BackupError::Hostile { why: error.to_string() })
            }
            error => about(source)(error),
        })?;
    let moves = refs
        .into_iter()
        .map(|(name, id)| RefChange { name, before: None, after: Some(id) })
        .collect();
    let lock = workspace.lock(&store)?;
    store.transact(&lock, workspace.timestamp(), Effect::moves(moves))?;
    drop(lock);
    let (objects, snapshots) = (header.objects, snapshots.len());
    Ok(Incoming { header, store, objects, snapshots, _folder: folder })
}

fn clear_left_behind(dir: &Path) {
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let ours = entry.file_name().to_string_lossy().starts_with(PREFIX);
        let age = entry.metadata().and_then(|found| found.modified()).map(|time| time.elapsed());
        if ours && age.is_ok_and(|age| age.is_ok_and(|age| age > LONG_AGO)) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}
