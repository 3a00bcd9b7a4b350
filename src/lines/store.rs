//! The store: where it is, and what was done to it.

use serde::Serialize;

use crate::store::LoggedOperation;

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
    pub operation: &'a LoggedOperation,
    pub undone_by: Option<u64>,
    pub continued_by: Option<u64>,
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
