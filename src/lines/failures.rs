//! What did not work.

use serde::Serialize;

/// An error.
#[derive(Serialize)]
pub struct ErrorLine {
    pub message: String,
    pub hint: Option<String>,
    pub candidates: Vec<String>,
    pub exit: u8,
}

/// A timeline that could not be read or restored, or that a rule refused.
#[derive(Serialize)]
pub struct FailedLine<'a> {
    pub timeline: &'a str,
    pub message: &'a str,
}
