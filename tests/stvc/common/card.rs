use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

/// Builds a card as SillyTavern writes it, with `picture` bytes of incompressible image data.
pub fn card(json: &Value, picture: usize) -> Vec<u8> {
    let chunk = |kind: &[u8], data: &[u8]| {
        let body = [kind, data].concat();
        let check = crc32fast::hash(&body);
        [&u32::try_from(data.len()).unwrap().to_be_bytes()[..], &body, &check.to_be_bytes()]
            .concat()
    };
    let text = |keyword: &str, json: &Value| {
        let data = format!("{keyword}\0{}", STANDARD.encode(json.to_string()));
        chunk(b"tEXt", data.as_bytes())
    };
    let mut newer = json.clone();
    newer["spec"] = "chara_card_v3".into();
    let noise: Vec<u8> = (0..picture as u64)
        .step_by(32)
        .flat_map(|n| *blake3::hash(&n.to_le_bytes()).as_bytes())
        .collect();
    [
        &b"\x89PNG\r\n\x1a\n"[..],
        &chunk(b"IHDR", &[0; 13]),
        &chunk(b"IDAT", &noise),
        &text("chara", json),
        &text("ccv3", &newer),
        &chunk(b"IEND", b""),
    ]
    .concat()
}
