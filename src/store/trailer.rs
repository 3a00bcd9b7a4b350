//! Trailers: the lines `Key: value` of a commit's last paragraph, and the encoding of arbitrary
//! text in their values.
//!
//! A value is the text between `": "` and the line feed, without trimming. But git and other
//! programs trim different kinds of white space, and some of them end a line at other characters,
//! too. So an encoded value has no white space at its ends, and no character that could end a line.

use crate::file_names;

pub fn encode(value: &str) -> String {
    if value.is_empty() {
        // Other programs may drop a trailer with an empty value. A lone `%` is not the encoding of
        // any other text.
        return "%".to_owned();
    }
    let mut out = String::with_capacity(value.len());
    for (at, c) in value.char_indices() {
        let outermost = at == 0 || at + c.len_utf8() == value.len();
        if c == '%' || ends_a_line(c) || (outermost && is_space(c)) {
            file_names::push_char(&mut out, c);
        } else {
            out.push(c);
        }
    }
    out
}

/// Reverses [`encode`]. Invalid escapes stay unchanged, and so does a value that would not be
/// UTF-8.
pub fn decode(value: &str) -> String {
    match value {
        "%" => String::new(),
        _ => String::from_utf8(file_names::undo(value)).unwrap_or_else(|_| value.to_owned()),
    }
}

/// Returns the trailers of a message, in order. A message of one paragraph has only a subject, and
/// no trailers.
pub(super) fn parse(message: &str) -> Vec<(String, String)> {
    let Some((_, last)) = message.trim_end_matches('\n').rsplit_once("\n\n") else {
        return Vec::new();
    };
    let pairs = last.split('\n').filter_map(|line| line.split_once(": "));
    pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
}

/// Whether a program may end a line at `c`. JavaScript and Python also do so at U+2028 and U+2029.
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

    /// Generates any text, and text of characters that are easily lost.
    fn text() -> impl Strategy<Value = String> {
        prop_oneof![
            any::<String>(),
            "[ %4a1\u{3000}\u{a0}\u{85}\u{2028}\u{2029}\u{feff}\r\n\t\0:-]{0,6}",
            "[\\PC\\pZ\\pC]{0,3}",
        ]
    }

    #[test]
    fn encoded_names_stay_readable() {
        assert_eq!(encode("chats/Mira Voss/雨 — 100 %"), "chats/Mira Voss/雨 — 100 %25");
        assert_eq!(encode("abc\u{3000}"), "abc%E3%80%80");
        assert_eq!(encode(" a b "), "%20a b%20");
        assert_eq!(encode("a\u{2028}b\u{85}"), "a%E2%80%A8b%C2%85");
        assert_eq!(encode(""), "%");
    }

    #[test]
    fn encodings_of_earlier_versions_are_decoded() {
        // Earlier versions escaped every space if the value ended with a space.
        assert_eq!(decode("%20a%20b%20"), " a b ");
        assert_eq!(decode(""), "");
        assert_eq!(decode("100% and %zz and %+5"), "100% and %zz and %+5");
    }

    #[test]
    fn trailers_are_parsed_without_trimming() {
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
        fn different_values_have_different_encodings(a in text(), b in text()) {
            prop_assert_eq!(a == b, encode(&a) == encode(&b));
        }

        #[test]
        fn encoded_value_is_one_line_without_surrounding_whitespace(value in text()) {
            let encoded = encode(&value);
            prop_assert_eq!(encoded.trim(), encoded.as_str());
            prop_assert_eq!(encoded.lines().count(), 1);
            let message = format!("subject\n\nKey: {encoded}\n");
            prop_assert_eq!(parse(&message), vec![("Key".to_owned(), encoded)]);
        }
    }
}
