//! Texts to search, in the order in which they are reported.

use crate::archive::{NewText, NewTexts, Snapshot, Wanted};
use crate::store::{self, Store};

/// Texts of a snapshot that no earlier one had.
pub(super) struct Look<'h> {
    pub snapshot: &'h Snapshot,
    /// Messages; otherwise its lorebook or card.
    pub is_said: bool,
    pub texts: Vec<NewText>,
}

/// Messages come first; then lorebooks and characters by their own histories, then lorebooks that
/// only chats have.
pub(super) struct Listing<'h> {
    looks: std::vec::IntoIter<(&'h Snapshot, bool)>,
    messages: NewTexts,
    others: NewTexts,
}

/// So many texts, or snapshots without any, are read while the next are listed.
const SOME: usize = 256;

impl<'h> Listing<'h> {
    pub fn new(store: &Store, snapshots: Vec<&'h Snapshot>, wanted: Wanted) -> Self {
        let (chats, own): (Vec<_>, Vec<_>) =
            snapshots.into_iter().partition(|snapshot| snapshot.timeline.is_chat());
        let mut looks: Vec<_> = chats.iter().map(|snapshot| (*snapshot, true)).collect();
        looks.extend(own.iter().chain(&chats).map(|snapshot| (*snapshot, false)));
        let said = Wanted { chat: wanted.chat, ..Wanted::default() };
        Self {
            looks: looks.into_iter(),
            messages: NewTexts::new(store.reader(), said),
            others: NewTexts::new(store.reader(), Wanted { chat: false, ..wanted }),
        }
    }

    pub fn len(&self) -> usize {
        self.looks.len()
    }

    pub fn next_some(&mut self) -> Vec<Look<'h>> {
        let mut listed = Vec::new();
        let mut many = 0;
        while many < SOME && listed.len() < SOME {
            let Some((snapshot, is_said)) = self.looks.next() else { break };
            let texts = if is_said {
                self.messages.of(snapshot.tree)
            } else {
                self.others.of(snapshot.tree)
            };
            many += texts.len();
            listed.push(Look { snapshot, is_said, texts });
        }
        listed
    }

    pub fn into_broken(self) -> impl Iterator<Item = store::Error> {
        self.messages.broken.into_iter().chain(self.others.broken)
    }
}
