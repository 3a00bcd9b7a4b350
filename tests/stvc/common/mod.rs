//! Helpers that tests share, one file per subject. The most used ones are re-exported here.

mod answer;
pub mod backups;
pub mod card;
mod chats;
mod damage;
pub mod devices;
mod dice;
mod files;
pub mod forged_backup;
pub mod forged_snapshot;
pub mod generated_library;
mod git;
#[cfg(unix)]
pub mod git_server;
pub mod harbour;
mod processes;
pub mod recap_library;
pub mod recap_story;
mod sandbox;
#[cfg(target_os = "linux")]
pub mod services;
mod skip;
mod stored;
pub mod watching;

pub use answer::{
    Answer, answer, assert_no_control_characters, assert_no_panic, finding_codes,
    output_without_ids,
};
pub use chats::{A, B, chat, message};
pub use damage::{Damage, ThreeTimelines, damage_file, with_damage};
pub use dice::Dice;
pub use files::{
    assert_same, copy_folder, file_size, files, files_with_extension, fixtures, make_writable,
    rust_files, text, tree,
};
pub use git::{
    delete_object, fsck, git, git_with_input, loose_ref, refs, resolve_ref, unpack, unpack_all,
};
pub use processes::{
    SetOnDrop, can_trace, command_through, has_terminal, kill_after, output_of, run_in_shell,
    run_with_file_limit, traced_with, typed_on_terminal,
};
pub use sandbox::{NOW, Sandbox};
pub use skip::{is_emulated, skip, skip_on_this_machine};
pub use stored::{Stored, assert_valid, check, mark_last_operation_unfinished};
