//! Findings about recaps: scene recaps in the messages that end a scene, and the running recap in
//! a chat's metadata.

use std::fmt::Display;

use memchr::memmem::Finder;

use crate::auto_recap::written::{RUNNING_RECAP, RunningRecap, Scene, running_recap, scene};
use crate::rules::{Code, Finding, Subject, brief, numbered};
use crate::st::{Raw, chat_name, main_chat};
use crate::words::count;

pub(super) fn of_scenes(parts: &Subject<'_>) -> Vec<Finding> {
    // Nearly every message has data of the extension, but only messages that end a scene have a
    // recap.
    let has_recap = Finder::new("scene_recap_");
    let lines = &parts.chat.messages;
    let (mut wrong, mut differing) = (Vec::new(), Vec::new());
    for range in parts.examined {
        let end = range.end.min(lines.len());
        let begin = range.start.min(end);
        for (place, line) in (begin..).zip(&lines[begin..end]) {
            let Some(scene) = has_recap.find(line).and_then(|_| scene(line)) else { continue };
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
    let wrong = about(parts, Code::SceneIndexWrong, "message", &wrong, |messages| {
        format!("{messages}: the version in use of the scene recap is not among its versions")
    });
    let differing = about(parts, Code::SceneHashDiffers, "message", &differing, |messages| {
        format!("{messages}: the scene recap changed after the extension recorded its hash")
    });
    wrong.map(Finding::usual_remedy).into_iter().chain(differing).collect()
}

/// Returns the finding about these messages or versions, or `None` if there are none.
fn about<T: Display>(
    parts: &Subject<'_>,
    code: Code,
    noun: &str,
    numbers: &[T],
    words: impl FnOnce(String) -> String,
) -> Option<Finding> {
    let message = || words(numbered(noun, numbers));
    (!numbers.is_empty()).then(|| Finding::new(code, parts.chat_path(), message()))
}

/// Returns whether the version in use of a scene recap is not among its versions. The number 0 is
/// always accepted, because the extension starts with it. If the versions are not a list, any
/// number is accepted.
fn is_index_wrong(scene: &Scene<'_>) -> bool {
    match (scene.current_index(), scene.version_count()) {
        (None, _) => true,
        (Some(0), _) | (Some(_), None) => false,
        (Some(index), Some(count)) => usize::try_from(index).map_or(true, |index| index >= count),
    }
}

pub(super) fn of_running_recap(parts: &Subject<'_>) -> Vec<Finding> {
    let Some(metadata) = parts.metadata else { return Vec::new() };
    let Some(recap) = running_recap(metadata) else {
        let there = metadata.get(RUNNING_RECAP).filter(Raw::truthy);
        return there.map(|_| unreadable(parts, "it is not an object")).into_iter().collect();
    };
    let mut findings: Vec<_> = foreign(parts, metadata, &recap).into_iter().collect();
    findings.extend(version_in_use(parts, &recap));
    findings.extend(versions(parts, &recap));
    findings
}

fn unreadable(parts: &Subject<'_>, why: &str) -> Finding {
    let message = format!("the running recap cannot be read: {why}");
    Finding::new(Code::RecapUnreadable, parts.chat_path(), message).usual_remedy()
}

/// Checks that the version in use is among the versions. Gaps between version numbers are allowed.
fn version_in_use(parts: &Subject<'_>, recap: &RunningRecap<'_>) -> Option<Finding> {
    let Some(versions) = &recap.versions else {
        let there = recap.raw.get("versions").filter(Raw::truthy);
        return there.map(|_| unreadable(parts, "its versions are not a list"));
    };
    if versions.iter().any(|version| version.version.is_none()) {
        return Some(unreadable(parts, "the number of a version is not an integer"));
    }
    let Some(current) = recap.current_version else {
        let there = recap.raw.get("current_version").is_some_and(|value| !value.is_null());
        return (there || recap.exists())
            .then(|| unreadable(parts, "the number of the version in use is not an integer"));
    };
    if !recap.exists() || recap.current().is_some() {
        return None;
    }
    let message = format!(
        "the running recap uses version {current}, but has only {}",
        numbered("version", &recap.numbers())
    );
    Some(Finding::new(Code::RecapVersionLost, parts.chat_path(), message).usual_remedy())
}

/// Checks that the running recap belongs to this chat. The extension resets a running recap of
/// another chat, unless the chat is a fork or looks like an import.
fn foreign(parts: &Subject<'_>, metadata: Raw<'_>, recap: &RunningRecap<'_>) -> Option<Finding> {
    let id = recap.raw.get("chat_id").filter(|id| !id.is_null());
    let id = id.map(|id| id.string().unwrap_or_else(|| id.as_str().to_owned()));
    let own = parts.files.timeline.chat();
    match &id {
        Some(id) if id == own || chat_name(id).as_deref() == Some(own) => return None,
        None if !recap.exists() => return None,
        _ => {}
    }
    let whose = match &id {
        Some(id) => format!("the running recap says it belongs to the chat {:?}", brief(id)),
        None => "the running recap does not say which chat it belongs to".into(),
    };
    let is_book_missing = parts.files.bound_name().is_some() && parts.files.book().is_none();
    let mut remedy = None;
    let fate = if !recap.exists() {
        "it has no versions, so nothing is lost"
    } else if main_chat(metadata).is_some() {
        "the chat is a fork, so the extension will keep the recap under this chat's name when you open the chat"
    } else if is_book_missing {
        "the lorebook is missing, so the extension will treat the chat as an import and keep the recap"
    } else {
        remedy = Some(
            "before you open the chat, rename its file back, or set `chat_id` in line 1 to its present name".into(),
        );
        "the extension will reset it when you open the chat"
    };
    let message = format!("{whose}; {fate}");
    Some(Finding { remedy, ..Finding::new(Code::RecapForeign, parts.chat_path(), message) })
}

/// Checks that, for each version, the message that ends its last scene exists and has a recap.
fn versions(parts: &Subject<'_>, recap: &RunningRecap<'_>) -> Vec<Finding> {
    let versions = recap.versions.as_deref().unwrap_or_default();
    let (mut past_end, mut missing) = (Vec::new(), Vec::new());
    for (n, version) in versions.iter().enumerate() {
        let Some(end) = version.new_scene_index else { continue };
        let number = version.version.map_or("?".into(), |number| number.to_string());
        let words = format!("{number} (message {end})");
        let Some((place, line)) = parts.message(end) else {
            if parts.is_past_end(end) {
                past_end.push(words);
            }
            continue;
        };
        // Old versions were reported before. A new version is the last one or the one in use.
        let is_new = n + 1 == versions.len() || version.version == recap.current_version;
        if (is_new || parts.is_looked_at(place))
            && scene(line).and_then(|scene| scene.recap()).is_none()
        {
            missing.push(words);
        }
    }
    let past_end = about(parts, Code::RecapPastEnd, "version", &past_end, |versions| {
        format!(
            "the running recap describes messages that do not exist: {versions}; the chat has {}",
            count(parts.messages.len(), "message"),
        )
    });
    let missing = about(parts, Code::RecapSceneMissing, "version", &missing, |versions| {
        format!("the running recap describes scenes that have no recap: {versions}")
    });
    past_end.into_iter().chain(missing).map(Finding::usual_remedy).collect()
}
