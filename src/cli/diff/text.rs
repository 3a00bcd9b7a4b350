//! Values and edits in words, shortened to what changed and a little around it.

use unicode_width::UnicodeWidthStr;

use crate::cli::output::{LOOK, Out, paint};
use crate::cli::wording::{clean, count, cut, cut_front};
use stvc::changes::{Piece, set_change, words};
use stvc::library::Raw;

/// A shorter text is shown whole: three lines of a usual terminal.
const SHORT: usize = 240;
/// Columns of unchanged text that are shown beside a change.
const CONTEXT: usize = 32;
/// Columns of a change that are shown.
const CHANGED: usize = 400;

#[derive(Clone, Copy)]
pub struct Page {
    /// Otherwise `[-…-]` and `{+…+}` mark changes.
    pub colored: bool,
    pub room: usize,
}

impl Page {
    /// Leaves room for so many columns beside the text.
    pub fn of(out: &Out, beside: usize) -> Self {
        Self { colored: out.is_colored(), room: out.columns().saturating_sub(beside) }
    }

    pub fn removed(&self, text: &str) -> String {
        if self.colored { paint(LOOK.bad, text) } else { format!("[-{text}-]") }
    }

    pub fn added(&self, text: &str) -> String {
        if self.colored { paint(LOOK.good, text) } else { format!("{{+{text}+}}") }
    }

    pub fn gist(&self, text: &str, used: usize) -> String {
        cut(&on_one_line(text), self.room.saturating_sub(used).max(24))
    }

    /// Shows a short text whole, of a long one the beginning and the end.
    pub fn excerpt(&self, text: &str) -> String {
        let text = on_one_line(text);
        if text.width() <= SHORT {
            return text;
        }
        let (begin, end) = (cut(&text, SHORT * 2 / 3), cut_front(&text, SHORT / 4));
        if begin == text { begin } else { format!("{} {}", trim_back(&begin), trim_front(&end)) }
    }

    /// Shows the changed words; of a long text only with a little context.
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

    fn sets(&self, added: &[Raw<'_>], removed: &[Raw<'_>]) -> String {
        let text = |item: &Raw<'_>| clean(&item.string().unwrap_or_default());
        let removed = removed.iter().map(|item| self.removed(&text(item)));
        let words: Vec<_> =
            removed.chain(added.iter().map(|item| self.added(&text(item)))).collect();
        if words.is_empty() { "the same, in another order".into() } else { words.join(" ") }
    }

    pub fn value(&self, value: Raw<'_>) -> String {
        if let Some(text) = value.string() {
            return self.gist(&text, 8);
        }
        if let Some(members) = value.members() {
            let names: Vec<_> = members.iter().map(|member| member.key.to_string_lossy()).collect();
            return self.list(count(names.len(), "value"), &names);
        }
        if let Some(items) = value.items() {
            let texts: Option<Vec<_>> = items.iter().map(|item| item.string()).collect();
            return self.list(format!("list of {}", items.len()), &texts.unwrap_or_default());
        }
        cut(&clean(value.as_str()), self.room)
    }

    fn list(&self, many: String, items: &[String]) -> String {
        let text = format!("{many}: {}", items.join(", "));
        if items.is_empty() { many } else { self.gist(&text, 8) }
    }
}

fn on_one_line(text: &str) -> String {
    clean(text).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Shows the ends of unchanged text that are next to a change.
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

/// Drops the rest of a word that was cut, unless the text is one word.
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

/// Line breaks are shown as a sign.
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
