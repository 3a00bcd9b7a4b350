use crate::st::json::Raw;
use crate::st::lorebook::{CutLorebook, FillError};
use crate::st::{cut, entry_comment, entry_uid, fill};
use proptest::prelude::*;
use std::collections::HashMap;

fn comes_back(bytes: &[u8]) -> CutLorebook<'_> {
    let cut = cut(bytes);
    let entries: HashMap<_, _> =
        cut.entries.iter().map(|(key, value)| (key.as_bytes(), *value)).collect();
    if !entries.is_empty() {
        assert_eq!(fill(&cut.book, |key| entries.get(key)).unwrap(), bytes);
    }
    let nuls = cut.book.iter().filter(|byte| **byte == 0).count();
    assert!(cut.entries.is_empty() || nuls == cut.entries.len());
    cut
}

#[test]
fn edit_of_one_entry_changes_no_other_part() {
    let before = b"{\n    \"entries\": {\n        \"0\": {\"uid\": 0, \"comment\": \"A\"},\n        \"1\": {\"uid\": 1}\n    },\n    \"name\": \"x\"\n}";
    let after = String::from_utf8_lossy(before).replace("\"A\"", "\"B\"");
    let (a, b) = (comes_back(before), comes_back(after.as_bytes()));
    assert_eq!(a.book, b.book);
    assert_eq!(a.book, b"{\n    \"entries\": {\n        \"0\": \0,\n        \"1\": \0\n    },\n    \"name\": \"x\"\n}");
    assert_eq!(a.entries[0].1, br#"{"uid": 0, "comment": "A"}"#);
    assert_eq!(a.entries[1], b.entries[1]);
    let entry = Raw::parse(a.entries[0].1).unwrap();
    assert_eq!(entry_comment(entry).unwrap(), "A");
    assert_eq!(entry_uid(entry), Some(0));
}

#[test]
fn entries_with_unusual_keys_are_split_and_rejoined() {
    let text = "\u{20}{\"x\":{\"entries\":{\"0\":1}},\"\\u0065ntries\" :\r\n{\"\":1e21,\"__proto__\"\t:\nnull , \"a\\\"\\\\\":[[]],\"\\\\\\\\\":{},\"\\ud83d\":\"\\\"\",\"\\ud83d\\ude00\":9007199254740993, \":\" : \"{\", \"é\u{2028}\":false}}\n";
    let cut = comes_back(text.as_bytes());
    let keys: Vec<_> = cut.entries.iter().map(|(key, _)| key.to_string_lossy()).collect();
    assert_eq!(keys, ["", "__proto__", "a\"\\", "\\\\", "\u{fffd}", "😀", ":", "é\u{2028}"]);
    assert_eq!(cut.entries[0].1, b"1e21");
}

#[test]
fn lorebook_that_would_not_round_trip_is_not_split() {
    let whole: [&[u8]; 12] = [
        b"",
        b"[]",
        b"{}",
        b"{\"entries\":{}}",
        b"{\"entries\":[1]}",
        b"{\"entries\":{\"0\":1},\"entries\":{\"1\":1}}",
        b"{\"entries\":{\"0\":1},\"entrie\\u0073\":{\"1\":1}}",
        b"{\"entries\":{\"1\":1,\"\\u0031\":2}}",
        b"{\"entries\":{\"0\":\0}}",
        b"\xef\xbb\xbf{\"entries\":{\"0\":1}}",
        b"{\"entries\":{\"0\":\"\xff\"}}",
        b"{\"entries\":{\"0\":1}",
    ];
    for bytes in whole {
        let cut = comes_back(bytes);
        assert!(cut.entries.is_empty(), "{}", bytes.escape_ascii());
        assert_eq!(cut.book, bytes);
    }
}

#[test]
fn lorebook_with_deeply_nested_entry_is_split() {
    let deep = format!("{{\"entries\":{{\"0\":{}{}}}}}", "[".repeat(100_000), "]".repeat(100_000));
    assert_eq!(comes_back(deep.as_bytes()).entries.len(), 1);
}

#[test]
fn fill_reports_missing_keys_and_entries() {
    for book in ["\0", "\"a\"\0", "a\":\0", "\":\0", "\\\":\0", "\"\\x\":\0", "{\"a\":\0\0"] {
        let at = book.len() - 1;
        let filled = fill(book.as_bytes(), |_| Some(b"1"));
        assert_eq!(filled, Err(FillError::NoKey { at }), "{book:?}");
    }
    let missing = fill(b"{\"a\":\0}", |_| None::<Vec<u8>>);
    assert_eq!(missing, Err(FillError::NoEntry { key: "a".to_owned() }));
    assert_eq!(fill(b"{}", |_| None::<Vec<u8>>).unwrap(), b"{}");
}

fn key() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "[0-9]{1,2}",
        1 => Just("__proto__".to_owned()),
        1 => Just("entries".to_owned()),
        3 => proptest::collection::vec(
            prop_oneof![
                Just(r"\ud83d".to_owned()), Just(r"\ude00".to_owned()), Just(r"\\".to_owned()), Just(r#"\""#.to_owned()),
                Just(r"\u0000".to_owned()), Just(r"\u0031".to_owned()), Just("1".to_owned()), Just(":".to_owned()),
                Just("é😀".to_owned()), Just("{,".to_owned()),
            ],
            0..4,
        ).prop_map(|parts| parts.concat()),
    ].prop_map(|body| format!("\"{body}\""))
}

fn space() -> impl Strategy<Value = String> {
    prop_oneof![3 => Just(String::new()), 1 => Just("\r\n\t".to_owned()), 1 => "[ \n]{1,4}"]
}

fn value() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("null".to_owned()),
        Just("1e21".to_owned()),
        Just("-0.0".to_owned()),
        Just("true".to_owned()),
        Just("9007199254740993".to_owned()),
        key(),
    ];
    leaf.prop_recursive(5, 24, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4)
                .prop_map(|items| format!("[{}]", items.join(", "))),
            object(inner),
        ]
    })
}

fn object(value: impl Strategy<Value = String> + Clone) -> impl Strategy<Value = String> {
    proptest::collection::vec((space(), key(), space(), space(), value, space()), 0..6).prop_map(
        |members| {
            let members: Vec<_> = members
                .into_iter()
                .map(|(a, key, b, c, value, d)| format!("{a}{key}{b}:{c}{value}{d}"))
                .collect();
            format!("{{{}}}", members.join(","))
        },
    )
}

fn book() -> impl Strategy<Value = Vec<u8>> {
    let entries = prop_oneof![4 => object(value().boxed()), 1 => value()];
    let ends = prop_oneof![8 => Just(("", "")), 1 => Just(("\u{feff}", "")), 1 => Just(("", "\0")), 1 => Just(("\r\n", "\n"))];
    (ends, prop::option::of((key(), value())), space(), entries, prop::option::of((key(), value())))
        .prop_map(|((start, end), first, gap, entries, last)| {
            let side = |member: Option<(String, String)>| {
                member.map(|(key, value)| format!("{key}:{value}"))
            };
            let entries = Some(format!("\"entries\"{gap}:{gap}{entries}"));
            let members: Vec<_> =
                [side(first), entries, side(last)].into_iter().flatten().collect();
            format!("{start}{{{}}}{end}", members.join(",")).into_bytes()
        })
}

proptest! {
    #[test]
    fn arbitrary_bytes_round_trip(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        comes_back(&bytes);
    }

    #[test]
    fn unusual_and_damaged_lorebooks_round_trip(bytes in book(), damage in prop::option::of((any::<prop::sample::Index>(), any::<u8>()))) {
        comes_back(&bytes);
        if let Some((at, byte)) = damage {
            let mut damaged = bytes;
            let at = at.index(damaged.len());
            damaged[at] = byte;
            comes_back(&damaged);
        }
    }

    #[test]
    fn fill_does_not_panic_on_arbitrary_bytes(bytes in proptest::collection::vec(prop::sample::select(b"\0\":\\a u1\n{".to_vec()), 0..40)) {
        let _ = fill(&bytes, |key| Some(key.to_vec()));
    }
}

#[test]
fn generator_yields_splittable_and_unsplittable_lorebooks() {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;
    let mut runner = TestRunner::deterministic();
    let mut seen: HashMap<bool, usize> = HashMap::new();
    for _ in 0..300 {
        let bytes = book().new_tree(&mut runner).unwrap().current();
        *seen.entry(cut(&bytes).entries.is_empty()).or_default() += 1;
    }
    assert!(seen[&false] > 100 && seen[&true] > 30, "{seen:?}");
}
