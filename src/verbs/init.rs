//! Creates the store. `snapshot` also creates the store if it does not exist.

use std::path::PathBuf;

use crate::engine::Workspace;
use crate::store::Store;
use crate::verbs::Result;

/// The store's path, and whether this command created the store.
#[non_exhaustive]
pub struct Report {
    /// Folder of the store.
    pub path: PathBuf,
    /// Whether there was no store before.
    pub created: bool,
}

/// Creates the store unless it exists.
pub fn init(workspace: &Workspace) -> Result<Report> {
    let path = workspace.store_path()?;
    let created = workspace.find_store()?.is_none();
    let store = Store::create(&path)?;
    Ok(Report { path: store.path().to_owned(), created })
}
