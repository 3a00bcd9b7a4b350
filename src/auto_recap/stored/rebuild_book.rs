//! Rebuilds a lorebook from the entries of a scene record.
//!
//! For every entry, the result lists which fields come from another lorebook with the same entry,
//! and which are SillyTavern's defaults. All other fields come from the scene record.

use std::collections::HashSet;

use serde::Serialize;

use crate::archive::diff::value::same;
use crate::archive::entry_identity::{IdentityFields, is_blank};
use crate::auto_recap::written::is_queue;
use crate::st::json::quote;
use crate::st::{Edits, Raw, entries, entry_comment, entry_uid, replace};

/// The fields of an entry in the order in which SillyTavern writes them, with SillyTavern's
/// defaults.
const DEFAULTS: &str = r#"{"uid":0,"key":[],"keysecondary":[],"comment":"","content":"","constant":false,
"vectorized":false,"selective":true,"selectiveLogic":0,"addMemo":false,"order":100,
"position":0,"disable":false,"ignoreBudget":false,"excludeRecursion":false,
"preventRecursion":false,"matchPersonaDescription":false,"matchCharacterDescription":false,
"matchCharacterPersonality":false,"matchCharacterDepthPrompt":false,"matchScenario":false,
"matchCreatorNotes":false,"delayUntilRecursion":0,"probability":100,"useProbability":true,
"depth":4,"outletName":"","group":"","groupOverride":false,"groupWeight":100,
"scanDepth":null,"caseSensitive":null,"matchWholeWords":null,"useGroupScoring":null,
"automationId":"","role":0,"sticky":null,"cooldown":null,"delay":null,"triggers":[]}"#;

fn defaults() -> impl Iterator<Item = (String, &'static str)> {
    let members = Raw::parse_str(DEFAULTS).and_then(|entry| entry.members()).unwrap_or_default();
    members.into_iter().map(|member| (member.key.into_string_lossy(), member.value.as_str()))
}

pub struct Rebuilt {
    pub bytes: Vec<u8>,
    /// Origins of the entries, in the order of the file, without the queue.
    pub entries: Vec<EntryOrigin>,
    /// Number of recorded values that are not entries, or do not have a unique UID.
    pub left_out: usize,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct EntryOrigin {
    pub uid: String,
    pub title: String,
    /// Index of the lorebook from which the fields in `filled` come; `None` if no lorebook has the
    /// entry.
    #[serde(skip)]
    pub filled_from: Option<usize>,
    pub filled: Vec<String>,
    /// Fields that were not recorded and have SillyTavern's default value.
    pub defaults: Vec<String>,
}

/// Rebuilds a lorebook from the recorded entries `notes`. Fields that were not recorded come from
/// the first of `books` that has the same entry. UIDs are not changed, and gaps between them
/// remain. The recorded queue is left out, and an empty queue is added under the key `queue`, or
/// the next free key.
pub fn rebuild_book(notes: &[Raw<'_>], books: &[&[u8]], queue: i64) -> Rebuilt {
    let marked = |(_, entry)| (entry, IdentityFields::of(entry));
    let known: Vec<Vec<_>> =
        books.iter().map(|book| entries(book).into_iter().map(marked).collect()).collect();
    let mut seen = HashSet::new();
    let mut left_out = 0;
    let mut noted = Vec::new();
    for note in notes {
        match entry_uid(*note).filter(|_| note.is_object()) {
            Some(_) if is_queue(*note) => {}
            Some(uid) if seen.insert(uid) => noted.push((uid, *note)),
            _ => left_out += 1,
        }
    }
    noted.sort_by_key(|(uid, _)| *uid);
    let mut text = String::from("{");
    let mut origins = Vec::new();
    for (uid, note) in &noted {
        let found =
            known.iter().enumerate().find_map(|(n, book)| Some((n, counterpart(*note, book)?)));
        let (entry, origin) = match found {
            Some((n, entry)) => completed(*note, entry, n),
            None => built(*note),
        };
        text.push_str(&format!("\n        \"{uid}\": {entry},"));
        origins.push(origin);
    }
    let mut key = queue;
    while seen.contains(&key) {
        key = key.checked_add(1).unwrap_or(0);
    }
    text.push_str(&format!("\n        \"{key}\": {}\n    }}", empty_queue(key)));
    // All other members of the file come from the nearest lorebook.
    let whole = books.iter().find_map(|book| replace(book, &["entries"], text.as_bytes()));
    let bytes = whole.unwrap_or_else(|| format!("{{\n    \"entries\": {text}\n}}").into_bytes());
    Rebuilt { bytes, entries: origins, left_out }
}

fn counterpart<'b>(note: Raw<'_>, book: &[(Raw<'b>, IdentityFields<'b>)]) -> Option<Raw<'b>> {
    let (uid, marks) = (entry_uid(note), IdentityFields::of(note));
    let by_uid = book.iter().find(|(entry, known)| entry_uid(*entry) == uid && marks.agree(known));
    let found = by_uid.or_else(|| book.iter().find(|(_, known)| marks.agree_wholly(known)));
    found.map(|(entry, _)| *entry)
}

/// Returns the recorded fields that belong to the entry itself.
fn held(note: Raw<'_>) -> Vec<(String, Raw<'_>)> {
    let members = note.members().unwrap_or_default().into_iter();
    let is_held = |(name, value): &(String, Raw<'_>)| match name.as_str() {
        "world" | "strategy" => false,
        // The extension always records this list as empty.
        "keysecondary" => !is_blank(*value),
        _ => true,
    };
    members.map(|member| (member.key.to_string_lossy(), member.value)).filter(is_held).collect()
}

/// Returns the entry of a lorebook, updated with the recorded values.
fn completed(note: Raw<'_>, entry: Raw<'_>, book: usize) -> (String, EntryOrigin) {
    let held = held(note);
    let mut edits = Edits::new(entry.as_bytes());
    for (name, value) in &held {
        match entry.get(name) {
            Some(there) if same(there, *value) => {}
            _ => edits.set(entry, name, value.as_str()),
        }
    }
    let mut filled = Vec::new();
    for member in entry.members().unwrap_or_default() {
        let name = member.key.to_string_lossy();
        if !held.iter().any(|(held, _)| *held == name) && !filled.contains(&name) {
            filled.push(name);
        }
    }
    let text = String::from_utf8(edits.apply()).unwrap_or_default();
    (text, EntryOrigin { filled_from: Some(book), filled, ..origin(note) })
}

/// Creates an entry that no lorebook has, from the recorded values and SillyTavern's defaults.
fn built(note: Raw<'_>) -> (String, EntryOrigin) {
    let held = held(note);
    let mut text = String::from("{");
    let (mut known, mut unset) = (HashSet::new(), Vec::new());
    for (name, default) in defaults() {
        let value = held.iter().rev().find(|(held, _)| *held == name);
        push_field(&mut text, &name, value.map_or(default, |(_, value)| value.as_str()));
        if value.is_none() {
            unset.push(name.clone());
        }
        known.insert(name);
    }
    for (name, value) in held.iter().filter(|(name, _)| !known.contains(name)) {
        push_field(&mut text, name, value.as_str());
    }
    (text + "\n        }", EntryOrigin { defaults: unset, ..origin(note) })
}

fn push_field(text: &mut String, name: &str, value: &str) {
    if text.len() > 1 {
        text.push(',');
    }
    text.push_str(&format!("\n            {}: {value}", quote(name.as_bytes())));
}

fn origin(note: Raw<'_>) -> EntryOrigin {
    EntryOrigin {
        uid: entry_uid(note).map(|uid| uid.to_string()).unwrap_or_default(),
        title: entry_comment(note).unwrap_or_default(),
        filled_from: None,
        filled: Vec::new(),
        defaults: Vec::new(),
    }
}

/// Returns an empty queue as the extension writes it.
fn empty_queue(uid: i64) -> String {
    const NOTHING: &str = r#""{\n  \"queue\": [],\n  \"current_operation_id\": null,\n  \"paused\": false,\n  \"version\": 1\n}""#;
    let uid = uid.to_string();
    let mut text = String::from("{");
    for (name, default) in defaults() {
        let value = match name.as_str() {
            "uid" => &uid,
            "comment" => "\"__operation_queue\"",
            "content" => NOTHING,
            "disable" => "true",
            _ => default,
        };
        push_field(&mut text, &name, value);
    }
    text + "\n        }"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auto_recap::written::queue_operations;

    fn notes(text: &str) -> Rebuilt {
        let list = Raw::parse_str(text).unwrap().items().unwrap();
        rebuild_book(&list, &[], 1_763_632_438_061)
    }

    fn uids(book: &[u8]) -> Vec<String> {
        entries(book).iter().map(|(key, _)| key.to_string_lossy()).collect()
    }

    #[test]
    fn req_46_rebuilt_lorebook_gets_an_empty_queue() {
        let rebuilt = notes(
            r#"[{"uid":1,"comment":"b","content":"B","world":"W","strategy":"normal"},{"uid":0,"comment":"a","content":"A"},
                {"uid":99,"comment":"__operation_queue","content":"{\"queue\":[{\"status\":\"pending\"}]}"}]"#,
        );
        assert_eq!(uids(&rebuilt.bytes), ["0", "1", "1763632438061"]);
        let queues = entries(&rebuilt.bytes).into_iter().map(|(_, entry)| entry);
        let queues: Vec<_> = queues.filter(|entry| is_queue(*entry)).collect();
        assert_eq!(queues.len(), 1);
        assert_eq!(queue_operations(queues[0].get("content")), Some(Vec::new()));
        let text = String::from_utf8(rebuilt.bytes).unwrap();
        assert!(!text.contains("strategy") && !text.contains("world"), "{text}");
    }

    #[test]
    fn req_47_req_50_req_51_rebuilt_lorebook_keeps_uids_and_gaps() {
        let list: Vec<_> = [5, 6, 7, 8, 2_000_000]
            .iter()
            .map(|uid| format!("{{\"uid\":{uid},\"comment\":\"e{uid}\"}}"))
            .collect();
        let rebuilt = notes(&format!("[{}]", list.join(",")));
        assert_eq!(uids(&rebuilt.bytes), ["5", "6", "7", "8", "2000000", "1763632438061"]);
        for (key, entry) in entries(&rebuilt.bytes) {
            assert_eq!(entry_uid(entry).unwrap().to_string(), key.to_string_lossy());
        }
    }

    #[test]
    fn invalid_or_duplicate_entries_are_omitted_and_counted() {
        let rebuilt = notes(
            r#"[null, 7, "x", {"comment":"no uid"}, {"uid":1.5}, {"uid":3,"comment":"__proto__","content":"\ud83d"}, {"uid":3}]"#,
        );
        assert_eq!(rebuilt.left_out, 6);
        assert_eq!(uids(&rebuilt.bytes), ["3", "1763632438061"]);
        assert!(String::from_utf8(rebuilt.bytes).unwrap().contains(r#""content": "\ud83d""#));
    }

    #[test]
    fn missing_fields_are_filled_from_the_same_entry_of_another_lorebook() {
        let book = br#"{"name":"kept","entries":{"7":{"uid":7,"scanDepth":3,"key":["x"],"keysecondary":["y"],"comment":"Lyra","content":"now","extra":1e21}},"extensions":{}}"#;
        let note = r#"[{"uid":7,"comment":"Lyra","content":"then","keysecondary":[],"key":[ "x" ],"order":5},{"uid":8,"comment":"other","content":"z"}]"#;
        let list = Raw::parse_str(note).unwrap().items().unwrap();
        let rebuilt = rebuild_book(&list, &[book], 10);
        let text = String::from_utf8(rebuilt.bytes).unwrap();
        assert!(
            text.contains(r#"{"uid":7,"scanDepth":3,"key":["x"],"keysecondary":["y"],"comment":"Lyra","content":"then","extra":1e21,"order":5}"#),
            "{text}"
        );
        assert!(
            text.starts_with(r#"{"name":"kept","entries":{"#)
                && text.ends_with(r#","extensions":{}}"#)
        );
        assert_eq!(rebuilt.entries[0].filled, ["scanDepth", "keysecondary", "extra"]);
        assert_eq!(rebuilt.entries[0].filled_from, Some(0));
        assert_eq!(rebuilt.entries[1].filled_from, None);
        assert!(rebuilt.entries[1].defaults.contains(&"cooldown".to_owned()));
    }

    #[test]
    fn entry_with_reused_uid_is_not_used_to_fill_fields() {
        let book = br#"{"entries":{"7":{"uid":7,"key":["q"],"comment":"Someone else","content":"now","scanDepth":9}}}"#;
        let note = r#"[{"uid":7,"comment":"Lyra","content":"then","key":["l"]}]"#;
        let list = Raw::parse_str(note).unwrap().items().unwrap();
        let rebuilt = rebuild_book(&list, &[book], 10);
        assert_eq!(rebuilt.entries[0].filled_from, None);
        assert!(String::from_utf8(rebuilt.bytes).unwrap().contains("\"scanDepth\": null"));
    }
}
