//! What the extension ST-Auto-Recap keeps in chats and lorebooks: running recaps, scenes, a queue of work, registries.
//!
//! Only what is really on disk counts. Everything is loose about types there, so nothing here fails: what is not there or of
//! another type reads as none, and the rules say so.

mod book_names;
mod in_use;
mod metadata;
mod queue;
mod queue_edit;
mod registry;
mod scene;
#[cfg(test)]
mod tests;

pub use book_names::{BookTemplate, book_segment, is_fork_book};
pub use in_use::uses_auto_recap;
pub use metadata::{
    CachedItem, CombinedRecap, RecapVersion, RunningRecap, STATE, attached_lorebook,
    checkpoint_state, combined_recap, lorebook_map, registry_cache, running_recap, without_mapped,
};
pub use queue::{
    Activity, Operation, QUEUE, QueueEntry, is_queue, queue_activity, queue_operations, queues,
};
pub use queue_edit::{clear_queue, trim_queue};
pub use registry::{REGISTRY_PREFIX, RegistryItem, registry_items, registry_line_uid};
pub use scene::{Scene, scene, scene_breaks};
