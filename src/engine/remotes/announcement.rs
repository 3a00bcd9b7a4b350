//! Announcements: the state of the remote as one device leaves it.
//!
//! An announcement is complete or states the changes since a complete one of the same device, its
//! base. So a save costs some hundred bytes, and a reader needs at most two objects of a device.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;

use serde::{Deserialize, Serialize};

use super::PlainRemoteError;
use super::key::{RemoteKey, Result, damaged};
use crate::engine::copies::chosen_refs::{HEADS, Refs, TAGS};
use crate::engine::device::{Device, is_id};
use crate::store::{Erasures, ObjectId, RefName};

pub(super) const FORMAT: u32 = 1;
/// Maximum length of any object, encrypted.
pub(super) const LONGEST_OBJECT: u64 = 16 << 20;
/// Maximum length of an announcement after decompression.
const LONGEST_CONTENT: u64 = 128 << 20;
const LEVEL: i32 = 9;

/// A part of a pack: one object of the storage.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Part {
    /// Name without `packs/`: the keyed hash of the object.
    pub name: String,
    /// Length of the object.
    pub bytes: u64,
}

/// A pack: its content is a backup file with only new objects, cut into parts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pack {
    pub parts: Vec<Part>,
    pub objects: u64,
    /// Names of the packs whose remaining objects are in this pack. A device that has read all of
    /// them needs not read this pack.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub replaces: Vec<String>,
}

impl Pack {
    /// Returns the name of the pack, which is that of its first part.
    pub fn name(&self) -> &str {
        self.parts.first().map_or("", |part| &part.name)
    }

    pub fn bytes(&self) -> u64 {
        self.parts.iter().map(|part| part.bytes).sum()
    }
}

/// A pack that its device has replaced. The device deletes it when all devices know, or after some
/// time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Retired {
    pub pack: Pack,
    /// Number of the first announcement without the pack.
    pub since: u64,
    /// Time of that announcement, in seconds since 1970.
    pub time: i64,
}

/// The latest state that a device announced, complete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Announcement {
    pub device: Device,
    pub number: u64,
    /// Lamport clock: greater than the clocks of all announcements that the device had seen.
    pub clock: u64,
    /// Seconds since 1970, by the clock of the device.
    pub time: i64,
    /// For each device, the number of its latest announcement that this one includes.
    pub seen: BTreeMap<String, u64>,
    pub refs: Refs,
    pub erasures: Erasures,
    /// The packs of this device, by name.
    pub packs: BTreeMap<String, Pack>,
    pub retired: Vec<Retired>,
    /// The erasures that the packs of this device no longer contain: a hash of their record.
    pub purged: String,
    /// Names of packs of other devices that this device could not read.
    pub damaged: BTreeSet<String>,
    /// Number of the complete announcement on which this one is based; `number` if it is complete.
    pub base: u64,
}

#[derive(Serialize, Deserialize)]
struct Record {
    format: u32,
    device: String,
    name: String,
    number: u64,
    clock: u64,
    time: i64,
    seen: BTreeMap<String, u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    base: Option<u64>,
    /// Refs and their commits; `null` removes a ref of the base.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    refs: BTreeMap<String, Option<String>>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    erased: BTreeMap<String, u64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    packs: Vec<Pack>,
    /// Names of packs of the base that the device no longer lists.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    dropped: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    retired: Vec<Retired>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    purged: String,
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    damaged: BTreeSet<String>,
}

pub(super) fn object_name(device: &str, number: u64) -> String {
    format!("devices/{device}-{number}")
}

/// Parses the name of an announcement; `None` for any other object, such as a conflicting copy that
/// a program for synchronisation has made.
pub(super) fn parse_name(name: &str) -> Option<(&str, u64)> {
    let (device, number) = name.strip_prefix("devices/")?.split_once('-')?;
    let parsed: u64 = number.parse().ok().filter(|parsed: &u64| parsed.to_string() == number)?;
    (is_id(device) && parsed > 0).then_some((device, parsed))
}

/// An announcement as it is in the storage, before it is joined with its base.
pub(super) struct Unresolved(Record);

impl Unresolved {
    pub(super) fn base(&self) -> Option<u64> {
        self.0.base
    }

    pub(super) fn time(&self) -> i64 {
        self.0.time
    }

    /// Decrypts and verifies an announcement that was read under the name of this device and
    /// number.
    pub(super) fn open(key: &RemoteKey, device: &str, number: u64, object: &[u8]) -> Result<Self> {
        let name = object_name(device, number);
        let content = key.open(&name, object)?;
        let (checksum, content) =
            content.split_at_checked(32).ok_or_else(|| damaged(&name, "it is truncated"))?;
        if key.checksum(&name, content) != *checksum {
            return Err(damaged(&name, "its checksum is wrong"));
        }
        Self::parse(&name, device, number, content)
    }

    pub(super) fn parse(name: &str, device: &str, number: u64, content: &[u8]) -> Result<Self> {
        let bad = |why: &str| damaged(name, why);
        let mut text = Vec::new();
        let mut stream =
            zstd::Decoder::new(content).map_err(|error| damaged(name, error.to_string()))?;
        // The window is bounded, so that a forged announcement cannot require much memory.
        stream.window_log_max(27).map_err(|error| damaged(name, error.to_string()))?;
        stream
            .take(LONGEST_CONTENT + 1)
            .read_to_end(&mut text)
            .map_err(|error| damaged(name, error.to_string()))?;
        if text.len() as u64 > LONGEST_CONTENT {
            return Err(bad("it is too long"));
        }
        #[derive(Deserialize)]
        struct Version {
            format: u32,
        }
        let json = |error: serde_json::Error| damaged(name, error.to_string());
        let Version { format } = serde_json::from_slice(&text).map_err(json)?;
        if format > FORMAT {
            return Err(PlainRemoteError::Newer { name: name.to_owned() });
        }
        let record: Record = serde_json::from_slice(&text).map_err(json)?;
        if record.device != device || record.number != number {
            return Err(bad("it has the name of another announcement"));
        }
        if record.base.is_some_and(|base| base >= number || base == 0) {
            return Err(bad("its base is not an earlier announcement"));
        }
        let is_part = |part: &Part| is_hash(&part.name) && part.bytes <= LONGEST_OBJECT;
        let is_pack = |pack: &Pack| {
            !pack.parts.is_empty()
                && pack.parts.iter().all(is_part)
                && pack.replaces.iter().all(|name| is_hash(name))
        };
        let packs = record.packs.iter().chain(record.retired.iter().map(|retired| &retired.pack));
        if !packs.into_iter().all(is_pack) {
            return Err(bad("one of its packs is not valid"));
        }
        if !record.seen.keys().all(|device| is_id(device)) {
            return Err(bad("it names a device that is not valid"));
        }
        Ok(Self(record))
    }

    /// Returns the complete announcement. `base` must be the announcement that
    /// [`base`](Self::base) names.
    pub(super) fn resolve(self, base: Option<&Announcement>) -> Result<Announcement> {
        let record = self.0;
        let name = object_name(&record.device, record.number);
        let (mut refs, mut erasures, mut packs) = base
            .map(|base| (base.refs.clone(), base.erasures.clone(), base.packs.clone()))
            .unwrap_or_default();
        for (text, id) in record.refs {
            let wrong = || damaged(&name, format!("the ref {text:?} is not valid"));
            let is_ours = [HEADS, TAGS, RefName::KEPT].iter().any(|own| text.starts_with(own));
            let ref_name = RefName::try_from(text.clone()).map_err(|_| wrong())?;
            if !is_ours {
                return Err(wrong());
            }
            match id {
                None => refs.remove(&ref_name),
                Some(id) => {
                    let id = ObjectId::from_hex(id.as_bytes()).map_err(|_| wrong())?;
                    refs.insert(ref_name, id)
                }
            };
        }
        for (mark, changes) in record.erased {
            if !erasures.set(&mark, changes) {
                return Err(damaged(&name, format!("the erasure {mark:?} is not valid")));
            }
        }
        let dropped: BTreeSet<_> = record.dropped.iter().collect();
        packs.retain(|pack, _| !dropped.contains(pack));
        packs.extend(record.packs.into_iter().map(|pack| (pack.name().to_owned(), pack)));
        Ok(Announcement {
            device: Device { id: record.device, name: record.name },
            number: record.number,
            clock: record.clock,
            time: record.time,
            seen: record.seen,
            refs,
            erasures,
            packs,
            retired: record.retired,
            purged: record.purged,
            damaged: record.damaged,
            base: record.base.unwrap_or(record.number),
        })
    }
}

fn is_hash(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

impl Announcement {
    pub fn name(&self) -> String {
        object_name(&self.device.id, self.number)
    }

    /// Returns whether this announcement includes everything that `other` states.
    pub fn includes(&self, other: &Self) -> bool {
        let same = self.device.id == other.device.id && self.number >= other.number;
        same || self.seen.get(&other.device.id).is_some_and(|seen| *seen >= other.number)
    }

    fn record(&self, base: Option<&Self>) -> Record {
        let text = |(name, id): (&RefName, &ObjectId)| (name.to_string(), Some(id.to_string()));
        let mut refs: BTreeMap<_, _> = self.refs.iter().map(text).collect();
        let mut erased: BTreeMap<_, _> =
            self.erasures.iter().map(|(mark, changes)| (mark.to_owned(), changes)).collect();
        let mut packs: Vec<_> = self.packs.values().cloned().collect();
        let mut dropped = Vec::new();
        if let Some(base) = base {
            refs.retain(|name, id| {
                let before = RefName::try_from(name.clone()).ok();
                let before = before.and_then(|name| base.refs.get(&name)).map(ToString::to_string);
                before != *id
            });
            let gone = base.refs.keys().filter(|name| !self.refs.contains_key(*name));
            refs.extend(gone.map(|name| (name.to_string(), None)));
            let before: BTreeMap<_, _> = base.erasures.iter().collect();
            erased.retain(|mark, changes| before.get(mark.as_str()) != Some(changes));
            packs.retain(|pack| !base.packs.contains_key(pack.name()));
            let gone = base.packs.keys().filter(|name| !self.packs.contains_key(*name));
            dropped.extend(gone.cloned());
        }
        Record {
            format: FORMAT,
            device: self.device.id.clone(),
            name: self.device.name.clone(),
            number: self.number,
            clock: self.clock,
            time: self.time,
            seen: self.seen.clone(),
            base: base.map(|base| base.number),
            refs,
            erased,
            packs,
            dropped,
            retired: self.retired.clone(),
            purged: self.purged.clone(),
            damaged: self.damaged.clone(),
        }
    }

    /// Encodes the announcement, compressed and not encrypted. With a base, only the changes since
    /// the base are encoded.
    pub(super) fn encode(&self, base: Option<&Self>) -> Result<Vec<u8>> {
        let name = self.name();
        let text = serde_json::to_vec(&self.record(base))
            .map_err(|error| damaged(&name, error.to_string()))?;
        zstd::encode_all(text.as_slice(), LEVEL).map_err(|error| damaged(&name, error.to_string()))
    }

    /// Returns the object of the storage for a content from [`encode`](Self::encode).
    pub(super) fn seal(&self, key: &RemoteKey, content: &[u8]) -> Result<Vec<u8>> {
        let name = self.name();
        let checksum = key.checksum(&name, content);
        let sealed = key.seal(&[checksum.as_bytes().as_slice(), content].concat())?;
        if sealed.len() as u64 > LONGEST_OBJECT {
            return Err(damaged(&name, "the list of branches is too long for one object"));
        }
        Ok(sealed)
    }

    /// Decodes a complete announcement from the state in the store.
    pub(super) fn decode(device: &str, number: u64, content: &[u8]) -> Result<Self> {
        Unresolved::parse(&object_name(device, number), device, number, content)?.resolve(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(digit: char) -> ObjectId {
        ObjectId::from_hex(digit.to_string().repeat(40).as_bytes()).unwrap()
    }

    fn branch(name: &str) -> RefName {
        RefName::branch(["chats", "Mira", name])
    }

    fn pack(digit: &str) -> Pack {
        let part = Part { name: digit.repeat(64), bytes: 10 };
        Pack { parts: vec![part], objects: 3, replaces: Vec::new() }
    }

    fn announcement(number: u64) -> Announcement {
        let mut erasures = Erasures::default();
        erasures.add("a".repeat(40));
        Announcement {
            device: Device { id: "00112233445566aa".into(), name: "手机".into() },
            number,
            clock: number + 5,
            time: 1_700_000_000,
            seen: [("ffeeddccbbaa9988".to_owned(), 4)].into(),
            refs: [(branch("a"), id('1')), (branch("b"), id('2'))].into(),
            erasures,
            packs: [("c".repeat(64), pack("c"))].into(),
            retired: Vec::new(),
            purged: "p".into(),
            damaged: BTreeSet::new(),
            base: number,
        }
    }

    fn round_trip(given: &Announcement, base: Option<&Announcement>) -> Announcement {
        let key = RemoteKey::new_encrypted();
        let object = given.seal(&key, &given.encode(base).unwrap()).unwrap();
        let opened = Unresolved::open(&key, &given.device.id, given.number, &object).unwrap();
        assert_eq!(opened.base(), base.map(|base| base.number));
        opened.resolve(base).unwrap()
    }

    #[test]
    fn announcement_survives_encoding_with_and_without_base() {
        let first = announcement(3);
        assert_eq!(round_trip(&first, None), first);
        let mut second = announcement(4);
        second.base = 3;
        second.refs.insert(branch("a"), id('3'));
        second.refs.remove(&branch("b"));
        second.refs.insert(branch("c"), id('4'));
        second.packs = [("d".repeat(64), pack("d"))].into();
        second.erasures.add("b".repeat(64));
        second.erasures.withdraw(&"a".repeat(40));
        assert_eq!(round_trip(&second, Some(&first)), second);
    }

    #[test]
    fn changes_of_one_branch_take_less_than_a_kilobyte() {
        let key = RemoteKey::new_encrypted();
        let mut first = announcement(1);
        let named = |n: u32| (branch(&n.to_string()), id('7'));
        first.refs.extend((0..2000).map(named));
        let mut second = first.clone();
        (second.number, second.base) = (2, 1);
        second.refs.insert(branch("5"), id('9'));
        let object = second.seal(&key, &second.encode(Some(&first)).unwrap()).unwrap();
        assert!(object.len() < 1000, "{}", object.len());
    }

    #[test]
    fn announcement_under_another_name_or_with_any_flipped_byte_is_refused() {
        let given = announcement(3);
        let content = given.encode(None).unwrap();
        let device = &given.device.id;
        for key in [RemoteKey::new_encrypted(), RemoteKey::unencrypted("0".repeat(32))] {
            let object = given.seal(&key, &content).unwrap();
            assert!(Unresolved::open(&key, device, 3, &object).is_ok());
            assert!(Unresolved::open(&key, device, 4, &object).is_err());
            assert!(Unresolved::open(&key, "00112233445566ab", 3, &object).is_err());
            for at in 0..object.len() {
                let mut flipped = object.clone();
                flipped[at] ^= 0x40;
                assert!(Unresolved::open(&key, device, 3, &flipped).is_err(), "byte {at}");
                assert!(Unresolved::open(&key, device, 3, &object[..at]).is_err(), "byte {at}");
            }
        }
    }

    /// A device with the key can still send anything.
    #[test]
    fn hostile_records_are_refused() {
        let text = serde_json::to_value(announcement(3).record(None)).unwrap();
        let read = |text: &serde_json::Value| {
            let content = zstd::encode_all(text.to_string().as_bytes(), 1).unwrap();
            Announcement::decode("00112233445566aa", 3, &content)
        };
        assert!(read(&text).is_ok());
        let mut more = text.clone();
        more["mood"] = "sunny".into();
        assert!(read(&more).is_ok(), "unknown fields are ignored");
        for (field, value) in [
            ("format", serde_json::json!(2)),
            ("device", serde_json::json!("../../../etc")),
            ("number", serde_json::json!(4)),
            ("base", serde_json::json!(3)),
            ("base", serde_json::json!(0)),
            ("seen", serde_json::json!({ "x": 1 })),
            ("refs", serde_json::json!({ "refs/remotes/x": "1".repeat(40) })),
            ("refs", serde_json::json!({ "refs/heads/../../x": "1".repeat(40) })),
            ("refs", serde_json::json!({ "HEAD": "1".repeat(40) })),
            ("refs", serde_json::json!({ "refs/heads/a": "1" })),
            ("erased", serde_json::json!({ "zz": 1 })),
            ("packs", serde_json::json!([{ "parts": [], "objects": 1 }])),
            (
                "packs",
                serde_json::json!([{ "parts": [{ "name": "../x", "bytes": 1 }], "objects": 1 }]),
            ),
            (
                "packs",
                serde_json::json!([{ "parts": [{ "name": "a".repeat(64), "bytes": 1_u64 << 40 }], "objects": 1 }]),
            ),
        ] {
            let mut wrong = text.clone();
            wrong[field] = value.clone();
            assert!(read(&wrong).is_err(), "{field}: {value}");
        }
        let bomb = vec![b' '; (LONGEST_CONTENT + 1) as usize];
        let bomb = zstd::encode_all(bomb.as_slice(), 1).unwrap();
        assert!(Announcement::decode("00112233445566aa", 3, &bomb).is_err());
    }

    #[test]
    fn only_canonical_names_are_announcements() {
        assert_eq!(parse_name("devices/00112233445566aa-7"), Some(("00112233445566aa", 7)));
        for name in [
            "devices/00112233445566aa-07",
            "devices/00112233445566aa-0",
            "devices/00112233445566aa-7.sync-conflict-20261119",
            "devices/00112233445566aa-7-8",
            "devices/00112233445566a-7",
            "packs/00112233445566aa-7",
            "devices/00112233445566aa/7",
            "devices/00112233445566aa-+7",
        ] {
            assert_eq!(parse_name(name), None, "{name}");
        }
    }
}
