//! Renames sticky and cooldown effects in a chat's header when its lorebook gets another name.
//!
//! SillyTavern files an effect under `<book>.<uid>` and finds its entry by a hash over the whole
//! entry and the book's name. Otherwise the effects would end with the rename.

use super::json::{Edits, Key, Member, Raw, quote, stringify, stringify_members};
use std::collections::{HashMap, HashSet};

/// Returns the hash by which SillyTavern 1.19 identifies an entry of the chat's lorebook; none for a
/// value that is not an entry.
///
/// It is the cyrb53 of `JSON.stringify({uid, world: <book>, ...rest, decorators, content})`, where
/// `rest` is all but the uid. An entry's own `world` overrides the book's name, and every key stays
/// where it came first.
pub fn effect_hash(entry: Raw<'_>, book_name: &str) -> Option<u64> {
    let members = entry.members()?;
    // Of the text that the server sends, in which 1e999 is null.
    let content = match entry.get("content").map(stringify).as_deref() {
        None | Some("null" | "false" | "0") => key("")?,
        Some(text) => Key::decode(text.as_bytes())?,
    };
    let (decorators, content) = split_decorators(content.as_bytes());
    let decorators: Vec<_> = decorators.into_iter().map(quote).collect();

    let mut loaded = Vec::with_capacity(members.len() + 3);
    if let Some(uid) = entry.get("uid") {
        loaded.push((key("uid")?, stringify(uid)));
    }
    loaded.push((key("world")?, quote(book_name.as_bytes())));
    let rest = members.into_iter().filter(|member| member.key.as_bytes() != b"uid");
    loaded.extend(rest.map(|member| (member.key, stringify(member.value))));
    loaded.push((key("decorators")?, format!("[{}]", decorators.join(","))));
    loaded.push((key("content")?, quote(content)));
    Some(cyrb53(&stringify_members(loaded)))
}

/// Returns the value of `timedWorldInfo` after a rename of the book with these entries (key and
/// value). Only effects of this book change.
///
/// Effects under the new name are left from a book that is gone. They get the old name in exchange:
/// else a key could be repeated, and effects that had ended would start again.
pub fn rename_effects(
    timed: Raw<'_>,
    old_book: &str,
    new_book: &str,
    entries: &[(Key, Raw<'_>)],
) -> Vec<u8> {
    let effects: Vec<_> = ["sticky", "cooldown"]
        .iter()
        .filter_map(|kind| effects_in(timed.get(kind)?))
        .flatten()
        .filter(|effect| [old_book, new_book].iter().any(|book| uid_in(effect, book).is_some()))
        .collect();
    if effects.is_empty() || old_book == new_book {
        return timed.as_bytes().to_vec();
    }
    let known = Entries::new(entries, old_book, new_book);
    let mut edits = Edits::new(timed.as_bytes());
    for effect in &effects {
        if known.rename(&mut edits, effect, [old_book, new_book], &known.forth).is_none() {
            known.rename(&mut edits, effect, [new_book, old_book], &known.back);
        }
    }
    edits.apply()
}

#[derive(Default)]
struct Entries {
    /// Hashes under the old name, as text, and under the new; and the reverse.
    forth: HashMap<String, u64>,
    back: HashMap<String, u64>,
    /// The uids, as they stand in the keys of effects.
    uids: HashSet<Vec<u8>>,
    /// Keys of the effects of entries that have a `world` of their own. Neither these nor their
    /// hashes depend on the book's name.
    fixed: HashSet<Vec<u8>>,
}

impl Entries {
    fn new(entries: &[(Key, Raw<'_>)], old_book: &str, new_book: &str) -> Self {
        let mut known = Self::default();
        for (_, entry) in entries {
            let uid = as_text(entry.get("uid"));
            if let Some(world) = entry.get("world") {
                let key = as_text(Some(world)).zip(uid);
                known.fixed.extend(key.map(|(world, uid)| [world, uid].join(&b'.')));
                continue;
            }
            known.uids.extend(uid);
            let hashes = effect_hash(*entry, old_book).zip(effect_hash(*entry, new_book));
            known.forth.extend(hashes.map(|(old, new)| (old.to_string(), new)));
            known.back.extend(hashes.map(|(old, new)| (new.to_string(), old)));
        }
        known
    }

    /// Gives an effect of the book `from` the name `to` and the hash that belongs to it. None if it
    /// is not an effect of that book.
    fn rename(
        &self,
        edits: &mut Edits<'_>,
        effect: &Member<'_>,
        [from, to]: [&str; 2],
        hashes: &HashMap<String, u64>,
    ) -> Option<()> {
        let uid = uid_in(effect, from)?;
        // SillyTavern compares hashes as text, and the uid is in the hash.
        let hash = effect.value.get("hash");
        let stored = as_text(hash).and_then(|text| String::from_utf8(text).ok());
        let new_hash = stored.and_then(|stored| hashes.get(&stored));
        // `a.b.1` is of the book `a.b`, not of `a`.
        let ours = uid.iter().all(u8::is_ascii_digit) || self.uids.contains(uid);
        if new_hash.is_none() && (!ours || self.fixed.contains(effect.key.as_bytes())) {
            return None;
        }
        let new_key = [to.as_bytes(), b".", uid].concat();
        edits.replace(Raw::parse(effect.raw_key)?, quote(&new_key));
        if let (Some(hash), Some(new_hash)) = (hash, new_hash) {
            let mark = if hash.is_string() { "\"" } else { "" };
            edits.replace(hash, format!("{mark}{new_hash}{mark}"));
        }
        Some(())
    }
}

/// Returns the effects of one kind; none if a key is repeated, because then it is unclear which
/// counts.
fn effects_in(kind: Raw<'_>) -> Option<Vec<Member<'_>>> {
    let effects = kind.members()?;
    let mut seen = HashSet::with_capacity(effects.len());
    if !effects.iter().all(|effect| seen.insert(effect.key.as_bytes())) {
        return None;
    }
    Some(effects)
}

/// Returns the uid in an effect's key, if the key begins with this book's name.
fn uid_in<'e>(effect: &'e Member<'_>, book: &str) -> Option<&'e [u8]> {
    effect.key.as_bytes().strip_prefix(book.as_bytes())?.strip_prefix(b".")
}

/// Returns JavaScript's `String(value)`; none for arrays and objects.
fn as_text(value: Option<Raw<'_>>) -> Option<Vec<u8>> {
    match value {
        None => Some(b"undefined".to_vec()),
        Some(value) if value.is_object() || value.is_array() => None,
        Some(value) if value.is_string() => {
            Key::decode(value.as_bytes()).map(|text| text.as_bytes().to_vec())
        }
        Some(value) => Some(stringify(value).into_bytes()),
    }
}

/// Returns the decorators at the head of an entry's content, and the rest. A `@@@` line counts only
/// after an unknown decorator, as its substitute. Content of `@@` lines alone stays as it is.
fn split_decorators(content: &[u8]) -> (Vec<&[u8]>, &[u8]) {
    let mut decorators = Vec::new();
    let mut unknown_before = false;
    let mut rest = content;
    while rest.starts_with(b"@@") {
        let (line, after) = match memchr::memchr(b'\n', rest) {
            Some(end) => (&rest[..end], Some(&rest[end + 1..])),
            None => (rest, None),
        };
        let substitute = line.starts_with(b"@@@");
        if !substitute || unknown_before {
            let line = if substitute { &line[1..] } else { line };
            unknown_before = !is_known(line);
            if !unknown_before {
                decorators.push(line);
            }
        }
        match after {
            Some(after) => rest = after,
            None => return (decorators, content),
        }
    }
    (decorators, rest)
}

fn is_known(decorator: &[u8]) -> bool {
    [&b"@@activate"[..], b"@@dont_activate"].iter().any(|known| decorator.starts_with(known))
}

/// SillyTavern's `getStringHash`: cyrb53 by bryc (public domain), seed 0, of UTF-16 units.
fn cyrb53(text: &str) -> u64 {
    let (mut a, mut b) = (0xDEAD_BEEF_u32, 0x41C6_CE57_u32);
    for unit in text.encode_utf16().map(u32::from) {
        a = (a ^ unit).wrapping_mul(2_654_435_761);
        b = (b ^ unit).wrapping_mul(1_597_334_677);
    }
    let mix = |first: u32, second: u32| {
        (first ^ first >> 16).wrapping_mul(2_246_822_507)
            ^ (second ^ second >> 13).wrapping_mul(3_266_489_909)
    };
    a = mix(a, b);
    b = mix(b, a);
    u64::from(b & 0x1F_FFFF) << 32 | u64::from(a)
}

fn key(name: &str) -> Option<Key> {
    Key::decode(quote(name.as_bytes()).as_bytes())
}
