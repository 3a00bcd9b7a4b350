//! User names and passwords. They come from the environment or from a file that only the user can
//! read, and never appear in addresses, arguments, logs or messages.

use std::fmt;
use std::io::Write;
use std::path::{Path, PathBuf};

use super::{Error, Result};
use crate::durable::{self, Existing, Temp};
use crate::regular;

/// A password. It is never printed.
#[derive(Clone, PartialEq, Eq, serde::Deserialize)]
#[serde(transparent)]
pub struct Password(String);

impl Password {
    /// Takes a password that a user typed.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    pub(super) fn text(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// How to log in to a server, and which certificates to trust.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Credentials {
    /// The user name, or the id of an S3 access key. That in an address takes precedence.
    pub user: Option<String>,
    /// The password, or the secret of an S3 access key.
    pub password: Option<Password>,
    /// The session token of a temporary S3 access key.
    pub session_token: Option<Password>,
    /// A PEM file with certificates that are trusted in addition to those of the system: of a
    /// private authority, or of the server itself.
    pub certificate: Option<PathBuf>,
}

impl Credentials {
    /// Reads `STVC_REMOTE_USER`, `STVC_REMOTE_PASSWORD` and `STVC_REMOTE_CERTIFICATE`. The storage
    /// itself reads the `AWS_*` variables and files, if no password is given.
    pub fn from_environment() -> Self {
        let text = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
        Self {
            user: text("STVC_REMOTE_USER"),
            password: text("STVC_REMOTE_PASSWORD").map(Password),
            session_token: None,
            certificate: text("STVC_REMOTE_CERTIFICATE").map(PathBuf::from),
        }
    }

    /// Fills in missing values from `other`.
    pub fn or(self, other: Self) -> Self {
        // A password belongs to its user.
        let same_user = self.user.is_none() || other.user.is_none() || self.user == other.user;
        let other_password = other.password.filter(|_| same_user);
        Self {
            user: self.user.or(other.user),
            password: self.password.or(other_password),
            session_token: self.session_token.or(other.session_token),
            certificate: self.certificate.or(other.certificate),
        }
    }

    /// Reads a file that [`save`](Self::save) wrote. Returns `None` if it does not exist. Fails if
    /// other users can read it.
    pub fn load(path: &Path) -> Result<Option<Self>> {
        let file = match regular::open(path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            file => file.map_err(Error::io(path))?,
        };
        #[cfg(unix)]
        {
            use std::os::unix::fs::MetadataExt;
            if file.metadata().map_err(Error::io(path))?.mode() & 0o077 != 0 {
                return Err(Error::CredentialsVisible { path: path.to_owned() });
            }
        }
        let why = |why: &str| Error::CredentialsFile { path: path.to_owned(), why: why.to_owned() };
        let bytes = regular::read_all(file).map_err(Error::io(path))?;
        let text = String::from_utf8(bytes).map_err(|_| why("it is not UTF-8 text"))?;
        // The message of the TOML parser would quote the password.
        toml::from_str(&text).map(Some).map_err(|_| why("it is not a file of stvc"))
    }

    /// Writes a file that only this user can read.
    pub fn save(&self, path: &Path) -> Result<()> {
        let mut document = toml_edit::DocumentMut::new();
        let mut set = |name: &str, value: Option<&str>| {
            if let Some(value) = value {
                document[name] = toml_edit::value(value);
            }
        };
        set("user", self.user.as_deref());
        set("password", self.password.as_ref().map(Password::text));
        set("session_token", self.session_token.as_ref().map(Password::text));
        set("certificate", self.certificate.as_ref().and_then(|path| path.to_str()));
        let write = || {
            let mut temp = Temp::beside(path)?;
            // Before the password is written.
            #[cfg(unix)]
            {
                use std::os::unix::fs::PermissionsExt;
                temp.file().set_permissions(std::fs::Permissions::from_mode(0o600))?;
            }
            temp.write_all(document.to_string().as_bytes())?;
            temp.finish(path, Existing::Replace)?;
            durable::sync_dir(durable::parent(path))
        };
        write().map_err(Error::io(path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn credentials() -> Credentials {
        Credentials {
            user: Some("me".into()),
            password: Some(Password::new("s3\"cret\\雨")),
            session_token: None,
            certificate: Some("/etc/nas.pem".into()),
        }
    }

    #[test]
    fn saved_credentials_are_private_and_load_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("remote.toml");
        assert_eq!(Credentials::load(&path).unwrap(), None);
        credentials().save(&path).unwrap();
        assert_eq!(Credentials::load(&path).unwrap(), Some(credentials()));
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = |mode| std::fs::Permissions::from_mode(mode);
            assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
            std::fs::set_permissions(&path, mode(0o640)).unwrap();
            let error = Credentials::load(&path).unwrap_err();
            assert!(matches!(error, Error::CredentialsVisible { .. }), "{error}");
            std::fs::set_permissions(&path, mode(0o600)).unwrap();
        }
        std::fs::write(&path, "password = 's3cret").unwrap();
        assert!(!Credentials::load(&path).unwrap_err().to_string().contains("s3cret"));
    }

    #[test]
    fn passwords_are_not_printed_and_belong_to_their_user() {
        assert!(!format!("{:?}", credentials()).contains("cret"));
        let other = Credentials { user: Some("you".into()), ..Credentials::default() };
        assert_eq!(other.or(credentials()).password, None);
        assert_eq!(Credentials::default().or(credentials()), credentials());
    }
}
