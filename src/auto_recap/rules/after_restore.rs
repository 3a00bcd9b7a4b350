//! Compares a rebuilt chat with two records: the snapshot's record, and the extension's record in
//! the chat's header.
//!
//! The extension's record describes the moment at which the checkpoint or fork was created, and
//! does not change when the chat continues. Its recap values are compared only if the chat has not
//! continued since. The snapshot's record always describes exactly the snapshot.

use crate::archive::Contents;
use crate::auto_recap::written::{RunningRecap, checkpoint_state, combined_recap, running_recap};
use crate::rules::{Code, Finding};
use crate::st::{self, Chat, Raw};

struct Record {
    by: &'static str,
    version: Option<i64>,
    combined: Option<i64>,
    /// The lorebook's name. `Some(None)` means that the chat has no lorebook; `None` means that the
    /// record does not mention a lorebook.
    lorebook: Option<Option<String>>,
}

pub fn restored(contents: &Contents) -> Vec<Finding> {
    let timeline = contents.files.timeline.as_str();
    let chat = contents.files.split();
    let Some(metadata) = contents.files.metadata(&chat) else { return Vec::new() };
    let recap = running_recap(metadata);
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
    let mut findings = Vec::new();
    if own.is_none() && noted.is_none() && recap.as_ref().is_some_and(|recap| recap.exists()) {
        let message = "the state of the recaps was not recorded when this snapshot was created, so it could not be compared";
        findings.push(Finding::new(Code::CheckpointStateMissing, timeline, message));
    }
    let in_use = recap.as_ref().map(|recap| recap.current_version);
    let combined = combined_recap(metadata).map(|combined| combined.message_count);
    let lorebook = st::lorebook_name(metadata);
    for Record { by, version, combined: count, lorebook: book } in own.into_iter().chain(noted) {
        // Another rule checks that this version exists.
        if let (Some(expected), Some(found)) = (version, in_use)
            && found != Some(expected)
        {
            let found = found.map_or_else(|| "none".into(), |found| format!("v{found}"));
            let message = format!(
                "Running recap version mismatch: expected v{expected} as {by} recorded, got {found}"
            );
            let remedy = "choose the right version in the extension, or restore another snapshot; run `stvc log` to list the snapshots";
            findings
                .push(Finding::new(Code::RecapVersionMismatch, timeline, message).remedy(remedy));
        }
        if let (Some(expected), Some(found)) = (count, combined)
            && found != Some(expected)
        {
            let found = found.map_or_else(|| "none".into(), |found| found.to_string());
            let message = format!(
                "Combined recap message count mismatch: expected {expected} as {by} recorded, got {found}"
            );
            findings.push(Finding::new(Code::CombinedRecapMismatch, timeline, message));
        }
        if let Some(expected) = book.filter(|expected| *expected != lorebook) {
            let quoted = |name: Option<&String>| {
                name.map_or_else(|| "none".into(), |name| format!("{name:?}"))
            };
            let message = format!(
                "Lorebook mismatch: expected {} as {by} recorded, current {}; this checkpoint may not have proper isolation",
                quoted(expected.as_ref()),
                quoted(lorebook.as_ref())
            );
            findings
                .push(Finding::new(Code::LorebookNameMismatch, timeline, message).usual_remedy());
        }
    }
    findings
}

/// Returns whether the chat has continued since the extension's record was written: the chat has a
/// different last message, or its running recap has a newer version. Returns false if the record
/// has neither a message nor a time.
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
