//! A chat that is replaced while SillyTavern may have it open gets another mark: a page that still has the former one in memory is asked before it writes that back,
//! instead of doing so without a word. What was there, with its mark, is in the store.

use std::borrow::Cow;

use super::files::{Closed, FilePlan, NewFile};
use crate::archive::Blake3;
use crate::engine::Workspace;
use crate::st::{self, Running, TimelineName};

/// A mark that no other file has. That it is the same when the same is done in the same moment makes plans and tests come out alike.
pub(crate) fn fresh(what: &str, workspace: &Workspace) -> String {
    let moment = workspace.now.timestamp_nanos_opt().unwrap_or_default();
    let text = format!("{what}\0{moment}");
    st::new_mark(&Blake3::of(text.as_bytes()).to_string())
}

/// Give chats that are replaced this mark, where a page may have what is there in memory: all, or only those before which it would not be asked anyhow.
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

/// Which chats get a mark.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Which {
    All,
    /// Those whose mark would be the one that is there.
    Unmarked,
}

impl FilePlan<'_> {
    /// Whether it is a chat, and another one is there.
    fn replaces_chat(&self) -> bool {
        let is_chat = TimelineName::of_file(&self.path).is_some_and(|name| name.is_chat());
        is_chat && self.replaces() && self.new_bytes().is_some()
    }

    /// Whether SillyTavern asks before a page writes back what is there now.
    pub(crate) fn is_asked_about(&self) -> bool {
        let marks = [self.now.as_deref(), self.new_bytes()].map(|chat| chat.and_then(st::mark));
        self.replaces_chat() && marks[0] != marks[1] && marks[1].is_some()
    }

    /// One that is there already but for its mark stays.
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
