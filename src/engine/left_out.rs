//! Reports the parts of the user's folder that are not stored, with their sizes.

use std::fs;
use std::path::Path;

use super::operation::attachment_limit;
use super::{Include, Result};
use crate::rules::{Code, Finding};
use crate::st::{Category, Library, list_folder};
use crate::store::Store;
use crate::words::format_size;

/// Folders that are not stored, and their names in the finding. SillyTavern's thumbnails and
/// backups and the user's secrets are not reported.
const FOLDERS: [(&str, &str); 15] = [
    ("backgrounds", "backgrounds"),
    ("assets", "assets"),
    ("extensions", "extensions"),
    ("vectors", "vector indexes"),
    ("user/workflows", "workflows"),
    ("OpenAI Settings", "presets"),
    ("TextGen Settings", "presets"),
    ("KoboldAI Settings", "presets"),
    ("NovelAI Settings", "presets"),
    ("instruct", "presets"),
    ("context", "presets"),
    ("sysprompt", "presets"),
    ("reasoning", "presets"),
    ("QuickReplies", "quick replies"),
    ("themes", "themes"),
];

/// The size in bytes below which a folder or file is not reported, for example empty settings or a
/// marker file.
const LEAST: u64 = 64;

const MAX_DEPTH: usize = 12;

pub(crate) fn finding(
    library: &Library,
    include: &Include,
    store: Option<&Store>,
) -> Result<Option<Finding>> {
    let root = library.root();
    let mut sizes: Vec<(&str, u64)> = Vec::new();
    let mut add =
        |what: &'static str, bytes: u64| match sizes.iter_mut().find(|known| known.0 == what) {
            _ if bytes < LEAST => {}
            Some(known) => known.1 += bytes,
            None => sizes.push((what, bytes)),
        };
    for (folder, what) in FOLDERS {
        add(what, size(&root.join(folder), MAX_DEPTH));
    }
    let attached =
        size(&root.join("user/images"), MAX_DEPTH) + size(&root.join("user/files"), MAX_DEPTH);
    let store = store.filter(|_| attached >= LEAST);
    let stored = store.map(attachment_limit::stored_bytes).transpose()?.unwrap_or(0);
    add("pictures and files that no stored chat uses", attached.saturating_sub(stored));
    // The folder `characters` contains the cards, and folders with pictures of expressions.
    add("sprites of characters", sizes_of_folders(&root.join("characters")));
    let mut ways = Vec::new();
    for (category, path, what, key) in [
        (Category::Settings, "settings.json", "settings.json", "include.settings"),
        (Category::Card, "characters", "characters", "include.characters"),
        (Category::Persona, "User Avatars", "pictures of personas", "include.personas"),
        (Category::Group, "groups", "group files", "include.groups"),
    ] {
        let path = root.join(path);
        let bytes = size(&path, 1);
        if !include.has(category) && bytes >= LEAST {
            add(what, bytes);
            ways.push(format!("`stvc config {key} true`"));
        }
    }
    if sizes.is_empty() {
        return Ok(None);
    }
    sizes.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
    let list: Vec<_> =
        sizes.iter().map(|(what, bytes)| format!("{what} ({})", format_size(*bytes))).collect();
    let message = format!("not stored: {}", list.join(", "));
    let subject = root.display().to_string();
    let mut remedy = "back up the files that you need by other means".to_owned();
    if !ways.is_empty() {
        remedy.push_str(&format!("; run {} to store more from now on", ways.join(", ")));
    }
    Ok(Some(Finding::new(Code::LeftOut, subject, message).remedy(remedy)))
}

/// Returns the length of a file, or the total length of all files in a folder, down to `deep`
/// levels. Does not follow links. Unreadable files count as empty.
fn size(path: &Path, deep: usize) -> u64 {
    let Ok(found) = fs::symlink_metadata(path) else { return 0 };
    if found.is_file() {
        return found.len();
    }
    if !found.is_dir() || deep == 0 {
        return 0;
    }
    let entries = list_folder(path).entries;
    entries.iter().map(|entry| size(&entry.path(), deep - 1)).sum()
}

fn sizes_of_folders(path: &Path) -> u64 {
    let entries = list_folder(path).entries;
    let folders = entries.iter().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    folders.map(|folder| size(&folder.path(), MAX_DEPTH)).sum()
}
