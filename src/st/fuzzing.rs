//! Fuzz targets for SillyTavern's files. Each function panics if its invariant is violated;
//! `src/fuzzing` lists the targets.

#![allow(clippy::expect_used, reason = "a fuzz target fails loudly")]

use std::collections::HashMap;
use std::io::Cursor;

use serde_json::Value;
use serde_json::value::RawValue;

use super::card::png::{self, SIGNATURE};
use super::json::stringify;
use super::{
    Category, Chat, CutCard, Edits, Key, Message, Raw, broken_lines, card, cut, cut_card, cut_text,
    entries, entries_and_repeats, fill, fill_card, fill_text, integrity, is_blank, item_spans,
    member_spans, replace, send_millis, text_of, with_integrity,
};

/// Limits: the number of values that are edited per input, and the depth to which two values are
/// compared.
const MOST_VALUES: usize = 24;
const MAX_DEPTH: usize = 64;

/// A value that an input does not contain by chance.
const NEW: &str = r#"{"fuzz":[1,"\ud83d"]}"#;

/// Checks that the parser agrees with serde_json, and that an edit changes one value and no other
/// byte.
pub(crate) fn json(data: &[u8]) {
    let known: Option<Value> = serde_json::from_slice(data).ok();
    let Some(root) = Raw::parse(data) else {
        assert!(known.is_none(), "serde_json reads this text");
        return;
    };
    assert_eq!(&data[root.span_in(data)], root.as_bytes());
    if let Some(known) = &known {
        must_agree(root, known);
    }
    let written = stringify(root);
    let again = Raw::parse_str(&written).expect("stringify writes JSON");
    must_be_equal(root, again, 0);
    assert_eq!(stringify(again), written);
    for value in values(root) {
        edit(data, value);
    }
    for member in root.members().unwrap_or_default() {
        let Ok(key) = str::from_utf8(member.key.as_bytes()) else { continue };
        let edited = replace(data, &[key], NEW.as_bytes()).expect("the member is there");
        let edited = Raw::parse(&edited).expect("an edited text is JSON");
        assert_eq!(edited.get(key).map(|value| value.as_str()), Some(NEW));
    }
}

fn must_agree(raw: Raw<'_>, known: &Value) {
    match known {
        Value::Null => assert!(raw.is_null() && !raw.truthy()),
        Value::Bool(known) => assert_eq!((raw.bool(), raw.truthy()), (Some(*known), *known)),
        Value::Number(number) => {
            assert!(!raw.is_null() && !raw.is_string() && raw.string().is_none());
            if let Some(integer) = number.as_i64().filter(|_| raw.as_str() != "-0") {
                assert_eq!(raw.integer(), Some(integer));
            }
        }
        Value::String(known) => {
            assert_eq!(raw.string().as_ref(), Some(known));
            assert_eq!(raw.truthy(), !known.is_empty());
            let units = Key::decode(raw.as_bytes()).expect("it is a string").units();
            assert!(units.into_iter().eq(known.encode_utf16()));
        }
        Value::Array(known) => {
            let items = raw.items().expect("it is an array");
            assert_eq!(items.len(), known.len());
            items.into_iter().zip(known).for_each(|(raw, known)| must_agree(raw, known));
        }
        Value::Object(known) => {
            let members = raw.members().expect("it is an object");
            let keys: HashMap<_, _> =
                members.iter().map(|member| (member.key.as_bytes(), member.value)).collect();
            assert_eq!(keys.len(), known.len());
            for (key, known) in known {
                let value = raw.get(key).expect("the key is there");
                assert_eq!(Some(&value), keys.get(key.as_bytes()));
                assert_eq!(raw.pick([key.as_str()]), Some([Some(value)]));
                must_agree(value, known);
            }
        }
    }
}

/// Panics unless JavaScript reads both texts as equal values.
fn must_be_equal(a: Raw<'_>, b: Raw<'_>, depth: usize) {
    if depth > MAX_DEPTH {
        return;
    }
    if let Some(items) = a.items() {
        let others = b.items().expect("both are arrays");
        assert_eq!(items.len(), others.len());
        items.into_iter().zip(others).for_each(|(a, b)| must_be_equal(a, b, depth + 1));
    } else if let Some(members) = a.members() {
        let last = |members: Vec<super::Member<'_>>| -> HashMap<Key, String> {
            members
                .into_iter()
                .map(|member| (member.key, member.value.as_str().to_owned()))
                .collect()
        };
        let (members, others) = (last(members), last(b.members().expect("both are objects")));
        assert_eq!(members.len(), others.len());
        for (key, value) in &members {
            let other = others.get(key).expect("both have the key");
            let raw = |text| Raw::parse_str(text).expect("it is part of JSON");
            must_be_equal(raw(value.as_str()), raw(other.as_str()), depth + 1);
        }
    } else if a.is_string() {
        assert_eq!(Key::decode(a.as_bytes()), Key::decode(b.as_bytes()));
    } else if let Ok(number) = a.as_str().parse::<f64>() {
        if number.is_finite() {
            assert_eq!(b.as_str().parse(), Ok(number))
        } else {
            // JSON cannot represent infinity, so JavaScript writes `null`.
            assert!(b.is_null())
        }
    } else {
        assert_eq!(a, b);
    }
}

/// Returns the first values of a text, in breadth-first order.
fn values(root: Raw<'_>) -> Vec<Raw<'_>> {
    let mut found = vec![root];
    let mut at = 0;
    while at < found.len() && found.len() < MOST_VALUES {
        let members = found[at].members().unwrap_or_default();
        let items = found[at].items().unwrap_or_default();
        found.extend(members.into_iter().map(|member| member.value).chain(items));
        at += 1;
    }
    found.truncate(MOST_VALUES);
    found
}

fn edit(data: &[u8], value: Raw<'_>) {
    let span = value.span_in(data);
    assert_eq!(&data[span.clone()], value.as_bytes());
    let apply = |change: &dyn Fn(&mut Edits<'_>)| {
        let mut edits = Edits::new(data);
        change(&mut edits);
        let edited = edits.apply();
        assert!(Raw::parse(&edited).is_some(), "an edited text is JSON");
        assert!(edited.starts_with(&data[..span.start]) && edited.ends_with(&data[span.end..]));
        edited[span.start..edited.len() - (data.len() - span.end)].to_vec()
    };
    assert_eq!(apply(&|edits| edits.replace(value, NEW)), NEW.as_bytes());
    let every_other = |n: usize| n.is_multiple_of(2);
    if let Some(items) = value.items() {
        let edited = apply(&|edits| edits.insert_last(value, NEW));
        let expected: Vec<_> = items.iter().map(Raw::as_str).chain([NEW]).collect();
        assert_eq!(texts_of(&edited), expected);
        let edited = apply(&|edits| edits.retain(&item_spans(value, data), every_other));
        let expected: Vec<_> = items.iter().step_by(2).map(Raw::as_str).collect();
        assert_eq!(texts_of(&edited), expected);
    }
    if let Some(members) = value.members() {
        let pairs = |text: &[u8]| -> Vec<(Vec<u8>, String)> {
            let members = Raw::parse(text).and_then(|raw| raw.members()).expect("an object");
            let pair = |member: super::Member<'_>| {
                (member.raw_key.to_vec(), member.value.as_str().to_owned())
            };
            members.into_iter().map(pair).collect()
        };
        let before = pairs(value.as_bytes());
        let edited = apply(&|edits| edits.set(value, "a key that no input has", NEW));
        let mut expected = before.clone();
        match value.get("a key that no input has") {
            Some(_) => assert_eq!(pairs(&edited).len(), before.len()),
            None => {
                expected.push((b"\"a key that no input has\"".to_vec(), NEW.to_owned()));
                assert_eq!(pairs(&edited), expected);
            }
        }
        let edited = apply(&|edits| edits.retain(&member_spans(value, data), every_other));
        let expected: Vec<_> = before.iter().step_by(2).cloned().collect();
        assert_eq!(pairs(&edited), expected);
        for member in members.iter().take(4) {
            let Ok(key) = str::from_utf8(member.key.as_bytes()) else { continue };
            let mut expected = before.clone();
            let same = members.iter().rposition(|other| other.key == member.key);
            expected[same.expect("the member is there")].1 = NEW.to_owned();
            assert_eq!(pairs(&apply(&|edits| edits.set(value, key, NEW))), expected);
        }
    }
}

fn texts_of(array: &[u8]) -> Vec<&str> {
    let items = Raw::parse(array).and_then(|raw| raw.items()).expect("an array");
    items.into_iter().map(|item| item.as_str()).collect()
}

/// Checks that joining a split chat returns the original bytes, and that the chat up to a message
/// is a prefix of the file.
pub(crate) fn chat(data: &[u8]) {
    for category in [Category::Chat, Category::GroupChat] {
        let chat = Chat::split(data, category);
        assert_eq!(chat.join(), data);
        assert_eq!(Chat::header_of(data, category).header, chat.header);
        assert_eq!(
            chat.messages.len() + usize::from(chat.header.is_some()),
            data.split(|byte| *byte == b'\n').count()
        );
        for last in (0..chat.messages.len()).chain([usize::MAX]).take(40) {
            let cut = chat.upto(last).join();
            assert!(data.starts_with(&cut));
            assert_eq!(cut.len(), chat.length_upto(last));
            // The prefix ends between two lines.
            assert!(matches!(data.get(cut.len()), None | Some(b'\n')));
            assert_eq!(Chat::split(&cut, category), chat.upto(last));
        }
        let broken = broken_lines(&chat, 0..usize::MAX);
        for (index, line) in chat.messages.iter().enumerate().take(200) {
            let is_object = serde_json::from_slice::<&RawValue>(line)
                .is_ok_and(|raw| raw.get().starts_with('{'));
            let message = Message::read(line);
            assert_eq!(message.is_some(), is_object);
            assert!(!is_object || !broken.contains(&index), "an object is not a broken line");
            assert!(!is_blank(line) || !broken.contains(&index), "a blank line is not broken");
            let Some(message) = message else { continue };
            let shown = text_of(line).expect("a message can be shown");
            assert_eq!(shown.text, message.text().unwrap_or_default());
            assert_eq!(shown.name, message.name().unwrap_or_default());
            message.send_date().and_then(send_millis);
            let _ = (message.swipes(), message.swipe_info(), message.swipe_id(), message.extra());
        }
        assert!(chat.message_count() <= chat.messages.len());
    }
    if let Some(marked) = with_integrity(data, b"\"fuzz\"") {
        assert_eq!(integrity(&marked), Some(&b"\"fuzz\""[..]));
        if let Some(old) = integrity(data) {
            let at = old.as_ptr().addr() - data.as_ptr().addr();
            let expected = [&data[..at], b"\"fuzz\"", &data[at + old.len()..]].concat();
            assert_eq!(marked, expected);
        }
    }
}

/// Checks that filling a cut lorebook returns the original bytes, and that a cut lorebook has one
/// NUL for each entry.
pub(crate) fn lorebook(data: &[u8]) {
    let cut = cut(data);
    if cut.entries.is_empty() {
        assert_eq!(cut.book, data);
    } else {
        let values: HashMap<_, _> =
            cut.entries.iter().map(|(key, value)| (key.as_bytes(), *value)).collect();
        assert_eq!(values.len(), cut.entries.len(), "no key is there twice");
        assert_eq!(cut.book.iter().filter(|byte| **byte == 0).count(), cut.entries.len());
        let filled = fill(&cut.book, |key| values.get(key)).expect("a cut lorebook can be filled");
        assert_eq!(filled, data);
        let (read, repeats) = entries_and_repeats(data).expect("a cut lorebook has entries");
        assert!(!repeats);
        assert!(
            read.iter()
                .map(|(key, value)| (key, value.as_bytes()))
                .eq(cut.entries.iter().map(|(key, value)| (key, *value)))
        );
    }
    for (_, entry) in entries(data) {
        super::entry_content(entry);
        super::entry_comment(entry);
        super::entry_uid(entry);
        super::effect_hash(entry, "Book");
        entry.get("uid").and_then(super::uid_text);
    }
    // A stored lorebook may be damaged, so `fill` must accept any bytes.
    if let Ok(filled) = fill(data, |_| Some(b"{}")) {
        let cuts = data.iter().filter(|byte| **byte == 0).count();
        assert_eq!(filled.len(), data.len() + cuts);
    }
}

/// Checks that filling a cut card, and each of its cut texts, returns the original bytes. Also
/// tests the input with corrected checksums, because mutated inputs do not have valid ones.
pub(crate) fn card(data: &[u8]) {
    one_card(data);
    one_card(&with_checksums(data));
    one_text(data);
}

fn one_card(data: &[u8]) {
    let CutCard { picture, texts } = cut_card(data);
    let each: Vec<_> = texts.iter().map(|text| text.text.as_slice()).collect();
    assert_eq!(fill_card(&picture, &each).expect("a cut card can be filled"), data);
    texts.iter().for_each(|text| one_text(&text.text));
    if !texts.is_empty() {
        assert_eq!(super::card_keywords(&picture).len(), texts.len());
    }
    let whole = png::chunks(data).is_some();
    assert!(!(whole && card::is_torn(Cursor::new(data))), "a PNG with its end is not torn");
    let _ = card::card_lorebook(Cursor::new(data));
    let _ = fill_card(data, &[b"{}"]);
}

fn one_text(text: &[u8]) {
    let cut = cut_text(text);
    if cut.strings.is_empty() {
        assert_eq!(cut.text, text);
        return;
    }
    let strings: HashMap<_, _> =
        cut.strings.iter().map(|(place, string)| (place.as_str(), *string)).collect();
    assert_eq!(strings.len(), cut.strings.len());
    let filled =
        fill_text(&cut.text, |place| strings.get(place)).expect("a cut text can be filled");
    assert_eq!(filled, text);
}

/// Returns the PNG with a correct checksum in each complete chunk.
fn with_checksums(data: &[u8]) -> Vec<u8> {
    let Some(mut rest) = data.strip_prefix(&SIGNATURE) else { return data.to_vec() };
    let mut png = SIGNATURE.to_vec();
    while let Some((head, _)) = rest.split_first_chunk::<8>() {
        let [a, b, c, d, kind @ ..] = *head;
        let length = u32::from_be_bytes([a, b, c, d]) as usize;
        let Some((chunk, after)) = rest.split_at_checked(length.saturating_add(12)) else { break };
        png.extend(png::encode(kind, &chunk[8..8 + length]));
        rest = after;
    }
    png.extend_from_slice(rest);
    png
}
