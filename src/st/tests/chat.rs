use crate::st::{Category, Chat, Message, broken_lines, text_of};
use proptest::prelude::*;

const HEADER: &str =
    r#"{"chat_metadata":{"integrity":"x"},"user_name":"unused","character_name":"unused"}"#;

fn line() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        Just(HEADER.as_bytes().to_vec()),
        Just(br#"{"name":"A","is_user":false,"mes":"hi \ud83d","extra":{}}"#.to_vec()),
        Just(b"\xef\xbb\xbf{}".to_vec()),
        Just(b"{\"mes\":\"\xff\"}\r".to_vec()),
        Just(b"{\"mes\":\"a\xe2\x80\xa8b\"}".to_vec()),
        Just(b"{\"mes\":\"torn".to_vec()),
        Just(b" \t\r".to_vec()),
        Just(Vec::new()),
        proptest::collection::vec(any::<u8>(), 0..20),
    ]
}

fn category() -> impl Strategy<Value = Category> {
    prop::sample::select(vec![Category::Chat, Category::GroupChat])
}

proptest! {
    #[test]
    fn split_chat_joins_to_the_same_bytes(
        lines in proptest::collection::vec(line(), 0..12),
        category in category(),
    ) {
        let bytes = lines.join(&b'\n');
        let chat = Chat::split(&bytes, category);
        prop_assert_eq!(chat.join(), bytes.clone());
        prop_assert!(chat.message_count() >= broken_lines(&chat, 0..usize::MAX).len());
        for n in 0..chat.messages.len() {
            let upto = chat.upto(n).join();
            prop_assert_eq!(chat.length_upto(n), upto.len());
            prop_assert!(bytes.starts_with(&upto));
            prop_assert_eq!(Chat::split(&upto, category), chat.upto(n));
        }
    }
}

#[test]
fn first_line_of_a_chat_is_the_header() {
    for (text, messages) in [("", 0), ("\n", 0), ("x", 0), ("h\na\n\n \r\nb\n", 2)] {
        let chat = Chat::split(text.as_bytes(), Category::Chat);
        assert!(chat.header.is_some(), "{text:?}");
        assert_eq!(chat.message_count(), messages, "{text:?}");
    }
}

#[test]
fn group_chat_that_begins_with_a_message_has_no_header() {
    let headless = b"{\"name\":\"A\",\"mes\":\"1\"}\n{\"name\":\"B\",\"mes\":\"2\"}";
    assert_eq!(Chat::split(headless, Category::GroupChat).header, None);
    assert_eq!(Chat::split(headless, Category::GroupChat).messages.len(), 2);
    assert_eq!(Chat::split(headless, Category::Chat).messages.len(), 1);
    // SillyTavern reads invalid UTF-8 leniently, so this line is a message.
    assert_eq!(Chat::split(b"{\"mes\":\"\xff\"}", Category::GroupChat).header, None);
    for headed in [HEADER, "", "[]", "\u{feff}{}", "{\"mes\":"] {
        assert_eq!(
            Chat::split(headed.as_bytes(), Category::GroupChat).header,
            Some(headed.as_bytes()),
            "{headed}"
        );
    }
}

#[test]
fn prefix_longer_than_the_chat_is_the_complete_chat() {
    let chat = Chat::split(b"h\na\nb", Category::Chat);
    assert_eq!(chat.upto(0).join(), b"h\na");
    assert_eq!(chat.upto(usize::MAX), chat);
}

#[test]
fn message_fields_of_unexpected_types_are_tolerated() {
    let line = br#" {"n\u0061me":"A","is_user":"","is_system":1,"mes":"first","mes":"\u2028x","send_date":1731630000000,"extra":null,"swipe_id":1,"swipes":["a","b"]} "#;
    let message = Message::read(line).unwrap();
    assert_eq!(message.name().unwrap(), "A");
    assert_eq!(message.text().unwrap(), "\u{2028}x");
    assert!(!message.is_user());
    assert!(message.is_system());
    assert_eq!(message.send_date().unwrap().as_str(), "1731630000000");
    assert!(message.extra().is_none());
    assert_eq!(message.swipe_id(), Some(1));
    assert_eq!(message.swipes().unwrap()[1].string().unwrap(), "b");
    assert!(message.swipe_info().is_none());
    assert_eq!(message.raw().as_bytes(), line.trim_ascii());
    assert!(Message::read(b"[]").is_none());
    assert!(Message::read(b"{} {}").is_none());
    assert!(Message::read(b"{\"name\":1}").unwrap().name().is_none());
}

#[test]
fn text_of_a_message_with_invalid_utf8_is_shown() {
    let line = b"{\"name\":\"A\",\"mes\":\"a\xffb\",\"is_user\":true}\r";
    assert!(Message::read(line).is_none());
    let text = text_of(line).unwrap();
    assert_eq!((text.name.as_str(), text.text.as_str()), ("A", "a\u{fffd}b"));
    assert!(text.is_user && !text.is_system);
    assert_eq!(text_of(b"{"), None);
}

#[test]
fn lines_that_sillytavern_drops_are_reported() {
    let chat = Chat::split(
        b"h\n{}\r\n\n{\"mes\":\"to\nnull\n{\"mes\":\"\xff\"}\n0\n{}x\n ",
        Category::Chat,
    );
    assert_eq!(broken_lines(&chat, 0..usize::MAX), [2, 3, 5, 6]);
    assert_eq!(broken_lines(&chat, 3..6), [3, 5]);
}
