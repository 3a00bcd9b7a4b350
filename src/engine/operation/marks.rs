//! A chat that is replaced while SillyTavern may have it open gets another mark: a page that still
//! has the former one in memory is asked before it writes that back, instead of doing so without a
//! word. What was there, with its mark, is in the store.

use std::borrow::Cow;

use super::files::{Closed, FilePlan, NewFile};
use crate::archive::Blake3;
use crate::engine::Workspace;
use crate::st::{self, Running, TimelineName};

/// Returns an integrity value that no other file has. It depends on the time only, so that plans
/// and tests are reproducible.
pub(crate) fn fresh(what: &str, workspace: &Workspace) -> String {
    let moment = workspace.now.timestamp_nanos_opt().unwrap_or_default();
    let text = format!("{what}\0{moment}");
    st::new_mark(&Blake3::of(text.as_bytes()).to_string())
}

/// Gives replaced chats this integrity value if a page may have them in memory.
pub(crate) fn give(
    plan: &mut [FilePlan<'_>],
    closed: Closed,
    mark: &str,
    which: Which,
    running: impl FnOnce() -> Running,
) {
    let is_meant = |file: &&mut FilePlan<'_>| {
        file.replaces_chat() && (which == Which::All || !file.is_asked_about())
    };
    let mut files = plan.iter_mut().filter(is_meant).peekable();
    // Looking for SillyTavern takes a while.
    let may_run = || match closed {
        Closed::Said => false,
        Closed::Rereads => true,
        Closed::Unknown => running() != Running::NotSeen,
    };
    if files.peek().is_some() && may_run() {
        files.for_each(|file| file.give_mark(mark));
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Which {
    All,
    /// Chats that would keep their present value.
    Unmarked,
}

impl FilePlan<'_> {
    fn replaces_chat(&self) -> bool {
        let is_chat = TimelineName::of_file(&self.path).is_some_and(|name| name.is_chat());
        is_chat && self.replaces() && self.new_bytes().is_some()
    }

    /// Returns whether SillyTavern asks before a page saves over this file.
    pub(crate) fn is_asked_about(&self) -> bool {
        let marks = [self.now.as_deref(), self.new_bytes()].map(|chat| chat.and_then(st::mark));
        self.replaces_chat() && marks[0] != marks[1] && marks[1].is_some()
    }

    fn give_mark(&mut self, mark: &str) {
        let (Some(now), NewFile::Bytes { bytes: new, .. }) = (&self.now, &self.new) else {
            return;
        };
        let as_now = st::mark(now).and_then(|mark| st::with_mark(new, mark));
        if as_now.as_ref() == Some(now) {
            self.known = None;
            self.new = as_now.map_or(NewFile::Deleted, |bytes| NewFile::of(Cow::Owned(bytes)));
            return;
        }
        let quoted = serde_json::to_string(mark).unwrap_or_default();
        if let Some(marked) = st::with_mark(new, quoted.as_bytes()) {
            let (bytes, mark) = (Cow::Owned(marked), Some(mark.to_owned()));
            self.new = NewFile::Bytes { bytes, hash: None, stored_in: None, mark };
        }
    }
}
