//! What the extension keeps on the messages that end a scene.

use memchr::memmem::Finder;

use crate::auto_recap::written::{Scene, scene};
use crate::rules::Subject;
use crate::rules::listed;
use crate::rules::{Code, Finding};

pub(super) fn findings(parts: &Subject<'_>) -> Vec<Finding> {
    // Nearly every message has something of the extension, but only those that end a scene have a recap.
    let has_recap = Finder::new("scene_recap_");
    let lines = &parts.chat.messages;
    let (mut wrong, mut differing) = (Vec::new(), Vec::new());
    for range in parts.looked_at {
        let end = range.end.min(lines.len());
        let begin = range.start.min(end);
        for (place, line) in (begin..).zip(&lines[begin..end]) {
            if has_recap.find(line).is_none() {
                continue;
            }
            let Some(scene) = scene(line) else { continue };
            if is_index_wrong(&scene) {
                wrong.push(place);
            }
            if let (Some(noted), Some(real)) = (scene.hash(), scene.recap_hash())
                && noted != real
            {
                differing.push(place);
            }
        }
    }
    let mut findings = Vec::new();
    if !wrong.is_empty() {
        let message = format!(
            "message {}: the version in use of the scene's recap is not among its versions",
            listed(&wrong)
        );
        findings.push(
            Finding::new(Code::SceneIndexWrong, parts.chat_path, message)
                .remedy("choose a version in the extension; until then it shows the last one"),
        );
    }
    if !differing.is_empty() {
        let message = format!(
            "message {}: the scene's recap was changed since the extension noted its hash",
            listed(&differing)
        );
        findings.push(Finding::new(Code::SceneHashDiffers, parts.chat_path, message));
    }
    findings
}

/// Whether the version in use is not among the versions. Without versions the extension begins with number 0.
fn is_index_wrong(scene: &Scene<'_>) -> bool {
    match (scene.current_index(), scene.version_count()) {
        (None, _) => true,
        (Some(0), _) => false,
        (Some(index), Some(count)) => usize::try_from(index).map_or(true, |index| index >= count),
        // Whatever stands there, there is nothing to choose from.
        (Some(_), None) => false,
    }
}
