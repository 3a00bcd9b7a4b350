//! A copy of the store elsewhere. To folders and servers the engine brings what is new ([`copies`](crate::engine::copies)); a file is written here.

pub mod file;

use crate::engine::take_first::{TakenFirst, take_what_is_ready};
use crate::engine::{Include, Workspace, left_out};
use crate::progress::Monitor;
use crate::verbs::Result;

/// Take what changed since the last snapshots, so that it is in the backup. Nothing where there is no library.
pub fn take_first(workspace: &Workspace, monitor: &mut dyn Monitor) -> Result<TakenFirst> {
    match workspace.library() {
        Ok(library) => {
            let mut first = take_what_is_ready(workspace, monitor)?;
            let store = workspace.find_store()?;
            let include = Include::of(store.as_ref());
            first.findings.extend(left_out::finding(&library, &include, store.as_ref())?);
            Ok(first)
        }
        Err(_) => Ok(TakenFirst::default()),
    }
}
