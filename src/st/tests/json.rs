use crate::st::json::{Key, Raw, replace};
use proptest::prelude::*;

fn raw(text: &str) -> Raw<'_> {
    Raw::parse(text.as_bytes()).unwrap_or_else(|| panic!("no JSON: {text}"))
}

#[test]
fn parse_accepts_exactly_one_valid_json_value() {
    assert_eq!(raw(" \t\r\n {\"a\":1} \n").as_str(), "{\"a\":1}");
    for broken in [
        "",
        " ",
        "{",
        "{}{}",
        "\u{feff}{}",
        "{\"a\":}",
        "[1,]",
        "01",
        "\"\u{1}\"",
        "nul",
        "\"\\x\"",
    ] {
        assert_eq!(Raw::parse(broken.as_bytes()), None, "{broken:?}");
    }
    assert_eq!(Raw::parse(b"\"\xff\""), None);
}

#[test]
fn deeply_nested_json_is_parsed() {
    const DEPTH: usize = 1_000_000;
    assert_eq!(Raw::parse("[".repeat(DEPTH).as_bytes()), None);
    assert_eq!(Raw::parse("{\"a\":".repeat(DEPTH).as_bytes()), None);
    let deep = format!("{{\"a\":{}{}, \"b\": 1}}", "[".repeat(DEPTH), "]".repeat(DEPTH));
    assert_eq!(raw(&deep).get("b").unwrap().as_str(), "1");
    assert_eq!(raw(&deep).get("a").unwrap().items().unwrap().len(), 1);
}

#[test]
fn last_of_repeated_keys_is_used() {
    let text = r#"{"1":"a","\u0031":"b","__proto__":{"x":1}}"#;
    assert_eq!(raw(text).get("1").unwrap().string().unwrap(), "b");
    assert_eq!(raw(text).path(&["__proto__", "x"]).unwrap().integer(), Some(1));
    let members = raw(text).members().unwrap();
    assert_eq!(members.len(), 3);
    assert_eq!(members[0].key, members[1].key);
    assert_eq!(members[1].raw_key, br#""\u0031""#);
}

#[test]
fn keys_compare_as_in_javascript() {
    let same = [
        (r#""😀""#, r#""\ud83d\ude00""#),
        (r#""/""#, r#""\/""#),
        (r#""\u00e9""#, "\"é\""),
        (r#""\uD83D""#, r#""\ud83d""#),
        (r#""\n""#, r#""\u000A""#),
    ];
    for (a, b) in same {
        assert_eq!(Key::decode(a.as_bytes()), Key::decode(b.as_bytes()), "{a} {b}");
    }
    let other = [
        (r#""\ud83d""#, r#""\ufffd""#),
        (r#""\ude00\ud83d""#, r#""😀""#),
        (r#""a""#, r#""A""#),
        (r#""é""#, "\"e\u{301}\""),
    ];
    for (a, b) in other {
        assert_ne!(Key::decode(a.as_bytes()), Key::decode(b.as_bytes()), "{a} {b}");
    }
    // A backslash in the name passed to `get` is not an escape.
    assert_eq!(raw(r#"{"\n":1}"#).get("\\n"), None);
    assert_eq!(raw(r#"{"\\n":1}"#).get("\\n").unwrap().integer(), Some(1));
}

#[test]
fn lone_surrogates_are_read_as_replacement_characters() {
    let text = r#"{"a\ud83d":"x\ud83d y\ude00\u0041 \ud83d\ude00 \ud83d\ud83d\ude00"}"#;
    let member = raw(text).members().unwrap().remove(0);
    assert_eq!(member.key.as_bytes(), b"a\xed\xa0\xbd");
    assert_eq!(member.key.to_string_lossy(), "a\u{fffd}");
    assert_eq!(member.value.string().unwrap(), "x\u{fffd} y\u{fffd}A 😀 \u{fffd}😀");
}

#[test]
fn values_are_truthy_as_in_javascript_and_typed_reads_are_strict() {
    for text in ["0", "-0", "0.0", "0e9", "1e-999", "\"\"", "null", "false"] {
        assert!(!raw(text).truthy(), "{text}");
    }
    for text in ["1", "-1", "1e999", "\"0\"", "{}", "[]", "true"] {
        assert!(raw(text).truthy(), "{text}");
    }
    assert_eq!(raw("9007199254740993").integer(), Some(9_007_199_254_740_993));
    assert_eq!(raw("1e21").integer(), None);
    assert_eq!(raw("1.0").integer(), None);
    assert_eq!(raw("\"1\"").integer(), None);
    assert_eq!(raw("true").bool(), Some(true));
    assert_eq!(raw("1").bool(), None);
    assert!(raw("null").is_null());
    assert_eq!(raw("[1,{}]").members(), None);
    assert_eq!(raw("{}").items(), None);
    assert_eq!(raw("[1]").get("0"), None);
    assert_eq!(raw("[1, [2]]").items().unwrap()[1].as_str(), "[2]");
}

#[test]
fn replace_changes_only_the_named_value() {
    let text = br#" {"a" : {"b":1,"b" :2 , "c":"x"}, "a":{ "b" : [3] }}"#;
    let new = replace(text, &["a", "b"], b"\"new\"").unwrap();
    assert_eq!(new, br#" {"a" : {"b":1,"b" :2 , "c":"x"}, "a":{ "b" : "new" }}"#);
    assert_eq!(replace(text, &["a", "c"], b"1"), None);
    assert_eq!(replace(b"{\"a\":1", &["a"], b"1"), None);
    assert_eq!(replace(b" 7 ", &[], b"8").unwrap(), b" 8 ");
}

#[test]
fn span_of_a_value_from_another_text_is_empty() {
    let (a, b) = (String::from("{\"a\":1}"), String::from("{\"a\":1}"));
    assert_eq!(raw(&a).get("a").unwrap().span_in(b.as_bytes()), 0..0);
    assert_eq!(raw(&a).get("a").unwrap().span_in(a.as_bytes()), 5..6);
}

proptest! {
    #[test]
    fn written_string_is_read_unchanged(text in any::<String>()) {
        let written = serde_json::to_string(&text).unwrap();
        prop_assert_eq!(raw(&written).string(), Some(text));
    }

    #[test]
    fn arbitrary_bytes_do_not_panic(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
        let _ = Key::decode(&bytes).map(|key| key.to_string_lossy());
        if let Some(value) = Raw::parse(&bytes) {
            let _ = (value.members(), value.items(), value.string(), value.truthy(), value.integer());
        }
    }

    #[test]
    fn replace_keeps_the_surrounding_bytes(
        before in "[ \t\n]{0,3}", key in "[a-z]{1,3}", other in "[A-Z]{1,3}", value in "[1-9][0-9]{0,2}|\"[a-z]*\"",
    ) {
        let text = format!("{before}{{\"{other}\" :\t{value}, \"{key}\": {value} }}{before}");
        let expected = format!("{before}{{\"{other}\" :\t{value}, \"{key}\": null }}{before}");
        prop_assert_eq!(replace(text.as_bytes(), &[&key], b"null"), Some(expected.into_bytes()));
    }
}

#[test]
fn pick_returns_several_members_at_once() {
    let text = r#"{"uid":1,"\u0075id":2,"comment":"a","x":{"uid":9}}"#;
    let [uid, comment, content] =
        Raw::parse_str(text).unwrap().pick(["uid", "comment", "content"]).unwrap();
    assert_eq!((uid.unwrap().as_str(), comment.unwrap().as_str()), ("2", "\"a\""));
    assert_eq!(content, None);
    for none in ["null", "7", "[]", "\"uid\""] {
        assert_eq!(Raw::parse_str(none).unwrap().pick(["uid"]), None);
    }
}
