//! Registries, in the lorebook and in the chat's metadata, that list entries which are not there.

use std::collections::HashSet;

use crate::auto_recap::written::{CachedItem, REGISTRY_PREFIX, registry_cache, registry_items};
use crate::rules::Book;
use crate::rules::Subject;
use crate::rules::{Code, Finding};
use crate::rules::{brief, few, more};

pub(super) fn findings(parts: &Subject<'_>, book: &Book<'_>) -> Vec<Finding> {
    let is_registry = |title: &str| title.starts_with(REGISTRY_PREFIX);
    let any = book.entries.iter().any(|entry| is_registry(&entry.title));
    let cache = parts.metadata.map(registry_cache).unwrap_or_default();
    if !any && cache.is_empty() {
        return Vec::new();
    }
    let listable = listable(book);
    let mut findings = listed(book, &listable);
    findings.extend(cached(parts, &cache, &listable));
    findings
}

/// All that a registry may list: the UIDs and keys of entries that are no registries themselves.
fn listable<'b>(book: &'b Book<'_>) -> HashSet<&'b str> {
    let entries = book.entries.iter().filter(|entry| !entry.title.starts_with(REGISTRY_PREFIX));
    entries.flat_map(|entry| [Some(entry.key.as_str()), entry.uid.as_deref()]).flatten().collect()
}

/// What the registries of the book list.
fn listed(book: &Book<'_>, listable: &HashSet<&str>) -> Vec<Finding> {
    let (mut findings, mut dangling) = (Vec::new(), Vec::new());
    for entry in &book.entries {
        let Some(kind) = entry.title.strip_prefix(REGISTRY_PREFIX) else { continue };
        let (title, kind) = (brief(&entry.title), brief(kind));
        let items = match registry_items(entry.content) {
            Ok(items) => items,
            Err(why) => {
                let message = format!(
                    "the registry {title:?} (entry {:?}) cannot be read: {why}",
                    brief(&entry.key)
                );
                findings.push(
                    Finding::new(Code::RegistryUnreadable, book.path, message)
                        .remedy("restore an earlier snapshot of the lorebook, or empty the entry: the extension writes it anew"),
                );
                continue;
            }
        };
        let mut seen = HashSet::new();
        for item in items.iter().filter(|item| !listable.contains(item.uid.as_str())) {
            if !seen.insert(&item.uid) {
                continue;
            }
            let message = format!(
                "the registry of type {kind:?} lists UID {} ({:?}), and the lorebook has no such entry",
                brief(&item.uid),
                brief(&item.name),
            );
            dangling.push(Finding::new(Code::RegistryDangling, book.path, message).remedy(
                format!(
                    "restore an earlier snapshot of the lorebook, or take the line out of {title:?}"
                ),
            ));
        }
    }
    findings.extend(few(dangling));
    findings
}

/// The extension writes registries anew from what it keeps in the chat's metadata, so what dangles there will dangle in the book.
fn cached(parts: &Subject<'_>, cache: &[CachedItem], listable: &HashSet<&str>) -> Option<Finding> {
    let lost: Vec<_> = cache.iter().filter(|item| !listable.contains(item.uid.as_str())).collect();
    if lost.is_empty() {
        return None;
    }
    let named = |item: &&CachedItem| {
        format!("{} ({} {:?})", brief(&item.uid), brief(&item.kind), brief(&item.name))
    };
    let names: Vec<_> = lost.iter().take(5).map(named).collect();
    let message = format!(
        "the registry in its metadata lists UIDs that its lorebook does not have: {}{}; the extension will write them into the lorebook's registries",
        names.join(", "),
        more(lost.len(), names.len()),
    );
    Some(
        Finding::new(Code::RegistryCacheDangling, parts.chat_path, message).remedy(
            "make sure that the right lorebook is bound; the extension reads its registries again when it next looks for entries",
        ),
    )
}
