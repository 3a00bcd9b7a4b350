//! Encrypts backups in the format of age. `age --decrypt` can decrypt these backups too.

use std::io::{self, Read, Write};
use std::iter;

use age::secrecy::SecretString;
use age::stream::StreamWriter;
use age::{DecryptError, Decryptor, Encryptor, scrypt};

use super::{BackupError, BackupKind, Result, peek};

/// Work factor of scrypt, as a power of two. This is the default of age: a key takes 256 MB of
/// memory and about a second.
const SCRYPT_WORK: u8 = 18;
/// Maximum work factor that is accepted. A higher work factor would need more than 1 GB of memory.
const MOST_WORK: u8 = 20;

/// Passphrase of an encrypted backup. Its text is never shown, not even by `Debug`.
#[derive(Clone, Debug)]
pub struct Passphrase(SecretString);

impl Passphrase {
    /// Returns a passphrase, or `None` if `text` is empty.
    pub fn new(text: String) -> Option<Self> {
        if text.is_empty() { None } else { Some(Self(SecretString::from(text))) }
    }

    pub(crate) fn text(&self) -> &SecretString {
        &self.0
    }
}

/// The output of a backup, plain or encrypted.
pub enum BackupOutput<W: Write> {
    Plain(W),
    Sealed(Box<StreamWriter<W>>),
}

impl<W: Write> BackupOutput<W> {
    /// Creates an output that encrypts if a passphrase is given.
    pub fn new(out: W, passphrase: Option<&Passphrase>) -> io::Result<Self> {
        let Some(passphrase) = passphrase else { return Ok(Self::Plain(out)) };
        let mut recipient = scrypt::Recipient::new(passphrase.0.clone());
        recipient.set_work_factor(SCRYPT_WORK);
        let encryptor = Encryptor::with_recipients(iter::once(&recipient as _));
        let out = encryptor
            .map_err(|_| io::Error::other("the passphrase cannot be used"))?
            .wrap_output(out)?;
        Ok(Self::Sealed(Box::new(out)))
    }

    pub fn finish(self) -> io::Result<W> {
        match self {
            Self::Plain(out) => Ok(out),
            Self::Sealed(out) => out.finish(),
        }
    }
}

impl<W: Write> Write for BackupOutput<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(out) => out.write(bytes),
            Self::Sealed(out) => out.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(out) => out.flush(),
            Self::Sealed(out) => out.flush(),
        }
    }
}

/// Returns the plain content of a backup. Decrypts the backup if it is encrypted.
pub fn unseal<'r>(
    mut input: impl Read + 'r,
    passphrase: Option<&Passphrase>,
) -> Result<Box<dyn Read + 'r>> {
    let mut begin = Vec::new();
    input.by_ref().take(32).read_to_end(&mut begin).map_err(super::error::reading)?;
    let encrypted = peek(&begin) == BackupKind::Encrypted;
    let input = io::Cursor::new(begin).chain(input);
    if !encrypted {
        return Ok(Box::new(input));
    }
    let Some(passphrase) = passphrase else { return Err(BackupError::Encrypted) };
    let mut identity = scrypt::Identity::new(passphrase.0.clone());
    identity.set_max_work_factor(MOST_WORK);
    let failed = |error| match error {
        DecryptError::Io(error) => super::error::reading(error),
        DecryptError::UnknownFormat => {
            BackupError::Newer { found: "a newer version of age".into() }
        }
        DecryptError::ExcessiveWork { .. } => {
            BackupError::hostile("a passphrase check that needs more than 1 GB of memory")
        }
        DecryptError::InvalidHeader => {
            BackupError::damaged("its first lines are not a valid age header")
        }
        _ => BackupError::WrongPassphrase,
    };
    let decryptor = Decryptor::new_buffered(io::BufReader::new(input)).map_err(failed)?;
    if !decryptor.is_scrypt() {
        return Err(BackupError::hostile("a public key: stvc encrypts only with a passphrase"));
    }
    Ok(Box::new(decryptor.decrypt(iter::once(&identity as _)).map_err(failed)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONTENT: &[u8] = b"stvc backup 1\n{}\n and all that follows";

    fn passphrase() -> Passphrase {
        Passphrase::new("correct horse".into()).unwrap()
    }

    /// Encrypts as `BackupOutput` does, but with a minimal work factor, so that tests can decrypt
    /// often.
    fn sealed() -> Vec<u8> {
        let mut recipient = scrypt::Recipient::new(passphrase().0);
        recipient.set_work_factor(1);
        let encryptor = Encryptor::with_recipients(iter::once(&recipient as _)).unwrap();
        let mut out = encryptor.wrap_output(Vec::new()).unwrap();
        out.write_all(CONTENT).unwrap();
        out.finish().unwrap()
    }

    /// Returns the decrypted content.
    fn open(bytes: &[u8], passphrase: Option<&Passphrase>) -> Result<Vec<u8>> {
        let mut content = Vec::new();
        let mut input = unseal(bytes, passphrase)?;
        input.read_to_end(&mut content).map_err(crate::archive::backup::error::reading)?;
        Ok(content)
    }

    #[test]
    fn encrypted_backup_opens_only_with_its_passphrase() {
        let bytes = sealed();
        assert_eq!(open(&bytes, Some(&passphrase())).unwrap(), CONTENT);
        assert!(matches!(open(&bytes, None), Err(BackupError::Encrypted)));
        let wrong = Passphrase::new("correct horses".into()).unwrap();
        assert!(matches!(open(&bytes, Some(&wrong)), Err(BackupError::WrongPassphrase)));
        // Plain content is returned unchanged, with or without a passphrase.
        assert_eq!(open(CONTENT, Some(&passphrase())).unwrap(), CONTENT);
    }

    #[test]
    fn every_flipped_byte_and_every_truncation_is_detected() {
        let bytes = sealed();
        let noticed = |bytes: &[u8], at: usize| {
            // Without age's first line the content is not recognised as a backup.
            let is_none = peek(bytes) != BackupKind::Encrypted && !bytes.starts_with(b"stvc");
            assert!(is_none || open(bytes, Some(&passphrase())).is_err(), "byte {at}");
        };
        for at in 0..bytes.len() {
            let mut flipped = bytes.clone();
            flipped[at] ^= 1;
            noticed(&flipped, at);
            noticed(&bytes[..at], at);
        }
    }

    #[test]
    fn backup_with_excessive_work_factor_is_refused() {
        let bytes = sealed();
        let end = bytes.windows(3).position(|window| window == b" 1\n").unwrap();
        let more = [&bytes[..end], b" 21\n", &bytes[end + 3..]].concat();
        let error = open(&more, Some(&passphrase())).unwrap_err().to_string();
        assert!(error.contains("more than 1 GB"), "{error}");
    }
}
