//! Compares two texts word by word.

use std::ops::Range;
use std::time::{Duration, Instant};

use similar::{Algorithm, DiffOp, capture_diff_slices_deadline};
use unicode_width::UnicodeWidthChar;

/// Time limit of the comparison. When it is reached, the best result so far is used.
const PATIENCE: Duration = Duration::from_millis(500);

/// Piece of a text: unchanged, removed or added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece<'t> {
    /// Text that both sides share.
    Same(&'t str),
    /// Text that only the old version contains.
    Removed(&'t str),
    /// Text that only the new version contains.
    Added(&'t str),
}

struct DiffRange {
    old: Range<usize>,
    new: Range<usize>,
    same: bool,
}

/// Compares two texts word by word, or character by character in scripts without spaces.
pub fn words<'t>(before: &'t str, after: &'t str) -> Vec<Piece<'t>> {
    let (old, new) = (tokens(before), tokens(after));
    let deadline = Some(Instant::now() + PATIENCE);
    let ops = capture_diff_slices_deadline(Algorithm::Myers, &old, &new, deadline);
    let (old_ends, new_ends) = (ends(&old), ends(&new));
    let mut stretches: Vec<DiffRange> = Vec::new();
    for op in &ops {
        let bytes = |ends: &[usize], range: Range<usize>| ends[range.start]..ends[range.end];
        let next = DiffRange {
            old: bytes(&old_ends, op.old_range()),
            new: bytes(&new_ends, op.new_range()),
            same: matches!(op, DiffOp::Equal { .. }),
        };
        push(&mut stretches, next, before);
    }
    if is_confetti(&stretches, before, after) {
        stretches = vec![DiffRange { old: 0..before.len(), new: 0..after.len(), same: false }];
    }
    let mut pieces = Vec::new();
    for stretch in stretches {
        let (old, new) = (&before[stretch.old], &after[stretch.new]);
        if stretch.same {
            pieces.push(Piece::Same(new));
        } else {
            pieces.extend((!old.is_empty()).then_some(Piece::Removed(old)));
            pieces.extend((!new.is_empty()).then_some(Piece::Added(new)));
        }
    }
    pieces
}

/// Adds a range. Two changes that are separated only by spaces and punctuation are joined to one,
/// because many short changes are hard to read.
fn push(stretches: &mut Vec<DiffRange>, next: DiffRange, before: &str) {
    if next.same {
        stretches.push(next);
        return;
    }
    let between = stretches
        .last()
        .is_some_and(|last| last.same && !before[last.old.clone()].contains(char::is_alphanumeric));
    if between && stretches.len() >= 2 {
        stretches.pop();
    }
    match stretches.last_mut().filter(|last| !last.same) {
        Some(last) => {
            last.old.end = next.old.end;
            last.new.end = next.new.end;
        }
        None => stretches.push(next),
    }
}

/// Returns whether the texts have so little in common that the matches are accidental. The caller
/// then shows the complete text as replaced.
fn is_confetti(stretches: &[DiffRange], before: &str, after: &str) -> bool {
    let letters = |text: &str| text.chars().filter(|c| c.is_alphanumeric()).count();
    let same = stretches.iter().filter(|stretch| stretch.same);
    let kept: usize = same.map(|stretch| letters(&before[stretch.old.clone()])).sum();
    let changes = stretches.iter().filter(|stretch| !stretch.same).count();
    changes > 1 && kept * 4 < letters(before).min(letters(after))
}

fn ends(tokens: &[&str]) -> Vec<usize> {
    let lengths = tokens.iter().scan(0, |end, token| {
        *end += token.len();
        Some(*end)
    });
    std::iter::once(0).chain(lengths).collect()
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum CharClass {
    Word,
    Space,
    Sign,
    Mark,
}

fn class(c: char) -> CharClass {
    match c.width() {
        _ if c.is_whitespace() => CharClass::Space,
        Some(0) => CharClass::Mark,
        // In scripts without spaces, every character is a token.
        Some(2) => CharClass::Sign,
        _ if c.is_alphanumeric() => CharClass::Word,
        _ => CharClass::Sign,
    }
}

/// Splits a text into words, runs of white space, and single characters.
pub(super) fn tokens(text: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let mut start = 0;
    let mut last = None;
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let mut kind = class(c);
        let before_word = || chars.clone().next().is_some_and(|(_, c)| class(c) == CharClass::Word);
        // `don't` is one word.
        if matches!(c, '\'' | '’') && last == Some(CharClass::Word) && before_word() {
            kind = CharClass::Word;
        }
        let joins = match kind {
            CharClass::Mark => true,
            CharClass::Sign => false,
            _ => last == Some(kind),
        };
        if !joins && at > start {
            tokens.push(&text[start..at]);
            start = at;
        }
        if kind != CharClass::Mark {
            last = Some(kind);
        }
    }
    if start < text.len() {
        tokens.push(&text[start..]);
    }
    tokens
}

#[cfg(test)]
mod tests {
    use super::Piece::{Added, Removed, Same};
    use super::*;

    #[test]
    fn word_diff_marks_only_changed_words() {
        assert_eq!(
            words("The old bell rings.", "The new bell rings twice."),
            [
                Same("The "),
                Removed("old"),
                Added("new"),
                Same(" bell rings"),
                Added(" twice"),
                Same(".")
            ]
        );
        assert_eq!(words("雨が降る", "雪が降る"), [Removed("雨"), Added("雪"), Same("が降る")]);
        assert_eq!(
            words("a don't b", "a didn't b"),
            [Same("a "), Removed("don't"), Added("didn't"), Same(" b")]
        );
        assert_eq!(words("", "new"), [Added("new")]);
    }

    #[test]
    fn adjacent_word_changes_are_merged() {
        assert_eq!(
            words("one two three four five", "one 2 3 four five"),
            [Same("one "), Removed("two three"), Added("2 3"), Same(" four five")]
        );
        assert_eq!(words("a b c d e f", "1 2 3 d 4 5 6 7 8").len(), 2);
    }

    #[test]
    fn joined_tokens_equal_the_text() {
        for text in ["", " a  b\n", "e\u{301}te\u{301} 👩‍👧 x", "\u{301}"] {
            assert_eq!(tokens(text).concat(), text);
        }
    }
}
