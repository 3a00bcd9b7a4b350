//! The operation log.

use crate::engine::Workspace;
use crate::engine::operation::log::{self, Logged};
use crate::verbs::Result;

/// Operations, newest first.
pub struct Report {
    pub entries: Vec<Logged>,
    pub unreadable: usize,
}

/// Reads the log.
pub fn operations(workspace: &Workspace, limit: Option<usize>) -> Result<Report> {
    let store = workspace.open_store()?;
    let (mut entries, unreadable) = log::load(&store)?;
    entries.truncate(limit.unwrap_or(usize::MAX));
    Ok(Report { entries, unreadable })
}
