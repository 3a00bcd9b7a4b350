//! Fuzz targets for the objects of a remote that have a format of their own. Each target panics if
//! its invariant does not hold. `src/fuzzing` lists the targets.

#![allow(clippy::expect_used, reason = "a fuzz target fails loudly")]

use super::RemoteKey;
use super::announcement::{Announcement, LONGEST_OBJECT, Unresolved, object_name, parse_name};
use super::pack_objects;
use super::remote_object::{self, Secret};
use crate::archive::backup::Passphrase;
use crate::engine::copies::chosen_refs::{HEADS, TAGS};
use crate::storage::is_valid_name;
use crate::store::RefName;

/// The name under which the announcement is read.
pub(crate) const DEVICE: &str = "00112233445566aa";
pub(crate) const NUMBER: u64 = 7;
/// The number of the announcement on which the one that is read may be based.
pub(crate) const BASE: u64 = 4;
/// The id of the remote that is read.
pub(crate) const ID: &str = "00112233445566778899aabbccddeeff";

/// Checks that no announcement can be made without the key. One with the key, which another device
/// may have made, lists only valid names, and is encoded and decoded to an equal one.
///
/// The input is the compressed content of an announcement, or its JSON.
pub(crate) fn announcement(data: &[u8]) {
    for key in [RemoteKey::new_encrypted(), RemoteKey::unencrypted(ID.into())] {
        assert!(Unresolved::open(&key, DEVICE, NUMBER, data).is_err());
    }
    read(data);
    if !data.starts_with(b"\x28\xb5\x2f\xfd") {
        read(&zstd::bulk::compress(data, 1).expect("memory is there"));
    }
}

fn read(content: &[u8]) {
    let parse =
        |content: &[u8]| Unresolved::parse(&object_name(DEVICE, NUMBER), DEVICE, NUMBER, content);
    let Ok(unresolved) = parse(content) else { return };
    let _ = unresolved.time();
    assert!(unresolved.base().is_none_or(|base| (1..NUMBER).contains(&base)));
    let base = base();
    let Ok(read) = unresolved.resolve(Some(&base)) else { return };
    assert_eq!(parse_name(&read.name()), Some((DEVICE, NUMBER)));
    assert!(is_valid_name(&read.name()));
    for pack in read.packs.values().chain(read.retired.iter().map(|it| &it.pack)) {
        assert!(!pack.parts.is_empty());
        for part in &pack.parts {
            assert!(is_valid_name(&pack_objects::object_name(&part.name)), "{}", part.name);
            assert!(part.bytes <= LONGEST_OBJECT);
        }
        assert!(pack.bytes() <= LONGEST_OBJECT * pack.parts.len() as u64);
    }
    for name in read.refs.keys() {
        let is_ours = |prefix: &&str| name.as_str().starts_with(prefix);
        assert!([HEADS, TAGS, RefName::KEPT].iter().any(is_ours), "{name}");
    }
    let complete = parse(&read.encode(None).expect("it is encoded")).expect("it is decoded");
    let complete = complete.resolve(None).expect("it is complete");
    assert_eq!(complete, Announcement { base: NUMBER, ..read.clone() });
    let changes = parse(&read.encode(Some(&base)).expect("it is encoded")).expect("it is decoded");
    let changes = changes.resolve(Some(&base)).expect("it has a base");
    // Entries of the record of erased data are never removed from it.
    assert_eq!(changes, Announcement { base: BASE, ..read });
}

/// Returns an announcement without refs and packs.
fn base() -> Announcement {
    let text = format!(
        r#"{{"format":1,"device":"{DEVICE}","name":"a","number":{BASE},"clock":1,"time":1,"seen":{{}}}}"#
    );
    let content = zstd::bulk::compress(text.as_bytes(), 1).expect("memory is there");
    Announcement::decode(DEVICE, BASE, &content).expect("it is valid")
}

/// Checks that the object of a remote, which anybody may have written, is only accepted with the
/// recovery key that it belongs to, or if the user accepts a remote that is not encrypted.
pub(crate) fn remote_object(data: &[u8]) {
    fn open(id: &str, data: &[u8], secret: Secret<'_>) -> super::Result<RemoteKey> {
        remote_object::open(&format!("stvc-remote/{id}"), id, data, "address", secret)
    }
    assert!(open(ID, data, Secret::Missing).is_err());
    if let Ok(key) = open(ID, data, Secret::Unencrypted) {
        assert_eq!((key.id(), key.recovery_key()), (ID, None));
    }
    let key = RemoteKey::new_encrypted();
    let recovery = key.recovery_key().expect("it is encrypted");
    let recovery = Passphrase::new(recovery).expect("it is a passphrase");
    assert!(open(ID, data, Secret::Passphrase(&recovery)).is_err());
    let text = String::from_utf8_lossy(data);
    // To check a passphrase takes a second.
    if !remote_object::takes_long(&text) {
        let other = Passphrase::new("a passphrase".into()).expect("it is a passphrase");
        assert!(open(ID, data, Secret::Passphrase(&other)).is_err());
    }
    let own = text.replace(ID, key.id());
    if let Ok(opened) = open(key.id(), own.as_bytes(), Secret::Passphrase(&recovery)) {
        assert_eq!(opened.recovery_key(), key.recovery_key());
    }
}
