//! Finds the origin of each sentence of an entry.

use similar::{Algorithm, capture_diff_slices};

use super::report::{EntryChange, Sentence};
use crate::st::{self, Raw};

/// Splits the latest text of an entry into sentences, and finds the change that added each
/// sentence. `changes` is sorted from oldest to newest.
pub(super) fn sentences(changes: &[EntryChange]) -> Vec<Sentence> {
    // Sentences, each with the index of the change that added it.
    let mut now: Vec<(String, usize)> = Vec::new();
    for (n, change) in changes.iter().enumerate() {
        // A deletion is skipped, so that a restored entry is compared with its text before the
        // deletion.
        let Some((_, text)) = &change.after else { continue };
        let new = split(&content(text));
        // Trimmed sentences are compared, because the last sentence has no space at its end until
        // another sentence is added.
        let old: Vec<_> = now.iter().map(|(text, _)| text.trim()).collect();
        let mut next: Vec<(String, usize)> =
            new.iter().map(|text| ((*text).to_owned(), n)).collect();
        let new: Vec<_> = new.iter().map(|text| text.trim()).collect();
        for op in capture_diff_slices(Algorithm::Myers, &old, &new) {
            if let similar::DiffOp::Equal { old_index, new_index, len } = op {
                for at in 0..len {
                    next[new_index + at].1 = now[old_index + at].1;
                }
            }
        }
        now = next;
    }
    let sentence = |(text, change): (String, usize)| Sentence {
        text,
        snapshot: changes[change].snapshot.clone(),
        story: changes[change].story.clone(),
    };
    now.into_iter().map(sentence).collect()
}

fn content(entry: &str) -> String {
    Raw::parse_str(entry).and_then(st::entry_content).unwrap_or_default()
}

/// Splits a text into sentences. Each sentence includes the white space after it. A line break also
/// ends a sentence.
fn split(text: &str) -> Vec<String> {
    let chars: Vec<_> = text.char_indices().collect();
    let place = |n: usize| chars.get(n).map_or(text.len(), |(at, _)| *at);
    let run = |from: usize, is: &dyn Fn(char) -> bool| {
        from + chars[from..].iter().take_while(|(_, c)| is(*c)).count()
    };
    let (mut sentences, mut start, mut n) = (Vec::new(), 0, 0);
    while n < chars.len() {
        let c = chars[n].1;
        let end = match c {
            '\n' => Some(n + 1),
            // A closing quotation mark belongs to its sentence. The point in `3.14` does not end a
            // sentence, because no white space follows it.
            '.' | '!' | '?' | '…' => {
                let after = run(n, &|c| is_stop(c) || is_closing(c));
                let ends = chars.get(after).is_none_or(|(_, c)| c.is_whitespace());
                ends.then_some(after)
            }
            '。' | '！' | '？' => Some(run(n, &|c| is_stop(c) || is_closing(c))),
            _ => None,
        };
        n = match end {
            Some(end) => {
                let next = run(end, &char::is_whitespace);
                sentences.push(text[start..place(next)].to_owned());
                start = place(next);
                next
            }
            None => n + 1,
        };
    }
    if start < text.len() {
        sentences.push(text[start..].to_owned());
    }
    sentences
}

fn is_stop(c: char) -> bool {
    matches!(c, '.' | '!' | '?' | '…' | '。' | '！' | '？')
}

fn is_closing(c: char) -> bool {
    matches!(c, '"' | '\'' | '”' | '’' | '»' | '」' | '』' | ')' | '*')
}

#[cfg(test)]
mod tests {
    use super::split;

    #[test]
    fn joined_sentences_equal_the_text() {
        for (text, expected) in [
            ("", &[][..]),
            ("One. Two!  Three", &["One. ", "Two!  ", "Three"]),
            ("He said \"No.\" Then 3.14 more.", &["He said \"No.\" ", "Then 3.14 more."]),
            ("Wait... what?!\n\nYes", &["Wait... ", "what?!\n\n", "Yes"]),
            ("雨が降る。「帰る。」彼は言った", &["雨が降る。", "「帰る。」", "彼は言った"]),
            ("- a\n- b", &["- a\n", "- b"]),
        ] {
            assert_eq!(split(text), expected, "{text:?}");
            assert_eq!(split(text).concat(), text);
        }
    }
}
