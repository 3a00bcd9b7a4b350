//! The part of a remote that this device remembers, in the folder `stvc/remotes/<id>` of the store:
//! the announcements that it has joined, the packs that it has read or written, and an upload that
//! was interrupted. Without this folder, everything is read from the remote again.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::PlainRemoteError;
use super::announcement::{Announcement, Pack};
use super::key::Result;
use super::registry::{local, local_at};
use crate::durable::{self, Existing};
use crate::engine::device::is_id;
use crate::file_lock;
use crate::regular;
use crate::store::{ObjectId, Store};

/// A pack that was written, but not announced yet.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct PendingPack {
    pub pack: Pack,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct LocalState {
    /// For each device, the highest number of its announcements that this device ever read. A
    /// name in a list does not count: anybody can write an object of that name.
    pub highest: BTreeMap<String, u64>,
    /// For each device, the number of the joined announcement.
    pub joined: BTreeMap<String, u64>,
    /// Number of the complete announcement on which the latest own one is based.
    pub base: Option<u64>,
    /// Packs whose objects this device has read or written.
    pub known_packs: BTreeSet<String>,
    pub pending: Vec<PendingPack>,
    /// Packs that could not be read although they should have arrived.
    pub damaged: BTreeSet<String>,
    /// Parts that are being written.
    pub uploading: BTreeSet<String>,
    /// Whether the last sync left something that the next sync must look at again.
    pub is_unsettled: bool,
}

/// The folder of the state. Holds a lock, so that two processes do not announce under one number.
pub(super) struct StateFolder {
    path: PathBuf,
    lock: Option<fs::File>,
}

impl Drop for StateFolder {
    fn drop(&mut self) {
        if let Some(lock) = &self.lock {
            file_lock::unlock(lock);
        }
    }
}

impl StateFolder {
    /// Waits up to `patience` for another sync with the remote to end.
    pub(super) fn open(store: &Store, id: &str, patience: Duration) -> Result<Self> {
        let path = store.private_dir().join("remotes").join(id);
        for sub in ["joined", "objects"] {
            let path = path.join(sub);
            durable::create_dir_all(&path).map_err(local_at(&path))?;
        }
        let file = path.join("lock");
        let lock = durable::open_to_lock(&file).map_err(local_at(&file))?;
        match file_lock::lock_within(&lock, patience) {
            Ok(true) => {
                for sub in ["", "joined", "objects"] {
                    durable::clear_left_behind(&path.join(sub));
                }
                Ok(Self { path, lock: Some(lock) })
            }
            Ok(false) => Err(PlainRemoteError::InUse),
            Err(error) => Err(local_at(&file)(error)),
        }
    }

    /// Deletes the state of a remote.
    pub(super) fn remove(store: &Store, id: &str) -> Result<()> {
        let path = store.private_dir().join("remotes").join(id);
        match fs::remove_dir_all(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(local_at(&path)(error)),
            _ => Ok(()),
        }
    }

    fn read(&self, name: &str) -> Result<Option<Vec<u8>>> {
        let path = self.path.join(name);
        match regular::read(&path) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(local_at(&path)(error)),
        }
    }

    fn write(&self, name: &str, bytes: &[u8]) -> Result<()> {
        let path = self.path.join(name);
        durable::write(&path, bytes, Existing::Replace).map_err(local_at(&path))
    }

    /// Loads the state. A file that cannot be parsed counts as missing: its content can be read
    /// from the remote again.
    pub(super) fn load(&self) -> Result<LocalState> {
        let text = self.read("state.json")?;
        Ok(text.and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default())
    }

    pub(super) fn save(&self, state: &LocalState) -> Result<()> {
        let text = serde_json::to_vec(state).map_err(|error| local(error.to_string()))?;
        self.write("state.json", &text)
    }

    /// Loads a joined announcement, or the base of a joined announcement.
    pub(super) fn announcement(
        &self,
        device: &str,
        number: u64,
        role: Role,
    ) -> Result<Option<Announcement>> {
        if !is_id(device) {
            return Ok(None);
        }
        let content = self.read(&role.file(device))?;
        Ok(content.and_then(|content| Announcement::decode(device, number, &content).ok()))
    }

    pub(super) fn save_announcement(&self, announcement: &Announcement, role: Role) -> Result<()> {
        self.write(&role.file(&announcement.device.id), &announcement.encode(None)?)
    }

    /// Returns the ids of the objects in a pack that this device wrote; `None` if they are unknown.
    pub(super) fn objects_of(&self, pack: &str) -> Result<Option<Vec<ObjectId>>> {
        let Some(bytes) = self.read(&format!("objects/{pack}"))? else { return Ok(None) };
        let ids = bytes.chunks(20).map(|id| ObjectId::try_from(id).ok()).collect();
        Ok(ids)
    }

    pub(super) fn save_objects_of(&self, pack: &str, ids: &[ObjectId]) -> Result<()> {
        let bytes: Vec<_> = ids.iter().flat_map(|id| id.as_slice()).copied().collect();
        self.write(&format!("objects/{pack}"), &bytes)
    }

    pub(super) fn forget_objects_of(&self, pack: &str) {
        durable::remove_own(&self.path.join("objects").join(pack));
    }
}

/// The role of a stored announcement.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Joined,
    Base,
}

impl Role {
    fn file(self, device: &str) -> String {
        match self {
            Self::Joined => format!("joined/{device}"),
            Self::Base => format!("joined/{device}.base"),
        }
    }
}
