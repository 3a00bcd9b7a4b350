//! Lists the operation log.

use crate::engine::Workspace;
use crate::engine::operation::log::{self, LogEntry};
use crate::verbs::Result;

/// Operations, newest first.
#[non_exhaustive]
pub struct Report {
    /// Operations that can be read.
    pub entries: Vec<LogEntry>,
    /// Number of lines in the log that cannot be read.
    pub unreadable: usize,
}

/// Reads at most `limit` operations from the log.
pub fn operations(workspace: &Workspace, limit: Option<usize>) -> Result<Report> {
    let store = workspace.open_store()?;
    let (mut entries, unreadable) = log::load(&store)?;
    entries.truncate(limit.unwrap_or(usize::MAX));
    Ok(Report { entries, unreadable })
}
