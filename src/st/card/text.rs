//! Character cards: pictures that carry the character as text.
//!
//! A PNG is a signature and chunks, each with its length, type, data and checksum. The character is base64 of JSON in a `tEXt` chunk called `ccv3`
//! or, in older cards, `chara`. Only such chunks are read; the picture is skipped. Lengths may lie: nothing is reserved on their word.

use super::png::SIGNATURE;
use crate::regular;
use crate::st::json::Raw;
use base64::Engine;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::Path;

/// More than any card's text. What is longer is not read, but then the card counts as unreadable.
const LONGEST: u64 = 256 << 20;

const TORN: &str = "the picture is torn";

/// The name of the lorebook that a card is bound to; none if it is bound to none, or the picture is no card. If it cannot be read: why.
pub(in crate::st) fn card_lorebook(file: impl Read + Seek) -> Result<Option<String>, String> {
    let Some(json) = character(file)? else { return Ok(None) };
    let card = Raw::parse_str(&json).filter(Raw::is_object);
    let card = card.ok_or("the character in it is not valid JSON")?;
    let world = card.path(&["data", "extensions", "world"]);
    Ok(world.and_then(|world| world.string()).filter(|world| !world.is_empty()))
}

/// Returns the name that a character has in its card, if the card can be read.
pub fn card_name(path: &Path) -> Option<String> {
    let json = character(regular::open(path).ok()?).ok()??;
    let card = Raw::parse_str(&json)?;
    let name = card.path(&["data", "name"]).or_else(|| card.get("name"))?;
    name.string()
}

/// Returns whether a card was not written to its end: a PNG without its last chunk, or zero bytes only. Pictures of other kinds are not judged.
pub(in crate::st) fn is_torn(mut file: impl Read + Seek) -> bool {
    let mut first = Vec::new();
    let read = file.by_ref().take(SIGNATURE.len() as u64).read_to_end(&mut first);
    if read.and_then(|_| file.rewind()).is_err() {
        return false;
    }
    if first == SIGNATURE {
        texts(file).is_err_and(|why| why == TORN)
    } else {
        first.iter().all(|byte| *byte == 0)
    }
}

/// Returns the character as JSON; none if the picture is not a card.
fn character(file: impl Read + Seek) -> Result<Option<String>, String> {
    let [card, older] = texts(file)?;
    let Some(text) = card.or(older) else { return Ok(None) };
    let json = decode(&text).ok_or("the character in it is not valid base64")?;
    // SillyTavern reads invalid UTF-8 leniently, and so must this.
    Ok(Some(String::from_utf8_lossy(&json).into_owned()))
}

/// The texts of the first chunks called `ccv3` and `chara`.
fn texts(file: impl Read + Seek) -> Result<[Option<Vec<u8>>; 2], String> {
    let torn = |error: std::io::Error| match error.kind() {
        std::io::ErrorKind::UnexpectedEof => TORN.to_owned(),
        _ => error.to_string(),
    };
    let mut file = BufReader::new(file);
    let mut signature = [0; 8];
    file.read_exact(&mut signature).map_err(torn)?;
    if signature != SIGNATURE {
        return Err("it is not a PNG picture".into());
    }
    let mut found = [None, None];
    loop {
        let mut head = [0; 8];
        file.read_exact(&mut head).map_err(torn)?;
        let [a, b, c, d, kind @ ..] = head;
        let length = u64::from(u32::from_be_bytes([a, b, c, d]));
        match &kind {
            b"IEND" => return Ok(found),
            b"tEXt" if length <= LONGEST => {
                let mut data = Vec::new();
                let read = file.by_ref().take(length).read_to_end(&mut data).map_err(torn)?;
                if (read as u64) < length {
                    return Err(TORN.into());
                }
                take(data, &mut found);
                skip(&mut file, 4).map_err(torn)?;
            }
            b"tEXt" => return Err("a text in it is too long".into()),
            _ => skip(&mut file, length + 4).map_err(torn)?,
        }
    }
}

/// Keep the text of a chunk if it is one of those looked for. The keyword ends at a NUL, and its case does not matter.
fn take(data: Vec<u8>, found: &mut [Option<Vec<u8>>; 2]) {
    let Some(end) = data.iter().position(|byte| *byte == 0) else { return };
    for (place, keyword) in found.iter_mut().zip(["ccv3", "chara"]) {
        if place.is_none() && data[..end].eq_ignore_ascii_case(keyword.as_bytes()) {
            *place = Some(data[end + 1..].to_vec());
            return;
        }
    }
}

/// Go on so many bytes, which must be there. (A seek alone goes beyond the end without a word.)
fn skip(file: &mut BufReader<impl Read + Seek>, bytes: u64) -> std::io::Result<()> {
    let Some(all_but_one) = bytes.checked_sub(1) else { return Ok(()) };
    match i64::try_from(all_but_one) {
        Ok(offset) => file.seek_relative(offset)?,
        Err(_) => drop(file.seek(SeekFrom::End(0))?),
    }
    file.read_exact(&mut [0])
}

/// Base64 as Node reads it: what is no digit is left out, `-` and `_` are digits too, `=` ends it.
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
    fn the_newer_text_wins_wherever_it_stands() {
        let old = text("chara", &card(r#""Old""#));
        let new = text("CCv3", &card(r#""雪 \ud83d\ude00""#));
        assert_eq!(bound(&png(std::slice::from_ref(&old))), Ok(Some("Old".into())));
        assert_eq!(bound(&png(&[old, new.clone()])), Ok(Some("雪 😀".into())));
        let behind = [&png(&[])[..png(&[]).len() - 12], &new, &chunk(b"IEND", b"")].concat();
        assert_eq!(bound(&behind), Ok(Some("雪 😀".into())));
    }

    #[test]
    fn cards_without_a_lorebook_are_no_trouble() {
        for json in [card("\"\""), card("null"), card("7"), "{}".into()] {
            assert_eq!(bound(&png(&[text("chara", &json)])), Ok(None), "{json}");
        }
        assert_eq!(bound(&png(&[])), Ok(None), "a picture that is no card");
        assert_eq!(bound(&png(&[chunk(b"tEXt", b"no keyword")])), Ok(None));
    }

    #[test]
    fn what_cannot_be_read_is_said() {
        let whole = png(&[text("chara", &card("\"Lore\""))]);
        for end in 0..whole.len() - 4 {
            assert!(bound(&whole[..end]).is_err(), "torn after {end} bytes");
        }
        assert!(bound(b"RIFF....WEBP").is_err());
        assert!(bound(&png(&[text("chara", "[1]")])).is_err());
        assert!(bound(&png(&[text("ccv3", "{"), text("chara", &card("\"Lore\""))])).is_err());
        // A length that no file has.
        let lying = [&SIGNATURE[..], b"\xff\xff\xff\xfftEXtchara\0"].concat();
        assert!(bound(&lying).is_err());
        let lying = [&SIGNATURE[..], b"\xff\xff\xff\xffIDAT"].concat();
        assert!(bound(&lying).is_err());
    }

    #[test]
    fn base64_is_read_as_node_does() {
        assert_eq!(decode(b"eyJ\n9 e-_A").unwrap(), b"{\"}{\xef\xc0");
        assert_eq!(decode(b"QUI=QUI").unwrap(), b"AB");
        assert_eq!(decode(b"QUIBQ").unwrap(), b"AB\x01");
        assert_eq!(decode(b"").unwrap(), b"");
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_fall(bytes: Vec<u8>, flips: Vec<(prop::sample::Index, u8)>) {
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
