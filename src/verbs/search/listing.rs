//! What there is to read, in the order in which it is told.

use crate::archive::{NewText, NewTexts, Snapshot, Wanted};
use crate::store::{self, Store};

/// The texts of a snapshot that were not in one before.
pub(super) struct Look<'h> {
    pub snapshot: &'h Snapshot,
    /// Whether it is looked at for what was said; else for its lorebook or card.
    pub is_said: bool,
    pub texts: Vec<NewText>,
}

/// Lists the texts of snapshots: what was said comes first; then lorebooks and characters by their own histories, then what only chats have of lorebooks.
pub(super) struct Listing<'h> {
    looks: std::vec::IntoIter<(&'h Snapshot, bool)>,
    messages: NewTexts,
    others: NewTexts,
}

/// So many texts, or snapshots without any, are worth to be read while the next are listed.
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

    /// The next ones; none if there are no more.
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

    /// The trees that could not be read.
    pub fn into_broken(self) -> impl Iterator<Item = store::Error> {
        self.messages.broken.into_iter().chain(self.others.broken)
    }
}
