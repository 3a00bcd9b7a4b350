//! Prints changed messages. Messages with the same change share one line.

use std::cmp::Ordering;

use super::text::Page;
use super::{Line, SAME};
use crate::cli::output::dim;
use crate::cli::wording::{clean, count, cut};
use stvc::changes::{Change, ChangeKind, Field, MessagePlace};
use stvc::library::{self, Message, Raw};
use stvc::recaps::{self, Scene};

pub fn lines(changes: &[&Change<'_>], page: Page) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    // Lines that several messages may share: the index of the line, its description, and the
    // numbers of the messages.
    let mut folds: Vec<(usize, String, Vec<usize>)> = Vec::new();
    let mut last_move: Option<(usize, usize)> = None;
    for change in changes {
        let MessagePlace::Message(number) = change.place else { continue };
        let from = match change.from {
            Some(MessagePlace::Message(from)) => from,
            _ => number,
        };
        if change.is_only(ChangeKind::Moved) {
            let goes_on = last_move == Some((number.wrapping_sub(1), from.wrapping_sub(1)));
            last_move = Some((number, from));
            if goes_on && let Some((_, _, numbers)) = folds.last_mut() {
                numbers.push(number);
                continue;
            }
            folds.push((lines.len(), format!("moved from {from}"), vec![number]));
            lines.push(line(change, number, from, page));
            continue;
        }
        if let Some(note) = foldable(change) {
            if let Some((_, _, numbers)) = folds.iter_mut().find(|(_, said, _)| *said == note) {
                numbers.push(number);
                continue;
            }
            folds.push((lines.len(), note, vec![number]));
        }
        lines.push(line(change, number, from, page));
    }
    for (at, note, numbers) in folds.into_iter().filter(|(_, _, numbers)| numbers.len() > 1) {
        let many = count(numbers.len(), "message");
        lines[at].label = ranges(&numbers);
        lines[at].text = match note.strip_prefix("moved from ").and_then(|from| from.parse().ok()) {
            Some::<usize>(from) => {
                let from: Vec<_> = (from..from + numbers.len()).collect();
                format!("moved here from {}", ranges(&from))
            }
            None => format!("{} {}", clean(&note), dim(format!("({many})"))),
        };
        lines[at].more.clear();
    }
    lines
}

/// Returns ranges of numbers: `#3–#17, #19`.
fn ranges(numbers: &[usize]) -> String {
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for number in numbers {
        match runs.last_mut() {
            Some((_, end)) if *end + 1 == *number => *end = *number,
            _ => runs.push((*number, *number)),
        }
    }
    let run = |(start, end): &(usize, usize)| {
        if start == end { format!("#{start}") } else { format!("#{start}–#{end}") }
    };
    let shown: Vec<_> = runs.iter().take(6).map(run).collect();
    let rest = if runs.len() > 6 { ", …" } else { "" };
    format!("{}{rest}", shown.join(", "))
}

fn line(change: &Change<'_>, number: usize, from: usize, page: Page) -> Line {
    let mut line = Line::of(change.kind(), format!("#{number}"));
    let (before, after) = (change.before.map(SpokenText::of), change.after.map(SpokenText::of));
    let (said, was) = match (after, before) {
        (Some(after), before) => (after, before),
        (None, Some(before)) => (before, None),
        (None, None) => return line,
    };
    let speaker = cut(&clean(&said.name), 30);
    let speaker = if speaker.is_empty() { speaker } else { format!("{speaker}: ") };
    let mut notes = notes(change);
    if change.kinds.contains(&ChangeKind::Moved) {
        notes.insert(0, format!("moved here from #{from}"));
    }
    let edited =
        was.filter(|was| was.text != said.text && change.kinds.contains(&ChangeKind::Edited));
    if let Some(was) = edited {
        line.text = format!("{speaker}{}", page.edit(&was.text, &said.text));
        line.more = notes.iter().map(|note| clean(note)).collect();
        return line;
    }
    let notes = clean(&notes.join("; "));
    line.text = if notes.is_empty() {
        format!("{speaker}{}", page.excerpt(&said.text))
    } else {
        // The text did not change. It is shown only to identify the message.
        let used = speaker.chars().count() + notes.chars().count() + 2;
        let gist = format!("{speaker}{}", page.gist(&said.text, used));
        format!("{notes}  {}", dim(gist))
    };
    line
}

struct SpokenText {
    name: String,
    text: String,
}

impl SpokenText {
    fn of(line: &[u8]) -> Self {
        let (name, text) = match library::text_of(line) {
            Some(message) => (message.name, message.text),
            None if line.trim_ascii().is_empty() => (String::new(), "(blank line)".into()),
            None => (String::new(), String::from_utf8_lossy(line).into_owned()),
        };
        Self { name, text }
    }
}

/// Returns the description of a change if several messages can share it. A change is not shared if
/// its description quotes the text of its message.
fn foldable(change: &Change<'_>) -> Option<String> {
    let many = |kind: &ChangeKind| {
        use ChangeKind::{Edited, Hidden, Recap, Rewritten, Shown};
        matches!(kind, Hidden | Shown | Edited | Rewritten | Recap)
    };
    let own = |field: &Field<'_>| {
        field.kind == ChangeKind::Edited && (field.is(&["mes"]) || field.is(&["name"]))
    };
    let recaps = || recap_note(change).is_some_and(|note| !note.starts_with(MARKS));
    if !change.kinds.iter().all(many)
        || change.fields.iter().any(own)
        || (change.kinds.contains(&ChangeKind::Recap) && recaps())
        || (change.fields.is_empty() && !change.is_only(ChangeKind::Rewritten))
    {
        return None;
    }
    Some(notes(change).join("; "))
}

fn notes(change: &Change<'_>) -> Vec<String> {
    let mut notes = Vec::new();
    for kind in &change.kinds {
        notes.extend(match kind {
            ChangeKind::Hidden => Some("hidden".into()),
            ChangeKind::Shown => Some("shown again".into()),
            ChangeKind::Swipe => swipe_note(change),
            ChangeKind::Recap => recap_note(change),
            ChangeKind::Link => link_note(change),
            ChangeKind::Rewritten => Some(SAME.into()),
            ChangeKind::Edited => edit_note(change),
            _ => None,
        });
    }
    // Descriptions of ST-Auto-Recap's marks come last.
    notes.sort_by_key(|note: &String| note.starts_with(MARKS));
    notes
}

/// Describes the edited fields, except the text of the message and the copy of the text among the
/// swipes.
fn edit_note(change: &Change<'_>) -> Option<String> {
    if change.fields.is_empty() {
        return Some("not valid JSON".into());
    }
    let fields = change.fields.iter().filter(|field| field.kind == ChangeKind::Edited);
    let fields = fields.filter(|field| !field.is(&["mes"]) && !field.is_in(&["swipes"]));
    let mut notes = Vec::new();
    let mut others = Vec::new();
    for field in fields {
        match (field.before.and_then(|v| v.string()), field.after.and_then(|v| v.string())) {
            (Some(before), Some(after)) if field.is(&["name"]) => {
                notes.push(format!("speaker {before} → {after}"));
            }
            _ => others.push(stvc::changes::joined(&field.path)),
        }
    }
    if !others.is_empty() {
        notes.push(format!("changed: {}", cut(&others.join(", "), 60)));
    }
    (!notes.is_empty()).then(|| notes.join("; "))
}

fn messages<'a>(change: &Change<'a>) -> Option<(Message<'a>, Message<'a>)> {
    Some((Message::read(change.before?)?, Message::read(change.after?)?))
}

/// Returns `2 swipes added` or `1 swipe removed`, or `None` if the numbers are equal.
fn more_or_less(had: usize, has: usize, what: &str) -> Option<String> {
    match has.cmp(&had) {
        Ordering::Greater => Some(format!("{} added", count(has - had, what))),
        Ordering::Less => Some(format!("{} removed", count(had - has, what))),
        Ordering::Equal => None,
    }
}

fn swipe_note(change: &Change<'_>) -> Option<String> {
    let (old, new) = messages(change)?;
    let many = |message: &Message<'_>| message.swipes().map_or(1, |swipes| swipes.len().max(1));
    let (had, has) = (many(&old), many(&new));
    let mut notes = Vec::new();
    notes.extend(more_or_less(had, has, "swipe"));
    let (was, is) = (old.swipe_id().unwrap_or(0), new.swipe_id().unwrap_or(0));
    if was == is && has > had {
        let last = new.swipes().and_then(|swipes| swipes.last()?.string());
        notes.extend(last.map(|text| cut(text.trim(), 40)));
        notes = vec![notes.join(": ")];
    } else if was != is {
        notes.push(format!("swipe {} of {has} selected, was {}", is + 1, was + 1));
    }
    Some(if notes.is_empty() { "swipes changed".into() } else { notes.join(", ") })
}

/// The prefix of descriptions of changes to ST-Auto-Recap's marks, if the recap itself did not
/// change.
const MARKS: &str = "recap marks";

fn recap_note(change: &Change<'_>) -> Option<String> {
    let (old, new) = (recaps::scene(change.before?), recaps::scene(change.after?));
    let versions =
        |scene: &Option<Scene<'_>>| scene.and_then(|scene| scene.version_count()).unwrap_or(0);
    let mut notes = Vec::new();
    let (had, has) = (versions(&old), versions(&new));
    let versions = more_or_less(had, has, "recap version");
    notes.extend(versions.map(|versions| format!("{versions} (now {has})")));
    let chosen = |scene: Option<Scene<'_>>| scene.and_then(|scene| scene.chosen());
    if let (Some(was), Some(is)) = (chosen(old), chosen(new))
        && was != is
    {
        notes.push(format!("recap version {is} selected, was {was}"));
    }
    let recap = |scene: Option<Scene<'_>>| scene.and_then(|scene| scene.recap());
    if notes.is_empty() && recap(old) != recap(new) {
        notes.push("recap changed".into());
    }
    let on = |scene: Option<Scene<'_>>| scene.is_some_and(|scene| scene.is_break());
    match (on(old), on(new)) {
        (false, true) => notes.push("scene break set".into()),
        (true, false) => notes.push("scene break removed".into()),
        _ => {}
    }
    if notes.is_empty() {
        return Some(marks(change));
    }
    Some(notes.join(", "))
}

fn marks(change: &Change<'_>) -> String {
    let names = change.fields.iter().filter(|field| field.kind == ChangeKind::Recap);
    let mut names: Vec<_> = names
        .flat_map(|field| {
            let name = stvc::changes::joined(&field.path);
            let name = name.rsplit_once(recaps::MEMORY).map(|(_, name)| name.to_owned());
            let name = name.unwrap_or_default().trim_start_matches('.').to_owned();
            if !name.is_empty() {
                return vec![name];
            }
            let all = field.after.or(field.before).and_then(|value| value.members());
            all.unwrap_or_default().iter().map(|member| member.key.to_string_lossy()).collect()
        })
        .collect();
    names.dedup();
    cut(&format!("{MARKS}: {}", names.join(", ")), 80)
}

fn link_note(change: &Change<'_>) -> Option<String> {
    let (old, new) = messages(change)?;
    let link = |message: &Message<'_>| {
        message.extra()?.get("bookmark_link").filter(|link| link.truthy())?.string()
    };
    let branches = |message: &Message<'_>| {
        let branches = message.extra().and_then(|extra: Raw<'_>| extra.get("branches")?.items());
        branches.map_or(0, |branches| branches.len())
    };
    Some(match (link(&old), link(&new)) {
        (was, Some(is)) if was.as_ref() != Some(&is) => format!("linked to the checkpoint {is}"),
        (Some(was), None) => format!("no longer linked to the checkpoint {was}"),
        _ if branches(&old) != branches(&new) => "branches changed".into(),
        _ => "links changed".into(),
    })
}
