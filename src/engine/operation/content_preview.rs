//! Summarises what a planned change replaces in a chat or a lorebook, for the user's decision.

use std::collections::HashMap;

use serde::Serialize;

use crate::st::{self, Category, Chat, LibraryPath, TimelineName};

/// Length of the longest shown text, in characters.
const MAX_TEXT: usize = 300;

/// The content of a chat or a lorebook before and after a planned change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ContentPreview {
    /// `None` if there is no file.
    pub before: Option<ContentSummary>,
    /// `None` if the file is deleted.
    pub after: Option<ContentSummary>,
    /// Number of messages or entries that are added, removed or changed.
    pub changed: usize,
}

/// A summary of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum ContentSummary {
    /// The messages of a chat.
    Chat {
        /// Number of its messages.
        messages: usize,
        /// Speaker of the last message.
        name: String,
        /// Beginning of the last message.
        text: String,
    },
    /// The entries of a lorebook.
    Lorebook {
        /// Number of its entries.
        entries: usize,
    },
}

impl ContentPreview {
    /// Compares the contents of a file; `None` for other files than chats and lorebooks.
    pub(super) fn of(
        path: &LibraryPath,
        before: Option<&[u8]>,
        after: Option<&[u8]>,
    ) -> Option<Self> {
        let category = TimelineName::of_file(path)?.category();
        let is_chat = category.is_chat();
        if !is_chat && category != Category::Lorebook {
            return None;
        }
        let summary = |bytes| if is_chat { chat(bytes, category) } else { lorebook(bytes) };
        let changed = if is_chat {
            changed_messages(before, after, category)
        } else {
            changed_entries(before.unwrap_or_default(), after.unwrap_or_default())
        };
        Some(Self { before: before.map(summary), after: after.map(summary), changed })
    }
}

fn chat(bytes: &[u8], category: Category) -> ContentSummary {
    let chat = Chat::split(bytes, category);
    let last = chat.messages.iter().rev().find_map(|line| st::text_of(line));
    let (name, text) = last.map(|last| (last.name, last.text)).unwrap_or_default();
    let text = text.chars().take(MAX_TEXT).collect();
    ContentSummary::Chat { messages: chat.message_count(), name, text }
}

fn lorebook(bytes: &[u8]) -> ContentSummary {
    ContentSummary::Lorebook { entries: st::entries(bytes).len() }
}

fn changed_messages(before: Option<&[u8]>, after: Option<&[u8]>, category: Category) -> usize {
    let lines = |bytes| {
        let mut lines = Chat::split(bytes, category).messages;
        lines.retain(|line| !st::is_blank(line));
        lines
    };
    let [before, after] = [before, after].map(|bytes| bytes.map(lines).unwrap_or_default());
    let differing = before.iter().zip(&after).filter(|(before, after)| before != after).count();
    differing + before.len().abs_diff(after.len())
}

fn changed_entries(before: &[u8], after: &[u8]) -> usize {
    let (before, after) = (st::entries(before), st::entries(after));
    let known: HashMap<_, _> =
        before.iter().map(|(key, entry)| (key.as_bytes(), entry.as_bytes())).collect();
    let is_same = |(key, entry): &&(st::Key, st::Raw<'_>)| {
        known.get(key.as_bytes()).is_some_and(|known| *known == entry.as_bytes())
    };
    let same = after.iter().filter(is_same).count();
    let shared = after.iter().filter(|(key, _)| known.contains_key(key.as_bytes())).count();
    (before.len() - shared) + (after.len() - same)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(path: &str, before: Option<&str>, after: Option<&str>) -> Option<ContentPreview> {
        let path = LibraryPath::parse(path).unwrap();
        ContentPreview::of(&path, before.map(str::as_bytes), after.map(str::as_bytes))
    }

    #[test]
    fn preview_counts_changed_messages_and_shows_the_last() {
        let now = "{\"chat_metadata\":{}}\n{\"mes\":\"a\"}\n{\"mes\":\"b\"}\n";
        let then =
            "{\"chat_metadata\":{}}\n{\"mes\":\"a\"}\n{\"name\":\"Mira\",\"mes\":\"c\"}\n{torn";
        let found = of("chats/Mira/One.jsonl", Some(now), Some(then)).unwrap();
        let text = |messages, name: &str, text: &str| {
            let (name, text) = (name.into(), text.into());
            Some(ContentSummary::Chat { messages, name, text })
        };
        assert_eq!(found.before, text(2, "", "b"));
        assert_eq!(found.after, text(3, "Mira", "c"));
        assert_eq!(found.changed, 2);
        assert_eq!(of("chats/Mira/One.jsonl", Some(now), None).unwrap().changed, 2);
    }

    #[test]
    fn preview_counts_changed_entries_by_their_keys() {
        let now = r#"{"entries":{"0":{"uid":0},"1":{"uid":1},"2":{"uid":2}}}"#;
        let then = r#"{"entries":{"1":{"uid":1},"0":{"uid":7},"5":{"uid":5}}}"#;
        let found = of("worlds/Harbour.json", Some(now), Some(then)).unwrap();
        assert_eq!(found.changed, 3);
        assert_eq!(found.after, Some(ContentSummary::Lorebook { entries: 3 }));
        assert_eq!(of("characters/Mira.png", Some("x"), None), None);
    }
}
