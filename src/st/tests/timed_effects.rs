use crate::st::json::stringify;
use crate::st::timed_effects::{effect_hash, rename_effects};
use crate::st::{Key, Raw};
use proptest::prelude::*;
use std::fs;
use std::path::Path;

/// A file of `fixtures/timed-effects`.
fn fixture(name: &str) -> Vec<u8> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/timed-effects");
    fs::read(dir.join(name)).unwrap()
}

fn texts(json: Raw<'_>) -> Vec<String> {
    json.items().unwrap().iter().map(|item| item.string().unwrap()).collect()
}

fn raw(text: &str) -> Raw<'_> {
    Raw::parse_str(text).unwrap_or_else(|| panic!("no JSON: {text}"))
}

/// Returns the entries under their uids, as a lorebook has them.
fn book<'a>(entries: &[&'a str]) -> Vec<(Key, Raw<'a>)> {
    let key = |n: usize| Key::decode(format!("\"{n}\"").as_bytes()).unwrap();
    entries.iter().enumerate().map(|(n, entry)| (key(n), raw(entry))).collect()
}

fn rename(timed: &str, old: &str, new: &str, entries: &[&str]) -> String {
    String::from_utf8(rename_effects(raw(timed), old, new, &book(entries))).unwrap()
}

fn hash(entry: &str, book: &str) -> u64 {
    effect_hash(raw(entry), book).unwrap()
}

#[test]
fn stringify_equals_javascript_json_stringify() {
    let (values, expected) = (fixture("stringify.json"), fixture("expected.json"));
    let values = texts(Raw::parse(&values).unwrap());
    let expected = texts(Raw::parse(&expected).unwrap().get("stringify").unwrap());
    assert_eq!(values.len(), expected.len());
    for (value, expected) in values.iter().zip(&expected) {
        assert_eq!(&stringify(raw(value)), expected, "{value}");
    }
}

#[test]
fn req_19_timed_effect_hashes_equal_those_of_sillytavern() {
    let (entries, books) = (fixture("entries.json"), fixture("books.json"));
    let expected = fixture("expected.json");
    let entries = texts(Raw::parse(&entries).unwrap());
    let books = texts(Raw::parse(&books).unwrap());
    let expected = Raw::parse(&expected).unwrap().get("hashes").unwrap().items().unwrap();
    assert_eq!(entries.len(), expected.len());
    for (entry, expected) in entries.iter().zip(expected) {
        let hashes: Vec<_> = books.iter().map(|book| effect_hash(raw(entry), book)).collect();
        let expected: Vec<_> = expected
            .items()
            .unwrap()
            .iter()
            .map(|hash| hash.integer().map(|hash| u64::try_from(hash).unwrap()))
            .collect();
        assert_eq!(hashes, expected, "{entry}");
    }
}

#[test]
fn stringify_accepts_any_depth() {
    const DEPTH: usize = 100_000;
    let deep = format!("{}1.0{}", "[{\"a\": ".repeat(DEPTH), "}]".repeat(DEPTH));
    let expected = format!("{}1{}", "[{\"a\":".repeat(DEPTH), "}]".repeat(DEPTH));
    assert!(stringify(raw(&deep)) == expected);
    let entry = format!("{{\"uid\":1,\"x\":{deep}}}");
    assert!(effect_hash(raw(&entry), "a").is_some());
}

const ONE: &str = r#"{"uid": 1, "content": "@@activate\nOne", "sticky": 3}"#;
const TWO: &str = r#"{"uid": 2, "content": "Two", "cooldown": 9}"#;

#[test]
fn req_19_rename_of_timed_effects_changes_only_names_and_hashes() {
    let (old, new) = ("Old \"雪\"", "New \\ 🦊");
    let timed = |name: &str, one: u64, two: u64, three: u64| {
        let key = |uid: usize| serde_json::to_string(&format!("{name}.{uid}")).unwrap();
        format!(
            "{{ \"x\":1e2,\r\n\"sticky\" : {{{} :{{\"hash\": {one},\t\"start\":1.0,\"end\":4,\"protected\":false , \"more\":[\"Old.1\"]}},\n \
             \"Other.1\":{{\"hash\":5}}}},\"cooldown\":{{\t{}: {{\"end\":\"9\",\"start\":3,\"hash\":\"{two}\"}} , {}:{{\"hash\":{three}}} }},\
             \"delay\":{{\"Old.1\":{{}}}}  }}",
            key(1),
            key(2),
            key(3)
        )
    };
    // The lorebook has no third entry, so the hash 77 of the third effect does not change.
    let before = timed(old, hash(ONE, old), hash(TWO, old), 77);
    let after = timed(new, hash(ONE, new), hash(TWO, new), 77);
    assert_eq!(rename(&before, old, new, &[ONE, TWO]), after.clone());
    assert_eq!(rename(&after, new, old, &[TWO, ONE]), before.clone());
    assert_eq!(rename(&before, old, old, &[ONE, TWO]), before.clone());
    assert_eq!(rename(&before, "Older", new, &[ONE, TWO]), before);
}

#[test]
fn effect_of_an_edited_entry_keeps_its_hash() {
    // An effect that a slash command created has no hash.
    let timed = r#"{"sticky":{"a.1":{"hash":5,"start":1}},"cooldown":{"a.1":{"start":1},"a.2":{"hash":null}}}"#;
    let expected = timed.replace("\"a.", "\"b.");
    assert_eq!(rename(timed, "a", "b", &[ONE, TWO]), expected);
}

#[test]
fn entry_of_an_effect_is_found_by_its_hash() {
    let with = |name: &str, hash: u64| {
        format!(r#"{{"sticky":{{"{name}.99":{{"hash":{hash}}}}},"cooldown":{{}}}}"#)
    };
    let before = with("a", hash(ONE, "a"));
    let after = with("b", hash(ONE, "b"));
    assert_eq!(rename(&before, "a", "b", &[TWO, ONE]), after);
    // JavaScript reads the hash with `.0` as the same number.
    let (before, after) = (
        format!(r#"{{"sticky":{{"a.1":{{"hash":{}.0}}}}}}"#, hash(ONE, "a")),
        format!(r#"{{"sticky":{{"b.1":{{"hash":{}}}}}}}"#, hash(ONE, "b")),
    );
    assert_eq!(rename(&before, "a", "b", &[ONE]), after);
}

#[test]
fn effects_of_entries_with_non_integer_uids_are_renamed() {
    for (uid, shown) in
        [("\"x\\ud83d\"", "x\\ud83d"), ("1.50", "1.5"), ("null", "null"), ("\"a.b\"", "a.b")]
    {
        let entry = format!(r#"{{"uid":{uid}}}"#);
        let timed = format!(r#"{{"sticky":{{"a.{shown}":{{"hash":1}}}}}}"#);
        let expected = timed.replace("\"a.", "\"b.");
        assert_eq!(rename(&timed, "a", "b", &[&entry]), expected, "{uid}");
        assert_eq!(rename(&timed, "a", "b", &[]), timed, "{uid}");
    }
    let nameless = r#"{"content":"x"}"#;
    let with = |name: &str| {
        format!(r#"{{"cooldown":{{"{name}.undefined":{{"hash":{}}}}}}}"#, hash(nameless, name))
    };
    assert_eq!(rename(&with("a"), "a", "b", &[nameless]), with("b"));
}

#[test]
fn effects_of_other_lorebooks_stay_unchanged() {
    for timed in [
        r#"{"sticky":{"a.b.1":{"hash":1},"aa.1":{"hash":1},"a":{"hash":1},"1":{"hash":1},"A.1":{"hash":1}}}"#,
        r#"{"delay":{"a.1":{"hash":1}},"a.1":{"hash":1}}"#,
    ] {
        assert_eq!(rename(timed, "a", "c", &[ONE]), timed.to_owned());
    }
    let timed = r#"{"sticky":{"a.1":{"hash":1},"a.b.1":{"hash":1}}}"#;
    let expected = r#"{"sticky":{"a.1":{"hash":1},"c.1":{"hash":1}}}"#;
    assert_eq!(rename(timed, "a.b", "c", &[ONE]), expected.to_owned());
}

#[test]
fn rename_gives_the_old_name_to_effects_that_had_the_new_name() {
    let (a, b) = (hash(ONE, "a"), hash(ONE, "b"));
    let timed = format!(r#"{{"sticky":{{"a.1":{{"hash":{a}}},"b.1":{{"hash":{b},"end":0}}}}}}"#);
    let expected = format!(r#"{{"sticky":{{"b.1":{{"hash":{b}}},"a.1":{{"hash":{a},"end":0}}}}}}"#);
    assert_eq!(rename(&timed, "a", "b", &[ONE]), expected);
}

#[test]
fn effects_of_entries_with_their_own_world_are_not_renamed() {
    let entry = r#"{"uid":1,"world":"a"}"#;
    assert_eq!(hash(entry, "a"), hash(entry, "b"));
    for hash in [hash(entry, "a"), 5] {
        let timed = format!(r#"{{"sticky":{{"a.1":{{"hash":{hash}}}}}}}"#);
        assert_eq!(rename(&timed, "a", "b", &[entry]), timed.clone());
    }
}

#[test]
fn invalid_effect_values_stay_unchanged() {
    for timed in [
        "null",
        "[]",
        "\"sticky\"",
        "{}",
        r#"{"sticky":null,"cooldown":[{"a.1":{}}]}"#,
        r#"{"sticky":"a.1","cooldown":5}"#,
        r#"{"sticky":{"a.1":{"hash":1},"a.\u0031":null}}"#,
    ] {
        assert_eq!(rename(timed, "a", "b", &[ONE, TWO, "null", "5"]), timed.to_owned());
    }
    let timed = r#"{"sticky":{"a.1":null,"a.2":[1, {"hash":1}],"a.3":"x"}}"#;
    assert_eq!(rename(timed, "a", "b", &[ONE]), timed.replace("a.", "b."));
    // Of repeated keys, only the last counts.
    let timed = r#"{"sticky":{"a.1":{}},"sticky":{"a.1":{"hash":1,"hash":HASH}}}"#;
    let with = |name: &str| timed.replace("HASH", &hash(ONE, name).to_string());
    let expected = with("b").replacen("a.1", "b.1", 2).replacen("b.1", "a.1", 1);
    assert_eq!(rename(&with("a"), "a", "b", &[ONE]), expected);
}

fn string() -> impl Strategy<Value = String> {
    let part = prop::sample::select(vec![
        r"\ud83d", r"\uDE00", r"\\", r#"\""#, r"\/", r"\u0000", r"\u001F", r"\u2028", r"\n", "0",
        "1", "9", "a", "é😀", "\u{7f}", "]", "{", ",:", " ",
    ]);
    proptest::collection::vec(part, 0..4).prop_map(|parts| format!("\"{}\"", parts.concat()))
}

fn json() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        prop::sample::select(vec!["null", "true", "false", "-0", "1e400", "1e21", "1e-7"])
            .prop_map(str::to_owned),
        any::<f64>().prop_filter_map("not JSON", |x| x.is_finite().then(|| format!("{x:e}"))),
        any::<i64>().prop_map(|n| n.to_string()),
        string(),
    ];
    leaf.prop_recursive(5, 32, 6, |inner| {
        let items = proptest::collection::vec(inner.clone(), 0..6);
        let key = prop_oneof![string(), (0..12).prop_map(|n| format!("\"{n}\""))];
        let members = proptest::collection::vec((key, inner), 0..6);
        prop_oneof![
            items.prop_map(|items| format!("[ {} ]", items.join(" ,\t"))),
            members.prop_map(|members| {
                let members: Vec<_> = members.iter().map(|(k, v)| format!("{k} :\n{v}")).collect();
                format!("{{{}\r\n}}", members.join(" , "))
            }),
        ]
    })
}

proptest! {
    #[test]
    fn stringify_is_idempotent(text in json()) {
        let once = stringify(raw(&text));
        prop_assert_eq!(stringify(raw(&once)), once);
    }

    #[test]
    fn effect_hash_does_not_depend_on_whitespace(text in json()) {
        let tight = stringify(raw(&text));
        prop_assert_eq!(effect_hash(raw(&text), "a"), effect_hash(raw(&tight), "a"));
    }

    #[test]
    fn stringify_keeps_the_value_of_numbers(x in any::<f64>()) {
        prop_assume!(x.is_finite());
        let written = stringify(raw(&format!("{x:e}")));
        prop_assert_eq!(written.parse::<f64>().unwrap(), x);
    }

    #[test]
    fn arbitrary_text_does_not_panic(text in "[\\[\\]{}\",:\\\\ud8e0-9.+-]{0,24}|\\PC{0,24}") {
        for text in [&text, &format!("[{text}]"), &format!("{{\"sticky\":{{\"a.1\":{text}}}}}")] {
            if let Some(value) = Raw::parse_str(text) {
                stringify(value);
                effect_hash(value, &value.as_str().replace('\\', ""));
                rename_effects(value, "a", "b", &[(Key::decode(b"\"\"").unwrap(), value)]);
            }
        }
    }

    #[test]
    fn reverse_rename_restores_the_effects(effects in json(), entries in proptest::collection::vec(json(), 0..3)) {
        let entries: Vec<_> = entries.iter().map(String::as_str).chain([ONE, TWO]).collect();
        let timed = stringify(raw(&format!(
            r#"{{"sticky":{{"a.1":{effects},"a.2":{{"hash":{}}},"b.2":{{"hash":"{}"}},"b.1":{{}}}},"cooldown":{effects}}}"#,
            hash(TWO, "a"), hash(TWO, "b"),
        )));
        let there = rename(&timed, "a", "b", &entries);
        prop_assert_ne!(&there, &timed);
        prop_assert_eq!(rename(&there, "b", "a", &entries), timed);
    }
}
