//! The extension ST-Auto-Recap: the data that it writes, the data that snapshots record about it,
//! and the rules about both.
//!
//! A *scene record* is the copy of all lorebook entries that the extension stores in the message
//! that ends a scene. Functions and types call it a note.
//!
//! Only this module knows the extension's keys and titles; all others use the functions and types
//! exported here. Each submodule belongs to one layer of the program: `written` to that of `st`,
//! `stored` to that of `archive`, `rules` to that of `rules`.

mod noted_book;
pub(crate) mod rules;
pub(crate) mod stored;
pub(crate) mod written;

pub use noted_book::{has_note, noted_book};
pub use rules::{
    CheckpointSource, QueueIntent, READINESS, STRICT, lorebook_of_now, queue_active, readiness,
    recap_from_future, refuse, restored,
};
pub(crate) use rules::{of_book, of_chat};
pub use stored::{CheckpointState, EntryOrigin, Trimmed, trim_metadata};
pub use written::{
    BookTemplate, MEMORY, ON_MESSAGE, RECAP_IN_USE, RECAP_VERSIONS, RUNNING_RECAP, Scene,
    active_entries, active_in, clear_queue, is_fork_book, is_queue, lorebook_map, queue_activity,
    running_recap, scene, scene_breaks, settings_hash, trim_queue, uses_auto_recap, without_mapped,
};
