//! Chats with text that does not compress well.

pub const A: &str = "chats/Mira/a.jsonl";

pub const B: &str = "chats/Mira/b.jsonl";

/// Builds a chat file; `book` is the name of its lorebook.
pub fn chat(name: &str, messages: usize, book: Option<&str>) -> Vec<u8> {
    let metadata = match book {
        Some(book) => serde_json::json!({ "world_info": book }),
        None => serde_json::json!({}),
    };
    let header = serde_json::json!({ "user_name": "You", "character_name": "Mira", "chat_metadata": metadata });
    let mut text = header.to_string();
    for n in 0..messages {
        text.push_str(&format!("\n{}", message(name, n)));
    }
    text.into_bytes()
}

pub fn message(name: &str, n: usize) -> String {
    let text = format!("{name} {n}: {}", blake(&format!("{name}/{n}")));
    serde_json::json!({ "name": "Mira", "is_user": n.is_multiple_of(2), "mes": text }).to_string()
}

fn blake(text: &str) -> String {
    let mut state = 0xcbf2_9ce4_8422_2325_u64;
    for byte in text.bytes() {
        state = (state ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    format!("{state:016x} {:016x}", state.rotate_left(17).wrapping_mul(3))
}
