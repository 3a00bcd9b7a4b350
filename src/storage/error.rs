use std::path::PathBuf;

use crate::hint::{self, Hint, unchanged};
use crate::{durable, exit, words};

/// The result of a call of a storage.
pub type Result<T> = std::result::Result<T, Error>;

/// An error of a storage. `place` is the address without credentials, `host` the server's name.
#[derive(Debug, thiserror::Error, strum::IntoStaticStr)]
#[non_exhaustive]
#[strum(serialize_all = "kebab-case", prefix = "storage-")]
#[expect(missing_docs, reason = "the message of each variant describes it")]
pub enum Error {
    #[error("{place} has no object {name}")]
    NotFound { place: String, name: String },
    #[error("{place} does not exist: {why}")]
    NoSuchPlace { place: String, why: String },
    #[error("{host} refused the user name or password")]
    WrongPassword { host: String },
    #[error("{host} requires a user name and password")]
    NoPassword { host: String },
    #[error("{place}: this user has no permission: {why}")]
    Forbidden { place: String, why: String },
    #[error("no server has the name {host}")]
    UnknownHost { host: String },
    #[error("cannot connect to {host}: {why}")]
    Unreachable { host: String, why: String },
    #[error("{host} has not answered for {seconds} seconds")]
    Timeout { host: String, seconds: u64 },
    #[error("the certificate of {host} is not trusted: {why}")]
    Certificate { host: String, why: String },
    #[error("the certificate of {host} has expired: {why}")]
    CertificateExpired { host: String, why: String },
    #[error("the clock of this device and that of {host} differ: {why}")]
    Clock { host: String, why: String },
    #[error("cannot connect to {host} through {proxy}: {why}")]
    Proxy { host: String, proxy: String, why: String },
    #[error("{proxy} requires a user name and password")]
    ProxyLogin { proxy: String },
    #[error("{place} is full")]
    Full { place: String },
    #[error("{place}: the server does not accept uploads of the length of {name}")]
    UploadLimit { place: String, name: String },
    #[error("{host} accepts no more requests for now")]
    RateLimited { host: String },
    #[error("{place}: the object {name} exceeds {limit} bytes")]
    TooLarge { place: String, name: String, limit: u64 },
    #[error("{place} is not served by the expected kind of server: {why}")]
    WrongServer { place: String, why: String },
    #[error("{place}: the server redirects to {target}")]
    Redirected { place: String, target: String },
    #[error("{place}: the bucket is in another region: {why}")]
    WrongRegion { place: String, why: String },
    #[error("{place}: {why}")]
    Failed { place: String, why: String },
    #[error("rclone is not installed on this machine")]
    NoRclone,
    #[error("rclone has no remote named {name:?}")]
    UnknownRcloneRemote { name: String },
    #[error("the login of the rclone remote {remote} is not valid")]
    RcloneLogin { remote: String },
    #[error("the configuration of rclone is encrypted")]
    RcloneLocked,
    #[error("cannot use the address {address}: {why}")]
    Address { address: String, why: &'static str },
    #[error("the address {address} contains a password")]
    PasswordInAddress { address: String },
    #[error("other users of this device can read {}", path.display())]
    CredentialsVisible { path: PathBuf },
    #[error("cannot read {}: {why}", path.display())]
    CredentialsFile { path: PathBuf, why: String },
    #[error("{name:?} is not a name for an object")]
    Name { name: String },
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: std::io::Error },
}

impl Error {
    /// Returns the code of the error, which scripts and pages can rely on.
    pub fn code(&self) -> &'static str {
        self.into()
    }

    /// Returns the I/O error that caused this error, if any.
    pub fn io_error(&self) -> Option<&std::io::Error> {
        match self {
            Self::Io { source, .. } => Some(source),
            _ => None,
        }
    }

    /// Whether the object does not exist, or is not visible yet.
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::NotFound { .. })
    }

    /// Whether the next call may succeed although nothing was repaired.
    pub fn is_temporary(&self) -> bool {
        matches!(
            self,
            Self::Unreachable { .. }
                | Self::UnknownHost { .. }
                | Self::Timeout { .. }
                | Self::RateLimited { .. }
                | Self::Failed { .. }
        )
    }

    /// Returns the exit code of a command that fails with this error.
    pub fn exit(&self) -> u8 {
        match self {
            Self::Address { .. } | Self::PasswordInAddress { .. } => exit::USAGE,
            Self::CredentialsVisible { .. } => exit::REFUSED,
            _ => exit::FAILED,
        }
    }

    /// Returns a suggestion for the user.
    pub fn hint(&self) -> Option<Hint> {
        Some(match self {
            Self::NotFound { .. } => {
                "try again later if another device has just written it; a synchroniser may not have copied it yet".into()
            }
            Self::NoSuchPlace { .. } => {
                unchanged("create the bucket or folder with the tools of its provider; or correct the address")
            }
            Self::WrongPassword { .. } => {
                unchanged("check the user name and the password; Nextcloud, 坚果云 and others need an app password, which you create in the account's security settings")
            }
            Self::NoPassword { .. } => {
                unchanged("set STVC_REMOTE_USER and STVC_REMOTE_PASSWORD; for S3, set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY")
            }
            Self::Forbidden { .. } => {
                "give this user or key permission to list, read, write and delete there; or use a folder of this user".into()
            }
            Self::UnknownHost { .. } => {
                "check the address for typing errors, and that this device is online".into()
            }
            Self::Unreachable { .. } => {
                "check that the server runs, that the port in the address is right, and that no firewall or proxy is in between; then try again".into()
            }
            Self::Timeout { .. } => {
                "try again; what has been transferred is not transferred again".into()
            }
            Self::Certificate { .. } => unchanged(
                "if the server has its own certificate, save that certificate to a file and set STVC_REMOTE_CERTIFICATE to its path; otherwise do not connect in this network",
            ),
            Self::CertificateExpired { .. } => unchanged(
                "check the clock of this device; if it is right, renew the certificate of the server",
            ),
            Self::Clock { .. } => unchanged(
                "set the clock of this device, or that of the server if it is wrong, then try again",
            ),
            Self::Proxy { .. } => unchanged(
                "check HTTPS_PROXY, HTTP_PROXY and the proxy settings of this device; set NO_PROXY to the server's name to connect without the proxy",
            ),
            Self::ProxyLogin { .. } => unchanged(
                "add them to HTTPS_PROXY or HTTP_PROXY, as http://USER:PASSWORD@HOST:PORT; set NO_PROXY to the server's name to connect without the proxy",
            ),
            Self::Full { .. } => {
                "delete something there or get more space, then try again; existing objects are not affected".into()
            }
            Self::UploadLimit { .. } => unchanged(
                "raise the server's limit for uploads to 16 MiB or more; nginx calls it client_max_body_size",
            ),
            Self::RateLimited { .. } => {
                "try again in half an hour; what has been transferred is not transferred again".into()
            }
            Self::TooLarge { .. } => return None,
            Self::WrongServer { .. } => unchanged(
                "copy the WebDAV address from the settings of the server; for Nextcloud it is webdav://HOST/remote.php/dav/files/USER/FOLDER",
            ),
            Self::Redirected { .. } => unchanged(
                "use the address to which the server redirects, if you trust it",
            ),
            Self::WrongRegion { .. } => {
                unchanged("add the region to the address: s3://BUCKET?region=REGION")
            }
            Self::Failed { .. } => "try again later; nothing is lost".into(),
            Self::NoRclone => unchanged(
                "install rclone (https://rclone.org/install), and add a remote with `rclone config`",
            ),
            Self::UnknownRcloneRemote { .. } => {
                unchanged("list the remotes with `rclone listremotes`; add one with `rclone config`")
            }
            Self::RcloneLogin { remote } => unchanged(format!(
                "log in again with `rclone config reconnect {}`; for a remote with a password, correct it with `rclone config`",
                words::shell(&format!("{remote}:"))
            )),
            Self::RcloneLocked => unchanged(
                "set RCLONE_CONFIG_PASS to the password of rclone's configuration",
            ),
            Self::Address { .. } => unchanged(
                "use a folder, webdav://HOST/FOLDER, s3://BUCKET/FOLDER or rclone:REMOTE:FOLDER",
            ),
            Self::PasswordInAddress { .. } => unchanged(
                "remove the password from the address, because others can read it there; set STVC_REMOTE_PASSWORD instead",
            ),
            Self::CredentialsVisible { path } => {
                unchanged(format!("run `chmod 600 {}`", path.display()))
            }
            Self::CredentialsFile { .. } => {
                unchanged("correct the file, or delete it and enter the password again")
            }
            Self::Name { .. } => return None,
            Self::Io { source, .. } => {
                return hint::of_io(source).or_else(|| {
                    durable::is_read_only(source).then(|| {
                        Hint::from("check the permissions of the folder, then try again")
                    })
                });
            }
        })
    }

    /// Adds the path to an I/O error, for `map_err`.
    pub(super) fn io(path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { path, source }
    }
}
