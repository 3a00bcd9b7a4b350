//! What ST-Auto-Recap keeps in chats and lorebooks: running recaps, scenes, a queue of work, registries.
//!
//! Only what is really on disk counts. Everything is loose about types there, so nothing here fails: what is not there or of
//! another type reads as none, and the rules say so.

mod book_names;
mod in_use;
mod metadata;
mod on_message;
mod queue;
mod queue_edit;
mod registry;
mod rename;
mod scene;
#[cfg(test)]
mod tests;

pub use book_names::{BookTemplate, is_fork_book};
pub use in_use::uses_auto_recap;
pub(super) use metadata::{
    CachedItem, CombinedRecap, RunningRecap, attached_lorebook, checkpoint_state, combined_recap,
    registry_cache,
};
pub use metadata::{
    RECAP_IN_USE, RECAP_VERSIONS, RUNNING_RECAP, lorebook_map, running_recap, settings_hash,
    without_mapped,
};
pub use on_message::{MEMORY, ON_MESSAGE, active_entries};
pub(super) use queue::{Operation, QUEUE, queue_operations};
pub use queue::{active_in, is_queue, queue_activity};
pub use queue_edit::{clear_queue, trim_queue};
pub(super) use registry::{REGISTRY_PREFIX, is_registry, registry_items, registry_line_uid};
pub use rename::rename;
pub use scene::{Scene, scene, scene_breaks};
