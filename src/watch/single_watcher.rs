//! One watch a library. The operating system holds the lock, so it ends with its process, however
//! that ends.

use std::fs::File;

use crate::store::{self, Store};
use crate::watch::error::{Error, Result};
use crate::{durable, file_lock, regular};

pub(super) struct Guard(File);

impl Guard {
    pub(super) fn take(store: &Store) -> Result<Self> {
        store.refuse_links()?;
        let dir = store.private_dir();
        let path = dir.join("watch.lock");
        let words = dir.join("watch.pid");
        let io = |source| store::Error::Io { path: path.clone(), source };
        durable::create_dir_all(&dir).map_err(io)?;
        let file = durable::open_to_lock(&path).map_err(io)?;
        if !file_lock::try_lock(&file).map_err(io)? {
            let process = regular::read(&words).ok();
            let process = process.and_then(|words| String::from_utf8(words).ok());
            return Err(Error::Watched { process });
        }
        // Only for people who ask who it is.
        let _ = durable::overwrite(&words, std::process::id().to_string().as_bytes());
        Ok(Self(file))
    }
}

/// Returns whether somebody watches, without waiting or a trace.
pub(super) fn is_held(store: &Store) -> bool {
    let file = regular::open(&store.private_dir().join("watch.lock"));
    file.and_then(|file| file_lock::is_held(&file)).unwrap_or(false)
}

impl Drop for Guard {
    fn drop(&mut self) {
        file_lock::unlock(&self.0);
    }
}
