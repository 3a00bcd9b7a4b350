//! What ST-Auto-Recap calls lorebooks.

use unicode_normalization::UnicodeNormalization;

/// How the names of the extension's lorebooks begin: `z-AutoLB-<character>-<chat>`, or `z-AutoLB-<chat>` in old ones.
const PREFIX: &str = "z-AutoLB-";

/// A character's or chat's name as the extension puts it into a lorebook's name.
pub fn book_segment(name: &str) -> String {
    let plain: String = name
        .chars()
        .map(|c| if r#"\/:*?"<>|"#.contains(c) || "\n\r\t".contains(c) { ' ' } else { c })
        .collect();
    plain.split_whitespace().collect::<Vec<_>>().join(" ").nfc().collect()
}

/// The name for the lorebook of the new chat `chat`, if the book it is cloned from is called by the extension's template. `known` are the
/// chats whose name may stand in it: its own chat, and the one that was forked from.
pub fn fork_book_name(book: &str, known: &[&str], chat: &str) -> Option<String> {
    let rest = book.strip_prefix(PREFIX)?;
    let rest = without_number(rest);
    let new = book_segment(chat);
    for name in known {
        if let Some(character) = rest.strip_suffix(&book_segment(name)) {
            // Nothing, or `<character>-`.
            if character.is_empty() || character.ends_with('-') {
                return Some(format!("{PREFIX}{character}{new}"));
            }
        }
    }
    // Some other chat's: only where the character's name ends is not known.
    Some(match rest.split_once('-') {
        Some((character, _)) => format!("{PREFIX}{character}-{new}"),
        None => format!("{PREFIX}{new}"),
    })
}

/// Whether a lorebook that is called by the extension's template is called after `chat`; none if it is not called so.
pub fn is_book_of(book: &str, chat: &str) -> Option<bool> {
    let rest = book.strip_prefix(PREFIX)?;
    // A character that no file name may have is a space in one name and missing in the other.
    let packed = |name: &str| name.split_whitespace().collect::<String>();
    let chat = packed(&book_segment(chat));
    Some(
        [rest, without_number(rest)]
            .iter()
            .any(|rest| packed(&book_segment(rest)).ends_with(&chat)),
    )
}

/// Whether a lorebook is called as those that the extension, or a plan of it, makes for chats and their forks.
pub fn is_fork_book(name: &str) -> bool {
    // `<book>_checkpoint_<name>_<milliseconds>`: a word alone may be anybody's.
    let clone = name.split_once("_checkpoint_").and_then(|(_, rest)| rest.rsplit_once('_'));
    let moment = |text: &str| text.len() >= 7 && text.bytes().all(|byte| byte.is_ascii_digit());
    name.starts_with(PREFIX) || clone.is_some_and(|(_, end)| moment(end))
}

/// Without the ` (2)` of a name that was taken.
fn without_number(name: &str) -> &str {
    let cut = name.rsplit_once(" (").filter(|(_, number)| {
        number.strip_suffix(')').is_some_and(|digits| digits.parse::<u16>().is_ok())
    });
    cut.map_or(name, |(name, _)| name)
}
