//! Findings about registries that list missing entries. Registries are in the lorebook and in the
//! chat's metadata.

use std::collections::HashSet;

use crate::auto_recap::written::{REGISTRY_PREFIX, RegistryItem, registry_cache, registry_items};
use crate::rules::{Book, Code, Finding, Subject, brief, few, more};

pub(super) fn findings(parts: &Subject<'_>, book: &Book<'_>) -> Vec<Finding> {
    // Registries may list the UIDs and keys of entries that are not registries themselves.
    let entries = book.entries.iter().filter(|entry| !entry.title.starts_with(REGISTRY_PREFIX));
    let listable = entries.flat_map(|entry| [Some(entry.key.as_str()), entry.uid.as_deref()]);
    let listable: HashSet<_> = listable.flatten().collect();
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
                let finding = Finding::new(Code::RegistryUnreadable, book.path, message);
                findings.push(finding.usual_remedy());
                continue;
            }
        };
        let mut seen = HashSet::new();
        for item in items.iter().filter(|item| !listable.contains(item.uid.as_str())) {
            if !seen.insert(&item.uid) {
                continue;
            }
            let message = format!(
                "the registry of type {kind:?} lists UID {} ({:?}), but the lorebook has no such entry",
                brief(&item.uid),
                brief(&item.name),
            );
            dangling.push(Finding::new(Code::RegistryDangling, book.path, message).remedy(
                format!(
                    "restore an earlier snapshot of the lorebook, or delete the line from {title:?}"
                ),
            ));
        }
    }
    findings.extend(few(dangling));
    findings.extend(cached(parts, &listable));
    findings
}

/// Checks the registry that is cached in the chat's metadata. The extension rewrites the lorebook's
/// registries from this cache, so UIDs of missing entries would get into the lorebook.
fn cached(parts: &Subject<'_>, listable: &HashSet<&str>) -> Option<Finding> {
    let mut lost = parts.metadata.map(registry_cache).unwrap_or_default();
    lost.retain(|(item, _)| !listable.contains(item.uid.as_str()));
    if lost.is_empty() {
        return None;
    }
    let named = |(RegistryItem { uid, name }, kind): &(RegistryItem, String)| {
        format!("{} ({} {:?})", brief(uid), brief(kind), brief(name))
    };
    let names: Vec<_> = lost.iter().take(5).map(named).collect();
    let message = format!(
        "the registry in its metadata lists UIDs that its lorebook does not have: {}{}; the extension will write them to the lorebook's registries",
        names.join(", "),
        more(lost.len(), names.len()),
    );
    Some(Finding::new(Code::RegistryCacheDangling, parts.chat_path(), message).remedy(
        "make sure that the right lorebook is bound; the extension then reads its registries again",
    ))
}
