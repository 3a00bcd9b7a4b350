//! Writes a JSON object that consists of existing and new members. Unchanged members keep every
//! byte.

use std::borrow::Cow;
use std::ops::Range;

use crate::st::{Raw, member_spans};

pub(super) enum Part<'a> {
    Own(usize, Option<Cow<'a, [u8]>>),
    /// New member: its key as JSON, and its value.
    New(Cow<'a, [u8]>, Cow<'a, [u8]>),
}

struct Layout<'a> {
    lead: &'a [u8],
    gap: &'a [u8],
    tail: &'a [u8],
}

impl<'a> Layout<'a> {
    fn of(object: Raw<'a>) -> Option<Self> {
        let text = object.as_bytes();
        let (members, spans) = (object.members()?, member_spans(object, text));
        let (first, span, last) = (members.first()?, spans.first()?, spans.last()?);
        let value = first.value.span_in(text);
        Some(Self {
            lead: &text[1..span.start],
            gap: &text[span.start + first.raw_key.len()..value.start],
            tail: &text[last.end..text.len() - 1],
        })
    }
}

/// Writes `object` with these members, in this order. If `object` is empty, the white space around
/// new members is that of `like`.
pub(super) fn compose(object: Raw<'_>, parts: &[Part<'_>], like: Raw<'_>) -> Vec<u8> {
    let text = object.as_bytes();
    let spans = member_spans(object, text);
    let values: Vec<Range<usize>> = object
        .members()
        .unwrap_or_default()
        .iter()
        .map(|member| member.value.span_in(text))
        .collect();
    if parts.is_empty() {
        return if spans.is_empty() { text.to_vec() } else { b"{}".to_vec() };
    }
    let layout = Layout::of(object).or_else(|| Layout::of(like));
    let layout = layout.unwrap_or(Layout { lead: b"", gap: b":", tail: b"" });
    let mut out = Vec::with_capacity(text.len());
    out.push(b'{');
    for (place, part) in parts.iter().enumerate() {
        let own = match part {
            Part::Own(n, _) => Some(*n),
            Part::New(..) => None,
        };
        match own.filter(|n| *n > 0 && place > 0) {
            // An existing member keeps the comma and the white space before it.
            Some(n) => out.extend_from_slice(&text[spans[n - 1].end..spans[n].start]),
            None => {
                out.extend_from_slice(if place > 0 { b"," } else { b"" });
                out.extend_from_slice(layout.lead);
            }
        }
        match part {
            Part::Own(n, value) => {
                out.extend_from_slice(&text[spans[*n].start..values[*n].start]);
                out.extend_from_slice(value.as_deref().unwrap_or(&text[values[*n].clone()]));
            }
            Part::New(key, value) => {
                out.extend_from_slice(key);
                out.extend_from_slice(layout.gap);
                out.extend_from_slice(value);
            }
        }
    }
    out.extend_from_slice(layout.tail);
    out.push(b'}');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unchanged_members_keep_their_bytes_and_new_ones_use_the_same_layout() {
        let object = Raw::parse_str("{ \"a\" : 1 ,\t\"b\":2, \"c\": 3 }").unwrap();
        let like = Raw::parse_str("{\n  \"x\": 0\n}").unwrap();
        let composed =
            |object, parts: &[Part<'_>]| String::from_utf8(compose(object, parts, like)).unwrap();
        let own = |n| Part::Own(n, None);
        let new = || Part::New(b"\"n\""[..].into(), b"9"[..].into());
        assert_eq!(composed(object, &[own(0), own(1), own(2)]), object.as_str());
        assert_eq!(
            composed(object, &[own(1), Part::Own(2, Some(b"4"[..].into())), new()]),
            "{ \"b\":2, \"c\": 4, \"n\" : 9 }"
        );
        assert_eq!(composed(object, &[new(), own(0)]), "{ \"n\" : 9, \"a\" : 1 }");
        assert_eq!(composed(object, &[]), "{}");
        let empty = Raw::parse_str("{ }").unwrap();
        assert_eq!(composed(empty, &[]), "{ }");
        assert_eq!(composed(empty, &[new()]), "{\n  \"n\": 9\n}");
    }
}
