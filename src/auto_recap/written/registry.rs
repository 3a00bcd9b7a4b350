//! Registries: lorebook entries that list other entries by their UID.
//!
//! There are three notations: `- UID=7 | name: …` (since November 2025), `- uid: 7 | name: …`
//! (before), and JSON `{"items":[{"uid":7}]}` (only in the extension's plans, but a lorebook may
//! contain it). Values may contain `|` and line breaks, so only the UID and the name of each line
//! are read.

use std::ops::Range;

use super::metadata::auto_lorebooks;
use crate::st::{Raw, entry_comment};

/// The beginning of a registry's title, which the type follows.
pub const REGISTRY_PREFIX: &str = "_registry_";

pub fn is_registry(entry: Raw<'_>) -> bool {
    entry_comment(entry).is_some_and(|title| title.starts_with(REGISTRY_PREFIX))
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegistryItem {
    pub uid: String,
    /// Name of the entry; may be empty.
    pub name: String,
}

/// Returns the items of the registry that is cached in the chat's metadata, in order, each with its
/// type.
pub fn registry_cache(metadata: Raw<'_>) -> Vec<(RegistryItem, String)> {
    let index = auto_lorebooks(metadata).and_then(|own| own.path(&["registry", "index"]));
    let members = index.and_then(|index| index.members()).unwrap_or_default();
    members
        .into_iter()
        .map(|member| {
            let item = member.value;
            let name = item.text("name").or_else(|| item.text("comment")).unwrap_or_default();
            let uid = member.key.into_string_lossy();
            (RegistryItem { uid, name }, item.text("type").unwrap_or_default())
        })
        .collect()
}

/// Returns the items that the content of a registry's entry lists, or the reason why the content
/// cannot be read.
pub fn registry_items(content: Option<Raw<'_>>) -> Result<Vec<RegistryItem>, &'static str> {
    let Some(content) = content else { return Ok(Vec::new()) };
    let text = content.string().ok_or("its content is not a string")?;
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
        return Err("it has neither the heading nor any line of a registry");
    }
    Ok(items)
}

fn line_item(line: &str) -> Option<RegistryItem> {
    let uid = registry_line_uid(line)?;
    let name = line[uid.end..].split('|').find_map(|part| part.trim_start().strip_prefix("name:"));
    let name = name.unwrap_or_default().trim().to_owned();
    Some(RegistryItem { uid: line[uid].to_owned(), name })
}

/// Returns the position of the UID in a line of a registry, or `None` if the line does not have the
/// format of a registry.
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
    let root = Raw::parse_str(text).ok_or("it begins like JSON but is not valid JSON")?;
    let list = match root.get("items") {
        None => return Ok(Vec::new()),
        Some(list) => list.items().ok_or("its items are not a list")?,
    };
    let text = |value: Raw<'_>| value.string().unwrap_or_else(|| value.as_str().to_owned());
    let item = |item: Raw<'_>| {
        // As `item.id || item.uid` in JavaScript.
        let id = item.get("id").filter(Raw::truthy).or_else(|| item.get("uid"))?;
        let name = item.get("name").or_else(|| item.get("comment"));
        Some(RegistryItem { uid: text(id), name: name.map(text).unwrap_or_default() })
    };
    Ok(list.into_iter().filter_map(item).collect())
}
