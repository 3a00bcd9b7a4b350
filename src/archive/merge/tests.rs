use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;
use crate::st;

fn book(entries: &[(u32, &str)]) -> Vec<u8> {
    let members: Vec<_> =
        entries.iter().map(|(key, value)| format!("\n        \"{key}\": {value}")).collect();
    format!("{{\n    \"entries\": {{{}\n    }}\n}}", members.join(",")).into_bytes()
}

fn entry(uid: u32, title: &str, content: &str) -> String {
    format!(
        r#"{{"uid":{uid},"key":["{title}"],"comment":"{title}","content":"{content}","order":100}}"#
    )
}

/// Returns the entries of a book, by key.
fn entries(book: &[u8]) -> BTreeMap<String, String> {
    let list = st::entries(book);
    list.iter().map(|(key, value)| (key.to_string_lossy(), value.as_str().to_owned())).collect()
}

fn merged(base: &[u8], ours: &[u8], theirs: &[u8]) -> Merged {
    merge_books(Some(base), ours, theirs, Side::Ours).unwrap()
}

const TIDE: &str = "The tide waits for nobody at all";
const GULL: &str = "Grey birds scream above each harbour wall";

#[test]
fn independent_changes_of_both_sides_are_merged() {
    let (tide, gull) = (entry(0, "Tide", TIDE), entry(1, "Gull", GULL));
    let base = book(&[(0, &tide), (1, &gull)]);
    let ours = book(&[(0, &tide.replace("nobody", "somebody")), (1, &gull)]);
    let bell = entry(2, "Waker", "It rings three times before dawn");
    let theirs = book(&[(0, &tide.replace("\"Tide\"]", "\"Ebb\"]")), (2, &bell)]);
    let merged = merged(&base, &ours, &theirs);
    let both = tide.replace("nobody", "somebody").replace("\"Tide\"]", "\"Ebb\"]");
    assert_eq!(
        String::from_utf8(merged.bytes).unwrap(),
        String::from_utf8(book(&[(0, &both), (2, &bell)])).unwrap()
    );
    assert_eq!(merged.added, [EntryName { uid: "2".into(), title: "Waker".into() }]);
    assert_eq!(merged.removed, [EntryName { uid: "1".into(), title: "Gull".into() }]);
    assert_eq!(merged.edited.len(), 1);
    assert_eq!(merged.edited[0].fields[0].field, "key");
    assert!(merged.conflicts.is_empty() && merged.renumbered.is_empty());
}

#[test]
fn entry_is_renumbered_when_both_sides_added_its_uid() {
    let tide = entry(0, "Tide", TIDE);
    let base = book(&[(0, &tide)]);
    let ours = book(&[(0, &tide), (1, &entry(1, "Gull", GULL))]);
    let bell = entry(1, "Waker", "It rings three times before dawn");
    let theirs = book(&[(0, &tide), (1, &bell)]);
    let merged = merged(&base, &ours, &theirs);
    let moved = bell.replace("\"uid\":1", "\"uid\":2");
    assert_eq!(merged.bytes, book(&[(0, &tide), (1, &entry(1, "Gull", GULL)), (2, &moved)]));
    let renumbered = &merged.renumbered[0];
    assert_eq!((renumbered.old.as_str(), renumbered.new.as_str()), ("1", "2"));
    assert_eq!(merged.added[0].uid, "2");
    assert!(merged.conflicts.is_empty());
}

#[test]
fn uid_reused_after_a_removal_is_not_renumbered() {
    let base = book(&[(3, &entry(3, "Tide", TIDE))]);
    let theirs = book(&[(3, &entry(3, "Gull", GULL))]);
    let merged = merged(&base, &base, &theirs);
    assert_eq!(merged.bytes, theirs);
    assert_eq!((merged.added.len(), merged.removed.len()), (1, 1));
    assert!(merged.renumbered.is_empty());
}

#[test]
fn entry_removed_on_one_side_and_edited_on_other_is_a_conflict() {
    let tide = entry(0, "Tide", TIDE);
    let (base, edited) = (book(&[(0, &tide)]), book(&[(0, &tide.replace("nobody", "none"))]));
    let empty = b"{\"entries\": {}}".to_vec();
    let there = merged(&base, &edited, &empty);
    assert_eq!(there.bytes, edited);
    assert_eq!(there.conflicts[0].kind, ConflictKind::RemovedThere);
    let here = merged(&base, &empty, &edited);
    assert_eq!(entries(&here.bytes), entries(&edited));
    assert_eq!(here.conflicts[0].kind, ConflictKind::RemovedHere);
    // The entry stays, whichever side is preferred.
    for prefer in [Side::Ours, Side::Theirs] {
        let merged = merge_books(Some(&base), &empty, &edited, prefer).unwrap();
        assert_eq!(entries(&merged.bytes), entries(&edited));
    }
    // Reordering by the extension does not count as an edit.
    let reordered = book(&[(0, &tide.replace("100", "999"))]);
    let merged = merged(&base, &reordered, &empty);
    assert!(merged.conflicts.is_empty() && entries(&merged.bytes).is_empty());
}

#[test]
fn value_changed_on_both_sides_is_a_conflict() {
    let tide = entry(0, "Tide", TIDE);
    let base = book(&[(0, &tide)]);
    let ours = book(&[(0, &tide.replace("nobody", "some").replace("100", "7"))]);
    let theirs = book(&[(0, &tide.replace("nobody", "many").replace("100", "8"))]);
    let one = merged(&base, &ours, &theirs);
    assert_eq!(one.bytes, ours);
    let [conflict] = one.conflicts.as_slice() else { panic!("{:?}", one.conflicts) };
    assert_eq!(conflict.value.field, "content");
    let text = |value: &Option<Vec<u8>>| String::from_utf8(value.clone().unwrap()).unwrap();
    assert!(text(&conflict.value.base).contains("nobody"));
    assert!(text(&conflict.value.ours).contains("some"));
    assert!(text(&conflict.value.theirs).contains("many"));
    let other = merge_books(Some(&base), &ours, &theirs, Side::Theirs).unwrap();
    // `order` is never a conflict, and stays as in `ours`.
    assert_eq!(other.bytes, book(&[(0, &tide.replace("nobody", "many").replace("100", "7"))]));
    assert_eq!(other.conflicts.len(), 1);
}

#[test]
fn keys_of_both_sides_are_merged_as_sets() {
    let with = |keys: &str| book(&[(0, &entry(0, "Tide", TIDE).replace("[\"Tide\"]", keys))]);
    let (base, ours) = (with(r#"["a", "b", "c"]"#), with(r#"["a", "b", "c", "d"]"#));
    let one = merged(&base, &ours, &with(r#"["b", "c", "e", "d"]"#));
    assert_eq!(one.bytes, with(r#"["b", "c", "d","e"]"#));
    assert!(one.conflicts.is_empty());
    let all_other = merged(&with(r#"["a"]"#), &with(r#"["a", "b"]"#), &with(r#"["c"]"#));
    assert_eq!(all_other.bytes, with(r#"["b","c"]"#));
    let none_left = merged(&with(r#"["a", "b"]"#), &with(r#"["b"]"#), &with(r#"["a"]"#));
    assert_eq!(none_left.bytes, with("[]"));
    let replaced = merged(&with(r#"["a", "b"]"#), &with(r#"["b"]"#), &with(r#"["x"]"#));
    assert_eq!(replaced.bytes, with(r#"["x"]"#));
}

fn registry(uid: u32, lines: &[&str]) -> String {
    let content = format!("[Registry: character]\\n{}", lines.join("\\n"));
    format!(
        r#"{{"uid":{uid},"comment":"_registry_character","content":"{content}","disable":true}}"#
    )
}

#[test]
fn registries_are_merged_by_line_with_renumbered_uids() {
    let (tide, gull) = (entry(1, "Tide", TIDE), entry(2, "Gull", GULL));
    let bell = entry(2, "Waker", "It rings three times before dawn");
    let base = book(&[(0, &registry(0, &["- UID=1 | name: Tide | synopsis: —"])), (1, &tide)]);
    let ours = book(&[
        (0, &registry(0, &["- UID=1 | name: Tide | synopsis: wet", "- UID=2 | name: Gull"])),
        (1, &tide),
        (2, &gull),
    ]);
    let theirs = book(&[
        (
            0,
            &registry(
                0,
                &["- UID=1 | name: Tide | synopsis: —", "- UID=2 | name: Waker | a | b\\nmore"],
            ),
        ),
        (1, &tide),
        (2, &bell),
    ]);
    let one = merged(&base, &ours, &theirs);
    assert!(one.conflicts.is_empty(), "{:?}", one.conflicts);
    let lines = [
        "- UID=1 | name: Tide | synopsis: wet",
        "- UID=2 | name: Gull",
        "- UID=3 | name: Waker | a | b\\nmore",
    ];
    assert_eq!(entries(&one.bytes)["0"], registry(0, &lines));
    assert_eq!(one.edited[0].fields[0].field, "content");
    // UIDs are also replaced if only `theirs` changed the registry.
    let ours =
        book(&[(0, &registry(0, &["- UID=1 | name: Tide | synopsis: —"])), (1, &tide), (2, &gull)]);
    let two = merged(&base, &ours, &theirs);
    let lines = ["- UID=1 | name: Tide | synopsis: —", "- UID=3 | name: Waker | a | b\\nmore"];
    assert_eq!(entries(&two.bytes)["0"], registry(0, &lines));
    // A line that both sides changed is a conflict.
    let theirs = book(&[(0, &registry(0, &["- UID=1 | name: Tide | synopsis: dry"])), (1, &tide)]);
    let ours = book(&[(0, &registry(0, &["- UID=1 | name: Tide | synopsis: wet"])), (1, &tide)]);
    let three = merged(&base, &ours, &theirs);
    assert_eq!((three.bytes == ours, three.conflicts.len()), (true, 1));
    // The registry keeps the line of an entry that stays.
    let edited = tide.replace("nobody", "one");
    let ours = book(&[(0, &registry(0, &["- UID=1 | name: Tide | synopsis: —"])), (1, &edited)]);
    let four = merged(&base, &ours, &book(&[(0, &registry(0, &[]).replace("\\n\"", "\""))]));
    assert_eq!(four.bytes, ours);
    assert_eq!(four.conflicts[0].kind, ConflictKind::RemovedThere);
}

#[test]
fn registry_line_removed_on_one_side_stays_only_if_the_other_edited_it() {
    let tide = entry(1, "Tide", TIDE);
    let with = |lines: &[&str]| book(&[(0, &registry(0, lines)), (1, &tide)]);
    let gull = "- UID=7 | name: Gull";
    let before = with(&["- UID=1 | name: Tide", gull]);
    let edited = with(&["- UID=1 | name: Ebb", gull]);
    let removed = with(&[gull]);
    for (ours, theirs) in [(&edited, &removed), (&removed, &edited)] {
        let content = &entries(&merged(&before, ours, theirs).bytes)["0"];
        assert!(content.contains("name: Ebb"), "{content}");
    }
    for (ours, theirs) in [(&before, &removed), (&removed, &before)] {
        assert_eq!(merged(&before, ours, theirs).bytes, removed);
    }
}

#[test]
fn entry_that_is_not_an_object_is_merged_as_one_value() {
    let with = |value: &str| book(&[(0, value)]);
    let [base, ours, theirs] = ["\"old\"", "\"ours\"", "\"theirs\""].map(with);
    assert_eq!(merged(&base, &base, &theirs).bytes, theirs);
    assert_eq!(merged(&base, &ours, &base).bytes, ours);
    for (prefer, expected) in [(Side::Ours, &ours), (Side::Theirs, &theirs)] {
        let merged = merge_books(Some(&base), &ours, &theirs, prefer).unwrap();
        assert_eq!((&merged.bytes, merged.conflicts.len()), (expected, 1));
    }
}

#[test]
fn merge_leaves_the_local_queue_unchanged() {
    let queue = |uid: u32, status: &str| {
        let operation = format!(r#"{{\"id\":\"op\",\"status\":\"{status}\"}}"#);
        format!(
            r#"{{"uid":{uid},"comment":"__operation_queue","content":"{{\"queue\":[{operation}]}}"}}"#
        )
    };
    let (base, ours) = (book(&[(9, &queue(9, "completed"))]), book(&[(9, &queue(9, "failed"))]));
    let theirs = book(&[(9, &queue(9, "pending"))]);
    let one = merged(&base, &ours, &theirs);
    assert_eq!((one.bytes.as_slice(), one.queue_left), (ours.as_slice(), 1));
    // A queue is neither added nor removed.
    let none = book(&[]);
    let two = merged(&none, &none, &theirs);
    assert_eq!((two.bytes.as_slice(), two.queue_left), (none.as_slice(), 1));
    assert!(two.added.is_empty());
    let three = merged(&ours, &ours, &none);
    assert_eq!(three.bytes, ours);
    assert!(three.removed.is_empty() && three.conflicts.is_empty());
}

#[test]
fn values_outside_the_entries_are_merged_by_key() {
    let with = |more: &str| format!("{{\"entries\":{{}}{more}}}").into_bytes();
    let one = merged(&with(""), &with(r#","a":1"#), &with(r#","b":[2]"#));
    assert_eq!(one.bytes, with(r#","a":1,"b":[2]"#));
    let two = merged(&with(r#","a":0"#), &with(r#","a":1"#), &with(r#","a":2"#));
    assert_eq!(two.bytes, with(r#","a":1"#));
    assert_eq!((two.conflicts.len(), &two.conflicts[0].entry), (1, &None));
}

#[test]
fn merge_without_readable_base_reports_differing_entries_as_conflicts() {
    let (tide, gull) = (entry(0, "Tide", TIDE), entry(1, "Gull", GULL));
    let ours = book(&[(0, &tide), (1, &gull)]);
    let bell = entry(4, "Waker", "It rings three times before dawn");
    let theirs =
        book(&[(0, &tide.replace("nobody", "all")), (3, &gull.replace(":1,", ":3,")), (4, &bell)]);
    let one = merge_books(None, &ours, &theirs, Side::Ours).unwrap();
    assert_eq!(one.bytes, book(&[(0, &tide), (1, &gull), (4, &bell)]));
    assert_eq!(one.conflicts.len(), 1);
    assert_eq!(one.added.len(), 1);
    assert!(!one.with_base && one.removed.is_empty());
    // An unreadable base counts as missing.
    let two = merge_books(Some(b"torn"), &ours, &theirs, Side::Ours).unwrap();
    assert_eq!((two.bytes, two.with_base), (one.bytes, false));
}

#[test]
fn merge_refuses_invalid_lorebooks_and_names_the_side() {
    let fine = book(&[]);
    for broken in [
        "",
        "torn",
        "[]",
        "{}",
        r#"{"entries":[]}"#,
        r#"{"entries":{"1":1,"1":2}}"#,
        r#"{"entries":{},"a":1,"a":2}"#,
        "\u{feff}{\"entries\":{}}",
    ] {
        let broken = broken.as_bytes();
        assert_eq!(merge_books(None, &fine, broken, Side::Ours).unwrap_err().side, Side::Theirs);
        assert_eq!(merge_books(None, broken, &fine, Side::Ours).unwrap_err().side, Side::Ours);
        // Equal books are not parsed.
        assert_eq!(merge_books(None, broken, broken, Side::Ours).unwrap().bytes, broken);
    }
}

/// One edit of a book by a user.
#[derive(Clone, Debug)]
enum Edit {
    Write(usize, u8),
    Rename(usize, u8),
    Key(usize, u8),
    Switch(usize),
    Reorder,
    Remove(usize),
    Add,
    Move(usize, u32),
}

#[derive(Clone, Debug)]
struct Page {
    tag: u32,
    title: u8,
    text: Vec<u8>,
    keys: BTreeSet<u8>,
    off: bool,
    order: usize,
}

type Pages = BTreeMap<u32, Page>;

fn page(tag: u32) -> Page {
    Page { tag, title: 0, text: vec![0], keys: BTreeSet::from([0]), off: false, order: 100 }
}

fn do_all(mut pages: Pages, edits: &[Edit], mut tag: u32) -> Pages {
    for edit in edits {
        let nth = |n: &usize| pages.keys().copied().nth(n % pages.len().max(1));
        match edit {
            Edit::Add => {
                let free = (0..).find(|uid| !pages.contains_key(uid)).unwrap();
                pages.insert(free, page(tag));
                tag += 1;
            }
            Edit::Reorder => {
                pages.values_mut().enumerate().for_each(|(n, page)| page.order = 1000 - n);
            }
            Edit::Remove(n) => {
                nth(n).and_then(|uid| pages.remove(&uid));
            }
            Edit::Move(n, to) => {
                if let Some(uid) = nth(n).filter(|_| !pages.contains_key(to)) {
                    let page = pages.remove(&uid).unwrap();
                    pages.insert(*to, page);
                }
            }
            Edit::Write(n, _) | Edit::Rename(n, _) | Edit::Key(n, _) | Edit::Switch(n) => {
                let Some(page) = nth(n).and_then(|uid| pages.get_mut(&uid)) else { continue };
                match edit {
                    Edit::Write(_, word) => page.text.push(*word),
                    Edit::Rename(_, name) => page.title = *name,
                    Edit::Key(_, key) => {
                        if !page.keys.remove(key) {
                            page.keys.insert(*key);
                        }
                    }
                    _ => page.off = !page.off,
                }
            }
        }
    }
    pages
}

fn written(pages: &Pages) -> Vec<u8> {
    let list: Vec<_> = pages
        .iter()
        .map(|(uid, page)| {
            let tag = page.tag;
            let words: Vec<_> = page.text.iter().map(|n| format!("word{n}of{tag}")).collect();
            let keys: Vec<_> = page.keys.iter().map(|n| format!("\"key{n}of{tag}\"")).collect();
            let value = format!(
                r#"{{"uid": {uid}, "tag": {tag}, "key": [{}], "comment": "title{}of{tag} \ud83d", "content": "of{tag} stays{tag} forever{tag} {}", "disable": {}, "order": {}}}"#,
                keys.join(", "), page.title, words.join(" "), page.off, page.order
            );
            (*uid, value)
        })
        .collect();
    book(&list.iter().map(|(uid, value)| (*uid, value.as_str())).collect::<Vec<_>>())
}

fn edits() -> impl Strategy<Value = Vec<Edit>> {
    let n = || 0..6_usize;
    let edit = prop_oneof![
        (n(), 1..4_u8).prop_map(|(n, word)| Edit::Write(n, word)),
        (n(), 0..4_u8).prop_map(|(n, name)| Edit::Rename(n, name)),
        (n(), 0..4_u8).prop_map(|(n, key)| Edit::Key(n, key)),
        n().prop_map(Edit::Switch),
        Just(Edit::Reorder),
        n().prop_map(Edit::Remove),
        Just(Edit::Add),
        (n(), 0..9_u32).prop_map(|(n, to)| Edit::Move(n, to)),
    ];
    proptest::collection::vec(edit, 0..8)
}

fn by_tag(book: &[u8]) -> BTreeMap<i64, String> {
    let list = st::entries(book);
    let tag = |entry: Raw<'_>| entry.get("tag").and_then(|tag| tag.integer()).unwrap();
    list.iter().map(|(_, entry)| (tag(*entry), entry.as_str().to_owned())).collect()
}

proptest! {
    #[test]
    fn change_on_one_side_is_merged_without_conflict(base in edits(), edits in edits()) {
        let base = do_all(Pages::new(), &[vec![Edit::Add; 4], base].concat(), 0);
        let (old, new) = (written(&base), written(&do_all(base.clone(), &edits, 100)));
        prop_assert_eq!(&merged(&old, &new, &new).bytes, &new);
        prop_assert_eq!(&merged(&old, &new, &old).bytes, &new);
        let taken = merged(&old, &old, &new);
        prop_assert_eq!(entries(&taken.bytes), entries(&new));
        prop_assert!(taken.conflicts.is_empty(), "{:?}", taken.conflicts);
    }

    #[test]
    fn merge_removes_entry_only_if_removed_and_not_edited_on_the_other_side(base in edits(), ours in edits(), theirs in edits(), has_base in any::<bool>(), prefer in any::<bool>()) {
        let base = do_all(Pages::new(), &[vec![Edit::Add; 4], base].concat(), 0);
        let (ours, theirs) = (do_all(base.clone(), &ours, 100), do_all(base.clone(), &theirs, 200));
        let (base, ours, theirs) = (written(&base), written(&ours), written(&theirs));
        let prefer = if prefer { Side::Theirs } else { Side::Ours };
        let merged = merge_books(has_base.then_some(base.as_slice()), &ours, &theirs, prefer).unwrap();
        // The merged book is valid, and each `uid` equals its key.
        let read = Book::read(&merged.bytes).unwrap();
        for (key, entry) in &read.list {
            prop_assert_eq!(entry.get("uid").unwrap().as_str(), key.to_string_lossy());
        }
        let (before, here, there) = (by_tag(&base), by_tag(&ours), by_tag(&theirs));
        let now = by_tag(&merged.bytes);
        let raw = |text: &'_ str| -> Vec<(String, String)> {
            let members = Raw::parse_str(text).unwrap().members().unwrap();
            members.iter().map(|member| (member.key.to_string_lossy(), member.value.as_str().to_owned())).collect()
        };
        for (side, other) in [(&here, &there), (&there, &here)] {
            for (tag, entry) in side {
                let removed = has_base && before.get(tag).is_some_and(|old| {
                    untouched(Raw::parse_str(old).unwrap(), Raw::parse_str(entry).unwrap())
                }) && !other.contains_key(tag);
                prop_assert_eq!(now.contains_key(tag), !removed, "{}", tag);
            }
        }
        // Every field has the value of one of the sides, except lists of keys.
        for (tag, entry) in &now {
            let from: Vec<_> = [here.get(tag), there.get(tag)].into_iter().flatten().map(|text| raw(text)).collect();
            for (field, value) in raw(entry) {
                let is_of_one = from.iter().any(|fields| fields.contains(&(field.clone(), value.clone())));
                prop_assert!(is_of_one || ["uid", "key"].contains(&field.as_str()), "{} {}", field, value);
            }
        }
        for conflict in &merged.conflicts {
            let (ours, theirs) = (&conflict.value.ours, &conflict.value.theirs);
            prop_assert!(ours != theirs);
            prop_assert!(&conflict.value.merged == ours || &conflict.value.merged == theirs);
        }
        // Merging in the other direction gives the same set of entries.
        let back = merge_books(has_base.then_some(base.as_slice()), &theirs, &ours, Side::Ours).unwrap();
        prop_assert_eq!(by_tag(&back.bytes).into_keys().collect::<Vec<_>>(), now.into_keys().collect::<Vec<_>>());
    }

    #[test]
    fn merge_of_arbitrary_bytes_does_not_panic(base in any::<Vec<u8>>(), ours in any::<Vec<u8>>(), theirs in any::<Vec<u8>>()) {
        let _ = merge_books(Some(&base), &ours, &theirs, Side::Ours);
        prop_assert_eq!(merge_books(Some(&base), &ours, &ours, Side::Ours).unwrap().bytes, ours);
    }

    #[test]
    fn merge_of_unusual_entries_yields_a_valid_lorebook(base in any::<Vec<u8>>(), texts in proptest::collection::vec(odd_entry(), 0..8), at in 0..8_usize) {
        let write = |texts: &[String]| {
            let members: Vec<_> =
                texts.iter().enumerate().map(|(n, text)| format!("\"{n}\":{text}")).collect();
            format!("{{\"entries\":{{{}}}}}", members.join(",")).into_bytes()
        };
        let at = at.min(texts.len());
        let (one, two) = (write(&texts[..at]), write(&texts[at..]));
        for base in [Some(&base[..]), Some(&one[..]), Some(&two[..]), None] {
            for (ours, theirs) in [(&one, &two), (&two, &one)] {
                for prefer in [Side::Ours, Side::Theirs] {
                    let merged = merge_books(base, ours, theirs, prefer).unwrap();
                    prop_assert!(Book::read(&merged.bytes).is_ok());
                }
            }
        }
    }
}

/// Generates entries with missing, repeated or unexpected members.
fn odd_entry() -> impl Strategy<Value = String> {
    let names = ["uid", "comment", "content", "key", "order", "a"];
    let values = [
        "1",
        "null",
        "{}",
        "[]",
        r#"["k"]"#,
        r#"["k", "l", "k"]"#,
        "[1]",
        r#""x""#,
        r#""\ud83d""#,
        r#""_registry_a""#,
        r#""__operation_queue""#,
        r#""[Registry: a]""#,
        r#""- UID=1 \n""#,
        r#""\n\n- uid: 0 | é \u000a\\n- uid: 0\n\n- UID=0 | x""#,
        r#""{\"queue\":[{\"status\":\"pending\"}]}""#,
    ];
    let field =
        (proptest::sample::select(names.to_vec()), proptest::sample::select(values.to_vec()));
    let object = proptest::collection::vec(field, 0..5).prop_map(|fields| {
        let fields: Vec<_> =
            fields.iter().map(|(name, value)| format!("\"{name}\": {value}")).collect();
        format!("{{{}}}", fields.join(", "))
    });
    prop_oneof![5 => object, 1 => proptest::sample::select(values.to_vec()).prop_map(str::to_owned)]
}
