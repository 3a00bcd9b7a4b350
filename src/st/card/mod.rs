//! Character cards: PNG pictures that contain the character in text chunks.

mod parts;
pub(super) mod png;
mod text;

pub use parts::{
    CutCard, OpenCard, card_keywords, cut_card, cut_text, each_string, fill_card, fill_text,
};
pub use png::card_picture;
pub use text::card_name;
pub(super) use text::{card_lorebook, is_torn};
