//! Formats values and edits. Long texts are shortened to the changed part and some context.

use unicode_width::UnicodeWidthStr;

use crate::cli::output::{Output, STYLES, paint};
use crate::cli::wording::{clean, count, cut, cut_front};
use stvc::changes::{Piece, set_change, words};
use stvc::library::Raw;

/// The maximum width of a text that is shown in full: three lines of an 80-column terminal.
const SHORT: usize = 240;
/// The number of columns of unchanged text that are shown before and after a change.
const CONTEXT: usize = 32;
/// The maximum number of columns of changed text that are shown.
const CHANGED: usize = 400;

#[derive(Clone, Copy)]
pub struct Page {
    /// Whether changes are shown in colour. If not, they are enclosed in `[-…-]` and `{+…+}`.
    pub colored: bool,
    pub room: usize,
}

impl Page {
    /// Creates a page that reserves `beside` columns for the label of each line.
    pub fn of(out: &Output, beside: usize) -> Self {
        Self { colored: out.is_colored(), room: out.columns().saturating_sub(beside) }
    }

    pub fn removed(&self, text: &str) -> String {
        if self.colored { paint(STYLES.bad, text) } else { format!("[-{text}-]") }
    }

    pub fn added(&self, text: &str) -> String {
        if self.colored { paint(STYLES.good, text) } else { format!("{{+{text}+}}") }
    }

    pub fn gist(&self, text: &str, used: usize) -> String {
        cut(&on_one_line(text), self.room.saturating_sub(used).max(24))
    }

    /// Returns a short text in full, or the beginning and the end of a long text.
    pub fn excerpt(&self, text: &str) -> String {
        let text = on_one_line(text);
        if text.width() <= SHORT {
            return text;
        }
        let (begin, end) = (cut(&text, SHORT * 2 / 3), cut_front(&text, SHORT / 4));
        if begin == text { begin } else { format!("{} {}", trim_back(&begin), trim_front(&end)) }
    }

    /// Returns the text with its changed words highlighted. Of a long text, only the changes and
    /// some context are returned.
    pub fn edit(&self, before: &str, after: &str) -> String {
        let is_short = before.width().max(after.width()) <= SHORT;
        let pieces = words(before, after);
        let mut out = String::new();
        for (at, piece) in pieces.iter().enumerate() {
            match piece {
                Piece::Same(text) if is_short => out.push_str(&clean(text)),
                Piece::Same(text) => {
                    let text = clean(text);
                    // Only the parts next to a change are returned.
                    let front = |text: &str| trim_front(&cut_front(text, CONTEXT));
                    let back = |text: &str| trim_back(&cut(text, CONTEXT));
                    out.push_str(&match (at == 0, at + 1 == pieces.len()) {
                        (true, true) => cut(&text, 2 * CONTEXT),
                        (true, false) => front(&text),
                        (false, true) => back(&text),
                        (false, false) if text.width() <= 2 * CONTEXT + 8 => text,
                        (false, false) => format!("{} {}", back(&text), front(&text)),
                    });
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
            return format!("{new}, contents changed");
        }
        format!("{}{}", self.removed(&old), self.added(&new))
    }

    fn sets(&self, added: &[Raw<'_>], removed: &[Raw<'_>]) -> String {
        let text = |item: &Raw<'_>| clean(&item.string().unwrap_or_default());
        let removed = removed.iter().map(|item| self.removed(&text(item)));
        let words: Vec<_> =
            removed.chain(added.iter().map(|item| self.added(&text(item)))).collect();
        if words.is_empty() { "same items, different order".into() } else { words.join(" ") }
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

/// Removes the incomplete word after the ellipsis, unless it is long.
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

/// Returns changed text with `⏎` for line breaks. Long text is shortened in the middle.
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
    fn edit_shows_only_changed_words_with_context() {
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
    fn values_are_summarised_instead_of_dumped() {
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
            "same items, different order"
        );
    }
}
