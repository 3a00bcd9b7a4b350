//! Tests of this layer, by subject.

mod capture;
mod card_parts;
mod chat;
mod discover;
mod json;
mod lorebook;
mod metadata;
mod names;
mod references;
#[cfg(unix)]
mod running;
mod scan;
mod timed_effects;
mod write;

use std::fs;
use std::path::Path;

/// Creates a file and its parent folders.
fn put(root: &Path, path: &str, bytes: &[u8]) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, bytes).unwrap();
}
