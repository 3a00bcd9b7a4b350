//! Messages, aligned by what they say.
//!
//! First what both sides have in the same order, by [`Identity`], which leaves out what is flipped afterwards. Of what is left, the same
//! message elsewhere was moved; in each replaced stretch, what is one message with other words was edited; the rest came or went.

use std::collections::{HashMap, VecDeque};
use std::ops::Range;
use std::time::{Duration, Instant};

use similar::{Algorithm, DiffOp, capture_diff_slices_deadline};

use super::{Change, ChangeKind, MessagePlace, Part, message, pairing};
use crate::archive::message_identity::Identity;
use crate::st::is_blank;

/// After this long the alignment settles for what it has.
const PATIENCE: Duration = Duration::from_secs(2);

/// Everything that changed, in the order of the chat after; what went stands where it was.
pub(in crate::archive) fn messages<'a>(before: &[&'a [u8]], after: &[&'a [u8]]) -> Vec<Change<'a>> {
    let mut found = Vec::new();
    let (stretches, equal) = align(before, after);
    let partners = Partners::find(before, after, &stretches);
    let mut equal = equal.into_iter().peekable();
    for stretch in &stretches {
        while let Some((old, new)) = equal.next_if(|(_, new)| *new < stretch.new.start) {
            found.extend(flip(old, new, before, after));
        }
        tell(stretch, &partners, before, after, &mut found);
    }
    found.extend(equal.filter_map(|(old, new)| flip(old, new, before, after)));
    found
}

/// What became of one message, by its numbers; `None` if nothing did.
pub fn message_change<'a>(
    before: Option<(usize, &'a [u8])>,
    after: (usize, &'a [u8]),
) -> Option<Change<'a>> {
    let (number, is) = after;
    let Some((from, was)) = before else {
        return Some(added(number, is));
    };
    let (kinds, fields) = if was == is { return None } else { message::compare(was, is) };
    let place = MessagePlace::Message(number);
    let from = Some(MessagePlace::Message(from));
    let (before, after) = (Some(was), Some(is));
    Some(Change { part: Part::Message, kinds, place, from, before, after, fields })
}

fn added(number: usize, line: &[u8]) -> Change<'_> {
    Change {
        part: Part::Message,
        kinds: vec![ChangeKind::Added],
        place: MessagePlace::Message(number),
        from: None,
        before: None,
        after: Some(line),
        fields: Vec::new(),
    }
}

/// What stands between messages that both have: went on one side, came on the other.
struct Stretch {
    old: Range<usize>,
    new: Range<usize>,
}

/// Pairs of numbers.
type Pairs = Vec<(usize, usize)>;

/// The stretches without a counterpart, and the pairs between them, both in order.
fn align(before: &[&[u8]], after: &[&[u8]]) -> (Vec<Stretch>, Pairs) {
    // Most of a chat is as it was: what is equal to the byte at both ends need not be read.
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
        stretches.push(Stretch { old: old_at..old.start, new: new_at..new.start });
        (old_at, new_at) = (old.end, new.end);
        pairs.extend(old.zip(new));
    }
    stretches.push(Stretch { old: old_at..before.len(), new: new_at..after.len() });
    stretches.retain(|stretch| !stretch.old.is_empty() || !stretch.new.is_empty());
    let shift = |range: &Range<usize>| range.start + head..range.end + head;
    let stretches = stretches.iter().map(|s| Stretch { old: shift(&s.old), new: shift(&s.new) });
    let pairs = pairs.into_iter().map(|(old, new)| (old + head, new + head));
    (stretches.collect(), pairs.collect())
}

/// Who belongs together though the alignment did not say so.
#[derive(Default)]
struct Partners {
    /// Old number to new number.
    of_old: HashMap<usize, usize>,
    /// New number to old number, and whether it was moved.
    of_new: HashMap<usize, (usize, bool)>,
}

impl Partners {
    fn find(before: &[&[u8]], after: &[&[u8]], stretches: &[Stretch]) -> Self {
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
                partners.join(old, new, true);
            }
        }
        for stretch in stretches {
            let old = stretch.old.clone().filter(|old| !partners.of_old.contains_key(old));
            let old: Vec<_> = old.map(|old| (old, before[old])).collect();
            let new = stretch.new.clone().filter(|new| !partners.of_new.contains_key(new));
            let new: Vec<_> = new.map(|new| (new, after[new])).collect();
            for (old, new) in pairing::edits(&old, &new) {
                partners.join(old, new, false);
            }
        }
        partners
    }

    fn join(&mut self, old: usize, new: usize, moved: bool) {
        self.of_old.insert(old, new);
        self.of_new.insert(new, (old, moved));
    }
}

/// The changes of one stretch: what went stands before what came in its place.
fn tell<'a>(
    stretch: &Stretch,
    partners: &Partners,
    before: &[&'a [u8]],
    after: &[&'a [u8]],
    found: &mut Vec<Change<'a>>,
) {
    let mut gone = stretch.old.clone().filter(|old| !partners.of_old.contains_key(old)).peekable();
    let removed = |old: usize| Change {
        part: Part::Message,
        kinds: vec![ChangeKind::Removed],
        place: MessagePlace::Message(old),
        from: Some(MessagePlace::Message(old)),
        before: Some(before[old]),
        after: None,
        fields: Vec::new(),
    };
    for new in stretch.new.clone() {
        let partner = partners.of_new.get(&new);
        match partner {
            // Those that came before the one it replaces went before it.
            Some((old, false)) => {
                while let Some(gone) = gone.next_if(|gone| gone < old) {
                    found.push(removed(gone));
                }
            }
            Some((_, true)) => {}
            None => found.extend(gone.by_ref().map(removed)),
        }
        found.push(match partner {
            Some((old, moved)) => pair(*old, new, *moved, before, after),
            None => added(new, after[new]),
        });
    }
    found.extend(gone.map(removed));
}

fn flip<'a>(old: usize, new: usize, before: &[&'a [u8]], after: &[&'a [u8]]) -> Option<Change<'a>> {
    (before[old] != after[new]).then(|| pair(old, new, false, before, after))
}

fn pair<'a>(
    old: usize,
    new: usize,
    moved: bool,
    before: &[&'a [u8]],
    after: &[&'a [u8]],
) -> Change<'a> {
    let (was, is) = (before[old], after[new]);
    let (mut kinds, fields) =
        if was == is { (Vec::new(), Vec::new()) } else { message::compare(was, is) };
    if moved {
        kinds.insert(0, ChangeKind::Moved);
    }
    Change {
        part: Part::Message,
        kinds,
        place: MessagePlace::Message(new),
        from: Some(MessagePlace::Message(old)),
        before: Some(was),
        after: Some(is),
        fields,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(before: &[&str], after: &[&str]) -> Vec<String> {
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
    fn an_inserted_message_is_one_change() {
        assert_eq!(told(&["a", "b", "c"], &["x", "a", "b", "c"]), ["Added 0"]);
        assert_eq!(told(&["a", "b", "c"], &["a", "c"]), ["Removed 1 → 1"]);
        assert_eq!(told(&["a", "b"], &["a", "b"]), [""; 0]);
    }

    #[test]
    fn a_moved_message_is_one_change() {
        assert_eq!(told(&["a", "b", "c", "d"], &["d", "a", "b", "c"]), ["Moved 3 → 0"]);
    }

    #[test]
    fn an_edited_message_is_itself() {
        let was = r#"{"name":"A","send_date":"1","mes":"hello"}"#;
        let is = r#"{"name":"A","send_date":"1","mes":"good day"}"#;
        assert_eq!(told(&[was, "b"], &[is, "b"]), ["Edited 0 → 0"]);
        assert_eq!(
            told(&["x", was, "b"], &["n", is, "b"]),
            ["Removed 0 → 0", "Added 0", "Edited 1 → 1"]
        );
    }
}
