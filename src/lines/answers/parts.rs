//! What several answers have.

use super::super::{EntryLine, exit};
use super::answer::Tell;
use crate::history::at_message::Origin;
use crate::rules::Finding;

pub(super) fn findings<'a>(findings: &'a [Finding], tell: Tell<'_, 'a>) {
    findings.iter().for_each(|finding| tell(finding.into()));
}

/// What can be told in part: some could not be read.
pub(super) fn partly(broken: &[String]) -> u8 {
    if broken.is_empty() { exit::DONE } else { exit::PARTLY }
}

/// Where the entries of a state that was put together come from.
pub(super) fn made_of<'a>(origin: &'a Origin, tell: Tell<'_, 'a>) {
    origin.entries.iter().for_each(|entry| tell(EntryLine::new(entry, origin).into()));
}
