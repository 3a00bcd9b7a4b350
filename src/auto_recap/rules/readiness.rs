//! May a checkpoint be taken here? The rules of ST-Auto-Recap's own plans, in their words.

use crate::auto_recap::written::{combined_recap, running_recap, scene};
use crate::rules::listed;
use crate::rules::{Code, Finding, Level};
use crate::st::{Chat, Raw, TimelineName};

/// The state that a checkpoint is taken of.
#[derive(Clone, Copy)]
pub struct Point<'a> {
    pub timeline: &'a TimelineName,
    /// Its chat; not cut.
    pub chat: &'a Chat<'a>,
    pub metadata: Option<Raw<'a>>,
    pub message: usize,
}

/// What is not ready at this message. Warnings, unless the user is strict.
pub fn readiness(point: &Point<'_>) -> Vec<Finding> {
    let at = point.message;
    let mut findings = Vec::new();
    let mut warn = |code, words: &str, remedy: &str| {
        let message = format!("{words} (message {at})");
        let finding = Finding::new(code, point.timeline.as_str(), message);
        findings.push(finding.remedy(remedy));
    };
    let scene = point.chat.messages.get(at).and_then(|line| scene(line));
    let is_break = scene.is_some_and(|scene| scene.is_break());
    if !is_break {
        warn(
            Code::SceneBreakMissing,
            "Message does not have a scene break",
            "mark the end of the scene there first, or choose a message that ends one",
        );
    }
    if scene.is_none_or(|scene| scene.recap().is_none()) {
        warn(
            Code::SceneRecapMissing,
            "No scene recap at this message",
            "let the extension write the scene's recap first",
        );
    }
    let has_entries = |scene: &crate::auto_recap::written::Scene<'_>| {
        scene.activated_entries() > 0 && scene.has_note()
    };
    if is_break && !scene.as_ref().is_some_and(has_entries) {
        warn(
            Code::SceneLorebookMissing,
            "Scene break does not have a completed lorebook entry",
            "let the extension finish the scene's lorebook entries first",
        );
    }
    let recap = point.metadata.and_then(running_recap).filter(|recap| recap.exists());
    if recap.is_none() {
        warn(
            Code::RunningRecapMissing,
            "No running scene recap available",
            "let the extension write the running recap first",
        );
    }
    let included = recap.as_ref().and_then(|recap| {
        let current = recap.current()?;
        Some(at as i64 <= current.new_scene_index.unwrap_or(0))
    });
    if included != Some(true) {
        warn(
            Code::SceneNotInRecap,
            "Scene has not been included in the running recap yet",
            "let the extension combine the scene with the running recap first",
        );
    }
    findings
}

/// Recaps that tell of messages after `message`: a cut state knows its future.
pub fn recap_from_future(point: &Point<'_>) -> Vec<Finding> {
    let Some(metadata) = point.metadata else { return Vec::new() };
    let later = |index: Option<i64>| index.is_some_and(|index| index > point.message as i64);
    let versions = running_recap(metadata).and_then(|recap| recap.versions).unwrap_or_default();
    let numbers: Vec<_> = versions
        .iter()
        .filter(|version| later(version.new_scene_index))
        .map(|version| version.version.map_or_else(|| "?".into(), |number| format!("v{number}")))
        .collect();
    let running = (!numbers.is_empty()).then(|| {
        format!(
            "the running recap has versions that tell of what comes after message {}: {}",
            point.message,
            listed(&numbers)
        )
    });
    let told = combined_recap(metadata).and_then(|combined| combined.message_count);
    let combined = told.filter(|count| *count > point.message as i64 + 1).map(|count| {
        format!(
            "the combined recap tells of {count} messages, and message {} is the last",
            point.message
        )
    });
    let remedy = "`stvc restore … --at N` and `stvc reconstruct` take that out; this checkpoint keeps what is on disk";
    let finding = |message| {
        let subject = point.timeline.as_str();
        Finding::new(Code::RecapFromFuture, subject, message).remedy(remedy)
    };
    running.into_iter().chain(combined).map(finding).collect()
}

/// A checkpoint at an earlier message is what is on disk: its lorebook knows what came after.
pub fn lorebook_of_now(timeline: &TimelineName, message: usize) -> Finding {
    let what = format!("its lorebook is that of now, not of message {message}");
    Finding::new(Code::LorebookOfNow, timeline.as_str(), what).remedy(
        "for the lorebook of then: `stvc restore … --at N`, or `stvc reconstruct`, where ST-Auto-Recap has noted it",
    )
}

/// All that can be not ready.
pub const READINESS: [Code; 5] = [
    Code::SceneBreakMissing,
    Code::SceneRecapMissing,
    Code::SceneLorebookMissing,
    Code::RunningRecapMissing,
    Code::SceneNotInRecap,
];

/// What blocks whoever is strict: with a message that is not there and a queue that is not empty the five blockers of the extension's plans, and no more.
pub const STRICT: [Code; 3] =
    [Code::SceneBreakMissing, Code::SceneLorebookMissing, Code::SceneNotInRecap];

/// Those of `codes` as reasons to refuse, and the rest.
pub fn refuse(findings: Vec<Finding>, codes: &[Code]) -> (Vec<Finding>, Vec<Finding>) {
    let (refused, rest): (Vec<_>, _) =
        findings.into_iter().partition(|finding| codes.contains(&finding.code));
    let refuse = |finding: Finding| Finding {
        level: Level::Error,
        message: format!("Cannot create checkpoint: {}", finding.message),
        ..finding
    };
    (refused.into_iter().map(refuse).collect(), rest)
}
