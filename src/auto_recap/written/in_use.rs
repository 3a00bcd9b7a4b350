//! Whether ST-Auto-Recap is in use in a chat.

use super::queue::QUEUE;
use super::registry::REGISTRY_PREFIX;
use super::scene::scene;
use crate::st::{Chat, Raw};

/// Whether the extension has left anything in a chat or its lorebook. Looks at words, not at values: it runs on every save.
pub fn uses_auto_recap(chat: &Chat<'_>, metadata: Option<Raw<'_>>, book: Option<&[u8]>) -> bool {
    let has = |text: &[u8], word: &str| memchr::memmem::find(text, word.as_bytes()).is_some();
    let in_metadata = metadata.is_some_and(|metadata| {
        ["\"auto_recap", "\"auto_lorebooks\"", "\"autoLorebooks\""]
            .iter()
            .any(|word| has(metadata.as_bytes(), word))
    });
    in_metadata
        || book.is_some_and(|book| has(book, QUEUE) || has(book, REGISTRY_PREFIX))
        || chat.messages.last().is_some_and(|line| scene(line).is_some())
}
