//! Names of the files through which SillyTavern's page and stvc communicate: requests, answers, the
//! status.

use crate::durable::TEMP_PREFIX;

/// Their folder in a library.
pub const MAILBOX: &str = "user/files";
/// The beginning of the name of a request.
pub const REQUEST: &str = "stvc-req-";
/// The beginning of the name of an answer.
pub const ANSWER: &str = "stvc-res-";
/// The file that the page may read without a request.
pub const STATUS: &str = "stvc-status.json";

/// Whether stvc wrote a file of the mailbox: an answer, the status, or a temporary file.
pub fn is_from_stvc(name: &str) -> bool {
    name.starts_with(ANSWER) || name == STATUS || name.starts_with(TEMP_PREFIX)
}
