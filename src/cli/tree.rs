//! One line of `timelines --tree`.

use unicode_width::UnicodeWidthStr;

use super::output::{LOOK, paint};
use super::wording::{clean, count, cut, cut_middle, name, was_called};
use stvc::verbs::timelines::tree::Branch;
use stvc::verbs::timelines::{Timeline, TimelineChange};

/// `├─ after #12  Before the ferry   13 messages, 0 of its own   (deleted)`.
pub fn line(branch: &Branch<'_>, columns: usize) -> String {
    let timeline = branch.timeline;
    let (own_level, above) = match branch.is_last.split_last() {
        Some((true, above)) => ("└─ ", above),
        Some((false, above)) => ("├─ ", above),
        None => ("", &[][..]),
    };
    let mut lines: String =
        above.iter().map(|is_last| if *is_last { "   " } else { "│  " }).collect();
    lines.push_str(own_level);
    let place = match branch
        .below
        .filter(|_| timeline.name.is_chat())
        .map(|(_, shared)| shared.checked_sub(1))
    {
        Some(Some(last)) => format!("after #{last}  "),
        Some(None) => "at the beginning  ".into(),
        None => String::new(),
    };
    let label = match branch.below {
        Some((parent, _)) if parent.name.folder() == timeline.name.folder() => {
            clean(timeline.name.chat())
        }
        _ => name(&timeline.name),
    };
    let mut messages = match (timeline.name.is_chat(), timeline.entries) {
        (true, _) => count(timeline.messages, "message"),
        (false, Some(1)) => "1 entry".to_owned(),
        (false, Some(entries)) => format!("{entries} entries"),
        (false, None) => String::new(),
    };
    if let Some((_, shared)) = branch.below.filter(|_| timeline.name.is_chat()) {
        messages.push_str(&format!(", {} of its own", timeline.messages.saturating_sub(shared)));
    }
    let state = match timeline.change {
        TimelineChange::Unchanged => String::new(),
        other => format!("   ({})", other.as_str()),
    };
    let style = match timeline.change {
        TimelineChange::Deleted => LOOK.warn,
        TimelineChange::Unreadable => LOOK.bad,
        _ => LOOK.good,
    };
    let notes: String = notes(timeline).into_iter().map(|note| format!("   {note}")).collect();
    let around = [lines.as_str(), &place, "   ", &messages, &state, &notes];
    let taken: usize = around.iter().map(|part| part.width()).sum();
    let room = columns.saturating_sub(taken).max(SHORTEST);
    let label = paint(LOOK.name, cut_middle(&label, room));
    let (lines, messages) = (paint(LOOK.dim, lines), paint(LOOK.dim, messages));
    format!("{lines}{place}{label}   {messages}{}{}", paint(style, state), paint(LOOK.tag, notes))
}

/// A name is never cut below this, however deep it stands.
const SHORTEST: usize = 16;

/// So many tags stand beside a timeline's name.
const TAGS: usize = 3;

/// What it was called, and its tags.
pub fn notes(timeline: &Timeline) -> Vec<String> {
    let former = timeline.renamed_from.as_ref().map(|former| was_called(former, 40));
    let mut tags: Vec<_> =
        timeline.tags.iter().take(TAGS).map(|tag| format!("[{}]", cut(&clean(tag), 30))).collect();
    if timeline.tags.len() > TAGS {
        tags.push(format!("and {} more tags", timeline.tags.len() - TAGS));
    }
    former.into_iter().chain(tags).collect()
}
