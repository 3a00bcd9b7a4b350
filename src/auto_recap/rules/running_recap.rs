//! The running recap in a chat's metadata: whether it can be read, whose it is, and whether the scenes that it tells of are there.

use crate::auto_recap::written::{RunningRecap, running_recap, scene};
use crate::rules::Subject;
use crate::rules::{Code, Finding};
use crate::rules::{brief, listed};
use crate::st::{Raw, chat_name, main_chat};

pub(super) fn findings(parts: &Subject<'_>) -> Vec<Finding> {
    let Some(metadata) = parts.metadata else { return Vec::new() };
    let Some(recap) = running_recap(metadata) else {
        let there = metadata.get("auto_recap_running_scene_recaps");
        return match there.filter(Raw::truthy) {
            Some(_) => vec![unreadable(parts, "it is no object")],
            None => Vec::new(),
        };
    };
    let mut findings: Vec<_> = foreign(parts, metadata, &recap).into_iter().collect();
    findings.extend(version_in_use(parts, &recap));
    findings.extend(scenes(parts, &recap));
    findings
}

fn unreadable(parts: &Subject<'_>, why: &str) -> Finding {
    let message = format!("the running recap cannot be read: {why}");
    Finding::new(Code::RecapUnreadable, parts.chat_path, message)
        .remedy("restore an earlier snapshot, or clear the running recap in the extension")
}

/// The version in use must be one of those that are there. Gaps between their numbers are legal.
fn version_in_use(parts: &Subject<'_>, recap: &RunningRecap<'_>) -> Option<Finding> {
    let Some(versions) = &recap.versions else {
        let there = recap.raw.get("versions").filter(Raw::truthy);
        return there.map(|_| unreadable(parts, "its versions are no list"));
    };
    if versions.iter().any(|version| version.version.is_none()) {
        return Some(unreadable(parts, "a version's number is no whole number"));
    }
    let Some(current) = recap.current_version else {
        let there = recap.raw.get("current_version").is_some_and(|value| !value.is_null());
        let wrong = there || recap.exists();
        return wrong
            .then(|| unreadable(parts, "the number of the version in use is no whole number"));
    };
    if !recap.exists() || recap.current().is_some() {
        return None;
    }
    let message = format!(
        "the running recap's version in use is {current}, and it has only {}",
        listed(&recap.numbers())
    );
    Some(
        Finding::new(Code::RecapVersionLost, parts.chat_path, message)
            .remedy("choose one of its versions in the extension, or restore an earlier snapshot"),
    )
}

/// The extension wipes a running recap that says it belongs to another chat, unless the chat is a fork or looks like an import.
fn foreign(parts: &Subject<'_>, metadata: Raw<'_>, recap: &RunningRecap<'_>) -> Option<Finding> {
    let id = recap.raw.get("chat_id").filter(|id| !id.is_null());
    let id = id.map(|id| id.string().unwrap_or_else(|| id.as_str().to_owned()));
    let own = parts.timeline.chat();
    match &id {
        Some(id) if id == own || chat_name(id).as_deref() == Some(own) => return None,
        None if !recap.exists() => return None,
        _ => {}
    }
    let whose = match &id {
        Some(id) => format!("the running recap says it belongs to the chat {:?}", brief(id)),
        None => "the running recap does not say which chat it belongs to".into(),
    };
    let is_missing = parts.lorebook.as_ref().is_some_and(|book| book.file.is_none());
    let (fate, remedy) = if !recap.exists() {
        ("it has no versions, so nothing is lost", None)
    } else if main_chat(metadata).is_some() {
        (
            "since the chat is a fork, the extension will keep it under this chat's name when the chat is opened",
            None,
        )
    } else if is_missing {
        (
            "since its lorebook is missing, the extension will take the chat for an import and keep it",
            None,
        )
    } else {
        let remedy = "before the chat is opened, give its file that name back, or set `chat_id` in line 1 to its present name";
        ("it will be reset when the chat is opened with the extension", Some(remedy))
    };
    let message = format!("{whose}; {fate}");
    let finding = Finding::new(Code::RecapForeign, parts.chat_path, message);
    Some(match remedy {
        Some(remedy) => finding.remedy(remedy),
        None => finding,
    })
}

/// Each version ends with a scene, whose message and recap should be there.
fn scenes(parts: &Subject<'_>, recap: &RunningRecap<'_>) -> Vec<Finding> {
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
        // What has not changed was said before: a new version is the last one, or the one in use.
        let is_new = n + 1 == versions.len() || version.version == recap.current_version;
        if (is_new || parts.is_looked_at(place))
            && scene(line).and_then(|scene| scene.recap()).is_none()
        {
            missing.push(words);
        }
    }
    let mut findings = Vec::new();
    if !past_end.is_empty() {
        let message = format!(
            "the running recap tells of messages that are not there: version {}, and the chat has {} messages",
            listed(&past_end),
            parts.messages.len(),
        );
        findings.push(
            Finding::new(Code::RecapPastEnd, parts.chat_path, message)
                .remedy("choose an older version in the extension and delete these, if the chat was cut on purpose"),
        );
    }
    if !missing.is_empty() {
        let message = format!(
            "the running recap tells of scenes that have no recap: version {}",
            listed(&missing)
        );
        findings.push(Finding::new(Code::RecapSceneMissing, parts.chat_path, message).remedy(
            "let the extension make the scene's recap again, or restore an earlier snapshot",
        ));
    }
    findings
}
