//! Registries: lorebook entries that list other entries by their UID.
//!
//! Three notations are about: `- UID=7 | name: …` (since November 2025), `- uid: 7 | name: …` (before), and JSON `{"items":[{"uid":7}]}` (only in
//! plans, and so perhaps in somebody's book). Values may hold `|` and line breaks, so of each line only the UID and the name are read.

use std::ops::Range;

use crate::st::{Raw, entry_comment};

/// How the titles of registries begin; the type follows.
pub const REGISTRY_PREFIX: &str = "_registry_";

/// Whether an entry is a registry.
pub fn is_registry(entry: Raw<'_>) -> bool {
    entry_comment(entry).is_some_and(|title| title.starts_with(REGISTRY_PREFIX))
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegistryItem {
    /// The UID of the entry, as text.
    pub uid: String,
    /// What it is called; may be empty.
    pub name: String,
}

/// What the content of a registry's entry lists, or why it cannot be read.
pub fn registry_items(content: Option<Raw<'_>>) -> Result<Vec<RegistryItem>, &'static str> {
    let Some(content) = content else { return Ok(Vec::new()) };
    let text = content.string().ok_or("its content is no text")?;
    let trimmed = text.trim();
    if trimmed.is_empty() {
        return Ok(Vec::new());
    }
    if trimmed.starts_with('{') {
        return json_items(trimmed);
    }
    let items: Vec<_> = text.lines().filter_map(line_item).collect();
    let head = trimmed.get(..9).is_some_and(|head| head.eq_ignore_ascii_case("[Registry"));
    if items.is_empty() && !head {
        return Err("it has neither the head of a registry nor any line of one");
    }
    Ok(items)
}

fn line_item(line: &str) -> Option<RegistryItem> {
    let uid = registry_line_uid(line)?;
    let name = line[uid.end..].split('|').find_map(|part| part.trim_start().strip_prefix("name:"));
    let name = name.unwrap_or_default().trim().to_owned();
    Some(RegistryItem { uid: line[uid].to_owned(), name })
}

/// Where in a registry's line the UID stands; none if it is no such line.
pub fn registry_line_uid(line: &str) -> Option<Range<usize>> {
    let rest = line.trim_start().strip_prefix('-')?.trim_start();
    let (word, rest) = rest.split_at_checked(3)?;
    if !word.eq_ignore_ascii_case("uid") {
        return None;
    }
    let rest = rest.trim_start().strip_prefix(['=', ':'])?.trim_start();
    let start = line.len() - rest.len();
    let uid = rest.split_once('|').map_or(rest, |(uid, _)| uid).trim_end();
    (!uid.is_empty()).then_some(start..start + uid.len())
}

fn json_items(text: &str) -> Result<Vec<RegistryItem>, &'static str> {
    let root = Raw::parse_str(text).ok_or("it begins like JSON and is none")?;
    let list = match root.get("items") {
        None => return Ok(Vec::new()),
        Some(list) => list.items().ok_or("its items are no list")?,
    };
    let text = |value: Raw<'_>| value.string().unwrap_or_else(|| value.as_str().to_owned());
    let item = |item: Raw<'_>| {
        // As `item.id || item.uid` has it.
        let id = item.get("id").filter(Raw::truthy).or_else(|| item.get("uid"))?;
        let name = item.get("name").or_else(|| item.get("comment"));
        Some(RegistryItem { uid: text(id), name: name.map(text).unwrap_or_default() })
    };
    Ok(list.into_iter().filter_map(item).collect())
}
