//! Splits a character card into the picture and its texts.
//!
//! An edit of a description must not store the picture again, and the stored text should be
//! readable. Therefore the base64 in the `tEXt` chunks `chara` and `ccv3` is removed from the PNG,
//! which keeps the empty chunks, and is stored decoded. Long strings are removed from the decoded
//! JSON, so that both texts, which are nearly equal, share the stored strings.
//!
//! To *cut* a card or a text is to remove these parts; to *fill* it is to insert them again. A
//! chunk with unusual base64 or a wrong checksum stays in the picture, and a file that could not be
//! rebuilt byte for byte is not cut.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::collections::HashSet;

use super::png::{self, Chunk, SIGNATURE, keyword_of};
use crate::st::json::{Edits, Raw};

/// Minimum length of the strings that are cut out, in bytes including quotes.
const LONG: usize = 128;
/// Maximum depth of nesting; strings below this depth are not cut out.
const MAX_DEPTH: usize = 12;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CutCard {
    /// The PNG with empty text chunks; the unchanged file if nothing could be cut out.
    pub picture: Vec<u8>,
    pub texts: Vec<CardText>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CardText {
    pub keyword: &'static str,
    pub text: Vec<u8>,
}

/// A JSON text in which a NUL byte replaces each long string.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CutText<'a> {
    pub text: Vec<u8>,
    /// The place of each removed string, such as `data.alternate_greetings.0`, and its raw value.
    /// All places are different.
    pub strings: Vec<(String, &'a [u8])>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CardError {
    #[error("the picture has {found} text chunks, but {texts} texts are stored")]
    Texts { found: usize, texts: usize },
    #[error("the text is cut at a place where no string can be")]
    NoPlace,
    #[error("the string {place:?} is missing")]
    NoString { place: String },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenCard {
    /// The text of `ccv3`, or else of `chara`, because SillyTavern prefers `ccv3`. `None` if
    /// neither can be cut out.
    pub text: Option<Vec<u8>>,
    pub picture: Vec<u8>,
}

impl OpenCard {
    pub fn of(bytes: &[u8]) -> Self {
        let CutCard { picture, mut texts } = cut_card(bytes);
        // `ccv3` sorts before `chara`.
        texts.sort_by_key(|text| text.keyword);
        Self { text: texts.into_iter().next().map(|text| text.text), picture }
    }
}

pub fn cut_card(bytes: &[u8]) -> CutCard {
    let whole = || CutCard { picture: bytes.to_vec(), texts: Vec::new() };
    let Some(cut) = take_out(bytes) else { return whole() };
    let texts: Vec<_> = cut.texts.iter().map(|text| text.text.as_slice()).collect();
    match fill_card(&cut.picture, &texts) {
        Ok(filled) if filled == bytes && !cut.texts.is_empty() => cut,
        _ => whole(),
    }
}

fn take_out(bytes: &[u8]) -> Option<CutCard> {
    let (chunks, rest) = png::chunks(bytes)?;
    let mut picture = SIGNATURE.to_vec();
    let mut texts = Vec::new();
    for chunk in chunks {
        match text_of(&chunk) {
            Some(text) => {
                let keyword = &chunk.data[..text.keyword.len() + 1];
                picture.extend(png::encode(*b"tEXt", keyword));
                texts.push(text);
            }
            None => picture.extend_from_slice(chunk.bytes),
        }
    }
    picture.extend_from_slice(rest);
    Some(CutCard { picture, texts })
}

/// Returns the decoded text of a chunk; `None` if the chunk cannot be cut.
fn text_of(chunk: &Chunk<'_>) -> Option<CardText> {
    let (keyword, payload) = keyword_of(chunk.kind, chunk.data)?;
    let text = STANDARD.decode(payload).ok()?;
    let is_exact = png::encode(chunk.kind, chunk.data) == chunk.bytes
        && STANDARD.encode(&text).as_bytes() == payload;
    is_exact.then_some(CardText { keyword, text })
}

/// Returns the keywords of the chunks that [`fill_card`] would fill, in order.
pub fn card_keywords(picture: &[u8]) -> Vec<&'static str> {
    let (chunks, _) = png::chunks(picture).unwrap_or_default();
    let keywords = chunks.iter().filter_map(|chunk| keyword_of(chunk.kind, chunk.data));
    keywords.filter(|(_, text)| text.is_empty()).map(|(keyword, _)| keyword).collect()
}

/// Rebuilds a card from its parts: each empty chunk gets the next text.
pub fn fill_card(picture: &[u8], texts: &[&[u8]]) -> Result<Vec<u8>, CardError> {
    if texts.is_empty() {
        return Ok(picture.to_vec());
    }
    let (chunks, rest) = png::chunks(picture).unwrap_or_default();
    let mut bytes = SIGNATURE.to_vec();
    let mut found = 0;
    for chunk in chunks {
        match keyword_of(chunk.kind, chunk.data) {
            Some((_, [])) => {
                let text = texts.get(found).copied().unwrap_or_default();
                let data = [chunk.data, STANDARD.encode(text).as_bytes()].concat();
                bytes.extend(png::encode(*b"tEXt", &data));
                found += 1;
            }
            _ => bytes.extend_from_slice(chunk.bytes),
        }
    }
    bytes.extend_from_slice(rest);
    if found == texts.len() {
        Ok(bytes)
    } else {
        Err(CardError::Texts { found, texts: texts.len() })
    }
}

pub fn cut_text(bytes: &[u8]) -> CutText<'_> {
    let whole = || CutText { text: bytes.to_vec(), strings: Vec::new() };
    let Some(root) = Raw::parse(bytes) else { return whole() };
    let mut strings = Vec::new();
    each_value(root, String::new(), 0, &mut |place, value| {
        if value.is_string() && value.as_bytes().len() >= LONG {
            strings.push((place, value));
        }
    });
    let mut seen = HashSet::new();
    if !strings.iter().all(|(place, _)| seen.insert(place.as_str())) {
        return whole();
    }
    let mut edits = Edits::new(bytes);
    strings.iter().for_each(|(_, value)| edits.replace(*value, [0]));
    let strings = strings.into_iter().map(|(place, value)| (place, value.as_bytes())).collect();
    CutText { text: edits.apply(), strings }
}

/// Rebuilds a text from its parts: `lookup` returns the string for a place. `text` must be the
/// result of [`cut_text`].
pub fn fill_text<B: AsRef<[u8]>>(
    text: &[u8],
    mut lookup: impl FnMut(&str) -> Option<B>,
) -> Result<Vec<u8>, CardError> {
    // With a digit in place of each NUL, the text is valid JSON, and all offsets are the same.
    let whole: Vec<u8> = text.iter().map(|byte| if *byte == 0 { b'0' } else { *byte }).collect();
    let root = Raw::parse(&whole).ok_or(CardError::NoPlace)?;
    let mut cuts = Vec::new();
    each_value(root, String::new(), 0, &mut |place, value| {
        let at = value.span_in(&whole);
        if at.len() == 1 && text.get(at.start) == Some(&0) {
            cuts.push((value, place));
        }
    });
    if cuts.len() != text.iter().filter(|byte| **byte == 0).count() {
        return Err(CardError::NoPlace);
    }
    let mut edits = Edits::new(&whole);
    for (value, place) in cuts {
        let string = lookup(&place).ok_or(CardError::NoString { place })?;
        edits.replace(value, string.as_ref());
    }
    Ok(edits.apply())
}

/// Calls `each` with the place and the value of every string of a JSON text.
pub fn each_string(text: &str, each: &mut dyn FnMut(String, String)) {
    let Some(root) = Raw::parse_str(text) else { return };
    each_value(root, String::new(), 0, &mut |place, value| {
        if let Some(string) = value.string() {
            each(place, string);
        }
    });
}

/// Calls `each` with the place and the value of every scalar, in the order of the text. Objects and
/// arrays at the depth [`MAX_DEPTH`] are not entered: `each` is called with them instead.
fn each_value<'a>(
    value: Raw<'a>,
    place: String,
    depth: usize,
    each: &mut impl FnMut(String, Raw<'a>),
) {
    let within = |name: &str| match place.as_str() {
        "" => name.to_owned(),
        place => format!("{place}.{name}"),
    };
    if depth < MAX_DEPTH && value.is_object() {
        for member in value.members().unwrap_or_default() {
            let place = within(&member.key.to_string_lossy());
            each_value(member.value, place, depth + 1, each);
        }
    } else if depth < MAX_DEPTH && value.is_array() {
        for (n, item) in value.items().unwrap_or_default().into_iter().enumerate() {
            each_value(item, within(&n.to_string()), depth + 1, each);
        }
    } else {
        each(place, value);
    }
}
