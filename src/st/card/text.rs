//! The text of a character card: base64 of JSON in a `tEXt` chunk named `ccv3` or, in older cards,
//! `chara`. Only `tEXt` chunks are read.

use super::png::{Chunks, PngError, SIGNATURE, keyword_of};
use crate::regular;
use crate::st::json::Raw;
use base64::Engine;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use std::io::{Read, Seek};
use std::path::Path;

/// Maximum length of a text chunk, in bytes. A card with a longer chunk counts as unreadable.
const LONGEST_TEXT: u64 = 256 << 20;

/// Returns the name of the lorebook that a card is bound to; `None` if the card has no lorebook or
/// the picture is not a card. The error describes the problem.
pub(in crate::st) fn card_lorebook(file: impl Read + Seek) -> Result<Option<String>, String> {
    let Some(json) = character(file)? else { return Ok(None) };
    let card = Raw::parse_str(&json).filter(Raw::is_object);
    let card = card.ok_or("its character data is not valid JSON")?;
    let world = card.path(&["data", "extensions", "world"]);
    Ok(world.and_then(|world| world.string()).filter(|world| !world.is_empty()))
}

/// Returns the character's name in a card; `None` if the card cannot be read.
pub fn card_name(path: &Path) -> Option<String> {
    let json = character(regular::open(path).ok()?).ok()??;
    let card = Raw::parse_str(&json)?;
    let name = card.path(&["data", "name"]).or_else(|| card.get("name"))?;
    name.string()
}

/// Returns whether a card is truncated: a PNG without its last chunk, or a file of zero bytes.
/// Pictures in other formats count as complete.
pub(in crate::st) fn is_torn(mut file: impl Read + Seek) -> bool {
    let mut first = Vec::new();
    if file.by_ref().take(SIGNATURE.len() as u64).read_to_end(&mut first).is_err() {
        return false;
    }
    if first != SIGNATURE {
        return first.iter().all(|byte| *byte == 0);
    }
    let to_the_end = Chunks::of(file).and_then(|mut chunks| {
        while chunks.next()?.is_some() {}
        Ok(())
    });
    matches!(to_the_end, Err(PngError::Torn))
}

/// Returns the character as JSON; `None` if the picture is not a card.
fn character(file: impl Read + Seek) -> Result<Option<String>, String> {
    let [card, older] = texts(file)?;
    let Some(text) = card.or(older) else { return Ok(None) };
    let json = decode(&text).ok_or("its character data is not valid base64")?;
    // SillyTavern reads invalid UTF-8 leniently.
    Ok(Some(String::from_utf8_lossy(&json).into_owned()))
}

/// Returns the texts of the first chunks named `ccv3` and `chara`.
fn texts(file: impl Read + Seek) -> Result<[Option<Vec<u8>>; 2], String> {
    let words = |error: PngError| error.to_string();
    let mut chunks = Chunks::of(file).map_err(words)?;
    let (mut card, mut older) = (None, None);
    while let Some(chunk) = chunks.next().map_err(words)? {
        if &chunk.kind != b"tEXt" {
            continue;
        }
        if chunk.length > LONGEST_TEXT {
            return Err("one of its text chunks is too long".into());
        }
        let data = chunks.read(chunk).map_err(words)?;
        let Some((keyword, text)) = keyword_of(chunk.kind, &data) else { continue };
        let place = if keyword == "ccv3" { &mut card } else { &mut older };
        place.get_or_insert_with(|| text.to_vec());
    }
    Ok([card, older])
}

/// Decodes base64 as Node.js does: `-` and `_` count as `+` and `/`, `=` ends the text, and other
/// characters are ignored.
fn decode(text: &[u8]) -> Option<Vec<u8>> {
    const LENIENT: GeneralPurpose = GeneralPurpose::new(
        &alphabet::STANDARD,
        GeneralPurposeConfig::new()
            .with_decode_allow_trailing_bits(true)
            .with_decode_padding_mode(DecodePaddingMode::RequireNone),
    );
    let digit = |byte: &u8| match byte {
        b'-' => Some(b'+'),
        b'_' => Some(b'/'),
        b'+' | b'/' => Some(*byte),
        byte if byte.is_ascii_alphanumeric() => Some(*byte),
        _ => None,
    };
    let text = text.split(|byte| *byte == b'=').next().unwrap_or_default();
    let mut digits: Vec<u8> = text.iter().filter_map(digit).collect();
    if digits.len() % 4 == 1 {
        digits.pop();
    }
    LENIENT.decode(digits).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::io::Cursor;

    fn chunk(kind: &[u8; 4], data: &[u8]) -> Vec<u8> {
        let length = u32::try_from(data.len()).unwrap().to_be_bytes();
        [&length, &kind[..], data, b"crc!"].concat()
    }

    fn text(keyword: &str, json: &str) -> Vec<u8> {
        let data = format!("{keyword}\0{}", base64::engine::general_purpose::STANDARD.encode(json));
        chunk(b"tEXt", data.as_bytes())
    }

    fn png(chunks: &[Vec<u8>]) -> Vec<u8> {
        let picture = chunk(b"IDAT", &[7; 5000]);
        [&SIGNATURE, &chunks.concat()[..], &picture, &chunk(b"IEND", b"")].concat()
    }

    fn bound(bytes: &[u8]) -> Result<Option<String>, String> {
        card_lorebook(Cursor::new(bytes))
    }

    fn card(world: &str) -> String {
        format!(r#"{{"data":{{"extensions":{{"world":{world}}}}}}}"#)
    }

    #[test]
    fn ccv3_takes_precedence_over_chara_in_any_order() {
        let old = text("chara", &card(r#""Old""#));
        let new = text("CCv3", &card(r#""雪 \ud83d\ude00""#));
        assert_eq!(bound(&png(std::slice::from_ref(&old))), Ok(Some("Old".into())));
        assert_eq!(bound(&png(&[old, new.clone()])), Ok(Some("雪 😀".into())));
        let behind = [&png(&[])[..png(&[]).len() - 12], &new, &chunk(b"IEND", b"")].concat();
        assert_eq!(bound(&behind), Ok(Some("雪 😀".into())));
    }

    #[test]
    fn cards_without_a_lorebook_are_valid() {
        for json in [card("\"\""), card("null"), card("7"), "{}".into()] {
            assert_eq!(bound(&png(&[text("chara", &json)])), Ok(None), "{json}");
        }
        assert_eq!(bound(&png(&[])), Ok(None), "a picture that is not a card");
        assert_eq!(bound(&png(&[chunk(b"tEXt", b"no keyword")])), Ok(None));
    }

    #[test]
    fn unreadable_cards_are_errors() {
        let whole = png(&[text("chara", &card("\"Lore\""))]);
        for end in 0..whole.len() - 4 {
            assert!(bound(&whole[..end]).is_err(), "torn after {end} bytes");
        }
        assert!(bound(b"RIFF....WEBP").is_err());
        assert!(bound(&png(&[text("chara", "[1]")])).is_err());
        assert!(bound(&png(&[text("ccv3", "{"), text("chara", &card("\"Lore\""))])).is_err());
        // The length exceeds the size of the file.
        let lying = [&SIGNATURE[..], b"\xff\xff\xff\xfftEXtchara\0"].concat();
        assert!(bound(&lying).is_err());
        let lying = [&SIGNATURE[..], b"\xff\xff\xff\xffIDAT"].concat();
        assert!(bound(&lying).is_err());
    }

    #[test]
    fn base64_is_decoded_as_in_node() {
        assert_eq!(decode(b"eyJ\n9 e-_A").unwrap(), b"{\"}{\xef\xc0");
        assert_eq!(decode(b"QUI=QUI").unwrap(), b"AB");
        assert_eq!(decode(b"QUIBQ").unwrap(), b"AB\x01");
        assert_eq!(decode(b"").unwrap(), b"");
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_do_not_panic(bytes: Vec<u8>, flips: Vec<(prop::sample::Index, u8)>) {
            let _ = bound(&bytes);
            let _ = bound(&[&SIGNATURE[..], &bytes].concat());
            let mut whole = png(&[text("chara", &card("\"Lore\""))]);
            for (at, value) in flips {
                let at = at.index(whole.len());
                whole[at] = value;
            }
            let _ = bound(&whole);
            let _ = bound(&png(&[chunk(b"tEXt", &[b"chara\0", &bytes[..]].concat())]));
        }
    }
}
