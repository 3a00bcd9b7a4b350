//! Is what was rebuilt the state that was recorded? Held against the snapshot's own record, and against what the extension noted in the chat, where it did.
//!
//! The record in the chat describes the moment at which the checkpoint or fork was created, and stays in the header while the story goes on. Its recaps are
//! compared only while the chat is still at that moment; the snapshot's own record always describes the very bytes.

use crate::archive::Contents;
use crate::auto_recap::written::{
    CombinedRecap, RunningRecap, checkpoint_state, combined_recap, running_recap,
};
use crate::rules::{Code, Finding};
use crate::st::{self, Chat, Raw, TimelineName};

/// What somebody wrote down of the state.
struct Record {
    /// Who, in words.
    by: &'static str,
    version: Option<i64>,
    combined: Option<i64>,
    /// The lorebook's name; the inner `None` is "no lorebook".
    lorebook: Option<Option<String>>,
}

/// All findings about a rebuilt snapshot held against what was recorded of it.
pub fn restored(contents: &Contents) -> Vec<Finding> {
    let timeline = contents.files.timeline.clone();
    let chat = contents.files.split();
    let Some(metadata) = contents.files.metadata(&chat) else { return Vec::new() };
    let recap = running_recap(metadata);
    let combined = combined_recap(metadata);
    let lorebook = st::lorebook_name(metadata);
    let own = contents.manifest.checkpoint.as_ref().map(|state| Record {
        by: "the snapshot",
        version: state.running_recap_version,
        combined: state.combined_recap_message_count,
        lorebook: Some(state.bound_lorebook_name().cloned()),
    });
    let noted = checkpoint_state(metadata).map(|state| {
        let is_compared = !went_on(state, &chat, recap.as_ref());
        let recorded = |key| integer(state, key).filter(|_| is_compared);
        Record {
            by: "the extension",
            version: recorded("running_recap_version"),
            combined: recorded("combined_recap_message_count").filter(|count| *count > 0),
            lorebook: state
                .get("cloned_lorebook_name")
                .map(|name| name.string().filter(|name| !name.is_empty())),
        }
    });
    if own.is_none() && noted.is_none() {
        let in_use = recap.as_ref().is_some_and(|recap| recap.exists());
        return in_use.then(|| legacy(&timeline)).into_iter().collect();
    }
    let mut findings = Vec::new();
    for record in own.iter().chain(&noted) {
        findings.extend(recap.as_ref().and_then(|recap| version(&timeline, record, recap)));
        findings.extend(combined.as_ref().and_then(|recap| count(&timeline, record, recap)));
        findings.extend(book(&timeline, record, lorebook.as_deref()));
    }
    findings
}

/// Returns whether the chat has left the moment that the record in its header describes: its last message is another one, or its running recap got a version
/// afterwards. A record that says neither is taken to describe the chat as it is.
fn went_on(state: Raw<'_>, chat: &Chat<'_>, recap: Option<&RunningRecap<'_>>) -> bool {
    let last = chat.messages.iter().rposition(|line| !line.trim_ascii().is_empty());
    let last = last.and_then(|last| i64::try_from(last).ok());
    let is_at_another_message =
        integer(state, "message_id").is_some_and(|recorded| last != Some(recorded));
    let created = integer(state, "timestamp");
    let current = recap.and_then(|recap| recap.current()?.timestamp);
    let is_newer = created.zip(current).is_some_and(|(created, current)| current > created);
    is_at_another_message || is_newer
}

fn integer(state: Raw<'_>, key: &str) -> Option<i64> {
    state.get(key).and_then(|value| value.integer())
}

/// The version in use must be the recorded one. (That it must be among the versions is a rule about the chat itself, and holds without a record.)
fn version(timeline: &TimelineName, record: &Record, recap: &RunningRecap<'_>) -> Option<Finding> {
    let expected = record.version?;
    if recap.current_version == Some(expected) {
        return None;
    }
    let found = recap.current_version.map_or_else(|| "none".into(), |found| format!("v{found}"));
    let message = format!(
        "Running recap version mismatch: expected v{expected} as {} recorded, got {found}",
        record.by
    );
    let remedy = "choose the right version in the extension, or restore another snapshot: `stvc log` lists them";
    Some(Finding::new(Code::RecapVersionMismatch, timeline.as_str(), message).remedy(remedy))
}

fn count(timeline: &TimelineName, record: &Record, combined: &CombinedRecap) -> Option<Finding> {
    let expected = record.combined?;
    if combined.message_count == Some(expected) {
        return None;
    }
    let found = combined.message_count.map_or_else(|| "none".into(), |found| found.to_string());
    let message = format!(
        "Combined recap message count mismatch: expected {expected} as {} recorded, got {found}",
        record.by
    );
    Some(Finding::new(Code::CombinedRecapMismatch, timeline.as_str(), message))
}

fn book(timeline: &TimelineName, record: &Record, found: Option<&str>) -> Option<Finding> {
    let expected = record.lorebook.as_ref()?.as_deref();
    if expected == found {
        return None;
    }
    let quoted =
        |name: Option<&str>| name.map_or_else(|| "none".into(), |name| format!("{name:?}"));
    let message = format!(
        "Lorebook mismatch: expected {} as {} recorded, current {}; this checkpoint may not have proper isolation",
        quoted(expected),
        record.by,
        quoted(found)
    );
    let remedy = "`stvc doctor` tells which chats share a lorebook";
    Some(Finding::new(Code::LorebookNameMismatch, timeline.as_str(), message).remedy(remedy))
}

fn legacy(timeline: &TimelineName) -> Finding {
    let message = "nothing was recorded of the recaps' state when this snapshot was taken, so it could not be compared";
    Finding::new(Code::CheckpointStateMissing, timeline.as_str(), message)
}
