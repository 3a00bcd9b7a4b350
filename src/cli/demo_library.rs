//! The sample library of `stvc demo`: files that a real SillyTavern wrote.

use std::fs;
use std::io;
use std::path::Path;

macro_rules! sample {
    ($($path:literal),* $(,)?) => {
        &[$(($path, include_bytes!(concat!("../../fixtures/1.19.0/default-user/", $path)))),*]
    };
}

/// The chat that the demo goes on with.
pub const CHAT: &str = "chats/Mira Voss/The Tide Office — part 1 (雨).jsonl";
/// Its lorebook.
pub const LOREBOOK: &str = "worlds/Tide Office Lore.json";

const FILES: &[(&str, &[u8])] = sample![
    "settings.json",
    "chats/Mira Voss/Before the ferry #1 @dawn xy.jsonl",
    "chats/Mira Voss/Mira Voss - 2026-11-14@23h57m31s408ms - Branch #1.jsonl",
    "chats/Mira Voss/Mira Voss - 2026-11-14@23h57m31s408ms - Checkpoint #1.jsonl",
    "chats/Mira Voss/The Tide Office — part 1 (雨).jsonl",
    "chats/Ærin 雪 🦊/Snow shrine 雪.jsonl",
    "group chats/Ferry main.jsonl",
    "groups/1794700910763.json",
    "worlds/Ferry Lore.json",
    "worlds/Snow Shrine.json",
    "worlds/Tide Office Lore.json",
];

/// Write the sample library to `root`.
pub fn write(root: &Path) -> io::Result<()> {
    for (path, bytes) in FILES {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap_or(root))?;
        fs::write(path, bytes)?;
    }
    Ok(())
}
