//! Values and edits in words: what changed with a little around it, and never a wall of JSON.

use unicode_width::UnicodeWidthStr;

use crate::cli::output::{LOOK, paint};
use crate::cli::wording::{clean, count, cut, cut_front};
use stvc::archive::diff::{Piece, set_change, words};
use stvc::st::Raw;

/// A text that is not wider is told whole: three lines of a usual terminal.
const SHORT: usize = 240;
/// How much of what did not change is shown beside what did, in columns.
const CONTEXT: usize = 32;
/// How much of what came or went in one place is shown.
const CHANGED: usize = 400;

/// What the words are written for.
#[derive(Clone, Copy)]
pub struct Page {
    /// Colours are seen; otherwise `[-…-]` and `{+…+}` stand for them.
    pub colored: bool,
    /// How wide a line may be that can be cut.
    pub room: usize,
}

impl Page {
    /// What is there no more.
    pub fn removed(&self, text: &str) -> String {
        if self.colored { paint(LOOK.bad, text) } else { format!("[-{text}-]") }
    }

    /// What is new.
    pub fn added(&self, text: &str) -> String {
        if self.colored { paint(LOOK.good, text) } else { format!("{{+{text}+}}") }
    }

    /// A text cut to the room that `used` columns leave.
    pub fn gist(&self, text: &str, used: usize) -> String {
        let text = clean(text.trim());
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        cut(&text, self.room.saturating_sub(used).max(24))
    }

    /// A text that came or went: whole if it is short, else how it begins and ends.
    pub fn told(&self, text: &str) -> String {
        let text = clean(text.trim());
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        if text.width() <= SHORT {
            return text;
        }
        let (begin, end) = (cut(&text, SHORT * 2 / 3), cut_front(&text, SHORT / 4));
        if begin == text { begin } else { format!("{} {}", trim_back(&begin), trim_front(&end)) }
    }

    /// What changed in a text, word by word. Of a long one what did not change is left out, but for a little beside what did.
    pub fn edit(&self, before: &str, after: &str) -> String {
        let is_short = before.width().max(after.width()) <= SHORT;
        let pieces = words(before, after);
        let mut out = String::new();
        for (at, piece) in pieces.iter().enumerate() {
            match piece {
                Piece::Same(text) if is_short => out.push_str(&clean(text)),
                Piece::Same(text) => {
                    let text = clean(text);
                    out.push_str(&around(&text, at == 0, at + 1 == pieces.len()));
                }
                Piece::Removed(text) => out.push_str(&self.removed(&changed(text))),
                Piece::Added(text) => out.push_str(&self.added(&changed(text))),
            }
        }
        out
    }

    /// What became of a value.
    pub fn change(&self, before: Option<Raw<'_>>, after: Option<Raw<'_>>) -> String {
        let (before, after) = match (before, after) {
            (Some(before), Some(after)) => (before, after),
            (Some(gone), None) => return self.removed(&self.value(gone)),
            (None, Some(new)) => return self.added(&self.value(new)),
            (None, None) => return String::new(),
        };
        if let (Some(before), Some(after)) = (before.string(), after.string()) {
            return self.edit(&before, &after);
        }
        if let Some((added, removed)) = set_change(before, after) {
            return self.sets(&added, &removed);
        }
        let (old, new) = (self.value(before), self.value(after));
        if old == new {
            return format!("{new}, changed inside");
        }
        format!("{}{}", self.removed(&old), self.added(&new))
    }

    /// What a list of texts got and lost.
    fn sets(&self, added: &[Raw<'_>], removed: &[Raw<'_>]) -> String {
        let text = |item: &Raw<'_>| clean(&item.string().unwrap_or_default());
        let removed = removed.iter().map(|item| self.removed(&text(item)));
        let words: Vec<_> =
            removed.chain(added.iter().map(|item| self.added(&text(item)))).collect();
        if words.is_empty() { "the same, in another order".into() } else { words.join(" ") }
    }

    /// A value in a few words.
    pub fn value(&self, value: Raw<'_>) -> String {
        if let Some(text) = value.string() {
            return self.gist(&text, 8);
        }
        if let Some(members) = value.members() {
            let names: Vec<_> = members.iter().map(|member| member.key.to_string_lossy()).collect();
            let many = count(names.len() as u64, "value");
            return if names.is_empty() {
                many
            } else {
                self.gist(&format!("{many}: {}", names.join(", ")), 8)
            };
        }
        if let Some(items) = value.items() {
            let texts: Option<Vec<_>> = items.iter().map(|item| item.string()).collect();
            let many = format!("list of {}", items.len());
            return match texts {
                Some(texts) if !texts.is_empty() => {
                    self.gist(&format!("{many}: {}", texts.join(", ")), 8)
                }
                _ => many,
            };
        }
        cut(&clean(value.as_str()), self.room)
    }
}

/// What did not change: only its ends, where something changed beside them.
fn around(text: &str, first: bool, last: bool) -> String {
    let front = |text: &str| trim_front(&cut_front(text, CONTEXT));
    let back = |text: &str| trim_back(&cut(text, CONTEXT));
    match (first, last) {
        (true, true) => cut(text, 2 * CONTEXT),
        (true, false) => front(text),
        (false, true) => back(text),
        (false, false) if text.width() <= 2 * CONTEXT + 8 => text.to_owned(),
        (false, false) => format!("{} {}", back(text), front(text)),
    }
}

/// Without the rest of a word that was cut in two, if the whole is not one word.
fn trim_front(text: &str) -> String {
    match text.strip_prefix('…').and_then(|rest| rest.split_once(' ')) {
        Some((half, rest)) if half.width() < CONTEXT / 2 => format!("…{rest}"),
        _ => text.to_owned(),
    }
}

fn trim_back(text: &str) -> String {
    match text.strip_suffix('…').and_then(|rest| rest.rsplit_once(' ')) {
        Some((rest, half)) if half.width() < CONTEXT / 2 => format!("{rest}…"),
        _ => text.to_owned(),
    }
}

/// What came or went. Line breaks are seen; of very much only the ends.
fn changed(text: &str) -> String {
    let text = clean(&text.replace("\r\n", "⏎").replace('\n', "⏎"));
    if text.width() <= CHANGED {
        return text;
    }
    format!(
        "{} {}",
        trim_back(&cut(&text, CHANGED * 2 / 3)),
        trim_front(&cut_front(&text, CHANGED / 4))
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: Page = Page { colored: false, room: 84 };

    #[test]
    fn only_the_changed_part_with_context() {
        let long = "It was a dark and stormy night, and the rain fell in torrents, except at occasional intervals.";
        let edited = long.replace("stormy", "quiet").replace("occasional", "rare");
        assert_eq!(
            PAGE.edit(long, &edited),
            "It was a dark and [-stormy-]{+quiet+} night, and the rain fell in torrents, except at [-occasional-]{+rare+} intervals."
        );
        let before = format!("{long} {long} {long}");
        let after = format!("{long} {} {long}", long.replace("stormy", "quiet"));
        assert_eq!(
            PAGE.edit(&before, &after),
            "…intervals. It was a dark and [-stormy-]{+quiet+} night, and the rain fell in…"
        );
        assert_eq!(PAGE.edit("a\nb", "a\n\nb"), "a[-⏎-]{+⏎⏎+}b");
    }

    #[test]
    fn values_are_told_not_dumped() {
        let raw = |text: &'static str| Raw::parse_str(text).unwrap();
        assert_eq!(PAGE.value(raw(r#"{"a":1,"b":{"c":[1,2]}}"#)), "2 values: a, b");
        assert_eq!(PAGE.value(raw("[1,2,3]")), "list of 3");
        assert_eq!(PAGE.change(Some(raw("1")), Some(raw("2"))), "[-1-]{+2+}");
        assert_eq!(
            PAGE.change(Some(raw(r#"["a","b"]"#)), Some(raw(r#"["b","c"]"#))),
            "[-a-] {+c+}"
        );
        assert_eq!(
            PAGE.change(Some(raw(r#"["a","b"]"#)), Some(raw(r#"["b","a"]"#))),
            "the same, in another order"
        );
    }
}
