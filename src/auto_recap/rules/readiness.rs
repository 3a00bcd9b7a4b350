//! Readiness checks before a checkpoint, with the rules and messages from ST-Auto-Recap's plans.

use crate::auto_recap::written::{combined_recap, running_recap, scene};
use crate::rules::{Code, Finding, Level, listed};
use crate::st::{Chat, Raw, TimelineName};

/// The chat and message that a checkpoint is created from.
#[derive(Clone, Copy)]
pub struct CheckpointSource<'a> {
    pub timeline: &'a TimelineName,
    /// The complete chat, including messages after `message`.
    pub chat: &'a Chat<'a>,
    pub metadata: Option<Raw<'a>>,
    pub message: usize,
}

/// Returns warnings about data that ST-Auto-Recap has not completed at this message.
pub fn readiness(point: &CheckpointSource<'_>) -> Vec<Finding> {
    let at = point.message;
    let mut findings = Vec::new();
    let mut warn = |code, words: &str| {
        let message = format!("{words} (message {at})");
        findings.push(Finding::new(code, point.timeline.as_str(), message).usual_remedy());
    };
    let scene = point.chat.messages.get(at).and_then(|line| scene(line));
    let scene_break = scene.filter(|scene| scene.is_break());
    if scene_break.is_none() {
        warn(Code::SceneBreakMissing, "Message does not have a scene break");
    }
    if scene.is_none_or(|scene| scene.recap().is_none()) {
        warn(Code::SceneRecapMissing, "No scene recap at this message");
    }
    if scene_break.is_some_and(|scene| scene.activated_entries() <= 0 || !scene.has_note()) {
        let words = "Scene break does not have a completed lorebook entry";
        warn(Code::SceneLorebookMissing, words);
    }
    let recap = point.metadata.and_then(running_recap).filter(|recap| recap.exists());
    if recap.is_none() {
        warn(Code::RunningRecapMissing, "No running scene recap available");
    }
    let current = recap.as_ref().and_then(|recap| recap.current());
    if current.is_none_or(|current| at as i64 > current.new_scene_index.unwrap_or(0)) {
        warn(Code::SceneNotInRecap, "Scene has not been included in the running recap yet");
    }
    findings
}

/// Returns findings about recaps that describe messages after the checkpoint's message.
pub fn recap_from_future(point: &CheckpointSource<'_>) -> Vec<Finding> {
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
            "the running recap has versions that describe messages after {}: {}",
            point.message,
            listed(&numbers)
        )
    });
    let combined = combined_recap(metadata).and_then(|combined| combined.message_count);
    let combined = combined.filter(|count| *count > point.message as i64 + 1).map(|count| {
        format!(
            "the combined recap covers {count} messages, but the last one is message {}",
            point.message
        )
    });
    let remedy = "this checkpoint keeps the recaps on disk; run `stvc restore … --at N` or `stvc reconstruct` to leave later content out";
    let finding = |message| {
        let subject = point.timeline.as_str();
        Finding::new(Code::RecapFromFuture, subject, message).remedy(remedy)
    };
    running.into_iter().chain(combined).map(finding).collect()
}

/// Returns the finding about a checkpoint at an earlier message: the checkpoint contains the
/// lorebook on disk, which may describe later events.
pub fn lorebook_of_now(timeline: &TimelineName, message: usize) -> Finding {
    let what = format!("it contains the current lorebook, not the lorebook at message {message}");
    Finding::new(Code::LorebookOfNow, timeline.as_str(), what).remedy(
        "if ST-Auto-Recap recorded the lorebook at that message, run `stvc restore … --at N` or `stvc reconstruct` to get it",
    )
}

/// Codes of all readiness warnings.
pub const READINESS: [Code; 5] = [
    Code::SceneBreakMissing,
    Code::SceneRecapMissing,
    Code::SceneLorebookMissing,
    Code::RunningRecapMissing,
    Code::SceneNotInRecap,
];

/// Codes that block a strict checkpoint. Together with a missing message and an active queue, they
/// are the five blockers in the extension's plans.
pub const STRICT: [Code; 3] =
    [Code::SceneBreakMissing, Code::SceneLorebookMissing, Code::SceneNotInRecap];

/// Splits findings: those with one of `codes` become reasons to refuse, the others are unchanged.
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
