//! The object `stvc-remote/<id>`: the format, and the identity, wrapped with the passphrase.
//!
//! Two devices may create the remote at the same time. Each then writes an object of its own, and
//! all devices use the smallest id that their passphrase opens. Thus nobody can replace the remote
//! without the passphrase, even with the right to write to the storage.

use std::io::{Read, Write};

use age::secrecy::ExposeSecret;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde::{Deserialize, Serialize};

use super::PlainRemoteError;
use super::key::{RemoteKey, Result, damaged};
use crate::archive::backup::{BackupKind, BackupOutput, Passphrase, peek, unseal};
use crate::storage::{self, Storage};

/// Prefix of the names of these objects.
pub const PREFIX: &str = "stvc-remote/";
const MAGIC: &str = "stvc remote";
const VERSION: u32 = 1;
const LONGEST: u64 = 64 << 10;
/// Maximum number of these objects that are tried, because each takes a second.
const MOST: usize = 16;

#[derive(Serialize, Deserialize)]
struct RemoteObject {
    format: String,
    version: u32,
    id: String,
    created: String,
    /// The identity, encrypted with the passphrase in the format of age, as base64. Missing if the
    /// remote is not encrypted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    key: Option<String>,
}

/// Knowledge of a device about the key of a remote that it adds.
#[derive(Clone, Copy)]
pub enum Secret<'s> {
    Passphrase(&'s Passphrase),
    /// The user accepts a remote that is not encrypted.
    Unencrypted,
    /// Nothing was given yet.
    Missing,
}

/// Writes the object of a new remote, encrypted if there is a passphrase.
pub fn create(
    storage: &dyn Storage,
    key: &RemoteKey,
    passphrase: Option<&Passphrase>,
    time: String,
) -> Result<()> {
    let cipher = |error: std::io::Error| PlainRemoteError::Cipher { why: error.to_string() };
    let wrapped = match (key.recovery_key(), passphrase) {
        (Some(identity), Some(passphrase)) => {
            let mut out = BackupOutput::new(Vec::new(), Some(passphrase)).map_err(cipher)?;
            out.write_all(identity.as_bytes()).map_err(cipher)?;
            Some(BASE64_STANDARD.encode(out.finish().map_err(cipher)?))
        }
        _ => None,
    };
    let object = RemoteObject {
        format: MAGIC.into(),
        version: VERSION,
        id: key.id().to_owned(),
        created: time,
        key: wrapped,
    };
    let name = format!("{PREFIX}{}", key.id());
    let text =
        serde_json::to_vec_pretty(&object).map_err(|error| damaged(&name, error.to_string()))?;
    Ok(storage.write(&name, &text)?)
}

/// Returns whether the storage contains a remote.
pub fn exists(storage: &dyn Storage) -> Result<bool> {
    Ok(!ids(storage)?.is_empty())
}

/// Returns whether the storage contains the remote with this id.
pub fn has(storage: &dyn Storage, id: &str) -> Result<bool> {
    Ok(ids(storage)?.iter().any(|known| known == id))
}

/// Returns the ids of all remotes in the storage, smallest first.
pub fn ids(storage: &dyn Storage) -> Result<Vec<String>> {
    let id = |name: &str| Some(name.strip_prefix(PREFIX)?.to_owned());
    let is_id = |id: &String| id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    let listed = storage.list(PREFIX)?;
    let mut ids: Vec<_> =
        listed.iter().filter_map(|listed| id(&listed.name)).filter(is_id).collect();
    ids.sort();
    Ok(ids)
}

/// Returns the key of the remote; `None` if the storage has no remote yet.
pub fn find(storage: &dyn Storage, address: &str, secret: Secret<'_>) -> Result<Option<RemoteKey>> {
    let mut refusal = None;
    for id in ids(storage)?.into_iter().take(MOST) {
        let name = format!("{PREFIX}{id}");
        let opened = match storage.read(&name, LONGEST) {
            Ok(object) => open(&name, &id, &object, address, secret),
            Err(storage::Error::NotFound { .. }) => continue,
            Err(error @ storage::Error::TooLarge { .. }) => Err(error.into()),
            Err(error) => return Err(error.into()),
        };
        match opened {
            Ok(key) => return Ok(Some(key)),
            // An object that others have planted must not hide that the remote is encrypted.
            Err(error) if refusal.as_ref().is_none_or(|known| !is_locked(known)) => {
                refusal = if is_locked(&error) { Some(error) } else { refusal.or(Some(error)) };
            }
            Err(_) => {}
        }
    }
    refusal.map_or(Ok(None), Err)
}

/// Returns whether the passphrase of an encrypted remote is missing or wrong.
fn is_locked(error: &PlainRemoteError) -> bool {
    use PlainRemoteError::{NoPassphrase, WrongPassphrase};
    matches!(error, NoPassphrase { .. } | WrongPassphrase { .. })
}

pub(super) fn open(
    name: &str,
    id: &str,
    object: &[u8],
    address: &str,
    secret: Secret<'_>,
) -> Result<RemoteKey> {
    let address = || address.to_owned();
    let object: RemoteObject =
        serde_json::from_slice(object).map_err(|error| damaged(name, error.to_string()))?;
    if object.format != MAGIC || object.id != id {
        return Err(damaged(name, "it is not the object of this remote"));
    }
    if object.version > VERSION {
        return Err(PlainRemoteError::Newer { name: name.to_owned() });
    }
    let key = match (object.key, secret) {
        (None, Secret::Unencrypted) => return Ok(RemoteKey::unencrypted(object.id)),
        (None, _) => return Err(PlainRemoteError::NotEncrypted { address: address() }),
        (Some(_), Secret::Missing | Secret::Unencrypted) => {
            return Err(PlainRemoteError::NoPassphrase { address: address() });
        }
        (Some(wrapped), Secret::Passphrase(passphrase)) => {
            let text = passphrase.text();
            match RemoteKey::from_recovery_key(text.expose_secret()) {
                Some(key) => Some(key),
                None => unwrap(name, &wrapped, passphrase)?,
            }
        }
    };
    // The id is derived from the identity, so no other identity can be in this object.
    let key = key.filter(|key| key.id() == id);
    key.ok_or_else(|| PlainRemoteError::WrongPassphrase { address: address() })
}

/// Returns the wrapped key; `None` if the passphrase is wrong.
fn unwrap(name: &str, wrapped: &str, passphrase: &Passphrase) -> Result<Option<RemoteKey>> {
    let wrapped =
        BASE64_STANDARD.decode(wrapped).map_err(|error| damaged(name, error.to_string()))?;
    // Anybody can write a key that is not encrypted. The chats would be encrypted for them.
    if peek(&wrapped) != BackupKind::Encrypted {
        return Err(damaged(name, "its key is not encrypted"));
    }
    let Ok(mut input) = unseal(wrapped.as_slice(), Some(passphrase)) else { return Ok(None) };
    let mut identity = String::new();
    if input.by_ref().take(1000).read_to_string(&mut identity).is_err() {
        return Ok(None);
    }
    Ok(RemoteKey::from_recovery_key(&identity))
}

/// Returns whether an object has a key that a passphrase may open.
#[cfg(any(test, fuzzing))]
pub(super) fn takes_long(object: &str) -> bool {
    let object = serde_json::from_str::<RemoteObject>(object).ok();
    let wrapped = object.and_then(|object| BASE64_STANDARD.decode(object.key?).ok());
    wrapped.is_some_and(|wrapped| peek(&wrapped) == BackupKind::Encrypted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::remotes::open_storage;

    fn passphrase(text: &str) -> Passphrase {
        Passphrase::new(text.into()).unwrap()
    }

    #[test]
    fn devices_that_create_the_remote_at_the_same_time_agree() {
        let folder = tempfile::tempdir().unwrap();
        let storage = open_storage(None, folder.path().to_str().unwrap()).unwrap();
        assert!(!exists(&*storage).unwrap());
        assert!(find(&*storage, "x", Secret::Missing).unwrap().is_none());
        let same = passphrase("same");
        let keys = [RemoteKey::new_encrypted(), RemoteKey::new_encrypted()];
        for key in &keys {
            create(&*storage, key, Some(&same), "2026-11-19T00:00:00Z".into()).unwrap();
        }
        let smallest = keys.iter().map(RemoteKey::id).min().unwrap();
        let found = find(&*storage, "x", Secret::Passphrase(&same)).unwrap().unwrap();
        assert_eq!(found.id(), smallest);
        let largest = keys.iter().max_by_key(|key| key.id()).unwrap();
        let recovery = passphrase(&largest.recovery_key().unwrap());
        let found = find(&*storage, "x", Secret::Passphrase(&recovery)).unwrap().unwrap();
        assert_eq!(found.id(), largest.id());
    }

    #[test]
    fn planted_remote_with_a_smaller_id_is_not_used() {
        let folder = tempfile::tempdir().unwrap();
        let storage = open_storage(None, folder.path().to_str().unwrap()).unwrap();
        let (own, key) = (passphrase("own"), RemoteKey::new_encrypted());
        create(&*storage, &key, Some(&own), String::new()).unwrap();
        let planted = RemoteKey::unencrypted("0".repeat(32));
        create(&*storage, &planted, None, String::new()).unwrap();
        let found = find(&*storage, "x", Secret::Passphrase(&own)).unwrap().unwrap();
        assert_eq!(found.id(), key.id());
        // An existing identity does not fit to another id.
        let bytes = storage.read(&format!("{PREFIX}{}", key.id()), LONGEST).unwrap();
        let text = String::from_utf8(bytes).unwrap().replace(key.id(), &"0".repeat(32));
        storage.write(&format!("{PREFIX}{}", "0".repeat(32)), text.as_bytes()).unwrap();
        let found = find(&*storage, "x", Secret::Passphrase(&own)).unwrap().unwrap();
        assert_eq!(found.id(), key.id());
    }

    #[test]
    fn planted_key_that_no_passphrase_protects_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let storage = open_storage(None, folder.path().to_str().unwrap()).unwrap();
        let stranger = RemoteKey::new_encrypted();
        create(&*storage, &stranger, None, String::new()).unwrap();
        let name = format!("{PREFIX}{}", stranger.id());
        let text = String::from_utf8(storage.read(&name, LONGEST).unwrap()).unwrap();
        let bare = BASE64_STANDARD.encode(stranger.recovery_key().unwrap());
        let planted = text.replacen('{', &format!("{{\"key\": \"{bare}\","), 1);
        storage.write(&name, planted.as_bytes()).unwrap();
        let found = find(&*storage, "x", Secret::Passphrase(&passphrase("own")));
        assert_eq!(found.err().unwrap().code(), "remote-damaged");
    }

    #[test]
    fn planted_objects_do_not_hide_that_the_remote_is_encrypted() {
        let folder = tempfile::tempdir().unwrap();
        let storage = open_storage(None, folder.path().to_str().unwrap()).unwrap();
        let (own, key) = (passphrase("own"), RemoteKey::new_encrypted());
        create(&*storage, &key, Some(&own), String::new()).unwrap();
        let planted = RemoteKey::unencrypted("0".repeat(31) + "1");
        create(&*storage, &planted, None, String::new()).unwrap();
        let huge = vec![b' '; LONGEST as usize + 1];
        storage.write(&format!("{PREFIX}{}", "0".repeat(32)), &huge).unwrap();
        let code = |secret| find(&*storage, "x", secret).err().unwrap().code();
        assert_eq!(code(Secret::Missing), "remote-no-passphrase");
        assert_eq!(code(Secret::Passphrase(&passphrase("other"))), "remote-wrong-passphrase");
        let found = find(&*storage, "x", Secret::Passphrase(&own)).unwrap().unwrap();
        assert_eq!(found.id(), key.id());
        for n in 0..2 * MOST {
            storage.write(&format!("{PREFIX}{n:032}"), b"{}").unwrap();
        }
        assert!(has(&*storage, key.id()).unwrap());
    }

    #[test]
    fn wrong_or_missing_passphrase_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let storage = open_storage(None, folder.path().to_str().unwrap()).unwrap();
        create(&*storage, &RemoteKey::new_encrypted(), Some(&passphrase("own")), String::new())
            .unwrap();
        let other = passphrase("other");
        let find = |secret| find(&*storage, "x", secret).err().unwrap().code();
        assert_eq!(find(Secret::Passphrase(&other)), "remote-wrong-passphrase");
        assert_eq!(find(Secret::Missing), "remote-no-passphrase");
        assert_eq!(find(Secret::Unencrypted), "remote-no-passphrase");
    }
}
