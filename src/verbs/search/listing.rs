//! Lists the texts to search, in the order in which they are reported.

use crate::archive::{NewText, NewTexts, Snapshot, TextKinds};
use crate::store::{self, Store};

/// Texts of a snapshot that were not already listed with another snapshot.
pub(super) struct SnapshotTexts<'h> {
    pub snapshot: &'h Snapshot,
    /// Whether the texts are messages. If false, the texts are from the lorebook or the card.
    pub is_said: bool,
    pub texts: Vec<NewText>,
}

/// Lists messages first, then lorebooks and characters from their own timelines, then lorebooks
/// that occur only in snapshots of chats.
pub(super) struct Listing<'h> {
    looks: std::vec::IntoIter<(&'h Snapshot, bool)>,
    messages: NewTexts,
    others: NewTexts,
}

/// Size of a batch: the number of texts, or the number of snapshots if there are fewer texts. A
/// batch is searched while the next batch is listed.
const SOME: usize = 256;

impl<'h> Listing<'h> {
    pub fn new(store: &Store, snapshots: Vec<&'h Snapshot>, wanted: TextKinds) -> Self {
        let (chats, own): (Vec<_>, Vec<_>) =
            snapshots.into_iter().partition(|snapshot| snapshot.timeline.is_chat());
        let mut looks: Vec<_> = chats.iter().map(|snapshot| (*snapshot, true)).collect();
        looks.extend(own.iter().chain(&chats).map(|snapshot| (*snapshot, false)));
        let said = TextKinds { chat: wanted.chat, ..TextKinds::default() };
        Self {
            looks: looks.into_iter(),
            messages: NewTexts::new(store.reader(), said),
            others: NewTexts::new(store.reader(), TextKinds { chat: false, ..wanted }),
        }
    }

    pub fn len(&self) -> usize {
        self.looks.len()
    }

    pub fn next_some(&mut self) -> Vec<SnapshotTexts<'h>> {
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
            listed.push(SnapshotTexts { snapshot, is_said, texts });
        }
        listed
    }

    pub fn into_broken(self) -> impl Iterator<Item = store::Error> {
        self.messages.broken.into_iter().chain(self.others.broken)
    }
}
