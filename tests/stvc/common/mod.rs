//! What tests share: a file for each thing. What most of them need is named here; the rest is taken from its file.

mod answer;
pub mod backups;
pub mod card;
mod chats;
pub mod devices;
mod files;
pub mod forged_backup;
pub mod forged_snapshot;
pub mod generated_library;
mod git;
#[cfg(unix)]
pub mod git_server;
pub mod harbour;
mod harm;
mod missing;
mod processes;
pub mod recap_library;
pub mod recap_story;
mod sandbox;
mod stored;
pub mod watching;

pub use answer::{Answer, answer, calm, codes, tame, words};
pub use chats::{A, B, chat, message};
pub use files::{
    assert_same, copy, files, files_of, fixtures, len, make_writable, rust_files, text, tree,
};
pub use git::{fsck, git, git_given, loose_ref, lose, refs, target_of, unpack, unpack_all};
pub use harm::{Harm, Three, hurt, hurt_for_good};
pub use missing::{cannot, cannot_here, is_emulated};
pub use processes::{
    Done, can_trace, has_terminal, kill_after, limited, output_of, scripted, started_by,
    traced_with, typed_on_terminal,
};
pub use sandbox::{NOW, Sandbox};
pub use stored::{Stored, check, sound, unfinished};
