use super::book_names::book_segment;
use super::queue::{QueueActivity, queues};
use super::*;
use crate::st::{Category, Chat, Key, Raw, uid_text};

fn raw(text: &str) -> Raw<'_> {
    Raw::parse_str(text).unwrap()
}

fn registry(content: &str) -> Result<Vec<(String, String)>, &'static str> {
    let content = serde_json::to_string(content).unwrap();
    let items = registry_items(Some(raw(&content)))?;
    Ok(items.into_iter().map(|item| (item.uid, item.name)).collect())
}

#[test]
fn registries_are_read_in_all_three_notations() {
    let expected = |pairs: &[(&str, &str)]| {
        Ok(pairs.iter().map(|(uid, name)| ((*uid).to_owned(), (*name).to_owned())).collect())
    };
    for content in [
        "[Registry: character]\n- UID=7 | name: character-X | aliases: a; b | synopsis: s | name: no\n- UID=12 | name: ",
        "[registry: character]\r\n-uid: 7 | name: character-X\r\n  - Uid = 12\r\n",
        r#"{"items":[{"id":"7","name":"character-X"},{"id":0,"uid":12,"name":""},{},null]}"#,
    ] {
        assert_eq!(registry(content), expected(&[("7", "character-X"), ("12", "")]), "{content}");
    }
    for content in ["", " \n", "[Registry: character]", "{}", r#"{"items":[]}"#] {
        assert_eq!(registry(content), Ok(Vec::new()), "{content:?}");
    }
    // A value may contain line breaks. Only lines in the format of a registry count.
    let content = "[Registry: x]\n- UID=7 | synopsis: first\n- second\n- UID= | name: x\nUID=9";
    assert_eq!(registry(content), expected(&[("7", "")]));
    for content in ["- second", "7", "{", r#"{"items":{}}"#, "[]", "é", "[Regé"] {
        assert!(registry(content).is_err(), "{content}");
    }
    assert_eq!(registry_items(None), Ok(Vec::new()));
    for content in ["null", "7", "{}", "[]"] {
        assert!(registry_items(Some(raw(content))).is_err(), "{content}");
    }
}

const BOOK: &[u8] = br#"{"entries":{"1":null,"2":7,"3":{"uid":3,"comment":"item-x"},"9":{"comment":"__operation_queue","content":"{\"queue\":[{\"id\":\"a\",\"type\":\"T\",\"status\":\"retrying\",\"params\":{\"index\":4,\"indexes\":[5,\"6\"],\"endIndex\":\"x\"},\"metadata\":{\"scene_index\":7}},{},null]}"}}}"#;

#[test]
fn queue_of_a_lorebook_is_found_with_its_operations() {
    let found = queues(BOOK);
    assert_eq!(found.len(), 1);
    let operations = queue_operations(found[0].get("content")).unwrap();
    assert_eq!(operations[0].messages, [4, 7, 5]);
    assert!(operations[0].is_active() && !operations[1].is_active());
    assert_eq!(queue_activity(BOOK), QueueActivity { retrying: 1, ..Default::default() });
    let not_books: [&[u8]; 5] = [
        b"",
        b"[]",
        br#"{"entries":[{"comment":"__operation_queue"}]}"#,
        b"__operation_queue",
        br#"{"entries":{"x":"__operation_queue"}}"#,
    ];
    for book in not_books {
        assert!(queues(book).is_empty());
    }
}

#[test]
fn empty_queue_has_no_operations_and_invalid_queue_is_unreadable() {
    let operations = |content: &str| {
        let content = serde_json::to_string(content).unwrap();
        queue_operations(Some(raw(&content))).map(|operations| operations.len())
    };
    assert_eq!(queue_operations(None), Some(Vec::new()));
    assert_eq!(queue_operations(Some(raw("null"))), Some(Vec::new()));
    for (content, expected) in [
        ("", Some(0)),
        (" ", Some(0)),
        ("{}", Some(0)),
        (r#"{"queue":null}"#, Some(0)),
        (r#"{"queue":[{},null]}"#, Some(2)),
        (r#"{"queue":{}}"#, None),
        (r#"{"queue":["#, None),
        ("[]", None),
        ("null", None),
    ] {
        assert_eq!(operations(content), expected, "{content}");
    }
    assert_eq!(queue_operations(Some(raw("{}"))), None);
}

#[test]
fn running_recap_exists_if_it_has_a_version() {
    let text = r#"{"auto_recap_running_scene_recaps":{"chat_id":"x","current_version":4,"versions":[
        {"version":0,"scene_count":1,"new_scene_index":3},{"version":4,"new_scene_index":null},{"version":"5"},null]}}"#;
    let recap = running_recap(raw(text)).unwrap();
    assert!(recap.exists());
    assert_eq!(recap.numbers(), [0, 4]);
    assert_eq!(recap.current().unwrap().version, Some(4));
    // A recap with only version 0 exists; an empty list does not count as a recap.
    for (versions, exists) in [(r#"[{"version":0}]"#, true), ("[]", false), ("{}", false)] {
        let text = format!(
            r#"{{"auto_recap_running_scene_recaps":{{"current_version":0,"versions":{versions}}}}}"#
        );
        assert_eq!(running_recap(raw(&text)).unwrap().exists(), exists, "{versions}");
    }
    for none in ["{}", r#"{"auto_recap_running_scene_recaps":[]}"#] {
        assert!(running_recap(raw(none)).is_none());
    }
}

#[test]
fn lorebook_registry_cache_and_recap_are_read_from_metadata() {
    let text = r#"{"auto_lorebooks":{"lorebookName":"Lore","registry":{"index":{"7":{"type":"item","comment":"item-x"},"8":null}}},
        "auto_recap":{"combined_recap":{"content":"c","message_count":9},"checkpoint_lorebook_map":{"a":"A","b":1}}}"#;
    let metadata = raw(text);
    assert_eq!(attached_lorebook(metadata).as_deref(), Some("Lore"));
    let cache = registry_cache(metadata);
    assert_eq!(
        cache,
        [("7", "item-x", "item"), ("8", "", "")].map(|(uid, name, kind)| {
            (RegistryItem { uid: uid.into(), name: name.into() }, kind.to_owned())
        })
    );
    assert_eq!(combined_recap(metadata).unwrap().message_count, Some(9));
    assert_eq!(lorebook_map(metadata), [("a".to_owned(), "A".to_owned())]);
    for odd in ["{}", r#"{"auto_lorebooks":7}"#, r#"{"auto_lorebooks":{"registry":{"index":[1]}}}"#]
    {
        assert!(registry_cache(raw(odd)).is_empty());
        assert_eq!(attached_lorebook(raw(odd)), None);
    }
}

#[test]
fn removed_lorebooks_are_removed_from_the_checkpoint_map() {
    let text = r#"{"a" : 1, "auto_recap":{"checkpoint_lorebook_map":{"p": "A", "q": "B"}},"checkpoint_lorebook_mappings":{"r":"A"}}"#;
    let without = without_mapped(text.as_bytes(), raw(text), |book| book == "A");
    assert_eq!(
        String::from_utf8(without).unwrap(),
        r#"{"a" : 1, "auto_recap":{"checkpoint_lorebook_map":{"q": "B"}},"checkpoint_lorebook_mappings":{}}"#
    );
}

/// Returns a message with `memory` as its `auto_recap_memory`.
fn message(memory: &str) -> String {
    format!(r#"{{"mes":"x","extra":{{"auto_recap_memory":{memory}}}}}"#)
}

#[test]
fn scene_breaks_are_read_with_their_names_and_recaps() {
    let old = r#"{"extra":{"auto_summarize_memory":{"scene_break":true,"scene_break_recap":"Old words."}}}"#;
    let new = message(
        r#"{"scene_break":true,"scene_recap_memory":"{\"scene_name\":\"The quay\"}","scene_recap_current_index":1,"scene_recap_metadata":{"1":{"allEntries":[{"uid":1},null],"totalActivatedEntries":2,"chatLorebookName":"Lore","timestamp":5}}}"#,
    );
    let unmarked = message(r#"{"scene_break":false}"#);
    let text = ["{}", old, "{}", &new, &unmarked, "{ _memory"].join("\n");
    let chat = Chat::split(text.as_bytes(), Category::Chat);
    let breaks = scene_breaks(&chat);
    assert_eq!(breaks.iter().map(|(n, _)| *n).collect::<Vec<_>>(), [0, 2]);
    assert_eq!(breaks[0].1.recap().as_deref(), Some("Old words."));
    assert_eq!(breaks[0].1.name(), None);
    let scene = breaks[1].1;
    assert_eq!(scene.name().as_deref(), Some("The quay"));
    assert_eq!((scene.activated_entries(), scene.all_entries().len()), (2, 2));
    assert_eq!((scene.lorebook().as_deref(), scene.timestamp()), (Some("Lore"), Some(5)));
    // A blank recap counts as missing. A name set by the user takes precedence over the name in the
    // recap.
    let line = message(
        r#"{"scene_break_name":"Given","scene_recap_memory":" \n","scene_break_recap":"{\"scene_name\":\"x\"}"}"#,
    );
    let scene = crate::auto_recap::scene(line.as_bytes()).unwrap();
    assert_eq!(
        (scene.name().as_deref(), scene.recap().as_deref()),
        (Some("Given"), Some("{\"scene_name\":\"x\"}"))
    );
}

/// The expected values were computed by JavaScript.
#[test]
fn req_74_recap_hash_equals_the_javascript_hash() {
    for (text, expected) in [
        (r#""a""#, "2p"),
        (r#""The quay""#, "i8m56z"),
        (r#""\ufeff\u00a0 half \ud83d, whole 😀 \u2028""#, "xhta40"),
        (&format!("{:?}", "x".repeat(1000)), "sdbd34"),
    ] {
        let line = message(&format!(r#"{{"scene_recap_memory":{text}}}"#));
        let scene = scene(line.as_bytes()).unwrap();
        assert_eq!(scene.recap_hash().as_deref(), Some(expected), "{text}");
    }
    let line = message(r#"{"scene_recap_memory":"","scene_recap_hash":"0"}"#);
    assert_eq!(scene(line.as_bytes()).unwrap().recap_hash(), None);
}

#[test]
fn key_units_equal_javascript_utf16_units() {
    let units = |raw: &str| Key::decode(raw.as_bytes()).unwrap().units();
    for text in ["", "plain", "é雨😀", "\u{7f}\u{80}\u{7ff}\u{800}\u{ffff}\u{10ffff}"] {
        assert_eq!(units(&format!("\"{text}\"")), text.encode_utf16().collect::<Vec<_>>());
        let half = format!("\"{text}\\udc00{text}\\ud83d\"");
        let whole: Vec<_> = text.encode_utf16().collect();
        assert_eq!(units(&half), [&whole[..], &[0xDC00], &whole, &[0xD83D]].concat());
    }
    // Bytes that are truncated inside a character are accepted.
    for bytes in [&b"\"\xf0\x9f\""[..], b"\"\xff\"", b"\"\x80\x80\xe2\""] {
        Key::decode(bytes).unwrap().units();
    }
}

#[test]
fn default_template_recognises_and_names_lorebooks() {
    let own = BookTemplate::default();
    for (book, chat, expected) in [
        ("z-AutoLB-Mira-Night 1", "Night 1", true),
        ("z-AutoLB-Night 1 (2)", "Night 1", true),
        ("z-AutoLB-Mira-Night (2)", "Night (2)", true),
        ("z-AutoLB-Mira-What if", "Whatif", true),
        ("z-AutoLB-Mira-Night 1", "Night 2", false),
        ("Lore", "Night 2", false),
    ] {
        assert_eq!(own.is_book_of(book, chat), expected, "{book}");
        assert_eq!(own.is_made(book), book != "Lore");
    }
    assert_eq!(book_segment("  a:b\t\"c\"  "), "a b c");
    let fork = |book| own.fork_book_name(book, &["Night 1"], "Branch #1");
    assert_eq!(fork("z-AutoLB-Mira-Night 1").as_deref(), Some("z-AutoLB-Mira-Branch #1"));
    assert_eq!(fork("z-AutoLB-Night 1 (3)").as_deref(), Some("z-AutoLB-Branch #1"));
    assert_eq!(fork("Lore"), None);
    assert!(
        is_fork_book("Lore_checkpoint_4_1763632702906") && !is_fork_book("My_checkpoint_ideas")
    );
}

#[test]
fn configured_template_recognises_and_names_lorebooks() {
    let fork = |template: &str, book: &str| {
        BookTemplate::parse(template).fork_book_name(book, &["Night 1"], "Br/anch")
    };
    for (template, book, new) in [
        ("Lore of {{ chat }}", "Lore of Night 1 (2)", Some("Lore of Br anch")),
        ("{{chat}}, {{char}} & {{char}}", "Night 1, M雨 & M雨", Some("Br anch, M雨 & M雨")),
        ("{{chat}}, {{char}} & {{char}}", "Night 1, M雨 & M風", None),
        ("{{chat}}", "Night 1", Some("Br anch")),
        ("{{what}} {{chat}} {{", "{{what}} Night 1 {{", Some("{{what}} Br anch {{")),
        // Without the chat's name in the template, a copy would get the same name as the original.
        ("Lore of {{char}}", "Lore of Mira", None),
        // The lorebook got its name before the user changed the template.
        ("Lore of {{chat}}", "z-AutoLB-Mira-Night 1", Some("z-AutoLB-Mira-Br anch")),
    ] {
        assert_eq!(fork(template, book).as_deref(), new, "{template}");
    }
    let template = BookTemplate::parse("{{chat}}: lore of {{char}}");
    assert!(template.is_book_of("Night 1 lore of Mira", "Night 1"));
    assert!(!template.is_book_of("Night 2 lore of Mira", "Night 1"));
    assert!(!template.is_book_of("z-AutoLB-Mira-Night 1", "Night 1"));
    assert!(template.is_made("x lore of y") && !template.is_made("My lore"));
    assert!(!BookTemplate::parse("{{char}} - {{chat}}").is_made("My lore - the north"));

    let settings = |json: &str| BookTemplate::of_settings(json.as_bytes()).as_str().to_owned();
    let of = |value: &str| {
        settings(&format!(
            r#"{{"extension_settings":{{"autoLorebooks":{{"nameTemplate":{value}}}}}}}"#
        ))
    };
    assert_eq!(of(r#""Lore of {{chat}}""#), "Lore of {{chat}}");
    let usual = BookTemplate::default();
    for odd in ["\"\"", "null", "7", "[]", "{", "\"\\ud83d"] {
        assert_eq!(of(odd), usual.as_str(), "{odd}");
    }
    for odd in ["", "{}", "[\"nameTemplate\"]", "\"nameTemplate\"", r#"{"nameTemplate":"x"}"#] {
        assert_eq!(settings(odd), usual.as_str(), "{odd}");
    }
    assert_eq!(BookTemplate::of_settings(b"nameTemplate \xff\xfe"), usual);
}

#[test]
fn uids_are_formatted_as_in_javascript() {
    for (uid, text) in [
        ("7", Some("7")),
        ("7.0", Some("7")),
        ("2e6", Some("2000000")),
        ("-0", Some("0")),
        ("\"7\"", Some("7")),
        ("1763632702906", Some("1763632702906")),
        ("0.5", Some("0.5")),
        ("1e400", Some("1e400")),
        ("null", None),
        ("true", None),
        ("[7]", None),
    ] {
        assert_eq!(uid_text(raw(uid)).as_deref(), text, "{uid}");
    }
}
