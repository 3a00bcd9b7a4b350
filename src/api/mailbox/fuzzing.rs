//! The fuzz target of the mailbox. `src/fuzzing` lists all targets.

#![allow(clippy::expect_used, reason = "a fuzz target fails loudly")]

use std::cell::OnceCell;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use super::{Mailbox, PROTOCOL};
use crate::engine::fuzzing::Scene;
use crate::st::mailbox::{ANSWER, MAILBOX, REQUEST};

thread_local! {
    static SCENE: OnceCell<Scene> = const { OnceCell::new() };
}

/// Panics if one of these invariants does not hold: Every request is removed and answered. Without
/// the session of this watch, a request changes nothing in the library or the store.
///
/// The input is the content of a request file.
pub(crate) fn mailbox(data: &[u8]) {
    SCENE.with(|scene| {
        let scene = scene.get_or_init(Scene::new);
        scene.put_back();
        let folder = scene.library().join(MAILBOX);
        let id = "0123456789abcdef0123456789abcdef";
        let request = folder.join(format!("{REQUEST}{id}.json"));
        fs::write(&request, data).expect("the request can be written");
        let workspace = scene.workspace();
        let now = workspace.now;
        let session = "a session that no input has".to_owned();
        let mut served =
            Mailbox::with_session(workspace, Arc::new(move || now), session, scene.library());
        served.look();
        assert!(!request.exists(), "the request was taken away");
        let answer = fs::read(folder.join(format!("{ANSWER}{id}.json"))).expect("an answer");
        let answer: serde_json::Value = serde_json::from_slice(&answer).expect("JSON");
        assert_eq!(answer["protocol"], PROTOCOL);
        assert!(!answer.to_string().contains("stvc broke down"), "{answer}");
        let is_mail = |path: &Path| path.starts_with(Path::new("library").join(MAILBOX));
        let changed = scene.changed();
        let other = changed.iter().find(|path| !is_mail(path) && !Scene::is_cache(path));
        assert!(other.is_none(), "a request without the session changed {other:?}");
    });
}
