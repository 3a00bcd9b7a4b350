//! A simulated storage, like a folder that a slow and unreliable program synchronises.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::storage::{Error, Listed, Result, Storage};

/// A generator of pseudorandom numbers (SplitMix64).
#[derive(Clone, Debug)]
pub struct Dice(pub u64);

impl Dice {
    pub fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (x ^ (x >> 31)) % sides.max(1)
    }
}

struct Object {
    bytes: Vec<u8>,
    /// For each device, the time from which the device sees the object.
    visible: Vec<u64>,
    /// For each device, the time from which it sees all bytes.
    complete: Vec<u64>,
    /// For each device, a span of time in which the object is hidden again.
    hidden: Vec<(u64, u64)>,
    /// For each device, the time from which it no longer sees the object.
    deleted: Option<Vec<u64>>,
}

/// All objects, and the devices that see them.
pub struct Cloud {
    objects: BTreeMap<String, Object>,
    dice: Dice,
    /// Number of calls so far, which is the time of the simulation.
    time: u64,
    devices: usize,
    is_settled: bool,
}

impl Cloud {
    /// Returns a storage in which all devices see the remote with this id.
    pub fn new(seed: u64, devices: usize, id: &str) -> Arc<Mutex<Self>> {
        let dice = Dice(seed ^ 0x5eed);
        let remote = Object {
            bytes: Vec::new(),
            visible: vec![0; devices],
            complete: vec![0; devices],
            hidden: vec![(0, 0); devices],
            deleted: None,
        };
        Arc::new(Mutex::new(Self {
            objects: BTreeMap::from([(format!("stvc-remote/{id}"), remote)]),
            dice,
            time: 0,
            devices,
            is_settled: false,
        }))
    }

    /// Makes everything visible everywhere from now on.
    pub fn settle(cloud: &Mutex<Self>) {
        let mut cloud = cloud.lock().unwrap_or_else(PoisonError::into_inner);
        cloud.is_settled = true;
        cloud.objects.retain(|_, object| object.deleted.is_none());
    }

    fn times(&mut self, own: usize) -> Vec<u64> {
        let (now, settled) = (self.time, self.is_settled);
        (0..self.devices)
            .map(|device| match self.dice.roll(4) {
                _ if settled || device == own => now,
                0 => now,
                1 => now + self.dice.roll(8),
                _ => now + self.dice.roll(60),
            })
            .collect()
    }
}

impl Object {
    fn is_seen(&self, device: usize, now: u64) -> bool {
        let (from, to) = self.hidden[device];
        let is_deleted = self.deleted.as_ref().is_some_and(|deleted| deleted[device] <= now);
        self.visible[device] <= now && !(from..to).contains(&now) && !is_deleted
    }
}

/// The storage as one device sees it.
pub struct Client {
    pub cloud: Arc<Mutex<Cloud>>,
    pub device: usize,
    /// Number of calls after which all calls fail; `None` for a reliable connection.
    pub breaks_after: Mutex<Option<u64>>,
}

impl Client {
    fn call<T>(&self, action: impl FnOnce(&mut Cloud) -> Result<T>) -> Result<T> {
        let mut cloud = self.cloud.lock().unwrap_or_else(PoisonError::into_inner);
        cloud.time += 1;
        let mut left = self.breaks_after.lock().unwrap_or_else(PoisonError::into_inner);
        let fails = !cloud.is_settled && *left == Some(0);
        if let Some(left) = left.as_mut() {
            *left = left.saturating_sub(1);
        }
        let broken = || Error::Unreachable { host: "simulated".into(), why: "broken".into() };
        // A call that fails may nevertheless have taken effect.
        if fails && cloud.dice.roll(2) == 0 {
            return Err(broken());
        }
        let done = action(&mut cloud)?;
        if fails { Err(broken()) } else { Ok(done) }
    }
}

impl Storage for Client {
    fn list(&self, prefix: &str) -> Result<Vec<Listed>> {
        self.call(|cloud| {
            let (now, settled) = (cloud.time, cloud.is_settled);
            let seen = cloud.objects.iter().filter(|(name, object)| {
                name.starts_with(prefix) && (settled || object.is_seen(self.device, now))
            });
            let mut listed: Vec<_> = seen
                .map(|(name, object)| Listed {
                    name: name.clone(),
                    bytes: object.bytes.len() as u64,
                })
                .collect();
            // Conflicting copies, as programs for synchronisation create them.
            if let Some(first) = listed.first().cloned()
                && cloud.dice.roll(4) == 0
            {
                let name = format!("{}.sync-conflict-20261119", first.name);
                listed.push(Listed { name, ..first });
            }
            Ok(listed)
        })
    }

    fn read(&self, name: &str, limit: u64) -> Result<Vec<u8>> {
        self.call(|cloud| {
            let (now, settled) = (cloud.time, cloud.is_settled);
            let missing = || Error::NotFound { place: "simulated".into(), name: name.to_owned() };
            let object = cloud.objects.get(name).ok_or_else(missing)?;
            if !settled && !object.is_seen(self.device, now) {
                return Err(missing());
            }
            let is_complete = settled || object.complete[self.device] <= now;
            let end = if is_complete { object.bytes.len() } else { object.bytes.len() / 2 };
            if end as u64 > limit {
                return Err(Error::TooLarge {
                    place: "simulated".into(),
                    name: name.to_owned(),
                    limit,
                });
            }
            Ok(object.bytes[..end].to_vec())
        })
    }

    fn write(&self, name: &str, bytes: &[u8]) -> Result<()> {
        self.call(|cloud| {
            if let Some(known) = cloud.objects.get(name) {
                assert_eq!(known.bytes, bytes, "{name} is written twice with different bytes");
            }
            let now = cloud.time;
            let visible = cloud.times(self.device);
            let complete = visible.iter().map(|from| {
                let later = if cloud.dice.roll(6) == 0 { cloud.dice.roll(10) } else { 0 };
                if *from == now { *from } else { *from + later }
            });
            let complete = complete.collect();
            let hidden = (0..cloud.devices)
                .map(|device| match cloud.dice.roll(10) {
                    0 if device != self.device => {
                        let from = now + cloud.dice.roll(80);
                        (from, from + cloud.dice.roll(20))
                    }
                    _ => (0, 0),
                })
                .collect();
            let object = Object { bytes: bytes.to_vec(), visible, complete, hidden, deleted: None };
            cloud.objects.insert(name.to_owned(), object);
            Ok(())
        })
    }

    fn delete(&self, name: &str) -> Result<()> {
        self.call(|cloud| {
            let times = cloud.times(self.device);
            if cloud.is_settled {
                cloud.objects.remove(name);
            } else if let Some(object) = cloud.objects.get_mut(name) {
                object.deleted = Some(times);
            }
            Ok(())
        })
    }
}
