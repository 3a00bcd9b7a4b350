//! Names for chats that come beside others.

use std::collections::BTreeSet;

use super::Result;
use crate::st::{Library, TimelineName};

/// The longest that a chat's name may be with what is put behind it: file systems stop at 255 bytes.
const LONGEST: usize = 200;

/// `<chat> (from backup 2026-11-15)`, or with a number if there is such a chat already.
pub(crate) fn free_name(
    timeline: &TimelineName,
    what: &str,
    day: &str,
    library: Option<&Library>,
    taken: &mut BTreeSet<String>,
) -> Result<TimelineName> {
    let mut chat = timeline.chat().to_owned();
    while chat.len() > LONGEST {
        chat.pop();
    }
    let mut number = 1;
    loop {
        let more = if number == 1 { String::new() } else { format!(" {number}") };
        let chat = format!("{} ({what} {day}{more})", chat.trim_end());
        let name = timeline.sibling(&chat)?;
        let file = library.map(|library| name.file().under(library.root()));
        let is_there = file.is_some_and(|file| file.exists());
        if !is_there && taken.insert(name.as_str().to_lowercase()) {
            return Ok(name);
        }
        number += 1;
    }
}
