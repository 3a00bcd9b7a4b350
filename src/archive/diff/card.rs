//! Changes of character cards, and of files that are neither chats nor lorebooks, by field.

use super::metadata::by_path;
use super::{Change, Part, Root, Side, rewritten, whole_part_change};
use crate::st::Raw;

pub(super) fn card<'a>(before: &Side<'a>, after: &Side<'a>) -> Vec<Change<'a>> {
    let mut changes = of_json(Root::Card, before.card, after.card);
    if before.picture != after.picture && before.picture.is_some() == after.picture.is_some() {
        changes.push(whole_part_change(Part::Card, Root::Picture, before.picture, after.picture));
    }
    changes.extend(of_json(Root::File, before.file, after.file));
    changes
}

/// Compares two files by field if both are JSON objects; otherwise, returns one change for the
/// complete file.
fn of_json<'a>(root: Root, before: Option<&'a [u8]>, after: Option<&'a [u8]>) -> Vec<Change<'a>> {
    if before == after {
        return Vec::new();
    }
    let object = |text: Option<&'a [u8]>| text.and_then(Raw::parse).filter(Raw::is_object);
    let changes = match (object(before), object(after)) {
        (Some(old), Some(new)) => by_path(Part::Card, root, old, new, &[]),
        _ => return vec![whole_part_change(Part::Card, root, before, after)],
    };
    if changes.is_empty() { vec![rewritten(Part::Card, root, before, after)] } else { changes }
}
