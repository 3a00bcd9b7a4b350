//! Changes of metadata, header and group file, by path. Changes of the running recap are listed by
//! version.

use super::value::{Field, PathStep, Rules, fields, members};
use super::{
    Change, Location, Part, Root, Side, Values, bytes_of, objects, rewritten, value_change,
    whole_part_change,
};
use crate::auto_recap::RECAP_VERSIONS;
use crate::st::{Key, Raw};

pub(super) fn metadata<'a>(before: &Side<'a>, after: &Side<'a>) -> Vec<Change<'a>> {
    let mut changes = Vec::new();
    if let (Some(old), Some(new)) = (before.metadata, after.metadata) {
        changes = by_path(Part::Metadata, Root::Metadata, old, new, &[]);
    }
    if before.chat.header != after.chat.header {
        header([before.chat.header, after.chat.header], &mut changes);
    }
    if before.group != after.group {
        changes.extend(group([before.group, after.group]));
    }
    changes
}

fn header<'a>(headers: Values<'a>, changes: &mut Vec<Change<'a>>) {
    let Some([old, new]) = objects(headers) else {
        changes.push(whole_part_change(Part::Metadata, Root::Header, headers));
        return;
    };
    let has_metadata = |header: Raw<'a>| header.get("chat_metadata").is_some_and(|m| m.is_object());
    let skipped: &[&str] =
        if has_metadata(old) && has_metadata(new) { &["chat_metadata"] } else { &[] };
    changes.extend(by_path(Part::Metadata, Root::Header, old, new, skipped));
    if changes.is_empty() {
        changes.push(rewritten(Part::Metadata, Root::Header, headers));
    }
}

/// Compares the values of a group file, except the metadata of its chats.
fn group(files: Values<'_>) -> Vec<Change<'_>> {
    match objects(files) {
        Some([old, new]) => {
            by_path(Part::Metadata, Root::Group, old, new, &["chat_metadata", "past_metadata"])
        }
        None => vec![whole_part_change(Part::Metadata, Root::Group, files)],
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
                let values = bytes_of([field.before, field.after]);
                changes.push(value_change(part, location, values));
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
        let fields = before.zip(after).map(|(old, new)| fields(old, new, Rules::PLAIN));
        if fields.as_ref().is_some_and(Vec::is_empty) {
            continue;
        }
        let location = Location { root: Root::Metadata, keys: keys(field), version: Some(number) };
        let change = value_change(Part::Metadata, location, bytes_of([before, after]));
        changes.push(Change { fields: fields.unwrap_or_default(), ..change });
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
