//! Requirements of docs/requirements.md that no other file covers, and checks of that page.

mod bytes;
mod checkpoints;
mod forks;
mod page;

use std::fs;

use crate::common::recap_library::RecapLibrary;
use crate::common::{Sandbox, assert_same};

/// Removes a chat with its lorebook and restores both.
#[track_caller]
fn lose_and_restore(sandbox: &Sandbox, library: &RecapLibrary) {
    let before = sandbox.files();
    fs::remove_file(sandbox.path(&library.chat_path())).unwrap();
    fs::remove_file(sandbox.path(&library.book_path())).unwrap();
    sandbox.stvc(&["restore", &library.chat_path()]).exits(0);
    assert_same(&sandbox.files(), &before);
}
