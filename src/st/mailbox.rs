//! Names of the files through which SillyTavern's page and stvc communicate: requests, answers, the
//! status.

use crate::durable::TEMP_PREFIX;

/// Folder of the mailbox files in a library.
pub const MAILBOX: &str = "user/files";
/// Prefix of the names of request files, which SillyTavern's page writes.
pub const REQUEST: &str = "stvc-req-";
/// Prefix of the names of answer files, which stvc writes.
pub const ANSWER: &str = "stvc-res-";
/// Name of the status file, which SillyTavern's page may read without a request.
pub const STATUS: &str = "stvc-status.json";

/// Name of the file in which the extension stores its settings.
const SETTINGS: &str = "stvc-settings.json";

/// Returns whether `name` is a file of the mailbox, whoever wrote it.
pub fn is_of_mailbox(name: &str) -> bool {
    is_from_stvc(name) || name.starts_with(REQUEST) || name == SETTINGS
}

/// Returns whether stvc wrote the mailbox file `name`: an answer, the status, or a temporary file.
pub fn is_from_stvc(name: &str) -> bool {
    name.starts_with(ANSWER) || name == STATUS || name.starts_with(TEMP_PREFIX)
}
