//! Cutting and filling a card returns the original bytes, for any content.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use proptest::prelude::*;

use crate::st::card::png::{SIGNATURE, encode};
use crate::st::{Category, OpenCard, cut_card, cut_text, differ_by_use, fill_card, fill_text};

fn text(keyword: &str, json: &str) -> Vec<u8> {
    encode(*b"tEXt", format!("{keyword}\0{}", STANDARD.encode(json)).as_bytes())
}

fn png(chunks: &[Vec<u8>]) -> Vec<u8> {
    let head = encode(*b"IHDR", &[0; 13]);
    let picture = encode(*b"IDAT", &[7; 500]);
    [&SIGNATURE[..], &head, &picture, &chunks.concat(), &encode(*b"IEND", b"")].concat()
}

/// Cuts a card as the store does, and fills it again.
fn again(card: &[u8]) -> Vec<u8> {
    let cut = cut_card(card);
    let texts: Vec<_> = cut.texts.iter().map(|text| text_again(&text.text)).collect();
    let texts: Vec<_> = texts.iter().map(Vec::as_slice).collect();
    fill_card(&cut.picture, &texts).unwrap()
}

fn text_again(text: &[u8]) -> Vec<u8> {
    let cut = cut_text(text);
    if cut.strings.is_empty() {
        return cut.text;
    }
    let find = |place: &str| {
        cut.strings.iter().find(|(other, _)| other == place).map(|(_, value)| value.to_vec())
    };
    fill_text(&cut.text, find).unwrap()
}

#[test]
fn card_texts_are_separated_from_the_picture() {
    let long = "A long description. ".repeat(20);
    let json = format!(
        r#"{{"name":"M","description":"{long}","data":{{"description":"{long}","x":1e21}}}}"#
    );
    let card = png(&[text("chara", &json), text("CCv3", &json)]);
    let cut = cut_card(&card);
    let keywords: Vec<_> = cut.texts.iter().map(|text| text.keyword).collect();
    assert_eq!(keywords, ["chara", "ccv3"]);
    assert!(cut.picture.len() < card.len() - 2 * json.len());
    let inner = cut_text(&cut.texts[0].text);
    let places: Vec<_> = inner.strings.iter().map(|(place, _)| place.as_str()).collect();
    assert_eq!(places, ["description", "data.description"]);
    assert_eq!(again(&card), card);
    // An edited description does not change the picture.
    let other = json.replace("long", "short");
    let edited = cut_card(&png(&[text("chara", &other), text("CCv3", &other)]));
    assert_eq!(edited.picture, cut.picture);
    assert_eq!(OpenCard::of(&card).text.unwrap(), json.as_bytes());
}

#[test]
fn chunks_that_would_not_round_trip_stay_in_the_picture() {
    let json = r#"{"name":"M"}"#;
    let mut broken = text("chara", json);
    let last = broken.len() - 1;
    broken[last] ^= 1;
    let url_safe = encode(*b"tEXt", b"chara\0eyJ-_w");
    let padded = encode(*b"tEXt", b"chara\0QUI");
    let compressed = encode(*b"zTXt", b"chara\0\0abc");
    let international = encode(*b"iTXt", b"chara\0\0\0\0\0abc");
    let no_keyword = encode(*b"tEXt", b"no keyword");
    for odd in [broken, url_safe, padded, compressed, international, no_keyword] {
        let card = png(std::slice::from_ref(&odd));
        assert_eq!(cut_card(&card).picture, card);
        assert_eq!(again(&card), card);
        // Other chunks are still cut.
        let mixed = png(&[odd, text("ccv3", json)]);
        assert_eq!(cut_card(&mixed).texts.len(), 1);
        assert_eq!(again(&mixed), mixed);
    }
    // An empty chunk with a wrong checksum must not be mistaken for a chunk that was cut.
    let mut empty = encode(*b"tEXt", b"chara\0");
    let last = empty.len() - 1;
    empty[last] ^= 1;
    let card = png(&[empty, text("ccv3", json)]);
    assert_eq!(cut_card(&card).picture, card);
}

#[test]
fn cards_with_duplicate_empty_or_trailing_data_round_trip() {
    let two = png(&[text("chara", "{}"), text("chara", "[1]"), text("ccv3", "")]);
    assert_eq!(cut_card(&two).texts.len(), 3);
    let behind = [&two[..], b"more than a picture"].concat();
    for card in [two, behind, b"GIF89a".to_vec(), Vec::new(), SIGNATURE.to_vec()] {
        assert_eq!(again(&card), card);
    }
    let torn = png(&[text("chara", "{}")]);
    for end in 0..torn.len() {
        assert_eq!(again(&torn[..end]), &torn[..end]);
    }
}

#[test]
fn text_with_ambiguous_paths_is_not_split() {
    let long = "x".repeat(200);
    for json in [
        format!(r#"{{"a":"{long}","a":"{long}"}}"#),
        format!(r#"{{"a.b":"{long}","a":{{"b":"{long}"}}}}"#),
        format!(r#"{{"a":["{long}"],"a.0":"{long}"}}"#),
        format!(r#"{{"\ud800":"{long}","\udc00":"{long}"}}"#),
        format!("{{\"a\":\"{long}\0\"}}"),
        format!("\u{feff}{{\"a\":\"{long}\"}}"),
    ] {
        assert!(cut_text(json.as_bytes()).strings.is_empty(), "{json}");
        assert_eq!(text_again(json.as_bytes()), json.as_bytes());
    }
    // A text that is a single string is cut; a string that is nested too deeply is not.
    let alone = format!("  \"{long}\"\n");
    assert_eq!(cut_text(alone.as_bytes()).strings.len(), 1);
    let deep = format!("{}\"{long}\"{}", "[".repeat(100), "]".repeat(100));
    assert!(cut_text(deep.as_bytes()).strings.is_empty());
    for text in [alone, deep] {
        assert_eq!(text_again(text.as_bytes()), text.as_bytes());
    }
}

#[test]
fn name_of_the_open_chat_does_not_count_as_a_change_of_the_card() {
    let card = |json: &str| png(&[text("chara", json), text("ccv3", json)]);
    let json = r#"{"name":"M","chat":"one","data":{"chat":"x"}}"#;
    let same = |other: &str| differ_by_use(Category::Card, &card(json), &card(other));
    assert!(same(&json.replace("\"one\"", "\"two\"")));
    assert!(same(&json.replace("\"chat\":\"one\",", "")));
    assert!(!same(&json.replace("\"x\"", "\"y\"")));
    let another = card(json).into_iter().map(|byte| if byte == 7 { 8 } else { byte });
    assert!(!differ_by_use(Category::Card, &card(json), &another.collect::<Vec<_>>()));
}

fn json() -> impl Strategy<Value = String> {
    let long = "[a-z雪🦊 ]{0,80}|[a-z]{120,160}";
    let leaf = prop_oneof![
        long.prop_map(|text| serde_json::to_string(&text).unwrap()),
        Just("1e21".to_owned()),
        Just("\"\\ud83d\"".to_owned()),
        Just("null".to_owned()),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4)
                .prop_map(|items| format!("[ {} ]", items.join(" ,"))),
            proptest::collection::vec(("[a-c.0]{0,3}", inner), 0..4).prop_map(|members| {
                let members: Vec<_> =
                    members.iter().map(|(key, value)| format!("\"{key}\" :{value}")).collect();
                format!("{{{}}}", members.join(",\n"))
            }),
        ]
    })
}

proptest! {
    #[test]
    fn arbitrary_card_texts_round_trip(text in json(), bytes: Vec<u8>) {
        prop_assert_eq!(text_again(text.as_bytes()), text.as_bytes());
        prop_assert_eq!(text_again(&bytes), bytes);
    }

    #[test]
    fn generated_and_damaged_cards_round_trip(
        texts in proptest::collection::vec((prop::sample::select(vec!["chara", "CHARA", "ccv3", "other"]), json()), 0..4),
        flips in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..3),
        tail: Vec<u8>,
    ) {
        let chunks: Vec<_> = texts.iter().map(|(keyword, json)| text(keyword, json)).collect();
        let mut card = [png(&chunks), tail].concat();
        prop_assert_eq!(again(&card), card.clone());
        for (at, byte) in flips {
            let at = at.index(card.len());
            card[at] = byte;
        }
        prop_assert_eq!(again(&card), card);
    }
}
