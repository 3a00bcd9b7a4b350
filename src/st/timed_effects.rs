//! Sticky and cooldown effects that a chat's header keeps, under another name of its lorebook.
//!
//! SillyTavern files an effect under `<book>.<uid>` and finds the entry it belongs to by a hash of the whole entry, in which the
//! book's name stands too. Of an entry that was restored under another name no effect would go on.

use super::json::{Edits, Key, Member, Raw, quote, stringify, stringify_members};
use std::collections::{HashMap, HashSet};

/// Timed effects under a new name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Renamed {
    /// The new value of `timedWorldInfo`.
    pub bytes: Vec<u8>,
    /// Effects that have the new name and the new hash, and go on.
    pub moved: usize,
    /// Effects that have the new name only: they belong to no entry as it is now, so they did not run under the old name either.
    pub stale: usize,
}

/// The hash by which SillyTavern 1.19 knows an entry of the chat's lorebook. None for what is no entry to it.
///
/// It is the cyrb53 of `JSON.stringify({uid, world: <book>, ...rest, decorators, content})`, where `rest` is all but the uid. An
/// entry's own `world` is stronger than the book's name, and every key stays where it came first.
pub fn effect_hash(entry: Raw<'_>, book_name: &str) -> Option<u64> {
    let members = entry.members()?;
    // Asked of the text that the server sends, in which 1e999 is null.
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

/// The value of `timedWorldInfo` after a rename of the book with these entries (key and value). All that is no effect of this book
/// keeps its bytes.
///
/// Effects that stand under the new name already are left from a book that is gone. They get the old name in exchange: else a key
/// could stand twice, and effects that had stopped would start again.
pub fn rename_effects(
    timed: Raw<'_>,
    old_book: &str,
    new_book: &str,
    entries: &[(Key, Raw<'_>)],
) -> Renamed {
    let mut renamed = Renamed { bytes: timed.as_bytes().to_vec(), moved: 0, stale: 0 };
    let effects: Vec<_> = ["sticky", "cooldown"]
        .iter()
        .filter_map(|kind| effects_in(timed.get(kind)?))
        .flatten()
        .filter(|effect| [old_book, new_book].iter().any(|book| uid_in(effect, book).is_some()))
        .collect();
    if effects.is_empty() || old_book == new_book {
        return renamed;
    }
    let known = Entries::new(entries, old_book, new_book);
    let mut edits = Edits::new(timed.as_bytes());
    for effect in &effects {
        if let Some(hash) = known.follow(&mut edits, effect, old_book, new_book, &known.forth) {
            match hash {
                Hash::Replaced => renamed.moved += 1,
                Hash::Kept => renamed.stale += 1,
            }
        } else {
            known.follow(&mut edits, effect, new_book, old_book, &known.back);
        }
    }
    renamed.bytes = edits.apply();
    renamed
}

/// What is to be known of a book's entries.
struct Entries {
    /// Hashes under the old name, as text, and under the new.
    forth: HashMap<String, u64>,
    back: HashMap<String, u64>,
    /// The uids, as they stand in the keys of effects.
    uids: HashSet<Vec<u8>>,
    /// Keys of entries that have a `world` of their own, which do not depend on the book's name; nor do their hashes.
    fixed: HashSet<Vec<u8>>,
}

/// What became of an effect's hash.
enum Hash {
    Replaced,
    Kept,
}

impl Entries {
    fn new(entries: &[(Key, Raw<'_>)], old_book: &str, new_book: &str) -> Self {
        let mut known = Self {
            forth: HashMap::new(),
            back: HashMap::new(),
            uids: HashSet::new(),
            fixed: HashSet::new(),
        };
        for (_, entry) in entries {
            let uid = as_text(entry.get("uid"));
            if let Some(world) = entry.get("world") {
                if let (Some(world), Some(uid)) = (as_text(Some(world)), uid) {
                    known.fixed.insert([world, b".".to_vec(), uid].concat());
                }
                continue;
            }
            known.uids.extend(uid);
            if let (Some(old), Some(new)) =
                (effect_hash(*entry, old_book), effect_hash(*entry, new_book))
            {
                known.forth.insert(old.to_string(), new);
                known.back.insert(new.to_string(), old);
            }
        }
        known
    }

    /// Give an effect of the book `from` the name `to` and the hash that belongs to it. None if it is no effect of that book.
    fn follow(
        &self,
        edits: &mut Edits<'_>,
        effect: &Member<'_>,
        from: &str,
        to: &str,
        hashes: &HashMap<String, u64>,
    ) -> Option<Hash> {
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
        let (Some(hash), Some(new_hash)) = (hash, new_hash) else { return Some(Hash::Kept) };
        let mark = if hash.is_string() { "\"" } else { "" };
        edits.replace(hash, format!("{mark}{new_hash}{mark}"));
        Some(Hash::Replaced)
    }
}

/// The effects of one kind; none if a key stands twice, as then it is not plain which one counts.
fn effects_in(kind: Raw<'_>) -> Option<Vec<Member<'_>>> {
    let effects = kind.members()?;
    let mut seen = HashSet::with_capacity(effects.len());
    if !effects.iter().all(|effect| seen.insert(effect.key.as_bytes())) {
        return None;
    }
    Some(effects)
}

/// The uid in an effect's key, if the key begins with this book's name.
fn uid_in<'e>(effect: &'e Member<'_>, book: &str) -> Option<&'e [u8]> {
    effect.key.as_bytes().strip_prefix(book.as_bytes())?.strip_prefix(b".")
}

/// JavaScript's `String(value)`, not for arrays and objects.
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

/// The decorators at the head of an entry's content, and what follows them. A `@@@` line counts only after a decorator that is not
/// known, as its substitute. Content of nothing but `@@` lines stays as it is.
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
