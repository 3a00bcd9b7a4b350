//! The key of a remote: encrypts its objects, and makes the names of packs and the checksums of
//! announcements, which nobody without the key can forge.
//!
//! The identity is an X25519 key of age. Its recipient is secret too: it is derived from the
//! identity and never stored. Still, age does not prove who encrypted an object, so every object
//! has a checksum that is keyed with the identity.

use age::DecryptError;
use age::secrecy::ExposeSecret;
use age::x25519::Identity;

use super::PlainRemoteError;

pub(super) type Result<T> = std::result::Result<T, PlainRemoteError>;

#[derive(Clone)]
pub struct RemoteKey {
    id: String,
    /// `None` if the remote is not encrypted.
    identity: Option<Identity>,
    names: [u8; 32],
    checksums: [u8; 32],
}

impl RemoteKey {
    pub fn new_encrypted() -> Self {
        Self::of(Identity::generate())
    }

    /// Returns the key of a remote that is not encrypted. Its checksums detect damage, but no
    /// forgery.
    pub fn unencrypted(id: String) -> Self {
        let [names, checksums] = derive(&id);
        Self { id, identity: None, names, checksums }
    }

    fn of(identity: Identity) -> Self {
        let text = identity.to_string();
        let secret = text.expose_secret();
        let id = blake3::derive_key("stvc remote 1 id", secret.as_bytes());
        let id = blake3::Hash::from_bytes(id).to_hex()[..32].to_owned();
        let [names, checksums] = derive(secret);
        Self { id, identity: Some(identity), names, checksums }
    }

    /// Parses a recovery key, which is the identity as text.
    pub fn from_recovery_key(text: &str) -> Option<Self> {
        text.trim().parse::<Identity>().ok().map(Self::of)
    }

    pub fn is_encrypted(&self) -> bool {
        self.identity.is_some()
    }

    /// Returns the identity as text; `None` if the remote is not encrypted.
    pub fn recovery_key(&self) -> Option<String> {
        self.identity.as_ref().map(|identity| identity.to_string().expose_secret().to_owned())
    }

    /// Returns the id of the remote: 32 hexadecimal digits, derived from the identity.
    pub fn id(&self) -> &str {
        &self.id
    }

    pub(super) fn seal(&self, content: &[u8]) -> Result<Vec<u8>> {
        match &self.identity {
            None => Ok(content.to_vec()),
            Some(identity) => age::encrypt(&identity.to_public(), content)
                .map_err(|_| PlainRemoteError::Cipher { why: "the key cannot be used".into() }),
        }
    }

    pub(super) fn open(&self, name: &str, object: &[u8]) -> Result<Vec<u8>> {
        match &self.identity {
            None => Ok(object.to_vec()),
            // The texts of age's own errors are files, which a test build reads when it needs them.
            Some(identity) => age::decrypt(identity, object).map_err(|error| match error {
                DecryptError::UnknownFormat => PlainRemoteError::Newer { name: name.to_owned() },
                DecryptError::NoMatchingKeys => {
                    PlainRemoteError::OtherKey { name: name.to_owned() }
                }
                DecryptError::Io(error) => damaged(name, error.to_string()),
                _ => damaged(name, "it cannot be decrypted"),
            }),
        }
    }

    /// Returns the name of a part of a pack: a keyed hash of the device and of the object's bytes.
    /// Two devices never write the same name.
    pub(super) fn part_name(&self, device: &str, object: &[u8]) -> String {
        let mut hasher = blake3::Hasher::new_keyed(&self.names);
        hasher.update(device.as_bytes()).update(b"\n").update(object);
        hasher.finalize().to_hex().to_string()
    }

    /// Returns the checksum of an announcement, which also covers its name, so that an announcement
    /// is not valid under another name.
    pub(super) fn checksum(&self, name: &str, content: &[u8]) -> blake3::Hash {
        let mut hasher = blake3::Hasher::new_keyed(&self.checksums);
        hasher.update(name.as_bytes()).update(b"\n").update(content);
        hasher.finalize()
    }
}

fn derive(secret: &str) -> [[u8; 32]; 2] {
    ["stvc remote 1 names", "stvc remote 1 checksums"]
        .map(|context| blake3::derive_key(context, secret.as_bytes()))
}

pub(super) fn damaged(name: &str, why: impl Into<String>) -> PlainRemoteError {
    PlainRemoteError::Damaged { name: name.to_owned(), why: why.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sealed_object_opens_only_with_its_key() {
        let key = RemoteKey::new_encrypted();
        let sealed = key.seal(b"text").unwrap();
        assert!(!sealed.windows(4).any(|window| window == b"text"));
        assert_eq!(key.open("a", &sealed).unwrap(), b"text");
        assert!(RemoteKey::new_encrypted().open("a", &sealed).is_err());
        for at in 0..sealed.len() {
            let mut flipped = sealed.clone();
            flipped[at] ^= 1;
            assert!(key.open("a", &flipped).is_err(), "byte {at}");
            assert!(key.open("a", &sealed[..at]).is_err(), "byte {at}");
        }
    }

    #[test]
    fn recovery_key_is_the_whole_key() {
        let key = RemoteKey::new_encrypted();
        let text = key.recovery_key().unwrap();
        let again = RemoteKey::from_recovery_key(&format!(" {text}\n")).unwrap();
        assert_eq!(again.id(), key.id());
        assert_eq!(again.part_name("d", b"x"), key.part_name("d", b"x"));
        assert_eq!(again.open("a", &key.seal(b"x").unwrap()).unwrap(), b"x");
        assert!(RemoteKey::from_recovery_key("AGE-SECRET-KEY-1").is_none());
    }

    #[test]
    fn names_and_checksums_need_the_key_and_cover_the_owner() {
        let key = RemoteKey::new_encrypted();
        let other = RemoteKey::new_encrypted();
        assert_ne!(key.part_name("d", b"x"), other.part_name("d", b"x"));
        assert_ne!(key.part_name("d", b"x"), key.part_name("e", b"x"));
        assert_ne!(key.checksum("devices/d-1", b"x"), key.checksum("devices/d-2", b"x"));
        assert_ne!(key.checksum("devices/d-1", b"x"), other.checksum("devices/d-1", b"x"));
    }
}
