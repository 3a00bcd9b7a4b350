//! Lists the texts to search, in the order in which they are reported.

use super::index::{Index, Listed};
use crate::archive::{NewText, NewTexts, Snapshot, TextKinds};
use crate::store::{self, ObjectId, Store};

/// Texts of a snapshot that were not already listed with another snapshot.
pub(super) struct SnapshotTexts<'h> {
    pub snapshot: &'h Snapshot,
    /// Whether the texts are messages. If false, the texts are from the lorebook or the card.
    pub is_said: bool,
    /// Texts that may match and must be read.
    pub texts: Vec<NewText>,
    /// Number of texts, including those that the index excludes.
    pub count: usize,
}

/// Lists messages first, then lorebooks and characters from their own timelines, then lorebooks
/// that occur only in snapshots of chats.
pub(super) struct Listing<'h> {
    looks: std::vec::IntoIter<(&'h Snapshot, bool)>,
    messages: Source<'h>,
    others: Source<'h>,
}

enum Source<'h> {
    Store(NewTexts),
    Index(Listed<'h>),
}

impl<'h> Source<'h> {
    fn new(store: &Store, index: Option<&'h Index>, wanted: TextKinds) -> Self {
        match index {
            Some(index) => Self::Index(index.list(store.reader(), wanted)),
            None => Self::Store(NewTexts::new(store.reader(), wanted)),
        }
    }

    fn of(&mut self, tree: ObjectId) -> (Vec<NewText>, usize) {
        match self {
            Self::Index(listed) => listed.of(tree),
            Self::Store(texts) => {
                let texts = texts.of(tree);
                let count = texts.len();
                (texts, count)
            }
        }
    }

    fn into_broken(self) -> Vec<store::Error> {
        match self {
            Self::Store(texts) => texts.broken,
            Self::Index(listed) => listed.broken,
        }
    }
}

/// Size of a batch: the number of texts, or the number of snapshots if there are fewer texts. A
/// batch is searched while the next batch is listed.
const SOME: usize = 256;

impl<'h> Listing<'h> {
    pub fn new(
        store: &Store,
        index: Option<&'h Index>,
        snapshots: Vec<&'h Snapshot>,
        wanted: TextKinds,
    ) -> Self {
        let (chats, own): (Vec<_>, Vec<_>) =
            snapshots.into_iter().partition(|snapshot| snapshot.timeline.is_chat());
        let mut looks: Vec<_> = chats.iter().map(|snapshot| (*snapshot, true)).collect();
        looks.extend(own.iter().chain(&chats).map(|snapshot| (*snapshot, false)));
        let said = TextKinds { chat: wanted.chat, ..TextKinds::default() };
        Self {
            looks: looks.into_iter(),
            messages: Source::new(store, index, said),
            others: Source::new(store, index, TextKinds { chat: false, ..wanted }),
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
            let (texts, count) = if is_said {
                self.messages.of(snapshot.tree)
            } else {
                self.others.of(snapshot.tree)
            };
            many += texts.len();
            listed.push(SnapshotTexts { snapshot, is_said, texts, count });
        }
        listed
    }

    pub fn into_broken(self) -> impl Iterator<Item = store::Error> {
        self.messages.into_broken().into_iter().chain(self.others.into_broken())
    }
}
