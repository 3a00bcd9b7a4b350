//! What was asked, and of whom.

use super::report::Options;
use crate::engine::Workspace;
use crate::history::History;
use crate::store::Store;

pub(super) struct Asked<'a> {
    pub workspace: &'a Workspace,
    pub store: &'a Store,
    pub history: &'a History,
    pub options: &'a Options,
}
