//! Prints changed lorebook entries, field by field. Entries that were only reordered share one
//! line.

use super::text::Page;
use super::{Line, SAME, value_line};
use crate::cli::output::{STYLES, dim, paint};
use crate::cli::wording::{clean, count, cut, entry_title, field_name};
use stvc::changes::{Change, ChangeKind, Field, MessagePlace, joined};
use stvc::library::{self, Raw};

pub fn lines(changes: &[&Change<'_>], page: Page) -> Vec<Line> {
    let folds = [(ChangeKind::Order, "only the order changed"), (ChangeKind::Rewritten, SAME)];
    let is_in = |change: &Change<'_>, kind| is_entry(change) && change.is_only(kind);
    let others =
        changes.iter().filter(|change| !folds.iter().any(|(kind, _)| is_in(change, *kind)));
    let mut lines: Vec<Line> = others.map(|change| line(change, page)).collect();
    for (kind, what) in folds {
        let folded = changes.iter().filter(|change| is_in(change, kind));
        let titles: Vec<_> =
            folded.map(|change| title(change.after.and_then(Raw::parse))).collect();
        if !titles.is_empty() {
            let label = count(titles.len(), "entry");
            let titles = dim(page.gist(&titles.join(", "), 44));
            lines.push(Line::of(ChangeKind::Edited, label).text(format!("{what}  {titles}")));
        }
    }
    lines
}

fn is_entry(change: &Change<'_>) -> bool {
    matches!(change.place, MessagePlace::Entry(_))
}

fn uid(place: &MessagePlace) -> String {
    match place {
        MessagePlace::Entry(key) => format!("UID {}", cut(&clean(&key.to_string_lossy()), 24)),
        _ => String::new(),
    }
}

fn title(entry: Option<Raw<'_>>) -> String {
    entry_title(&entry.and_then(library::entry_comment).unwrap_or_default(), 40)
}

fn line(change: &Change<'_>, page: Page) -> Line {
    let (old, new) = (change.before.and_then(Raw::parse), change.after.and_then(Raw::parse));
    if !is_entry(change) {
        return book_line(change, old, new, page);
    }
    let shown = |entry: Option<Raw<'_>>| {
        let title = title(entry);
        let content = entry.and_then(library::entry_content).unwrap_or_default();
        if content.trim().is_empty() {
            return title;
        }
        format!("{title}: {}", page.excerpt(&content))
    };
    let line = Line::of(change.kind(), uid(&change.place));
    match change.kind() {
        ChangeKind::Added => line.text(shown(new)),
        ChangeKind::Removed => line.text(shown(old)),
        ChangeKind::Reused => {
            let removed = format!("{} {}", paint(STYLES.bad, "-"), shown(old));
            let added = format!("{} {}", paint(STYLES.good, "+"), shown(new));
            Line { more: vec![removed, added], ..line.text("now used by another entry") }
        }
        kind => {
            let moved = kind == ChangeKind::Moved;
            let from = change.from.as_ref().filter(|_| moved).map(uid).unwrap_or_default();
            let text = match (moved, change.is_only(ChangeKind::Renamed)) {
                (true, _) => format!("{}: moved here from {from}", title(new)),
                (_, true) => format!("renamed: {}", page.edit(&title(old), &title(new))),
                _ => title(new),
            };
            let mut line = line.text(text);
            if !change.is_only(ChangeKind::Renamed) {
                let fields = change.fields.iter().filter(|field| !(moved && field.is(&["uid"])));
                line.more = fields.map(|field| field_note(field, page)).collect();
            }
            line
        }
    }
}

pub fn entry_lines(change: &Change<'_>, page: Page) -> Vec<String> {
    let content = |entry: Option<&[u8]>| {
        entry.and_then(Raw::parse).and_then(library::entry_content).unwrap_or_default()
    };
    match change.kind() {
        ChangeKind::Added => vec![page.added(&page.excerpt(&content(change.after)))],
        ChangeKind::Removed => {
            vec![
                "deleted; its text was:".into(),
                page.removed(&page.excerpt(&content(change.before))),
            ]
        }
        ChangeKind::Rewritten => vec![SAME.into()],
        _ => {
            let from = change.from.as_ref().filter(|from| **from != change.place).map(uid);
            let moved = from.map(|from| format!("moved here from {from}"));
            let fields = change.fields.iter().filter(|field| !field.is(&["uid"]));
            moved.into_iter().chain(fields.map(|field| field_note(field, page))).collect()
        }
    }
}

fn field_note(field: &Field<'_>, page: Page) -> String {
    let path = joined(&field.path);
    let on = |value: Option<Raw<'_>>| value.is_some_and(|value| value.truthy());
    if path == "disable" && on(field.before) != on(field.after) {
        return if on(field.after) { "switched off".into() } else { "switched on".into() };
    }
    format!("{}: {}", field_name(&path), page.change(field.before, field.after))
}

fn book_line(change: &Change<'_>, old: Option<Raw<'_>>, new: Option<Raw<'_>>, page: Page) -> Line {
    let MessagePlace::Value(location) = &change.place else {
        return Line::of(ChangeKind::Edited, String::new());
    };
    if !location.keys.is_empty() {
        return value_line(change, location, page);
    }
    let shown = |book: Option<Raw<'_>>| match book.and_then(|book| book.get("entries")?.members()) {
        Some(entries) => {
            let titles: Vec<_> = entries.iter().map(|entry| title(Some(entry.value))).collect();
            let many = count(titles.len(), "entry");
            page.gist(&format!("entire lorebook, {many}: {}", titles.join(", ")), 8)
        }
        None => "a file that is not a lorebook".into(),
    };
    Line::of(change.kind(), "book".into()).text(match change.kind() {
        ChangeKind::Added => shown(new),
        ChangeKind::Removed => shown(old),
        ChangeKind::Rewritten => SAME.into(),
        _ => format!("{} → {}", shown(old), shown(new)),
    })
}
