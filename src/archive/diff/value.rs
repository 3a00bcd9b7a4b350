//! Compares two JSON values, independent of their formatting.

use std::collections::{HashMap, HashSet};

use super::ChangeKind;
use crate::st::{Key, Raw, has_repeated_key};

/// Maximum depth of recursion. Deeper values are compared as raw text, so that a malicious file
/// cannot exhaust the stack.
const DEPTH: usize = 32;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathStep {
    Key(Key),
    Item(usize),
}

impl PathStep {
    /// Returns whether this step is the key `name`.
    pub fn is(&self, name: &str) -> bool {
        matches!(self, PathStep::Key(key) if key.as_bytes() == name.as_bytes())
    }
}

/// Changed value inside a message, a lorebook entry or the metadata: its path, and its value before
/// and after.
#[derive(Clone, Debug)]
pub struct Field<'a> {
    /// Keys and indexes from the compared value down to this one.
    pub path: Vec<PathStep>,
    /// Kind of the change of this value.
    pub kind: ChangeKind,
    /// Value on the older side; `None` if it was added.
    pub before: Option<Raw<'a>>,
    /// Value on the newer side; `None` if it was removed.
    pub after: Option<Raw<'a>>,
}

impl Field<'_> {
    /// Returns whether the path of the value begins with these keys.
    pub fn is_in(&self, names: &[&str]) -> bool {
        self.path.len() >= names.len()
            && self.path.iter().zip(names).all(|(step, name)| step.is(name))
    }

    /// Returns whether the path of the value consists of exactly these keys.
    pub fn is(&self, names: &[&str]) -> bool {
        self.path.len() == names.len() && self.is_in(names)
    }
}

/// Returns a path as it is written in code: `extra.branches`, `swipes[2]`.
pub fn joined(path: &[PathStep]) -> String {
    let mut out = String::new();
    for step in path {
        match step {
            PathStep::Key(key) => {
                if !out.is_empty() {
                    out.push('.');
                }
                out.push_str(&key.to_string_lossy());
            }
            PathStep::Item(index) => out.push_str(&format!("[{index}]")),
        }
    }
    out
}

#[derive(Clone, Copy)]
pub(super) struct Rules {
    /// Keys of the lists that are compared item by item.
    pub lists: &'static [&'static str],
    /// Keys of the objects whose members are compared even if one side does not have the object.
    pub opened: &'static [&'static str],
}

impl Rules {
    /// Rules that compare every list as one value.
    pub const PLAIN: Rules = Rules { lists: &[], opened: &[] };
}

pub(super) fn fields<'a>(before: Raw<'a>, after: Raw<'a>, rules: Rules) -> Vec<Field<'a>> {
    let mut found = Vec::new();
    walk(Some(before), Some(after), &mut Vec::new(), rules, &mut found);
    found
}

fn walk<'a>(
    before: Option<Raw<'a>>,
    after: Option<Raw<'a>>,
    path: &mut Vec<PathStep>,
    rules: Rules,
    found: &mut Vec<Field<'a>>,
) {
    if before == after {
        return;
    }
    let named = |names: &[&str]| matches!(path.as_slice(), [step] if names.iter().any(|name| step.is(name)));
    let opened = named(rules.opened);
    let listed = named(rules.lists);
    if path.len() < DEPTH {
        let (old, new) = (members(before), members(after));
        let both = match (&old, &new) {
            (Some(_), Some(_)) => true,
            // An empty object has no members to list, so it is compared as one value.
            (Some(one), None) => opened && after.is_none() && !one.is_empty(),
            (None, Some(one)) => opened && before.is_none() && !one.is_empty(),
            (None, None) => false,
        };
        if both {
            let (old, new) = (old.unwrap_or_default(), new.unwrap_or_default());
            for (key, before, after) in side_by_side(&old, &new) {
                path.push(PathStep::Key(key.clone()));
                walk(before, after, path, rules, found);
                path.pop();
            }
            return;
        }
        if listed
            && let (Some(old), Some(new)) =
                (before.and_then(|list| list.items()), after.and_then(|list| list.items()))
        {
            for index in 0..old.len().max(new.len()) {
                path.push(PathStep::Item(index));
                walk(old.get(index).copied(), new.get(index).copied(), path, rules, found);
                path.pop();
            }
            return;
        }
    }
    if let (Some(before), Some(after)) = (before, after)
        && same(before, after)
    {
        return;
    }
    found.push(Field { path: path.clone(), kind: ChangeKind::of(before, after), before, after });
}

pub(super) type Members<'a> = Vec<(Key, Raw<'a>)>;

/// Returns the members of an object, or `None` if the value is not an object. If a key is repeated,
/// the last value counts, as in JavaScript.
pub(super) fn members(value: Option<Raw<'_>>) -> Option<Members<'_>> {
    let all = value.filter(Raw::is_object)?.members()?;
    let mut unique: Members<'_> =
        all.iter().map(|member| (member.key.clone(), member.value)).collect();
    if has_repeated_key(&all) {
        let mut taken = HashSet::new();
        unique.reverse();
        unique.retain(|(key, _)| taken.insert(key.clone()));
        unique.reverse();
    }
    Some(unique)
}

pub(super) type Row<'m, 'a> = (&'m Key, Option<Raw<'a>>, Option<Raw<'a>>);

/// Returns each key of two objects with its values in `old` and `new`: first the keys of `old`,
/// then the keys that only `new` has.
pub(super) fn side_by_side<'m, 'a>(old: &'m Members<'a>, new: &'m Members<'a>) -> Vec<Row<'m, 'a>> {
    let by_key = |list: &'m Members<'a>| -> HashMap<&'m [u8], Raw<'a>> {
        list.iter().map(|(key, value)| (key.as_bytes(), *value)).collect()
    };
    let (in_old, in_new) = (by_key(old), by_key(new));
    let first =
        old.iter().map(|(key, value)| (key, Some(*value), in_new.get(key.as_bytes()).copied()));
    let second = new
        .iter()
        .filter(|(key, _)| !in_old.contains_key(key.as_bytes()))
        .map(|(key, value)| (key, None, Some(*value)));
    first.chain(second).collect()
}

/// Returns whether two values are equal as JSON. Numbers are compared as text: `1` and `1.0`
/// differ.
pub(crate) fn same(a: Raw<'_>, b: Raw<'_>) -> bool {
    same_to(a, b, DEPTH)
}

fn same_to(a: Raw<'_>, b: Raw<'_>, depth: usize) -> bool {
    if a == b {
        return true;
    }
    let Some(depth) = depth.checked_sub(1) else { return false };
    if a.is_string() && b.is_string() {
        return Key::decode(a.as_bytes()) == Key::decode(b.as_bytes());
    }
    if let (Some(a), Some(b)) = (members(Some(a)), members(Some(b))) {
        return a.len() == b.len()
            && side_by_side(&a, &b).iter().all(|(_, a, b)| match (a, b) {
                (Some(a), Some(b)) => same_to(*a, *b, depth),
                _ => false,
            });
    }
    match (a.items(), b.items()) {
        (Some(a), Some(b)) => {
            a.len() == b.len() && a.iter().zip(&b).all(|(a, b)| same_to(*a, *b, depth))
        }
        _ => false,
    }
}

/// Compares two lists of strings, such as the keywords of an entry, as sets. Returns the added and
/// the removed items, or `None` if a value is not a list of strings.
pub fn set_change<'a>(before: Raw<'a>, after: Raw<'a>) -> Option<(Vec<Raw<'a>>, Vec<Raw<'a>>)> {
    let texts = |list: Raw<'a>| -> Option<Vec<(Key, Raw<'a>)>> {
        list.items()?.into_iter().map(|item| Some((Key::decode(item.as_bytes())?, item))).collect()
    };
    let (old, new) = (texts(before)?, texts(after)?);
    let lacking = |these: &[(Key, Raw<'a>)], those: &[(Key, Raw<'a>)]| {
        let those: HashSet<_> = those.iter().map(|(key, _)| key.as_bytes()).collect();
        let missing = these.iter().filter(|(key, _)| !those.contains(key.as_bytes()));
        missing.map(|(_, raw)| *raw).collect()
    };
    Some((lacking(&new, &old), lacking(&old, &new)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> Raw<'_> {
        Raw::parse_str(text).unwrap()
    }

    #[test]
    fn values_are_equal_despite_different_json_spelling() {
        for (a, b) in [
            (r#"{"a":1,"b":[1,2]}"#, r#"{ "b" : [1, 2], "a":1 }"#),
            (r#""é\n""#, r#""\u00e9\u000a""#),
            (r#"{"a":0,"a":1}"#, r#"{"a":1}"#),
            (r#""\ud83d""#, r#""\uD83D""#),
        ] {
            assert!(same(raw(a), raw(b)), "{a} {b}");
        }
        for (a, b) in [("1", "1.0"), ("[1,2]", "[2,1]"), ("{}", "[]"), (r#"{"a":1}"#, "{}")] {
            assert!(!same(raw(a), raw(b)), "{a} {b}");
        }
    }

    #[test]
    fn changed_values_are_named_by_their_path() {
        let rules = Rules { lists: &["swipes"], opened: &["extra"] };
        let before = raw(r#"{"mes":"x","swipes":["a"],"o":{"k":{"l":1}},"gone":{"a":1}}"#);
        let after = raw(r#"{"mes":"x","swipes":["a","b"],"o":{"k":{"l":2}},"extra":{"e":1}}"#);
        let paths: Vec<_> =
            fields(before, after, rules).iter().map(|field| joined(&field.path)).collect();
        assert_eq!(paths, ["swipes[1]", "o.k.l", "gone", "extra.e"]);
    }

    #[test]
    fn deeply_nested_values_are_compared() {
        let deep = |leaf: &str| format!("{}{leaf}{}", "{\"a\":".repeat(5_000), "}".repeat(5_000));
        let (one, two) = (deep("1"), deep("2"));
        assert!(!same(raw(&one), raw(&two)));
        assert_eq!(fields(raw(&one), raw(&two), Rules::PLAIN).len(), 1);
    }
}
