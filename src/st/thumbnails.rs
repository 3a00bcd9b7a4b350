//! The small pictures that SillyTavern makes of cards and personas. It shows them without asking whether the picture is another by now, so they go when it is written; it
//! makes them anew.

use std::path::Path;

use super::LibraryPath;
use crate::durable;

/// Remove the small picture of what was just written or removed, if it has one. That it fails matters to nobody's data.
pub fn forget_thumbnail(root: &Path, path: &LibraryPath) {
    let Some((folder, file)) = path.as_str().rsplit_once('/') else { return };
    let kind = match folder {
        "characters" => "avatar",
        "User Avatars" => "persona",
        _ => return,
    };
    durable::remove_own(&root.join("thumbnails").join(kind).join(file));
}
