//! What was done: the operation log.

use crate::engine::Workspace;
use crate::engine::operation::log::{self, Logged};
use crate::verbs::Result;

/// The log.
pub struct Report {
    /// Newest first.
    pub entries: Vec<Logged>,
    /// Lines that cannot be read.
    pub unreadable: usize,
}

/// Read the log.
pub fn operations(workspace: &Workspace, limit: Option<usize>) -> Result<Report> {
    let store = workspace.open_store()?;
    let (mut entries, unreadable) = log::load(&store)?;
    entries.truncate(limit.unwrap_or(usize::MAX));
    Ok(Report { entries, unreadable })
}
