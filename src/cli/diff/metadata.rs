//! Prints changed metadata by path, and the running recap by version.

use super::text::Page;
use super::{Line, value_line};
use crate::cli::wording::clean;
use stvc::changes::{Change, ChangeKind, Location, MessagePlace, joined};
use stvc::library::Raw;
use stvc::recaps::{RECAP_IN_USE, RUNNING_RECAP};

pub fn lines(changes: &[&Change<'_>], page: Page) -> Vec<Line> {
    let line = |change: &&Change<'_>| match &change.place {
        MessagePlace::Value(location) => {
            recap(change, location, page).unwrap_or_else(|| value_line(change, location, page))
        }
        _ => Line::of(ChangeKind::Edited, String::new()),
    };
    changes.iter().map(line).collect()
}

fn recap(change: &Change<'_>, location: &Location, page: Page) -> Option<Line> {
    let keys: Vec<_> = location.keys.iter().map(|key| key.to_string_lossy()).collect();
    if keys.first().map(String::as_str) != Some(RUNNING_RECAP) {
        return None;
    }
    let (old, new) = (change.before.and_then(Raw::parse), change.after.and_then(Raw::parse));
    let mut line = Line::of(change.kind(), "running recap".into());
    if let Some(version) = location.version {
        let gist = |recap: Option<Raw<'_>>| {
            let content = recap.and_then(|recap| recap.get("content")?.string());
            page.gist(&content.unwrap_or_default(), 30)
        };
        line.text = match change.kind() {
            ChangeKind::Added => format!("version {version} added: {}", gist(new)),
            ChangeKind::Removed => format!("version {version} removed: {}", gist(old)),
            _ => format!("version {version}"),
        };
        let note = |field: &stvc::changes::Field<'_>| {
            format!("{}: {}", clean(&joined(&field.path)), page.change(field.before, field.after))
        };
        line.more = change.fields.iter().map(note).collect();
        return Some(line);
    }
    if keys == RECAP_IN_USE
        && let (Some(old), Some(new)) = (old, new)
    {
        let (was, is) = (page.value(old), page.value(new));
        line.text = format!("version {is} is current, was {was}");
        return Some(line);
    }
    None
}
