//! A sync with one remote: reads the announcements of all devices and finds out which of them this
//! device has not joined yet.
//!
//! Nothing that is read is believed: an announcement must have the checksum that only a holder of
//! the key can make, objects get the ids that their bytes have, and the snapshots are validated
//! when they are received (`engine::receive`).

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use super::announcement::{
    Announcement, LONGEST_OBJECT, Pack, Unresolved, object_name, parse_name,
};
use super::key::{RemoteKey, Result, damaged};
use super::local_state::{LocalState, Role, StateFolder};
use super::opened::{OpenedRemote, TemporaryStore};
use super::place::open_storage;
use super::registry::{self, Remote};
use super::{PlainRemoteError, pack_objects, remote_object};
use crate::engine::copies::chosen_refs::{Refs, ours};
use crate::engine::device::Device;
use crate::engine::{self, Workspace};
use crate::progress::Monitor;
use crate::rules::{Code, Finding};
use crate::storage::{self, Storage};
use crate::store::{Erasures, ObjectId, RefName, Store};
use crate::words::shell;

/// The time in seconds after which an announcement counts even if objects are still missing. Until
/// then they are probably on their way.
const DELAY: u64 = 24 * 3600;
/// The number of announcements that cannot be read after which no more are read. Somebody without
/// the key can write any number of them.
const MOST_UNREADABLE: usize = 256;

pub(crate) struct Session {
    pub(super) storage: Arc<dyn Storage>,
    pub(super) key: RemoteKey,
    pub(super) address: String,
    pub(super) device: Device,
    pub(super) folder: StateFolder,
    pub(super) state: LocalState,
    /// For each device, the announcement that this device has joined.
    pub(super) joined: BTreeMap<String, Announcement>,
    /// The complete announcement on which this device bases the next one.
    pub(super) own_base: Option<Announcement>,
    /// For each device, the numbers of its announcements in the storage.
    pub(super) listing: BTreeMap<String, BTreeSet<u64>>,
    /// Announcements of this listing that are not joined yet, the latest of each device.
    heard: BTreeMap<String, Announcement>,
    pub(super) findings: Vec<Finding>,
    /// Findings about packs that are probably on their way. A sync tries again and does not report
    /// them.
    late: Vec<Finding>,
    /// Number of announcements of this listing that could not be read.
    unreadable: usize,
    pub(super) now: i64,
    temporary: Option<TemporaryStore>,
}

impl Session {
    /// Opens the remote with this name or address.
    pub(crate) fn open(
        workspace: &Workspace,
        store: &Store,
        address: &str,
    ) -> engine::Result<Self> {
        let unknown = || PlainRemoteError::NotAdded { address: address.to_owned() };
        let remote = registry::find(store, address)?.ok_or_else(unknown)?;
        let storage = open_storage(Some(store), &remote.address)?;
        Self::over(workspace, store, &remote, Arc::from(storage))
    }

    pub(crate) fn over(
        workspace: &Workspace,
        store: &Store,
        remote: &Remote,
        storage: Arc<dyn Storage>,
    ) -> engine::Result<Self> {
        let folder = StateFolder::open(store, &remote.id, workspace.patience)?;
        let state = folder.load()?;
        let mut joined = BTreeMap::new();
        for (device, number) in &state.joined {
            if let Some(announcement) = folder.announcement(device, *number, Role::Joined)? {
                joined.insert(device.clone(), announcement);
            }
        }
        let device = Device::of(store)?;
        let own_base = match (joined.get_mut(&device.id), state.base) {
            (Some(own), Some(base)) => {
                own.base = base;
                folder.announcement(&device.id, base, Role::Base)?
            }
            _ => None,
        };
        Ok(Self {
            storage,
            key: remote.key()?,
            address: remote.address.clone(),
            device,
            folder,
            state,
            joined,
            own_base,
            listing: BTreeMap::new(),
            heard: BTreeMap::new(),
            findings: Vec::new(),
            late: Vec::new(),
            unreadable: 0,
            now: workspace.now.timestamp(),
            temporary: None,
        })
    }

    /// Lists the announcements, and reads the new ones.
    pub(crate) fn refresh(&mut self, monitor: &mut dyn Monitor) -> Result<()> {
        monitor.begin("reading the remote", None);
        let mut listing: BTreeMap<String, BTreeSet<u64>> = BTreeMap::new();
        for listed in self.storage.list("devices/")? {
            if let Some((device, number)) = parse_name(&listed.name) {
                listing.entry(device.to_owned()).or_default().insert(number);
            }
        }
        // Never write to a folder in which a drive is not mounted at the moment.
        if listing.is_empty() && !remote_object::has(&*self.storage, self.key.id())? {
            return Err(PlainRemoteError::Gone { address: self.address.clone() });
        }
        self.report_rollbacks(&listing);
        self.heard.clear();
        self.unreadable = 0;
        // Known devices are first, so that objects that others have planted do not hide them.
        let (known, others): (Vec<_>, Vec<_>) =
            listing.iter().partition(|(device, _)| self.joined.contains_key(*device));
        for (device, numbers) in known.into_iter().chain(others) {
            let first = self.joined.get(device).map_or(0, |joined| joined.number).saturating_add(1);
            if let Some(found) = self.latest(device, numbers, first)? {
                let highest = self.state.highest.entry(device.clone()).or_default();
                *highest = found.number.max(*highest);
                self.heard.insert(device.clone(), found);
            }
        }
        self.listing = listing;
        Ok(())
    }

    /// Reports the devices whose announcements go back. Their state that this device has joined
    /// stays valid.
    fn report_rollbacks(&mut self, listing: &BTreeMap<String, BTreeSet<u64>>) {
        for (device, highest) in &self.state.highest {
            let latest = listing.get(device).and_then(|numbers| numbers.last()).copied();
            if latest.is_none_or(|latest| latest < *highest) {
                let name = self.joined.get(device).map_or(device.as_str(), |it| &it.device.name);
                let latest =
                    latest.map_or("no announcement".into(), |n| format!("announcement {n}"));
                let message = format!(
                    "the storage has {latest} of the device {name}, but announcement {highest} was there before"
                );
                self.findings.push(Finding::new(Code::RemoteWentBack, &*self.address, message));
            }
        }
    }

    /// Reads the latest readable announcement of a device with at least this number.
    fn latest(
        &mut self,
        device: &str,
        numbers: &BTreeSet<u64>,
        first: u64,
    ) -> Result<Option<Announcement>> {
        for number in numbers.range(first..).rev() {
            if self.unreadable >= MOST_UNREADABLE {
                break;
            }
            match self.announcement(device, *number) {
                Ok(found) => return Ok(Some(found)),
                // It was deleted meanwhile, or is not visible yet.
                Err(PlainRemoteError::Storage(storage::Error::NotFound { .. })) => {}
                Err(
                    error @ (PlainRemoteError::Damaged { .. }
                    | PlainRemoteError::Newer { .. }
                    | PlainRemoteError::Storage(storage::Error::TooLarge { .. })),
                ) => {
                    self.unreadable += 1;
                    self.report_damage(&error);
                }
                Err(error @ PlainRemoteError::OtherKey { .. }) => {
                    self.unreadable += 1;
                    self.report_other_key(device, &error)?;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }

    /// Reports a device that created the remote, too, before it saw that of the other device.
    fn report_other_key(&mut self, device: &str, error: &PlainRemoteError) -> Result<()> {
        let ids = remote_object::ids(&*self.storage)?;
        let Some(used) = ids.first().filter(|_| ids.len() > 1) else {
            self.report_damage(error);
            return Ok(());
        };
        // This device wrote it before it was told to add the remote again.
        if device == self.device.id {
            return Ok(());
        }
        let place = if used == self.key.id() { "the other device" } else { "this device" };
        let message = "another device created this remote at the same time, with another key";
        let remedy = format!(
            "run `stvc remote remove {0}`, then `stvc remote add {0}` with the same passphrase, on {place}",
            shell(&self.address)
        );
        let finding = Finding::new(Code::RemoteDivided, &*self.address, message).remedy(remedy);
        if !self.findings.contains(&finding) {
            self.findings.push(finding);
        }
        Ok(())
    }

    fn announcement(&self, device: &str, number: u64) -> Result<Announcement> {
        let unresolved = self.read_announcement(device, number)?;
        let Some(base) = unresolved.base() else { return unresolved.resolve(None) };
        if let Some(known) = self.joined.get(device).filter(|joined| joined.number == base) {
            return unresolved.resolve(Some(known));
        }
        let known = match self.folder.announcement(device, base, Role::Base)? {
            Some(known) => known,
            None => {
                let read = self.read_announcement(device, base);
                let is_overdue = self.now.abs_diff(unresolved.time()) >= DELAY;
                let base = match read {
                    Err(PlainRemoteError::Storage(storage::Error::NotFound { name, .. }))
                        if is_overdue =>
                    {
                        return Err(damaged(
                            &name,
                            "it was deleted, but newer ones are based on it",
                        ));
                    }
                    read => read?.resolve(None)?,
                };
                self.folder.save_announcement(&base, Role::Base)?;
                base
            }
        };
        unresolved.resolve(Some(&known))
    }

    fn read_announcement(&self, device: &str, number: u64) -> Result<Unresolved> {
        let object = self.storage.read(&object_name(device, number), LONGEST_OBJECT)?;
        Unresolved::open(&self.key, device, number, &object)
    }

    fn damage(&self, error: &PlainRemoteError) -> Finding {
        Finding::new(Code::RemoteDamaged, &*self.address, error.to_string())
    }

    pub(super) fn report_damage(&mut self, error: &PlainRemoteError) {
        let finding = self.damage(error);
        if !self.findings.contains(&finding) {
            self.findings.push(finding);
        }
    }

    /// Returns whether this device must look at the remote's state, even if nothing is new.
    pub(crate) fn is_unsettled(&self) -> bool {
        self.state.is_unsettled
    }

    pub(crate) fn set_unsettled(&mut self, is_unsettled: bool) -> Result<()> {
        self.state.is_unsettled = is_unsettled;
        self.folder.save(&self.state)
    }

    /// Returns the findings of a command that does not try again later.
    pub(super) fn take_all_findings(&mut self) -> Vec<Finding> {
        self.findings.append(&mut self.late);
        self.take_findings()
    }

    pub(crate) fn take_findings(&mut self) -> Vec<Finding> {
        std::mem::take(&mut self.findings)
    }

    /// Returns the announcements that this device must join, in an order that does not depend on
    /// the device. An announcement that another one includes is omitted.
    pub(crate) fn new_announcements(&self) -> Vec<Announcement> {
        let all = || self.heard.values().chain(self.joined.values());
        let is_included =
            |it: &Announcement| all().any(|other| other.name() != it.name() && other.includes(it));
        let mut new: Vec<_> = self.heard.values().filter(|it| !is_included(it)).cloned().collect();
        new.sort_by(|a, b| (a.clock, &a.device.id).cmp(&(b.clock, &b.device.id)));
        new
    }

    /// Returns the joined announcements that no other one includes, in an order that does not
    /// depend on the device. Together they are the state of the remote.
    pub(super) fn current(&self) -> Vec<&Announcement> {
        let is_current = |it: &&Announcement| {
            !self.joined.values().any(|other| other.name() != it.name() && other.includes(it))
        };
        let mut current: Vec<_> = self.joined.values().filter(is_current).collect();
        current.sort_by(|a, b| (a.clock, &a.device.id).cmp(&(b.clock, &b.device.id)));
        current
    }

    /// Returns whether the local store has all branches and tags of the state that this device has
    /// joined.
    pub(crate) fn is_received(&self, store: &Store) -> engine::Result<bool> {
        let local = ours(store)?;
        let is_here =
            |(name, id): (&RefName, &ObjectId)| name.is_kept() || local.get(name) == Some(id);
        Ok(self.current().into_iter().all(|it| it.refs.iter().all(is_here)))
    }

    /// Records an announcement as joined, and all announcements that it includes.
    pub(crate) fn join(&mut self, announcement: &Announcement) -> Result<()> {
        let mut joined = vec![announcement.clone()];
        let others = std::mem::take(&mut self.heard);
        for (device, other) in others {
            if announcement.includes(&other) {
                joined.push(other);
            } else {
                self.heard.insert(device, other);
            }
        }
        for it in joined {
            let device = it.device.id.clone();
            if self.joined.get(&device).is_some_and(|known| known.number > it.number) {
                continue;
            }
            self.folder.save_announcement(&it, Role::Joined)?;
            self.state.joined.insert(device.clone(), it.number);
            self.joined.insert(device, it);
        }
        self.folder.save(&self.state)
    }

    /// Returns a temporary store with the state that an announcement describes. Returns `None` if
    /// objects are missing that are probably on their way, and no earlier announcement is complete.
    /// The returned announcement may therefore be an earlier one.
    pub(crate) fn open_state(
        &mut self,
        announcement: Announcement,
        store: Option<&Store>,
        beside: &Path,
        monitor: &mut dyn Monitor,
    ) -> engine::Result<Option<(Announcement, OpenedRemote)>> {
        let mut candidate = announcement;
        let is_recent = self.now.abs_diff(candidate.time) < DELAY;
        loop {
            let opened = self.opened(
                &[&candidate],
                &candidate.refs,
                &candidate.erasures,
                (store, beside),
                monitor,
            )?;
            if !is_recent || opened.lacks_nothing(store)? {
                return Ok(Some((candidate, opened)));
            }
            let device = candidate.device.id.clone();
            let first =
                self.joined.get(&device).map_or(0, |joined| joined.number).saturating_add(1);
            let numbers = self.listing.get(&device).cloned().unwrap_or_default();
            let earlier = numbers.range(..candidate.number).copied().collect();
            match self.latest(&device, &earlier, first)? {
                Some(earlier) => candidate = earlier,
                None => return Ok(None),
            }
        }
    }

    /// Returns a temporary store with the present state of the remote, as far as this device has
    /// joined it.
    pub(crate) fn open_joined_state(
        &mut self,
        store: Option<&Store>,
        beside: &Path,
        monitor: &mut dyn Monitor,
    ) -> engine::Result<OpenedRemote> {
        let (mut refs, mut erasures) = (Refs::new(), Erasures::default());
        for it in self.current() {
            refs.extend(it.refs.clone());
            erasures.join(&it.erasures);
        }
        self.opened(&[], &refs, &erasures, (store, beside), monitor)
    }

    fn opened(
        &mut self,
        more: &[&Announcement],
        refs: &Refs,
        erasures: &Erasures,
        (store, beside): (Option<&Store>, &Path),
        monitor: &mut dyn Monitor,
    ) -> engine::Result<OpenedRemote> {
        let mut temporary = match self.temporary.take() {
            Some(temporary) => temporary,
            None => TemporaryStore::create(store, beside)?,
        };
        let packs = self.packs(more);
        let new: Vec<_> = packs
            .values()
            .filter(|(_, pack)| {
                let known = &self.state.known_packs;
                let is_known = known.contains(pack.name());
                let replaces = &pack.replaces;
                let is_covered =
                    !replaces.is_empty() && replaces.iter().all(|name| known.contains(name));
                !is_known && !is_covered
            })
            .collect();
        self.download(&mut temporary, &new, monitor)?;
        let mut opened = temporary.open(refs, erasures, &self.address)?;
        if !opened.lacks_nothing(store)? {
            // Objects that an earlier sync read but did not receive are needed now.
            let all: Vec<_> = packs.values().collect();
            self.download(&mut temporary, &all, monitor)?;
            opened = temporary.open(refs, erasures, &self.address)?;
        }
        self.temporary = Some(temporary);
        Ok(opened)
    }

    /// Returns all packs of the remote by their names, with the ids of their devices.
    fn packs(&self, more: &[&Announcement]) -> BTreeMap<String, (String, Pack)> {
        let all = more.iter().copied().chain(self.heard.values()).chain(self.joined.values());
        let mut packs = BTreeMap::new();
        for it in all {
            for pack in it.packs.values() {
                packs.insert(pack.name().to_owned(), (it.device.id.clone(), pack.clone()));
            }
        }
        packs
    }

    /// Reads all packs of the remote into the temporary store, also those that are known.
    pub(super) fn download_all(
        &mut self,
        local: &Store,
        monitor: &mut dyn Monitor,
    ) -> engine::Result<()> {
        self.temporary_or_new(local)?;
        let packs = self.packs(&[]);
        if let Some(mut temporary) = self.temporary.take() {
            let done = self.download(&mut temporary, &packs.values().collect::<Vec<_>>(), monitor);
            self.temporary = Some(temporary);
            done?;
        }
        Ok(())
    }

    fn download(
        &mut self,
        temporary: &mut TemporaryStore,
        packs: &[&(String, Pack)],
        monitor: &mut dyn Monitor,
    ) -> engine::Result<()> {
        let mut packs: Vec<_> = packs.to_vec();
        packs.retain(|(_, pack)| !temporary.has_tried(pack.name()));
        if packs.is_empty() {
            return Ok(());
        }
        let bytes = packs.iter().map(|(_, pack)| pack.bytes()).sum();
        monitor.begin_bytes("downloading", bytes);
        for (device, pack) in packs {
            let (storage, key) = (&*self.storage, &self.key);
            let read = temporary
                .add(pack.name(), |out| pack_objects::read(storage, key, device, pack, out));
            match read {
                Ok(_) => drop(self.state.damaged.remove(pack.name())),
                Err(engine::Error::PlainRemote(error)) if is_about_object(&error) => {
                    let is_overdue = self.is_overdue(device);
                    if is_overdue {
                        self.state.damaged.insert(pack.name().to_owned());
                    }
                    match &error {
                        PlainRemoteError::Storage(storage::Error::NotFound { .. })
                            if !is_overdue =>
                        {
                            self.late.push(self.damage(&error));
                        }
                        _ => self.report_damage(&error),
                    }
                }
                Err(error) => return Err(error),
            }
            monitor.advance(pack.bytes());
        }
        Ok(())
    }

    /// Returns whether all objects that a device announced should have arrived.
    fn is_overdue(&self, device: &str) -> bool {
        let latest = self.heard.get(device).or_else(|| self.joined.get(device));
        latest.is_some_and(|latest| self.now.abs_diff(latest.time) >= DELAY)
    }

    /// Records that everything in the packs that were read is in the store, as far as it was
    /// received. Drops the temporary store.
    pub(crate) fn finish_reading(&mut self) -> Result<()> {
        let Some(temporary) = self.temporary.take() else { return Ok(()) };
        self.state.known_packs.extend(temporary.read_packs().cloned());
        let packs = self.joined.values().chain(self.heard.values()).flat_map(|it| {
            it.packs.keys().chain(it.retired.iter().map(|retired| &retired.pack.parts[0].name))
        });
        let listed: BTreeSet<_> = packs.cloned().collect();
        let covered = self.joined.values().flat_map(|it| it.packs.values());
        let known = &self.state.known_packs;
        let covered: Vec<_> = covered
            .filter(|pack| {
                !pack.replaces.is_empty() && pack.replaces.iter().all(|name| known.contains(name))
            })
            .map(|pack| pack.name().to_owned())
            .collect();
        self.state.known_packs.extend(covered);
        self.state.known_packs.retain(|name| listed.contains(name));
        self.state.damaged.retain(|name| listed.contains(name));
        self.folder.save(&self.state)
    }

    /// Returns the temporary store. Creates it if it does not exist.
    pub(super) fn temporary_or_new(
        &mut self,
        local: &Store,
    ) -> engine::Result<&mut TemporaryStore> {
        let temporary = match self.temporary.take() {
            Some(temporary) => temporary,
            None => TemporaryStore::create(Some(local), &std::env::temp_dir())?,
        };
        Ok(self.temporary.insert(temporary))
    }

    pub(super) fn temporary(&mut self) -> Option<&mut TemporaryStore> {
        self.temporary.as_mut()
    }
}

/// Returns whether an error is about one object of the remote, so that everything that does not
/// need this object can go on.
pub(super) fn is_about_object(error: &PlainRemoteError) -> bool {
    matches!(
        error,
        PlainRemoteError::Damaged { .. }
            | PlainRemoteError::OtherKey { .. }
            | PlainRemoteError::Storage(
                storage::Error::NotFound { .. } | storage::Error::TooLarge { .. }
            )
    )
}
