//! Pairs removed and added messages that are versions of one message.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use super::words::tokens;
use crate::st::{self, Message};

/// Minimum share of common words for two texts to be versions of one text.
const ALIKE: f32 = 0.5;
/// Maximum number of words of a text that are compared.
const WORDS: usize = 400;
/// Maximum distance between the positions of two messages whose texts are compared. Limits the
/// number of comparisons.
const REACH: usize = 16;

/// Hashes of the words of a text, without the order of the words.
pub(in crate::archive) struct Bag(Vec<u64>);

impl Bag {
    pub fn of(text: &str) -> Self {
        let words = tokens(text).into_iter().filter(|word| word.contains(char::is_alphanumeric));
        let mut hashes: Vec<u64> = words
            .take(WORDS)
            .map(|word| {
                let mut hasher = DefaultHasher::new();
                word.to_lowercase().hash(&mut hasher);
                hasher.finish()
            })
            .collect();
        hashes.sort_unstable();
        Self(hashes)
    }

    /// Returns the share of common words, from 0 to 1.
    pub fn likeness(&self, other: &Bag) -> f32 {
        let (mut a, mut b, mut common) = (0, 0, 0);
        while let (Some(left), Some(right)) = (self.0.get(a), other.0.get(b)) {
            if left == right {
                common += 1;
            }
            a += usize::from(left <= right);
            b += usize::from(right <= left);
        }
        let all = self.0.len() + other.0.len();
        if all == 0 { 0.0 } else { (2 * common) as f32 / all as f32 }
    }
}

type MessageStamp = (Vec<u8>, String);

/// Unmatched message.
struct Candidate<'a> {
    index: usize,
    stamp: Option<MessageStamp>,
    /// Name of the speaker; `None` if the line is not a message.
    speaker: Option<String>,
    text: String,
    bag: Bag,
    swipes: Vec<String>,
    line: &'a [u8],
}

impl<'a> Candidate<'a> {
    fn read(index: usize, line: &'a [u8]) -> Self {
        let message = Message::read(line);
        let stamp = message.and_then(|message| {
            let date = message.send_date().filter(|date| date.truthy())?;
            Some((date.as_bytes().to_vec(), message.name().unwrap_or_default()))
        });
        let swipes = message.and_then(|message| message.swipes()).unwrap_or_default();
        let swipes = swipes.iter().filter_map(|swipe| swipe.string()).collect();
        let text = match st::text_of(line) {
            Some(message) => message.text,
            None => String::from_utf8_lossy(line).into_owned(),
        };
        let speaker = message.map(|message| message.name().unwrap_or_default());
        Self { index, stamp, speaker, bag: Bag::of(&text), text, swipes, line }
    }

    fn likeness(&self, other: &Candidate<'_>) -> f32 {
        if st::is_blank(self.line) || st::is_blank(other.line) {
            return 0.0;
        }
        // The text that one message shows is a swipe of the other message too.
        let has = |one: &Candidate<'_>, text: &String| {
            !text.trim().is_empty() && (one.text == *text || one.swipes.contains(text))
        };
        if has(self, &other.text) || has(other, &self.text) {
            return 1.0;
        }
        self.bag.likeness(&other.bag)
    }
}

pub(super) fn edits(old: &[(usize, &[u8])], new: &[(usize, &[u8])]) -> Vec<(usize, usize)> {
    if old.is_empty() || new.is_empty() {
        return Vec::new();
    }
    let mut old: Vec<_> = old.iter().map(|(index, line)| Candidate::read(*index, line)).collect();
    let mut new: Vec<_> = new.iter().map(|(index, line)| Candidate::read(*index, line)).collect();
    let mut pairs = by_stamp(&old, &new);
    let (done_old, done_new): (HashSet<_>, HashSet<_>) = pairs.iter().copied().unzip();
    old.retain(|one| !done_old.contains(&one.index));
    new.retain(|one| !done_new.contains(&one.index));
    let alike = by_text(&old, &new);
    if alike.is_empty() {
        pairs.extend(by_place(&old, &new));
    }
    pairs.extend(alike);
    pairs
}

/// Pairs two messages without dates, if each side has only this message left and the speaker is the
/// same. Without a date, a rewritten message can only be recognised by its position.
fn by_place(old: &[Candidate<'_>], new: &[Candidate<'_>]) -> Option<(usize, usize)> {
    let ([old], [new]) = (old, new) else { return None };
    let dateless = |one: &Candidate<'_>| one.stamp.is_none().then(|| one.speaker.clone()).flatten();
    (dateless(old)? == dateless(new)?).then_some((old.index, new.index))
}

/// Pairs messages with the same date and speaker, if no other message on either side has them: in
/// imported chats, all messages may have the same date.
fn by_stamp(old: &[Candidate<'_>], new: &[Candidate<'_>]) -> Vec<(usize, usize)> {
    let (in_old, in_new) = (unique_stamps(old), unique_stamps(new));
    let mut pairs: Vec<_> = in_old
        .iter()
        .filter_map(|(stamp, index)| Some(((*index)?, (*in_new.get(stamp)?)?)))
        .collect();
    pairs.sort_unstable();
    pairs
}

fn unique_stamps<'c>(list: &'c [Candidate<'_>]) -> HashMap<&'c MessageStamp, Option<usize>> {
    let mut found = HashMap::new();
    for one in list {
        if let Some(stamp) = &one.stamp {
            found.entry(stamp).and_modify(|index| *index = None).or_insert(Some(one.index));
        }
    }
    found
}

fn by_text(old: &[Candidate<'_>], new: &[Candidate<'_>]) -> Vec<(usize, usize)> {
    let mut scores = Vec::new();
    for (at, one) in old.iter().enumerate() {
        // If the lists differ in length, search around the proportional position.
        let middle = at * new.len() / old.len();
        let near = middle.saturating_sub(REACH)..new.len().min(middle + REACH + 1);
        for (other_at, other) in near.clone().zip(&new[near]) {
            let likeness = one.likeness(other);
            if likeness >= ALIKE {
                scores.push((likeness, at.abs_diff(other_at), one.index, other.index));
            }
        }
    }
    scores.sort_by(|a, b| b.0.total_cmp(&a.0).then((a.1, a.2, a.3).cmp(&(b.1, b.2, b.3))));
    let (mut taken_old, mut taken_new) = (HashSet::new(), HashSet::new());
    let mut pairs = Vec::new();
    for (_, _, old, new) in scores {
        if !taken_old.contains(&old) && !taken_new.contains(&new) {
            taken_old.insert(old);
            taken_new.insert(new);
            pairs.push((old, new));
        }
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(old: &[&str], new: &[&str]) -> Vec<(usize, usize)> {
        let list = |lines: &[&'static str]| -> Vec<(usize, &'static [u8])> {
            lines.iter().map(|line| line.as_bytes()).enumerate().collect()
        };
        let leak = |lines: &[&str]| -> Vec<&'static str> {
            lines.iter().map(|line| &*line.to_string().leak()).collect()
        };
        let mut found = edits(&list(&leak(old)), &list(&leak(new)));
        found.sort_unstable();
        found
    }

    #[test]
    fn messages_with_equal_unique_date_and_speaker_are_paired() {
        let old = [
            r#"{"name":"A","send_date":"1","mes":"yes"}"#,
            r#"{"name":"A","send_date":"2","mes":"b"}"#,
        ];
        let new = [
            r#"{"name":"B","send_date":"1","mes":"x"}"#,
            r#"{"name":"A","send_date":"1","mes":"no"}"#,
        ];
        assert_eq!(pairs(&old, &new), [(0, 1)]);
        // A date that all messages have does not identify a message.
        let same = [
            r#"{"name":"A","send_date":"1","mes":"p"}"#,
            r#"{"name":"A","send_date":"1","mes":"q"}"#,
        ];
        assert_eq!(pairs(&same, &new), []);
    }

    #[test]
    fn undated_messages_are_paired_by_position_and_speaker() {
        let (yes, no) = (r#"{"name":"A","mes":"yes"}"#, r#"{"name":"A","mes":"no"}"#);
        assert_eq!(pairs(&[yes], &[no]), [(0, 0)]);
        assert_eq!(pairs(&[yes], &[no, no]), []);
        assert_eq!(pairs(&[yes], &[r#"{"name":"B","mes":"no"}"#]), []);
        assert_eq!(pairs(&["torn"], &["else"]), []);
    }

    #[test]
    fn messages_with_similar_text_are_paired() {
        let old = [r#"{"mes":"the bell rings over the bay"}"#, "torn line of a chat"];
        let new = ["torn line of a cat", r#"{"mes":"the bell rings over the harbour"}"#, "else"];
        assert_eq!(pairs(&old, &new), [(0, 1), (1, 0)]);
        let old = [r#"{"mes":"first","swipes":["first"]}"#];
        let new = [r#"{"mes":"other words","swipes":["first","other words"]}"#];
        assert_eq!(pairs(&old, &new), [(0, 0)]);
    }
}
