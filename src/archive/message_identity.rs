//! Finds the origin of a chat by its messages, not by file names.
//!
//! SillyTavern and extensions change some values of a message later: the flag that hides it, links
//! to checkpoints and branches, recaps, and copies of the lorebook. The [`Identity`] of a message
//! ignores these values. A [`Chain`] of identities shows how many first messages two chats share.

use crate::auto_recap::ON_MESSAGE;
use crate::parallel::in_parts;
use crate::st::{Key, Raw};

/// Hash of a message without the fields that may change later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Identity([u8; 16]);

/// Fields of a message that may change later.
const FLIPPED: &[&[u8]] = &[b"is_system"];
/// Fields in the `extra` of a message, and in the `extra` of each swipe, that may change later.
const FLIPPED_IN_EXTRA: [&str; 2] = ["bookmark_link", "branches"];

impl Identity {
    pub fn to_hex(self) -> String {
        Link(self.0).to_hex()
    }

    pub fn of(line: &[u8]) -> Self {
        let mut hasher = blake3::Hasher::new();
        match Raw::parse(line).and_then(|message| message.members()) {
            Some(members) => {
                let values =
                    members.iter().filter(|member| !FLIPPED.contains(&member.key.as_bytes()));
                let values = values.filter_map(|member| {
                    let key = member.key.as_bytes();
                    let value = match key {
                        b"extra" => extra(member.value)?,
                        b"swipe_info" => swipe_info(member.value),
                        _ => member.value.as_bytes().to_vec(),
                    };
                    Some((key, value))
                });
                // The order of keys differs between versions of SillyTavern and has no meaning.
                let mut values: Vec<_> = values.collect();
                values.sort();
                for (key, value) in values {
                    part(&mut hasher, key);
                    part(&mut hasher, &value);
                }
            }
            None => part(&mut hasher, line),
        }
        Self(half(&hasher))
    }
}

/// Returns `extra` without the fields that may change later, or `None` if no other field remains.
fn extra(value: Raw<'_>) -> Option<Vec<u8>> {
    let Some(members) = value.members() else { return Some(value.as_bytes().to_vec()) };
    let mut out = Vec::new();
    let flipped = FLIPPED_IN_EXTRA.iter().chain(&ON_MESSAGE);
    let is_flipped = |key: &Key| flipped.clone().any(|name| name.as_bytes() == key.as_bytes());
    for member in members.iter().filter(|member| !is_flipped(&member.key)) {
        push_member(&mut out, member.raw_key, member.value.as_bytes());
    }
    (!out.is_empty()).then_some(out)
}

fn push_member(out: &mut Vec<u8>, raw_key: &[u8], value: &[u8]) {
    for part in [raw_key, b":", value, b","] {
        out.extend_from_slice(part);
    }
}

fn swipe_info(value: Raw<'_>) -> Vec<u8> {
    let Some(swipes) = value.items() else { return value.as_bytes().to_vec() };
    let mut out = Vec::new();
    for swipe in swipes {
        match swipe.members() {
            Some(members) => {
                for member in members {
                    let value = match member.key.as_bytes() {
                        b"extra" => extra(member.value),
                        _ => Some(member.value.as_bytes().to_vec()),
                    };
                    if let Some(value) = value {
                        push_member(&mut out, member.raw_key, &value);
                    }
                }
            }
            None => out.extend_from_slice(swipe.as_bytes()),
        }
        out.push(b';');
    }
    out
}

/// Hashes of the beginnings of a chat. The hash at index `n` covers the first `n + 1` messages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chain(Vec<Link>);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Link([u8; 16]);

impl Link {
    /// Link of a chat without messages.
    pub const START: Link = Link([0; 16]);

    #[must_use]
    pub fn then(self, next: Identity) -> Self {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&self.0);
        hasher.update(&next.0);
        Self(half(&hasher))
    }

    pub fn to_hex(self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    pub fn from_hex(text: &str) -> Option<Self> {
        u128::from_str_radix(text, 16)
            .ok()
            .filter(|_| text.len() == 32)
            .map(|value| Self(value.to_be_bytes()))
    }
}

impl Chain {
    pub fn of(lines: &[&[u8]]) -> Self {
        let mut chain = Self(Vec::with_capacity(lines.len()));
        let identities =
            |part: &[&[u8]]| part.iter().map(|line| Identity::of(line)).collect::<Vec<_>>();
        for identity in in_parts(lines, 256, identities).into_iter().flatten() {
            chain.push(identity);
        }
        chain
    }

    pub fn push(&mut self, next: Identity) {
        let last = self.0.last().copied().unwrap_or(Link::START);
        self.0.push(last.then(next));
    }

    /// Returns the link of the first `length` messages, or `None` if the chat is shorter.
    pub fn at(&self, length: usize) -> Option<Link> {
        if length == 0 { Some(Link::START) } else { self.0.get(length - 1).copied() }
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn shared_with(&self, other: &Chain) -> usize {
        let (mut low, mut high) = (0, self.len().min(other.len()));
        // Binary search: links are equal up to some length and differ after it.
        while low < high {
            let middle = low + (high - low).div_ceil(2);
            if self.0[middle - 1] == other.0[middle - 1] { low = middle } else { high = middle - 1 }
        }
        low
    }
}

fn part(hasher: &mut blake3::Hasher, bytes: &[u8]) {
    hasher.update(&(bytes.len() as u64).to_le_bytes());
    hasher.update(bytes);
}

fn half(hasher: &blake3::Hasher) -> [u8; 16] {
    let mut out = [0; 16];
    hasher.finalize_xof().fill(&mut out);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn same(a: &str, b: &str) -> bool {
        Identity::of(a.as_bytes()) == Identity::of(b.as_bytes())
    }

    #[test]
    fn later_flags_and_links_do_not_change_message_identity() {
        let message = r#"{"name":"A","is_system":false,"mes":"x","extra":{"gen_id":1},"swipe_info":[{"send_date":"d","extra":{}}]}"#;
        for flipped in [
            r#"{"name":"A","is_system":true,"mes":"x","extra":{"gen_id":1},"swipe_info":[{"send_date":"d","extra":{}}]}"#,
            r#"{"name":"A","is_system":"","mes":"x","extra":{"gen_id":1,"bookmark_link":"cp"},"swipe_info":[{"send_date":"d","extra":{}}]}"#,
            r#"{"mes":"x","name":"A","extra":{"branches":["b"],"gen_id":1},"swipe_info":[{"send_date":"d","extra":{"auto_recap_memory":{"a":1}}}]}"#,
            r#"{"name":"A","mes":"x","extra":{"gen_id":1,"activeLorebookEntries":[1],"inactiveLorebookEntries":[2]},"swipe_info":[{"send_date":"d"}]}"#,
        ] {
            assert!(same(message, flipped), "{flipped}");
        }
    }

    #[test]
    fn changed_speaker_text_or_swipe_changes_message_identity() {
        let message = r#"{"name":"A","mes":"x","extra":{"gen_id":1}}"#;
        for other in [
            r#"{"name":"B","mes":"x","extra":{"gen_id":1}}"#,
            r#"{"name":"A","mes":"y","extra":{"gen_id":1}}"#,
            r#"{"name":"A","mes":"x","extra":{"gen_id":2}}"#,
            r#"{"name":"A","mes":"x","extra":{"gen_id":1},"swipe_id":1}"#,
            r#"{"name":"A","mes":"x""#,
        ] {
            assert!(!same(message, other), "{other}");
        }
        assert!(same(r#"{"mes":"x","extra":{}}"#, r#"{"mes":"x"}"#), "an empty extra says nothing");
        assert!(!same("torn {", "torn ["));
    }

    #[test]
    fn message_chains_are_equal_until_the_first_different_message() {
        let (a, b): (Vec<&[u8]>, Vec<&[u8]>) =
            (vec![b"1", b"2", b"3"], vec![b"1", b"2", b"x", b"3"]);
        let (a, b) = (Chain::of(&a), Chain::of(&b));
        assert_eq!(a.shared_with(&b), 2);
        assert_eq!(a.at(2), b.at(2));
        assert_ne!(a.at(3), b.at(4));
        assert_eq!(Link::from_hex(&a.at(3).unwrap().to_hex()), a.at(3));
    }
}
