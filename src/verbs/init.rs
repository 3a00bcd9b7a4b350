//! Make the store. `snapshot` does it by itself, too.

use std::path::PathBuf;

use crate::engine::Workspace;
use crate::store::Store;
use crate::verbs::Result;

/// What was done.
pub struct Report {
    /// Where the store is.
    pub path: PathBuf,
    /// Whether it was made now.
    pub created: bool,
}

/// Make the store unless it is there.
pub fn init(workspace: &Workspace) -> Result<Report> {
    let path = workspace.store_path()?;
    let created = workspace.find_store()?.is_none();
    let store = Store::create(&path)?;
    Ok(Report { path: store.path().to_owned(), created })
}
