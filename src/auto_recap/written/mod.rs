//! The data of ST-Auto-Recap in chats and lorebooks: running recaps, scenes, a queue of work,
//! registries.
//!
//! The extension does not always write the expected types, so the functions do not fail: they
//! return `None` for a missing value or one of another type, and the rules report the problem.

mod book_names;
mod metadata;
mod queue;
mod registry;
mod scene;
#[cfg(test)]
mod tests;

pub use book_names::{BookTemplate, is_fork_book};
pub use metadata::{
    RECAP_IN_USE, RECAP_VERSIONS, RUNNING_RECAP, lorebook_map, rename, running_recap,
    settings_hash, without_mapped,
};
pub(super) use metadata::{RunningRecap, attached_lorebook, checkpoint_state, combined_recap};
pub(super) use queue::{QUEUE, queue_operations};
pub use queue::{active_in, clear_queue, is_queue, queue_activity, trim_queue};
pub(super) use registry::{
    REGISTRY_PREFIX, RegistryItem, is_registry, registry_cache, registry_items, registry_line_uid,
};
pub use scene::{MEMORY, ON_MESSAGE, Scene, active_entries, scene, scene_breaks, uses_auto_recap};
