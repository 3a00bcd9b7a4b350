//! What was asked, and of whom.

use super::report::Options;
use crate::engine::Workspace;
use crate::history::History;
use crate::history::moment::Moment;
use crate::store::Store;

pub(super) struct Asked<'a> {
    pub workspace: &'a Workspace,
    pub store: &'a Store,
    pub history: &'a History,
    pub options: &'a Options,
    /// The state whose lorebook is asked for.
    pub in_snapshot: Option<Moment>,
}
