//! Formats counts, sizes and names for a terminal, and shortens texts.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::sync::{Mutex, PoisonError};

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::screen::Screen;
use stvc::Workspace;
use stvc::library::{Category, TimelineName};
use stvc::snapshots::{CheckpointState, Snapshot};
pub use stvc::words::{clean, count, shell, short};

fn fits(text: &str, columns: usize) -> bool {
    Screen::get().is_pipe() || text.width() <= columns
}

/// Shortens a text to `columns` at its end.
pub fn cut(text: &str, columns: usize) -> String {
    if fits(text, columns) {
        return text.to_owned();
    }
    let mut out = String::new();
    let mut width = 0;
    for c in text.chars() {
        let next = width + c.width().unwrap_or(0);
        if next + 1 > columns {
            break;
        }
        width = next;
        out.push(c);
    }
    out.push('…');
    out
}

/// Shortens a text to `columns` in its middle, because names of forks often differ at their end.
pub fn cut_middle(text: &str, columns: usize) -> String {
    if fits(text, columns) {
        return text.to_owned();
    }
    let end = columns * 3 / 5;
    format!("{}{}", cut(text, columns - end).trim_end_matches('…'), cut_front(text, end))
}

/// Shortens a text to `columns` at its beginning.
pub fn cut_front(text: &str, columns: usize) -> String {
    if fits(text, columns) {
        return text.to_owned();
    }
    let mut kept = Vec::new();
    let mut width = 1;
    for c in text.chars().rev() {
        width += c.width().unwrap_or(0);
        if width > columns {
            break;
        }
        kept.push(c);
    }
    let kept: String = kept.into_iter().rev().collect();
    format!("…{}", kept.trim_start())
}

/// Pads a text with spaces to a width of `columns`.
pub fn pad(text: &str, columns: usize) -> String {
    format!("{text}{}", " ".repeat(columns.saturating_sub(text.width())))
}

/// Returns `1 msg` or `2 msgs`.
pub fn messages_in_short(n: u64) -> String {
    count(n, "msg")
}

/// Returns a size such as `12.3 MB`.
pub fn size(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["kB", "MB", "GB", "TB"];
    if bytes < 1000 {
        return count(bytes, "byte");
    }
    let mut value = bytes as f64 / 1000.0;
    let mut unit = 0;
    while value >= 999.95 && unit + 1 < UNITS.len() {
        value /= 1000.0;
        unit += 1;
    }
    format!("{value:.1} {}", UNITS[unit])
}

/// Names of the groups, whose files have numbers as names.
static GROUPS: Mutex<BTreeMap<TimelineName, String>> = Mutex::new(BTreeMap::new());

/// From now on, [`name`] returns the names of this library's groups.
pub fn use_group_names(workspace: &Workspace) {
    let names = workspace.group_names();
    *GROUPS.lock().unwrap_or_else(PoisonError::into_inner) = names;
}

/// Returns `Character / Chat`, `group / Chat`, or the category and the name: `lorebook / Lore`.
pub fn name(timeline: &TimelineName) -> String {
    let folder = match timeline.category() {
        Category::Chat => timeline.folder().unwrap_or_default(),
        Category::GroupChat => "group",
        Category::Settings => return "settings".into(),
        Category::Group => "members of group",
        other => other.word(),
    };
    let groups = GROUPS.lock().unwrap_or_else(PoisonError::into_inner);
    let chat = groups.get(timeline).map_or(timeline.chat(), String::as_str);
    clean(&format!("{folder} / {chat}"))
}

/// Returns `12 messages` for a chat, or `3 entries` for a lorebook.
pub fn length(snapshot: &Snapshot) -> Option<String> {
    match (snapshot.timeline.is_chat(), snapshot.entries) {
        (true, _) => Some(count(snapshot.messages, "message")),
        (false, entries) => entries.map(|entries| count(entries, "entry")),
    }
}

/// Returns the subject of a snapshot if the user wrote it, or `None` if stvc did.
pub fn own_words(snapshot: &Snapshot) -> Option<String> {
    let chat = snapshot.timeline.chat();
    let made = snapshot
        .subject
        .strip_prefix(chat)
        .is_some_and(|rest| rest.starts_with(": ") && rest.contains("message"))
        || !snapshot.timeline.is_chat() && snapshot.subject.starts_with(chat);
    (!made).then(|| clean(&snapshot.subject))
}

pub fn fork_point(shared: u64) -> String {
    match shared.checked_sub(1) {
        Some(last) => format!("forked after #{last}"),
        None => "forked at the beginning".into(),
    }
}

/// Names the characters of a requested chat name that its file name does not have.
pub fn removed_characters(requested: &str, chat: &str) -> Option<String> {
    let mut removed: Vec<String> = Vec::new();
    for c in requested.chars().filter(|c| !c.is_whitespace() && !chat.contains(*c)) {
        let c = format!("`{}`", clean(&c.to_string()));
        if !removed.contains(&c) {
            removed.push(c);
        }
    }
    let removed = (!removed.is_empty()).then(|| removed.join(" "))?;
    let chat = clean(chat);
    Some(format!("The chat is called {chat}: file names of SillyTavern cannot contain {removed}."))
}

/// Returns `was called X`, with the name shortened to `room` columns.
pub fn was_called(former: &TimelineName, room: usize) -> String {
    format!("was called {}", cut_middle(&clean(former.chat()), room.max(20)))
}

/// Returns `4 snapshots of 2 timelines`.
pub fn snapshots_of(snapshots: impl Display, timelines: impl Display) -> String {
    format!("{} of {}", count(snapshots, "snapshot"), count(timelines, "timeline"))
}

/// Returns ` (name)`, or an empty string if there is no name.
pub fn in_parentheses(name: Option<&String>) -> String {
    name.map(|name| format!(" ({})", clean(name))).unwrap_or_default()
}

/// Returns the title of a lorebook entry, shortened to `columns`.
pub fn entry_title(title: &str, columns: usize) -> String {
    let title = cut(&clean(title.trim()), columns);
    if title.is_empty() { "(no title)".into() } else { title }
}

/// Returns the name that SillyTavern's editor shows for a field of a lorebook entry.
pub fn field_name(field: &str) -> String {
    let name = match field {
        "key" => "keys",
        "keysecondary" => "secondary keys",
        "comment" => "title",
        "" => "the whole entry",
        other => other,
    };
    cut(&clean(name), 40)
}

/// Returns the version of the running recap: `v5 (3 scenes)`.
pub fn recap(state: &CheckpointState) -> String {
    let Some(version) = state.running_recap_version else { return "none".into() };
    let scenes = state.running_recap_scene_count.and_then(|n| u64::try_from(n).ok());
    let scenes = scenes.map(|n| format!(" ({})", count(n, "scene"))).unwrap_or_default();
    format!("v{version}{scenes}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_escaped_for_the_terminal() {
        let hostile = "a\u{1b}[31mred\u{7}\u{9b}2J\r\nb\u{202e}c";
        assert_eq!(clean(hostile), "a\\u{1b}[31mred\\u{7}\\u{9b}2J  b\\u{202e}c");
    }

    #[test]
    fn sizes_and_counts_have_the_right_unit_and_plural() {
        assert_eq!(size(999), "999 bytes");
        assert_eq!(size(1), "1 byte");
        assert_eq!(size(12_345_678), "12.3 MB");
        assert_eq!(size(999_990), "1.0 MB");
        assert_eq!(count(2, "entry"), "2 entries");
        assert_eq!(count(2, "day"), "2 days");
    }

    #[test]
    fn wide_characters_count_as_two_columns() {
        assert_eq!(cut("雨雨雨雨", 5), "雨雨…");
        assert_eq!(cut_front("雨雨雨雨", 5), "…雨雨");
        assert_eq!(cut_middle("a long name - Branch #1", 16), "a long…ranch #1");
        assert_eq!(pad("雨", 4), "雨  ");
    }

    #[test]
    fn words_are_quoted_for_the_shell() {
        assert_eq!(shell("abc-1"), "abc-1");
        assert_eq!(shell("Tide Office"), "\"Tide Office\"");
        assert_eq!(shell("it's"), "\"it's\"");
        assert_eq!(shell("abc~1"), "\"abc~1\"");
        let both = if cfg!(windows) { "'$ and '''" } else { r"'$ and '\'''" };
        assert_eq!(shell("$ and '"), both);
    }
}
