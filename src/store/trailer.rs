//! Trailers: the lines `Key: value` of a commit's last paragraph, and how a value that may be any
//! text stands in one.
//!
//! A value is taken as it stands between `": "` and the line feed; nothing is trimmed here. But
//! git, and whoever else reads trailers, does trim, each its own kind of white space, and some end
//! a line at more than a line feed. So a name is written in such a way that it has neither white
//! space at its ends nor anything that could end a line.

use super::percent_encoding;

pub fn encode(value: &str) -> String {
    if value.is_empty() {
        // Nothing after the colon would not survive, and a lone `%` stands for no other text.
        return "%".to_owned();
    }
    let mut out = String::with_capacity(value.len());
    for (at, c) in value.char_indices() {
        let outermost = at == 0 || at + c.len_utf8() == value.len();
        if c == '%' || ends_a_line(c) || (outermost && is_space(c)) {
            percent_encoding::push_char(&mut out, c);
        } else {
            out.push(c);
        }
    }
    out
}

/// Returns the text that [`encode`] gave. What it cannot have given stays as it is.
pub fn decode(value: &str) -> String {
    match value {
        "%" => String::new(),
        _ => String::from_utf8(percent_encoding::undo(value)).unwrap_or_else(|_| value.to_owned()),
    }
}

/// Returns the trailers of a message, in order. The first paragraph is the subject.
pub(super) fn parse(message: &str) -> Vec<(String, String)> {
    let Some((_, last)) = message.trim_end_matches('\n').rsplit_once("\n\n") else {
        return Vec::new();
    };
    let pairs = last.split('\n').filter_map(|line| line.split_once(": "));
    pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
}

/// JavaScript and Python also end lines at these two separators.
fn ends_a_line(c: char) -> bool {
    c.is_control() || matches!(c, '\u{2028}' | '\u{2029}')
}

fn is_space(c: char) -> bool {
    c.is_whitespace() || c == '\u{feff}'
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Any text, and texts of what is lost most easily.
    fn text() -> impl Strategy<Value = String> {
        prop_oneof![
            any::<String>(),
            "[ %4a1\u{3000}\u{a0}\u{85}\u{2028}\u{2029}\u{feff}\r\n\t\0:-]{0,6}",
            "[\\PC\\pZ\\pC]{0,3}",
        ]
    }

    #[test]
    fn names_stay_readable() {
        assert_eq!(encode("chats/Mira Voss/雨 — 100 %"), "chats/Mira Voss/雨 — 100 %25");
        assert_eq!(encode("abc\u{3000}"), "abc%E3%80%80");
        assert_eq!(encode(" a b "), "%20a b%20");
        assert_eq!(encode("a\u{2028}b\u{85}"), "a%E2%80%A8b%C2%85");
        assert_eq!(encode(""), "%");
    }

    #[test]
    fn what_earlier_versions_wrote_is_read_as_it_was() {
        // Every space was escaped where one came last.
        assert_eq!(decode("%20a%20b%20"), " a b ");
        assert_eq!(decode(""), "");
        assert_eq!(decode("100% and %zz and %+5"), "100% and %zz and %+5");
    }

    #[test]
    fn a_message_is_read_to_the_letter() {
        let message = "subject\n\nbody: text\n\nA: 1\nno trailer\nB:  two \nA: \nC: x: y\r\n\n";
        let pairs = [("A", "1"), ("B", " two "), ("A", ""), ("C", "x: y\r")];
        assert_eq!(parse(message), pairs.map(|(key, value)| (key.into(), value.into())));
        assert_eq!(parse("A: 1\nB: 2"), []);
        assert_eq!(parse(""), []);
    }

    proptest! {
        #[test]
        fn encode_and_decode_are_inverse(value in text()) {
            prop_assert_eq!(decode(&encode(&value)), value);
        }

        #[test]
        fn different_values_differ(a in text(), b in text()) {
            prop_assert_eq!(a == b, encode(&a) == encode(&b));
        }

        #[test]
        fn no_reader_can_trim_or_break_one(value in text()) {
            let encoded = encode(&value);
            prop_assert_eq!(encoded.trim(), encoded.as_str());
            prop_assert_eq!(encoded.lines().count(), 1);
            let message = format!("subject\n\nKey: {encoded}\n");
            prop_assert_eq!(parse(&message), vec![("Key".to_owned(), encoded)]);
        }
    }
}
