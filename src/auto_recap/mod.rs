//! The extension ST-Auto-Recap: what it writes, what snapshots record of it, and the rules about it.
//!
//! This is the only room that knows its keys and titles; every other one asks the functions and
//! types named here. Its parts stand on three floors, because each floor of the program asks for
//! its own: `written` beside `st`, `stored` beside `archive`, `rules` beside `rules`.

mod noted_book;
pub(crate) mod rules;
pub(crate) mod stored;
pub(crate) mod written;

pub use noted_book::{has_note, noted_book};
pub use rules::{
    Point, READINESS, STRICT, Wish, lorebook_of_now, queue_active, readiness, recap_from_future,
    refuse, restored,
};
pub(crate) use rules::{of_book, of_chat};
pub use stored::{CheckpointState, EntryOrigin, Trimmed, trim_metadata};
pub use written::{
    BookTemplate, MEMORY, ON_MESSAGE, RECAP_IN_USE, RECAP_VERSIONS, RUNNING_RECAP, Scene,
    active_entries, active_in, clear_queue, is_fork_book, is_queue, lorebook_map, queue_activity,
    running_recap, scene, scene_breaks, settings_hash, trim_queue, uses_auto_recap, without_mapped,
};
