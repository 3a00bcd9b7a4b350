//! Changes of messages. The messages of both sides are aligned by content.
//!
//! First, messages that both sides have in the same order are matched by [`Identity`], which
//! ignores values that may change later. An unmatched message that the other side has at another
//! position was moved. Between matched messages, similar messages are versions of one edited
//! message. All other messages were added or removed.

use std::collections::{HashMap, HashSet, VecDeque};
use std::ops::Range;
use std::time::{Duration, Instant};

use similar::{Algorithm, DiffOp, capture_diff_slices_deadline};

use super::{Change, ChangeKind, MessagePlace, Part, message, pairing};
use crate::archive::message_identity::Identity;
use crate::st::is_blank;

/// Time limit of the alignment. When it is reached, the best result so far is used.
const PATIENCE: Duration = Duration::from_secs(2);

/// Returns all changes, in the order of the new chat. A removed message is listed at its old
/// position.
pub(in crate::archive) fn messages<'a>(before: &[&'a [u8]], after: &[&'a [u8]]) -> Vec<Change<'a>> {
    let mut found = Vec::new();
    let (stretches, equal) = align(before, after);
    let partners = Partners::find(before, after, &stretches);
    let mut equal = equal.into_iter().peekable();
    let flip =
        |(old, new): (usize, usize)| message_change(Some((old, before[old])), (new, after[new]));
    for stretch in &stretches {
        while let Some(pair) = equal.next_if(|(_, new)| *new < stretch.new.start) {
            found.extend(flip(pair));
        }
        add_changes(stretch, &partners, before, after, &mut found);
    }
    found.extend(equal.filter_map(flip));
    found
}

/// Returns the change of one message, given its number and line before and after, or `None` if the
/// message did not change.
pub fn message_change<'a>(
    before: Option<(usize, &'a [u8])>,
    after: (usize, &'a [u8]),
) -> Option<Change<'a>> {
    match before {
        Some((_, was)) if was == after.1 => None,
        Some(before) => Some(changed(before, after, MatchKind::InPlace)),
        None => Some(added(after)),
    }
}

type NumberedMessage<'a> = (usize, &'a [u8]);

fn added((number, line): NumberedMessage<'_>) -> Change<'_> {
    let (part, place) = (Part::Message, MessagePlace::Message(number));
    let kinds = vec![ChangeKind::Added];
    Change { part, kinds, place, from: None, before: None, after: Some(line), fields: Vec::new() }
}

fn removed((number, line): NumberedMessage<'_>) -> Change<'_> {
    let kinds = vec![ChangeKind::Removed];
    let from = Some(MessagePlace::Message(number));
    Change { kinds, from, before: Some(line), after: None, ..added((number, line)) }
}

fn changed<'a>(
    (old, was): NumberedMessage<'a>,
    (new, is): NumberedMessage<'a>,
    tie: MatchKind,
) -> Change<'a> {
    let (mut kinds, fields) =
        if was == is { (Vec::new(), Vec::new()) } else { message::compare(was, is) };
    if tie == MatchKind::Moved {
        kinds.insert(0, ChangeKind::Moved);
    }
    let from = Some(MessagePlace::Message(old));
    Change { kinds, from, before: Some(was), fields, ..added((new, is)) }
}

/// Unmatched messages between two matched ones, as ranges of the old and of the new chat.
struct UnmatchedRange {
    old: Range<usize>,
    new: Range<usize>,
}

type Pairs = Vec<(usize, usize)>;

/// Returns the ranges of unmatched messages, and the pairs of matched messages, both in order.
/// Equal lines at the start and the end are in neither.
fn align(before: &[&[u8]], after: &[&[u8]]) -> (Vec<UnmatchedRange>, Pairs) {
    // Most of a chat is unchanged, so equal lines at the start and the end are skipped without
    // parsing.
    let head = before.iter().zip(after).take_while(|(a, b)| a == b).count();
    let (before, after) = (&before[head..], &after[head..]);
    let tail = before.iter().rev().zip(after.iter().rev()).take_while(|(a, b)| a == b).count();
    let (before, after) = (&before[..before.len() - tail], &after[..after.len() - tail]);

    let ids = |lines: &[&[u8]]| -> Vec<Identity> {
        lines.iter().map(|line| Identity::of(line)).collect()
    };
    let (old, new) = (ids(before), ids(after));
    let deadline = Some(Instant::now() + PATIENCE);
    let ops = capture_diff_slices_deadline(Algorithm::Myers, &old, &new, deadline);
    let mut stretches = Vec::new();
    let mut pairs = Vec::new();
    let (mut old_at, mut new_at) = (0, 0);
    for op in ops.iter().filter(|op| matches!(op, DiffOp::Equal { .. })) {
        let (old, new) = (op.old_range(), op.new_range());
        stretches.push(UnmatchedRange { old: old_at..old.start, new: new_at..new.start });
        (old_at, new_at) = (old.end, new.end);
        pairs.extend(old.zip(new));
    }
    stretches.push(UnmatchedRange { old: old_at..before.len(), new: new_at..after.len() });
    stretches.retain(|stretch| !stretch.old.is_empty() || !stretch.new.is_empty());
    let shift = |range: &Range<usize>| range.start + head..range.end + head;
    let stretches =
        stretches.iter().map(|s| UnmatchedRange { old: shift(&s.old), new: shift(&s.new) });
    let pairs = pairs.into_iter().map(|(old, new)| (old + head, new + head));
    (stretches.collect(), pairs.collect())
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum MatchKind {
    Moved,
    InPlace,
}

#[derive(Default)]
struct Partners {
    old: HashSet<usize>,
    of_new: HashMap<usize, (usize, MatchKind)>,
}

impl Partners {
    fn find(before: &[&[u8]], after: &[&[u8]], stretches: &[UnmatchedRange]) -> Self {
        let mut partners = Self::default();
        let mut gone: HashMap<Identity, VecDeque<usize>> = HashMap::new();
        for old in stretches.iter().flat_map(|stretch| stretch.old.clone()) {
            if !is_blank(before[old]) {
                gone.entry(Identity::of(before[old])).or_default().push_back(old);
            }
        }
        for new in stretches.iter().flat_map(|stretch| stretch.new.clone()) {
            if gone.is_empty() {
                break;
            }
            if let Some(old) = gone.get_mut(&Identity::of(after[new])).and_then(VecDeque::pop_front)
            {
                partners.join(old, new, MatchKind::Moved);
            }
        }
        for stretch in stretches {
            let old = stretch.old.clone().filter(|old| !partners.old.contains(old));
            let old: Vec<_> = old.map(|old| (old, before[old])).collect();
            let new = stretch.new.clone().filter(|new| !partners.of_new.contains_key(new));
            let new: Vec<_> = new.map(|new| (new, after[new])).collect();
            for (old, new) in pairing::edits(&old, &new) {
                partners.join(old, new, MatchKind::InPlace);
            }
        }
        partners
    }

    fn join(&mut self, old: usize, new: usize, tie: MatchKind) {
        self.old.insert(old);
        self.of_new.insert(new, (old, tie));
    }
}

/// Adds the changes in one range of unmatched messages to `found`. Removed messages come before the
/// messages that replace them.
fn add_changes<'a>(
    stretch: &UnmatchedRange,
    partners: &Partners,
    before: &[&'a [u8]],
    after: &[&'a [u8]],
    found: &mut Vec<Change<'a>>,
) {
    let mut gone = stretch.old.clone().filter(|old| !partners.old.contains(old)).peekable();
    let removed = |old: usize| removed((old, before[old]));
    for new in stretch.new.clone() {
        let partner = partners.of_new.get(&new);
        match partner {
            // First, add the messages that were removed before the edited message.
            Some((old, MatchKind::InPlace)) => {
                while let Some(gone) = gone.next_if(|gone| gone < old) {
                    found.push(removed(gone));
                }
            }
            Some((_, MatchKind::Moved)) => {}
            None => found.extend(gone.by_ref().map(removed)),
        }
        found.push(match partner {
            Some((old, tie)) => changed((*old, before[*old]), (new, after[new]), *tie),
            None => added((new, after[new])),
        });
    }
    found.extend(gone.map(removed));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn format_changes(before: &[&str], after: &[&str]) -> Vec<String> {
        let bytes = |lines: &[&str]| -> Vec<Vec<u8>> {
            lines.iter().map(|line| line.as_bytes().to_vec()).collect()
        };
        let (before, after) = (bytes(before), bytes(after));
        let slices = |lines: &'static [Vec<u8>]| -> Vec<&'static [u8]> {
            lines.iter().map(Vec::as_slice).collect()
        };
        let changes = messages(&slices(before.leak()), &slices(after.leak()));
        let number = |place: &MessagePlace| match place {
            MessagePlace::Message(number) => *number,
            _ => unreachable!(),
        };
        changes
            .iter()
            .map(|change| {
                let from = change.from.as_ref().map(|from| format!("{} → ", number(from)));
                format!("{:?} {}{}", change.kind(), from.unwrap_or_default(), number(&change.place))
            })
            .collect()
    }

    #[test]
    fn inserted_or_removed_message_is_one_change() {
        assert_eq!(format_changes(&["a", "b", "c"], &["x", "a", "b", "c"]), ["Added 0"]);
        assert_eq!(format_changes(&["a", "b", "c"], &["a", "c"]), ["Removed 1 → 1"]);
        assert_eq!(format_changes(&["a", "b"], &["a", "b"]), [""; 0]);
    }

    #[test]
    fn moved_message_is_one_change() {
        assert_eq!(format_changes(&["a", "b", "c", "d"], &["d", "a", "b", "c"]), ["Moved 3 → 0"]);
    }

    #[test]
    fn edited_message_is_reported_as_one_edit_not_as_removed_and_added() {
        let was = r#"{"name":"A","send_date":"1","mes":"hello"}"#;
        let is = r#"{"name":"A","send_date":"1","mes":"good day"}"#;
        assert_eq!(format_changes(&[was, "b"], &[is, "b"]), ["Edited 0 → 0"]);
        assert_eq!(
            format_changes(&["x", was, "b"], &["n", is, "b"]),
            ["Removed 0 → 0", "Added 0", "Edited 1 → 1"]
        );
    }
}
