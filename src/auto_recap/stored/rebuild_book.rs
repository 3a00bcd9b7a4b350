//! A lorebook from the entries that were noted at the end of a scene.

use std::collections::HashSet;

use crate::archive::diff::value::same;
use crate::archive::entry_identity::{Marks, is_blank};
use crate::auto_recap::written::is_queue;
use crate::st::{Edits, Key, Raw, entries, entry_comment, entry_uid, replace};

/// The fields of an entry in the order in which SillyTavern writes them, with its defaults.
const FIELDS: [(&str, &str); 40] = [
    ("uid", "0"),
    ("key", "[]"),
    ("keysecondary", "[]"),
    ("comment", "\"\""),
    ("content", "\"\""),
    ("constant", "false"),
    ("vectorized", "false"),
    ("selective", "true"),
    ("selectiveLogic", "0"),
    ("addMemo", "false"),
    ("order", "100"),
    ("position", "0"),
    ("disable", "false"),
    ("ignoreBudget", "false"),
    ("excludeRecursion", "false"),
    ("preventRecursion", "false"),
    ("matchPersonaDescription", "false"),
    ("matchCharacterDescription", "false"),
    ("matchCharacterPersonality", "false"),
    ("matchCharacterDepthPrompt", "false"),
    ("matchScenario", "false"),
    ("matchCreatorNotes", "false"),
    ("delayUntilRecursion", "0"),
    ("probability", "100"),
    ("useProbability", "true"),
    ("depth", "4"),
    ("outletName", "\"\""),
    ("group", "\"\""),
    ("groupOverride", "false"),
    ("groupWeight", "100"),
    ("scanDepth", "null"),
    ("caseSensitive", "null"),
    ("matchWholeWords", "null"),
    ("useGroupScoring", "null"),
    ("automationId", "\"\""),
    ("role", "0"),
    ("sticky", "null"),
    ("cooldown", "null"),
    ("delay", "null"),
    ("triggers", "[]"),
];

/// What a note has beside the entry's own fields.
const NOT_OF_THE_ENTRY: [&str; 2] = ["world", "strategy"];

pub struct Rebuilt {
    pub bytes: Vec<u8>,
    /// Where each entry comes from, in the order of the file; the queue is not among them.
    pub entries: Vec<EntryOrigin>,
    /// Notes that are no entries, or have no UID of their own: left out.
    pub left_out: usize,
}

/// Where an entry comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryOrigin {
    pub uid: String,
    pub title: String,
    /// Which of the books the same entry was found in.
    pub filled_from: Option<usize>,
    /// The fields that come from there.
    pub filled: Vec<String>,
    /// The fields that are SillyTavern's defaults.
    pub defaults: Vec<String>,
}

/// An entry of a book, and what it is recognised by.
struct KnownEntry<'a> {
    entry: Raw<'a>,
    uid: Option<i64>,
    marks: Marks<'a>,
}

impl<'a> KnownEntry<'a> {
    fn of((_, entry): (Key, Raw<'a>)) -> Self {
        Self { entry, uid: entry_uid(entry), marks: Marks::of(entry) }
    }
}

/// Put a lorebook together from the noted entries. What a note does not hold comes from the first of `books` that has the same entry. UIDs and gaps
/// stay; the queue is left out and a fresh empty one is added under the key `queue`, or the next free one.
pub fn rebuild_book(notes: &[Raw<'_>], books: &[&[u8]], queue: i64) -> Rebuilt {
    let known: Vec<Vec<_>> =
        books.iter().map(|book| entries(book).into_iter().map(KnownEntry::of).collect()).collect();
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
        push_member(&mut text, &uid.to_string(), &entry);
        origins.push(origin);
    }
    let mut key = queue;
    while seen.contains(&key) {
        key = key.checked_add(1).unwrap_or(0);
    }
    push_member(&mut text, &key.to_string(), &empty_queue(key));
    text.push_str("\n    }");
    // What a book has beside its entries is kept from the nearest one.
    let whole = books.iter().find_map(|book| replace(book, &["entries"], text.as_bytes()));
    let bytes = whole.unwrap_or_else(|| format!("{{\n    \"entries\": {text}\n}}").into_bytes());
    Rebuilt { bytes, entries: origins, left_out }
}

fn push_member(text: &mut String, key: &str, value: &str) {
    if text.len() > 1 {
        text.push(',');
    }
    text.push_str(&format!("\n        \"{key}\": {value}"));
}

fn counterpart<'b>(note: Raw<'_>, book: &[KnownEntry<'b>]) -> Option<Raw<'b>> {
    let (uid, marks) = (entry_uid(note), Marks::of(note));
    let by_uid = book.iter().find(|known| known.uid == uid && marks.agree(&known.marks));
    let found = by_uid.or_else(|| book.iter().find(|known| marks.agree_wholly(&known.marks)));
    found.map(|known| known.entry)
}

/// What the note holds. (`keysecondary` is always noted as empty, so an empty one says nothing.)
fn held(note: Raw<'_>) -> Vec<(String, Raw<'_>)> {
    let members = note.members().unwrap_or_default();
    let says_nothing = |name: &str, value: Raw<'_>| name == "keysecondary" && is_blank(value);
    let is_held = |name: &str, value: Raw<'_>| {
        !(NOT_OF_THE_ENTRY.contains(&name) || says_nothing(name, value))
    };
    members
        .into_iter()
        .map(|member| (member.key.to_string_lossy(), member.value))
        .filter(|(name, value)| is_held(name, *value))
        .collect()
}

/// The entry of a book, with the values that were noted.
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

/// An entry that no book has: the noted values, and SillyTavern's defaults.
fn built(note: Raw<'_>) -> (String, EntryOrigin) {
    let held = held(note);
    let mut text = String::from("{");
    let mut defaults = Vec::new();
    for (name, default) in &FIELDS {
        let value =
            held.iter().rev().find(|(held, _)| held == name).map(|(_, value)| value.as_str());
        if value.is_none() {
            defaults.push((*name).to_owned());
        }
        push_field(&mut text, name, value.unwrap_or(default));
    }
    for (name, value) in &held {
        if !FIELDS.iter().any(|(field, _)| field == name) {
            push_field(&mut text, name, value.as_str());
        }
    }
    text.push_str("\n        }");
    (text, EntryOrigin { defaults, ..origin(note) })
}

fn push_field(text: &mut String, name: &str, value: &str) {
    if text.len() > 1 {
        text.push(',');
    }
    let name = serde_json::to_string(name).unwrap_or_default();
    text.push_str(&format!("\n            {name}: {value}"));
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

/// The queue as the extension makes it: nothing to do.
fn empty_queue(uid: i64) -> String {
    const NOTHING: &str = r#""{\n  \"queue\": [],\n  \"current_operation_id\": null,\n  \"paused\": false,\n  \"version\": 1\n}""#;
    let mut text = String::from("{");
    for (name, default) in &FIELDS {
        let uid = uid.to_string();
        let value = match *name {
            "uid" => uid.as_str(),
            "comment" => "\"__operation_queue\"",
            "content" => NOTHING,
            "disable" => "true",
            _ => default,
        };
        push_field(&mut text, name, value);
    }
    text.push_str("\n        }");
    text
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
    fn req_46_the_queue_is_left_out_and_a_fresh_one_added() {
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
    fn req_47_req_50_req_51_uids_stay_with_their_gaps() {
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
    fn what_is_no_entry_is_left_out_and_counted() {
        let rebuilt = notes(
            r#"[null, 7, "x", {"comment":"no uid"}, {"uid":1.5}, {"uid":3,"comment":"__proto__","content":"\ud83d"}, {"uid":3}]"#,
        );
        assert_eq!(rebuilt.left_out, 6);
        assert_eq!(uids(&rebuilt.bytes), ["3", "1763632438061"]);
        assert!(String::from_utf8(rebuilt.bytes).unwrap().contains(r#""content": "\ud83d""#));
    }

    #[test]
    fn the_same_entry_gives_what_the_note_does_not_hold() {
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
    fn a_uid_that_was_given_out_again_is_another_entry() {
        let book = br#"{"entries":{"7":{"uid":7,"key":["q"],"comment":"Someone else","content":"now","scanDepth":9}}}"#;
        let note = r#"[{"uid":7,"comment":"Lyra","content":"then","key":["l"]}]"#;
        let list = Raw::parse_str(note).unwrap().items().unwrap();
        let rebuilt = rebuild_book(&list, &[book], 10);
        assert_eq!(rebuilt.entries[0].filled_from, None);
        assert!(String::from_utf8(rebuilt.bytes).unwrap().contains("\"scanDepth\": null"));
    }
}
