//! Small words: ages, sizes, counts, and text from files made safe for a terminal.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::screen::Screen;
use stvc::archive::Snapshot;
use stvc::auto_recap::CheckpointState;
use stvc::engine::files::Closed;
use stvc::st::{Category, TimelineName};
pub use stvc::words::{AND, clean, shell, short};

/// Whether a text stays as it is: it fits, or no person reads it.
fn fits(text: &str, columns: usize) -> bool {
    Screen::get().is_pipe() || text.width() <= columns
}

/// At most `columns` wide, cut at the end.
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

/// At most `columns` wide, cut in the middle: names of forks differ at their end.
pub fn cut_middle(text: &str, columns: usize) -> String {
    if fits(text, columns) {
        return text.to_owned();
    }
    let end = columns * 3 / 5;
    format!("{}{}", cut(text, columns - end).trim_end_matches('…'), cut_front(text, end))
}

/// At most `columns` wide, cut at the beginning.
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

/// Padded to `columns` with spaces, by width and not by characters.
pub fn pad(text: &str, columns: usize) -> String {
    format!("{text}{}", " ".repeat(columns.saturating_sub(text.width())))
}

/// `1 message`, `2 messages`.
pub fn count(n: u64, one: &str) -> String {
    if n == 1 { format!("1 {one}") } else { format!("{n} {}", plural(one)) }
}

fn plural(one: &str) -> String {
    match one.strip_suffix("ry") {
        Some(stem) => format!("{stem}ries"),
        None => format!("{one}s"),
    }
}

/// `1 msg`, `2 msgs`.
pub fn messages_in_short(n: u64) -> String {
    if n == 1 { "1 msg".into() } else { format!("{n} msgs") }
}

/// `12.3 MB`.
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

/// `Character / Chat`, or `group / Chat`; of others what they are: `lorebook / Lore`.
pub fn name(timeline: &TimelineName) -> String {
    let folder = match timeline.category() {
        Category::Chat => timeline.folder().unwrap_or_default(),
        Category::GroupChat => "group",
        Category::Settings => return "settings".into(),
        Category::Group => "members of group",
        other => other.word(),
    };
    clean(&format!("{folder} / {}", timeline.chat()))
}

/// How long a state is: `12 messages`, `3 entries`; nothing for what has no such parts.
pub fn length(snapshot: &Snapshot) -> Option<String> {
    match (snapshot.timeline.is_chat(), snapshot.entries) {
        (true, _) => Some(count(snapshot.messages, "message")),
        (false, Some(1)) => Some("1 entry".into()),
        (false, Some(entries)) => Some(format!("{entries} entries")),
        (false, None) => None,
    }
}

/// The subject, if it is the user's own words.
pub fn own_words(snapshot: &Snapshot) -> Option<String> {
    let chat = snapshot.timeline.chat();
    let made = snapshot
        .subject
        .strip_prefix(chat)
        .is_some_and(|rest| rest.starts_with(": ") && rest.contains("message"))
        || !snapshot.timeline.is_chat() && snapshot.subject.starts_with(chat);
    (!made).then(|| clean(&snapshot.subject))
}

/// Where a fork leaves its origin: the number of the last message that both have.
pub fn fork_point(shared: u64) -> String {
    match shared.checked_sub(1) {
        Some(last) => format!("forked after #{last}"),
        None => "forked at the beginning".into(),
    }
}

/// `was called X`, the name at most `room` wide.
pub fn was_called(former: &TimelineName, room: usize) -> String {
    format!("was called {}", cut_middle(&clean(former.chat()), room.max(20)))
}

/// The running recap of a state: `v5 (3 scenes)`.
pub fn recap(state: &CheckpointState) -> String {
    let Some(version) = state.running_recap_version else { return "none".into() };
    let scenes = state.running_recap_scene_count.and_then(|n| u64::try_from(n).ok());
    let scenes = scenes.map(|n| format!(" ({})", count(n, "scene"))).unwrap_or_default();
    format!("v{version}{scenes}")
}

/// What `--chat-closed` says.
pub fn closed(said: bool) -> Closed {
    if said { Closed::Said } else { Closed::Unknown }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_sees_no_live_control_characters() {
        let hostile = "a\u{1b}[31mred\u{7}\u{9b}2J\r\nb\u{202e}c";
        assert_eq!(clean(hostile), "a\\u{1b}[31mred\\u{7}\\u{9b}2J  b\\u{202e}c");
    }

    #[test]
    fn sizes_and_counts() {
        assert_eq!(size(999), "999 bytes");
        assert_eq!(size(1), "1 byte");
        assert_eq!(size(12_345_678), "12.3 MB");
        assert_eq!(size(999_990), "1.0 MB");
        assert_eq!(count(2, "entry"), "2 entries");
        assert_eq!(count(2, "day"), "2 days");
    }

    #[test]
    fn wide_characters_are_counted_as_wide() {
        assert_eq!(cut("雨雨雨雨", 5), "雨雨…");
        assert_eq!(cut_front("雨雨雨雨", 5), "…雨雨");
        assert_eq!(cut_middle("a long name - Branch #1", 16), "a long…ranch #1");
        assert_eq!(pad("雨", 4), "雨  ");
    }

    #[test]
    fn words_for_the_shell() {
        assert_eq!(shell("abc-1"), "abc-1");
        assert_eq!(shell("Tide Office"), "\"Tide Office\"");
        assert_eq!(shell("it's"), "\"it's\"");
        assert_eq!(shell("abc~1"), "\"abc~1\"");
        let both = if cfg!(windows) { "'$ and '''" } else { r"'$ and '\'''" };
        assert_eq!(shell("$ and '"), both);
    }
}
