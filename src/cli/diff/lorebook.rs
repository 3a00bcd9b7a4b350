//! Lorebook entries: by title, field by field; order that was only shuffled in one line.

use super::text::Page;
use super::{Line, value_line};
use crate::cli::output::{LOOK, paint};
use crate::cli::wording::{clean, count, cut};
use stvc::archive::diff::{Change, ChangeKind, Field, MessagePlace, joined};
use stvc::st::{self, Raw};

/// The lines for the lorebook.
pub fn lines(changes: &[&Change<'_>], page: Page) -> Vec<Line> {
    let mut lines = Vec::new();
    for (kind, what) in [
        (ChangeKind::Order, "only the order changed"),
        (ChangeKind::Rewritten, "the same values, written differently"),
    ] {
        let folded = changes.iter().filter(|change| is_entry(change) && change.is_only(kind));
        let titles: Vec<_> =
            folded.map(|change| title(change.after.and_then(Raw::parse))).collect();
        if titles.is_empty() {
            continue;
        }
        let mut line = Line::new("~", LOOK.tag, count(titles.len() as u64, "entry"));
        let titles = page.gist(&titles.join(", "), 44);
        line.text = format!("{what}  {}", paint(LOOK.dim, titles));
        lines.push(line);
    }
    let folded = |change: &Change<'_>| {
        change.is_only(ChangeKind::Order) || change.is_only(ChangeKind::Rewritten)
    };
    let others = changes.iter().filter(|change| !is_entry(change) || !folded(change));
    let mut told: Vec<Line> = others.map(|change| line(change, page)).collect();
    told.append(&mut lines);
    told
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
    let title = entry.and_then(st::entry_comment).unwrap_or_default();
    let title = cut(&clean(title.trim()), 40);
    if title.is_empty() { "(no title)".into() } else { title }
}

fn line(change: &Change<'_>, page: Page) -> Line {
    let (old, new) = (change.before.and_then(Raw::parse), change.after.and_then(Raw::parse));
    if !is_entry(change) {
        return book_line(change, old, new, page);
    }
    let label = uid(&change.place);
    let told = |entry: Option<Raw<'_>>| {
        let title = title(entry);
        let content = entry.and_then(st::entry_content).unwrap_or_default();
        if content.trim().is_empty() {
            return title;
        }
        format!("{title}: {}", page.told(&content))
    };
    let with = |sign, style, text: String| Line { text, ..Line::new(sign, style, label.clone()) };
    match change.kind() {
        ChangeKind::Added => with("+", LOOK.good, told(new)),
        ChangeKind::Removed => with("-", LOOK.bad, told(old)),
        ChangeKind::Reused => {
            let mut line = with("!", LOOK.warn, "now names another entry".into());
            line.more = vec![
                format!("{} {}", paint(LOOK.bad, "-"), told(old)),
                format!("{} {}", paint(LOOK.good, "+"), told(new)),
            ];
            line
        }
        kind => {
            let moved = kind == ChangeKind::Moved;
            let from = change.from.as_ref().filter(|_| moved).map(uid).unwrap_or_default();
            let text = match (moved, change.is_only(ChangeKind::Renamed)) {
                (true, _) => format!("{}: moved here from {from}", title(new)),
                (_, true) => format!("renamed: {}", page.edit(&title(old), &title(new))),
                _ => title(new),
            };
            let (sign, style) = if moved { (">", LOOK.tag) } else { ("~", LOOK.tag) };
            let mut line = with(sign, style, text);
            if !change.is_only(ChangeKind::Renamed) {
                let fields = change.fields.iter().filter(|field| !(moved && field.is(&["uid"])));
                line.more = fields.map(|field| field_note(field, page)).collect();
            }
            line
        }
    }
}

/// What became of one entry, a line each.
pub fn entry_lines(change: &Change<'_>, page: Page) -> Vec<String> {
    let content = |entry: Option<&[u8]>| {
        entry.and_then(Raw::parse).and_then(st::entry_content).unwrap_or_default()
    };
    match change.kind() {
        ChangeKind::Added => vec![page.added(&page.told(&content(change.after)))],
        ChangeKind::Removed => {
            vec!["deleted; it said".into(), page.removed(&page.told(&content(change.before)))]
        }
        ChangeKind::Rewritten => vec!["the same values, written differently".into()],
        _ => {
            let from = change.from.as_ref().filter(|from| **from != change.place).map(uid);
            let moved = from.map(|from| format!("moved here from {from}"));
            let fields = change.fields.iter().filter(|field| !field.is(&["uid"]));
            moved.into_iter().chain(fields.map(|field| field_note(field, page))).collect()
        }
    }
}

/// One field of an entry, by the name that SillyTavern's editor has for it where that is another one.
fn field_note(field: &Field<'_>, page: Page) -> String {
    let path = joined(&field.path);
    let on = |value: Option<Raw<'_>>| value.is_some_and(|value| value.truthy());
    if path == "disable" && on(field.before) != on(field.after) {
        return if on(field.after) { "switched off".into() } else { "switched on".into() };
    }
    let name = match path.as_str() {
        "key" => "keys",
        "keysecondary" => "secondary keys",
        "comment" => "title",
        other => other,
    };
    format!("{}: {}", cut(&clean(name), 40), page.change(field.before, field.after))
}

/// The book itself, or a value beside its entries.
fn book_line(change: &Change<'_>, old: Option<Raw<'_>>, new: Option<Raw<'_>>, page: Page) -> Line {
    let MessagePlace::Value(location) = &change.place else {
        return Line::new("~", LOOK.tag, String::new());
    };
    if !location.keys.is_empty() {
        return value_line(change, location, page);
    }
    let told = |book: Option<Raw<'_>>| match book.and_then(|book| book.get("entries")?.members()) {
        Some(entries) => {
            let titles: Vec<_> = entries.iter().map(|entry| title(Some(entry.value))).collect();
            let many = count(titles.len() as u64, "entry");
            page.gist(&format!("the whole lorebook, {many}: {}", titles.join(", ")), 8)
        }
        None => "a file that is no lorebook".into(),
    };
    let with = |sign, style, text| Line { text, ..Line::new(sign, style, "book".into()) };
    match change.kind() {
        ChangeKind::Added => with("+", LOOK.good, told(new)),
        ChangeKind::Removed => with("-", LOOK.bad, told(old)),
        ChangeKind::Rewritten => with("~", LOOK.tag, "the same values, written differently".into()),
        _ => with("~", LOOK.tag, format!("{} → {}", told(old), told(new))),
    }
}
