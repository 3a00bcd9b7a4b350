use crate::exit;
use crate::hint::{Hint, unchanged};
use crate::storage;
use crate::words::shell;

/// An error about a remote on plain storage.
#[derive(Debug, thiserror::Error, strum::IntoStaticStr)]
#[non_exhaustive]
#[strum(serialize_all = "kebab-case", prefix = "remote-")]
pub enum PlainRemoteError {
    #[error(transparent)]
    Storage(#[from] storage::Error),
    #[error("{address} is not a remote: it has no readable object stvc-remote/…")]
    NoRemote { address: String },
    #[error("{address} contains announcements of devices, but no readable object stvc-remote/…")]
    Incomplete { address: String },
    #[error("the remote {address} is not there any more")]
    Gone { address: String },
    #[error("{address} has no snapshots yet")]
    Empty { address: String },
    #[error("{address} is already a remote of this store, with the name {name:?}")]
    AlreadyAdded { address: String, name: String },
    #[error("the remote {name:?} already exists, at {address}")]
    NameTaken { name: String, address: String },
    #[error("there is no remote {name:?}")]
    Unknown { name: String },
    #[error("{address} is a remote that this store does not know yet")]
    NotAdded { address: String },
    #[error("{address} is encrypted")]
    NoPassphrase { address: String },
    #[error("the passphrase does not open {address}")]
    WrongPassphrase { address: String },
    #[error("{address} is not encrypted")]
    NotEncrypted { address: String },
    #[error("{name} was written by a newer version of stvc")]
    Newer { name: String },
    #[error("{name} is damaged: {why}")]
    Damaged { name: String, why: String },
    #[error("{name} is encrypted with the key of another remote")]
    OtherKey { name: String },
    #[error("another stvc process is using this remote")]
    InUse,
    #[error("the data of the remote in this store is damaged: {why}")]
    LocalState { why: String },
    #[error("cannot encrypt: {why}")]
    Cipher { why: String },
}

impl PlainRemoteError {
    /// Returns the code of the error, which scripts and pages can rely on.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Storage(error) => error.into(),
            error => error.into(),
        }
    }

    /// Returns the exit code of a command that fails with this error.
    pub fn exit(&self) -> u8 {
        match self {
            Self::Storage(error) => error.exit(),
            Self::InUse => exit::LOCKED,
            Self::AlreadyAdded { .. }
            | Self::NameTaken { .. }
            | Self::NotEncrypted { .. }
            | Self::NotAdded { .. } => exit::REFUSED,
            Self::Unknown { .. } => exit::USAGE,
            _ => exit::FAILED,
        }
    }

    /// Returns advice for the user.
    pub fn hint(&self) -> Option<Hint> {
        Some(match self {
            Self::Storage(error) => return error.hint(),
            Self::NoRemote { address } => {
                format!("run `stvc remote add {}` to create the remote", shell(address)).into()
            }
            Self::Incomplete { .. } => {
                unchanged("wait until the folder is synchronised; or use another folder")
            }
            Self::Gone { .. } => unchanged(
                "connect the drive, or wait until the folder is synchronised; if the remote was deleted, run `stvc remote remove` and `stvc remote add`",
            ),
            Self::Empty { .. } => "run `stvc sync` on a device that has snapshots".into(),
            Self::NotAdded { address } => {
                unchanged(format!("run `stvc remote add {}` first", shell(address)))
            }
            Self::AlreadyAdded { .. } => unchanged("run `stvc sync` to use it"),
            Self::NameTaken { .. } => unchanged("add `--name NAME` with another name"),
            Self::Unknown { .. } => unchanged("run `stvc remote list` to see the remotes"),
            Self::NoPassphrase { .. } | Self::WrongPassphrase { .. } => unchanged(
                "pass the passphrase or the recovery key with `--passphrase-file`, or type it",
            ),
            Self::NotEncrypted { .. } => unchanged(
                "add `--unencrypted` to use it nevertheless: whoever can read the storage can read the chats",
            ),
            Self::Newer { .. } => unchanged("install the latest version of stvc"),
            Self::Damaged { .. } => {
                "run `stvc sync` on the device that wrote it; the rest was synced".into()
            }
            Self::OtherKey { .. } => {
                "run `stvc remote remove` and `stvc remote add` with the same passphrase on all devices".into()
            }
            Self::InUse => "try again when it has finished".into(),
            Self::LocalState { .. } => {
                "run `stvc remote remove`, then `stvc remote add`. Nothing is lost".into()
            }
            Self::Cipher { .. } => return None,
        })
    }
}
