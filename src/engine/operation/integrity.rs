//! Sets a new integrity value in a chat that is replaced while SillyTavern may have the chat open.
//! An open page of SillyTavern still has the former value in memory, and SillyTavern asks the user
//! before such a page overwrites the file. The store contains the former content with the former
//! value.

use std::borrow::Cow;

use super::files::{ChatOpenState, FilePlan, NewFile};
use crate::archive::Blake3;
use crate::engine::Workspace;
use crate::st::{self, Running, TimelineName};

/// Returns a unique integrity value, which depends only on `what` and the time, so that plans and
/// tests are reproducible.
pub(crate) fn fresh(what: &str, workspace: &Workspace) -> String {
    let moment = workspace.now.timestamp_nanos_opt().unwrap_or_default();
    let text = format!("{what}\0{moment}");
    st::new_integrity(&Blake3::of(text.as_bytes()).to_string())
}

/// Sets this integrity value in the planned content of replaced chats, if a page of SillyTavern may
/// have the chats in memory.
pub(crate) fn give(
    plan: &mut [FilePlan<'_>],
    closed: ChatOpenState,
    integrity: &str,
    which: IntegrityScope,
    running: impl FnOnce() -> Running,
) {
    let is_meant = |file: &&mut FilePlan<'_>| {
        file.replaces_chat() && (which == IntegrityScope::All || !file.is_asked_about())
    };
    let mut files = plan.iter_mut().filter(is_meant).peekable();
    // Call `running` only if necessary, because looking for SillyTavern is slow.
    let may_run = || match closed {
        ChatOpenState::Closed => false,
        ChatOpenState::PageReloads => true,
        ChatOpenState::Unknown => running() != Running::NotSeen,
    };
    if files.peek().is_some() && may_run() {
        files.for_each(|file| file.set_new_integrity(integrity));
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum IntegrityScope {
    All,
    /// Only chats whose planned content does not have a new integrity value yet.
    Unmarked,
}

impl FilePlan<'_> {
    fn replaces_chat(&self) -> bool {
        let is_chat = TimelineName::of_file(&self.path).is_some_and(|name| name.is_chat());
        is_chat && self.replaces() && self.new_bytes().is_some()
    }

    /// Returns whether SillyTavern asks the user before an open page overwrites this chat, because
    /// the planned content has a new integrity value.
    pub(crate) fn is_asked_about(&self) -> bool {
        let marks =
            [self.now.as_deref(), self.new_bytes()].map(|chat| chat.and_then(st::integrity));
        self.replaces_chat() && marks[0] != marks[1] && marks[1].is_some()
    }

    fn set_new_integrity(&mut self, integrity: &str) {
        let (Some(now), NewFile::Bytes { bytes: new, .. }) = (&self.now, &self.new) else {
            return;
        };
        let as_now = st::integrity(now).and_then(|integrity| st::with_integrity(new, integrity));
        if as_now.as_ref() == Some(now) {
            self.known = None;
            self.new = as_now.map_or(NewFile::Deleted, |bytes| NewFile::of(Cow::Owned(bytes)));
            return;
        }
        let quoted = serde_json::to_string(integrity).unwrap_or_default();
        if let Some(marked) = st::with_integrity(new, quoted.as_bytes()) {
            let (bytes, integrity) = (Cow::Owned(marked), Some(integrity.to_owned()));
            self.new = NewFile::Bytes { bytes, hash: None, stored_in: None, integrity };
        }
    }
}
