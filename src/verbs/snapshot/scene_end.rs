//! The message at which a checkpoint is created, and the scene that it belongs to.

use crate::auto_recap::scene_breaks;
use crate::st::Chat;

/// The message at which a checkpoint is created.
pub(super) struct End {
    pub message: usize,
    /// Number of the message's scene, counted from 1.
    pub scene: usize,
    pub scene_name: Option<String>,
}

impl End {
    /// Returns the end of a checkpoint at message `at`. If no scene ends there, the scene is the
    /// one that contains the message.
    pub(super) fn at(chat: &Chat<'_>, at: usize) -> Self {
        let breaks = scene_breaks(chat);
        let before = breaks.iter().filter(|(message, _)| *message < at).count();
        let scene = breaks.get(before).and_then(|(_, scene)| scene.name());
        Self { message: at, scene: before + 1, scene_name: scene }
    }
}
