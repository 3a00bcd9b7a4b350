//! Changes of metadata, header and group file, by path. Changes of the running recap are listed by
//! version.

use super::value::{Field, PathStep, Rules, fields, members};
use super::{Change, Location, Part, Root, Side, rewritten, value_change, whole_part_change};
use crate::auto_recap::RECAP_VERSIONS;
use crate::st::{Key, Raw};

pub(super) fn metadata<'a>(before: &Side<'a>, after: &Side<'a>) -> Vec<Change<'a>> {
    let mut changes = Vec::new();
    if let (Some(old), Some(new)) = (before.metadata, after.metadata) {
        changes = by_path(Part::Metadata, Root::Metadata, old, new, &[]);
    }
    let (old, new) = (before.chat.header, after.chat.header);
    if old != new {
        header(old, new, &mut changes);
    }
    if before.group != after.group {
        changes.extend(group(before, after));
    }
    changes
}

fn header<'a>(before: Option<&'a [u8]>, after: Option<&'a [u8]>, changes: &mut Vec<Change<'a>>) {
    let object = |line: Option<&'a [u8]>| line.and_then(Raw::parse).filter(Raw::is_object);
    let (Some(old), Some(new)) = (object(before), object(after)) else {
        changes.push(whole_part_change(Part::Metadata, Root::Header, before, after));
        return;
    };
    let has_metadata = |header: Raw<'a>| header.get("chat_metadata").is_some_and(|m| m.is_object());
    let skipped: &[&str] =
        if has_metadata(old) && has_metadata(new) { &["chat_metadata"] } else { &[] };
    changes.extend(by_path(Part::Metadata, Root::Header, old, new, skipped));
    if changes.is_empty() {
        changes.push(rewritten(Part::Metadata, Root::Header, before, after));
    }
}

/// Compares the values of a group file, except the metadata of its chats.
fn group<'a>(before: &Side<'a>, after: &Side<'a>) -> Vec<Change<'a>> {
    let object = |file: Option<&'a [u8]>| file.and_then(Raw::parse).filter(Raw::is_object);
    match (object(before.group), object(after.group)) {
        (Some(old), Some(new)) => {
            by_path(Part::Metadata, Root::Group, old, new, &["chat_metadata", "past_metadata"])
        }
        _ => vec![whole_part_change(Part::Metadata, Root::Group, before.group, after.group)],
    }
}

/// Compares two objects value by value, except the members in `without`.
pub(super) fn by_path<'a>(
    part: Part,
    root: Root,
    before: Raw<'a>,
    after: Raw<'a>,
    without: &[&str],
) -> Vec<Change<'a>> {
    let mut changes = Vec::new();
    for field in fields(before, after, Rules::PLAIN) {
        if without.iter().any(|name| field.is_in(&[name])) {
            continue;
        }
        match versions(&field) {
            Some(versions) => changes.extend(versions),
            None => {
                let location = Location { root, keys: keys(&field), version: None };
                let bytes = |value: Option<Raw<'a>>| value.map(|value| value.as_bytes());
                let (before, after) = (bytes(field.before), bytes(field.after));
                changes.push(value_change(part, location, before, after));
            }
        }
    }
    changes
}

fn keys(field: &Field<'_>) -> Vec<Key> {
    let key = |step: &PathStep| match step {
        PathStep::Key(key) => Some(key.clone()),
        PathStep::Item(_) => None,
    };
    field.path.iter().filter_map(key).collect()
}

/// Compares the versions of the running recap by their numbers. Returns `None` for any other field,
/// or if the versions are not numbered in ascending order.
fn versions<'a>(field: &Field<'a>) -> Option<Vec<Change<'a>>> {
    if !field.is(&RECAP_VERSIONS) {
        return None;
    }
    let (old, new) = (numbered(field.before?)?, numbered(field.after?)?);
    let mut numbers: Vec<i64> = old.iter().chain(&new).map(|(number, _)| *number).collect();
    numbers.sort_unstable();
    numbers.dedup();
    let find = |list: &[(i64, Raw<'a>)], number: i64| {
        list.binary_search_by_key(&number, |(number, _)| *number).ok().map(|at| list[at].1)
    };
    let mut changes = Vec::new();
    for number in numbers {
        let (before, after) = (find(&old, number), find(&new, number));
        let fields = match (before, after) {
            (Some(before), Some(after)) => fields(before, after, Rules::PLAIN),
            _ => Vec::new(),
        };
        if before.is_some() && after.is_some() && fields.is_empty() {
            continue;
        }
        let location = Location { root: Root::Metadata, keys: keys(field), version: Some(number) };
        let bytes = |version: Option<Raw<'a>>| version.map(|version| version.as_bytes());
        let change = value_change(Part::Metadata, location, bytes(before), bytes(after));
        changes.push(Change { fields, ..change });
    }
    Some(changes)
}

fn numbered(list: Raw<'_>) -> Option<Vec<(i64, Raw<'_>)>> {
    let items = list.items()?;
    let numbered: Option<Vec<_>> = items
        .into_iter()
        .map(|item| {
            members(Some(item))?;
            Some((item.get("version")?.integer()?, item))
        })
        .collect();
    numbered.filter(|list| list.windows(2).all(|pair| pair[0].0 < pair[1].0))
}
