//! The store: where it is, what was done to it, and what takes its room.

use serde::Serialize;

use crate::store::LoggedOperation;
use crate::verbs::stats::{Large, Share};

/// A setting.
#[derive(Serialize)]
pub struct SettingLine<'a> {
    pub key: &'a str,
    pub value: Option<&'a str>,
}

/// An operation.
#[derive(Serialize)]
pub struct OperationLine<'a> {
    #[serde(flatten)]
    operation: &'a LoggedOperation,
    undone_by: Option<u64>,
    continued_by: Option<u64>,
}

impl<'a> OperationLine<'a> {
    pub fn new(
        operation: &'a LoggedOperation,
        undone_by: Option<u64>,
        continued_by: Option<u64>,
    ) -> Self {
        Self { operation, undone_by, continued_by }
    }
}

/// A user, of whom what follows is told; with `--all-users`.
#[derive(Serialize)]
pub struct UserLine<'a> {
    pub user: &'a str,
}

/// The page that is served.
#[derive(Serialize)]
pub struct ViewLine<'a> {
    pub address: &'a str,
    pub write: bool,
}

/// A page in a file.
#[derive(Serialize)]
pub struct PageLine<'a> {
    pub path: &'a str,
    pub bytes: u64,
}

/// The extension in SillyTavern's folder.
#[derive(Serialize)]
pub struct ExtensionLine<'a> {
    pub path: &'a str,
    /// The version that is there.
    pub installed: Option<&'a str>,
    pub program: &'static str,
    /// Files that were changed since they were put there.
    pub edited: &'a [String],
    /// Whether the watch, which answers it, runs.
    pub watch: bool,
}

/// The store.
#[derive(Serialize)]
pub struct StoreLine {
    pub path: String,
    pub created: bool,
}

/// One timeline's part of the store.
#[derive(Serialize)]
pub struct ShareLine<'a> {
    timeline: &'a str,
    snapshots: usize,
    bytes: u64,
    bytes_as_copies: u64,
}

impl<'a> From<&'a Share> for ShareLine<'a> {
    fn from(share: &'a Share) -> Self {
        Self {
            timeline: share.name.as_str(),
            snapshots: share.snapshots,
            bytes: share.bytes,
            bytes_as_copies: share.bytes_as_copies,
        }
    }
}

/// A large message, and what it is made of.
#[derive(Serialize)]
pub struct LargeLine<'a> {
    timeline: &'a str,
    index: usize,
    name: &'a str,
    bytes: u64,
    text: u64,
    swipes: u64,
    lorebook: u64,
    rest: u64,
}

impl<'a> From<&'a Large> for LargeLine<'a> {
    fn from(large: &'a Large) -> Self {
        Self {
            timeline: large.timeline.as_str(),
            index: large.index,
            name: &large.name,
            bytes: large.bytes,
            text: large.text,
            swipes: large.swipes,
            lorebook: large.lorebook,
            rest: large.rest,
        }
    }
}
