//! Renames sticky and cooldown effects in a chat's header when its lorebook gets another name.
//!
//! SillyTavern stores an effect under the key `<book>.<uid>` and finds the effect's entry by a hash
//! of the entry and the book's name. If key and hash kept the old name, SillyTavern would end the
//! effect.

use super::json::{Edits, Key, Member, Raw, has_repeated_key, quote, stringify, stringify_members};
use std::collections::{HashMap, HashSet};

/// Returns the hash by which SillyTavern 1.19 identifies an entry of the chat's lorebook; `None` if
/// the value is not an entry.
///
/// The hash is the cyrb53 of `JSON.stringify({uid, world: <book>, ...rest, decorators, content})`,
/// where `rest` is all members except the uid. An entry's own `world` overrides the book's name,
/// and a repeated key keeps its first position.
pub fn effect_hash(entry: Raw<'_>, book_name: &str) -> Option<u64> {
    let members = entry.members()?;
    // SillyTavern hashes the JSON that its server sends, in which 1e999 is null.
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

/// Returns the value of `timedWorldInfo` after a rename of the book from `old_book` to `new_book`.
/// `entries` are the keys and values of the book's entries. Effects of other books do not change.
///
/// Effects that already have the name `new_book` belong to a deleted book. They get the name
/// `old_book` in exchange: otherwise a key could occur twice, and effects that had ended would
/// start again.
pub fn rename_effects(
    timed: Raw<'_>,
    old_book: &str,
    new_book: &str,
    entries: &[(Key, Raw<'_>)],
) -> Vec<u8> {
    let effects: Vec<_> = ["sticky", "cooldown"]
        .iter()
        .filter_map(|kind| timed.get(kind)?.members())
        // A repeated key is ambiguous.
        .filter(|effects| !has_repeated_key(effects))
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
    /// `forth` maps each entry's hash under the old book name (as text) to the hash under the new
    /// name; `back` maps in the opposite direction.
    forth: HashMap<String, u64>,
    back: HashMap<String, u64>,
    /// Uids of the entries, as spelled in the keys of effects.
    uids: HashSet<Vec<u8>>,
    /// Keys of the effects of entries that have their own `world`. For such entries, neither the
    /// key nor the hash depends on the book's name.
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

    /// Changes the key and the hash of an effect of the book `from` to those for the book name
    /// `to`. Returns `None` if the effect does not belong to the book `from`.
    fn rename(
        &self,
        edits: &mut Edits<'_>,
        effect: &Member<'_>,
        [from, to]: [&str; 2],
        hashes: &HashMap<String, u64>,
    ) -> Option<()> {
        let uid = uid_in(effect, from)?;
        // SillyTavern compares hashes as text. Equal hashes imply equal uids, because the uid is
        // part of the hashed text.
        let hash = effect.value.get("hash");
        let stored = as_text(hash).and_then(|text| String::from_utf8(text).ok());
        let new_hash = stored.and_then(|stored| hashes.get(&stored));
        // The key `a.b.1` belongs to the book `a.b`, not to `a`.
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

/// Returns the uid in an effect's key, if the key begins with this book's name.
fn uid_in<'e>(effect: &'e Member<'_>, book: &str) -> Option<&'e [u8]> {
    effect.key.as_bytes().strip_prefix(book.as_bytes())?.strip_prefix(b".")
}

/// Returns JavaScript's `String(value)`; `None` for arrays and objects.
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

/// Returns the decorators at the start of an entry's content, and the rest of the content. A `@@@`
/// line counts only directly after an unknown decorator, as its substitute. If all lines begin with
/// `@@`, the second value is the unchanged content.
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

/// Computes SillyTavern's `getStringHash`: cyrb53 by bryc (public domain), seed 0, over UTF-16
/// units.
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
