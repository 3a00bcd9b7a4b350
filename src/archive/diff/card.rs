//! Changes of character cards, and of files that are neither chats nor lorebooks, by field.

use super::metadata::by_path;
use super::{Change, Part, Root, Side, Values, objects, rewritten, whole_part_change};

pub(super) fn card<'a>(before: &Side<'a>, after: &Side<'a>) -> Vec<Change<'a>> {
    let mut changes = of_json(Root::Card, [before.card, after.card]);
    if before.picture != after.picture && before.picture.is_some() == after.picture.is_some() {
        let pictures = [before.picture, after.picture];
        changes.push(whole_part_change(Part::Card, Root::Picture, pictures));
    }
    changes.extend(of_json(Root::File, [before.file, after.file]));
    changes
}

/// Compares two files by field if both are JSON objects; otherwise, returns one change for the
/// complete file.
fn of_json(root: Root, files: Values<'_>) -> Vec<Change<'_>> {
    if files[0] == files[1] {
        return Vec::new();
    }
    let changes = match objects(files) {
        Some([old, new]) => by_path(Part::Card, root, old, new, &[]),
        None => return vec![whole_part_change(Part::Card, root, files)],
    };
    if changes.is_empty() { vec![rewritten(Part::Card, root, files)] } else { changes }
}
