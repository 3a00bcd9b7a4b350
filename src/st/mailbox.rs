//! The names of the files through which SillyTavern's page and stvc speak: requests, answers, the status.

use crate::durable::TEMP_PREFIX;

/// Where they are in a library.
pub const MAILBOX: &str = "user/files";
/// How the name of a request begins.
pub const REQUEST: &str = "stvc-req-";
/// How the name of an answer begins.
pub const ANSWER: &str = "stvc-res-";
/// The file that the page may read without asking.
pub const STATUS: &str = "stvc-status.json";

/// Returns whether stvc wrote a file of the mailbox: an answer, the status, or a file that was not written to its end.
pub fn is_from_stvc(name: &str) -> bool {
    name.starts_with(ANSWER) || name == STATUS || name.starts_with(TEMP_PREFIX)
}
