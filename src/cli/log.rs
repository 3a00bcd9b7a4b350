use unicode_width::UnicodeWidthStr;

use super::error::Result;
use super::output::{LOOK, Out, paint};
use super::wording::{
    age, clean, count, cut, cut_front, cut_middle, fork_point, name, own_words, short, was_called,
};
use super::{args, exit, graph};
use stvc::archive::Snapshot;
use stvc::engine::Workspace;
use stvc::lines::{Counts, SnapshotLine};
use stvc::verbs;
use stvc::verbs::log::{LoggedSnapshot, Options};

pub fn run(args: &args::Log, workspace: &Workspace, out: &mut Out) -> Result<u8> {
    let options = Options { timeline: args.timeline.clone(), limit: args.limit };
    let report = verbs::log::log(workspace, &options)?;
    for entry in &report.entries {
        out.object(SnapshotLine::new(&entry.snapshot, &entry.tags));
    }
    if !out.is_json() {
        let text = if args.graph {
            draw(args, &report.entries, workspace, out.columns())
        } else {
            list(&report.entries, workspace, out.columns() - 4)
        };
        if !text.is_empty() {
            out.line(text.trim_end_matches('\n'));
        }
    }
    if report.entries.is_empty() {
        out.say("There are no snapshots yet. `stvc snapshot` takes the first ones.");
    } else if report.entries.len() < report.total {
        out.say(paint(LOOK.dim, format!("… and {} more", report.total - report.entries.len())));
    }
    for broken in &report.broken {
        out.error_line(&format!("{}: {}", paint(LOOK.bad, "error"), clean(broken)));
    }
    out.summary(
        "log",
        report.broken.is_empty(),
        Counts::Log { snapshots: report.entries.len(), total: report.total },
    );
    Ok(if report.broken.is_empty() { exit::DONE } else { exit::PARTLY })
}

/// Above so many rows, what is linear is folded.
const FOLD_ABOVE: usize = 40;

fn draw(
    args: &args::Log,
    entries: &[LoggedSnapshot],
    workspace: &Workspace,
    columns: usize,
) -> String {
    let everything = args.all || args.timeline.is_some() || args.limit.is_some();
    let is_folded = !everything && entries.len() > FOLD_ABOVE;
    let rows = if is_folded { graph::folded(entries) } else { graph::unfolded(entries) };
    let room = |taken: usize| columns.saturating_sub(taken + 1).max(40);
    let words = |row: &[&LoggedSnapshot], taken: usize| match row {
        // In a long graph only the end of each timeline is quoted.
        [entry] if is_folded && !entry.is_head && own_words(&entry.snapshot).is_none() => {
            head_line(entry, workspace, room(taken))
        }
        [entry] => words(entry, workspace, room(taken)),
        [newest, .., oldest] => fold_line(row.len(), &oldest.snapshot, &newest.snapshot),
        [] => String::new(),
    };
    let mut text = String::new();
    graph::draw(&rows, words, |line| {
        text.push_str(line);
        text.push('\n');
    });
    text
}

fn list(entries: &[LoggedSnapshot], workspace: &Workspace, room: usize) -> String {
    let mut text = String::new();
    for entry in entries {
        for (n, line) in words(entry, workspace, room).lines().enumerate() {
            text.push_str(if n == 0 { "" } else { "    " });
            text.push_str(line);
            text.push('\n');
        }
    }
    text
}

/// `… 14 snapshots, 12 → 30 messages`.
fn fold_line(snapshots: usize, oldest: &Snapshot, newest: &Snapshot) -> String {
    let messages = match oldest.messages == newest.messages {
        true => count(newest.messages, "message"),
        false => format!("{} → {}", oldest.messages, count(newest.messages, "message")),
    };
    paint(LOOK.dim, format!("… {}, {messages}", count(snapshots as u64, "snapshot")))
}

fn words(entry: &LoggedSnapshot, workspace: &Workspace, room: usize) -> String {
    let said = last_line(entry, room);
    let head = head_line(entry, workspace, room);
    if said.is_empty() { head } else { format!("{head}\n{said}") }
}

/// Id, chat, messages, age, what became of it, tags.
fn head_line(entry: &LoggedSnapshot, workspace: &Workspace, room: usize) -> String {
    let snapshot = &entry.snapshot;
    let mut facts = vec![count(snapshot.messages, "message"), age(snapshot.time, workspace.now)];
    facts.extend(snapshot.fork_at.map(fork_point));
    if !matches!(snapshot.kind.as_str(), "snapshot") {
        facts.push(clean(snapshot.kind.as_str()));
    }
    facts.extend(entry.snapshot.renamed_from.as_ref().map(|from| was_called(from, room / 3)));
    let deleted = if entry.is_deleted { "deleted" } else { "" };
    let facts = facts.join(", ");
    let tags: Vec<_> = entry.tags.iter().map(|tag| clean(tag)).collect();
    let tag_room: usize = tags.iter().map(|tag| tag.chars().count() + 3).sum();
    let label = cut_middle(
        &name(&snapshot.timeline),
        room.saturating_sub(facts.width() + deleted.len() + tag_room + 15).max(20),
    );
    let label = if entry.is_head { paint(LOOK.name, label) } else { label };
    let tags: String =
        tags.iter().map(|tag| format!(" {}", paint(LOOK.tag, format!("[{tag}]")))).collect();
    let mark =
        if entry.is_deleted { format!(", {}", paint(LOOK.warn, deleted)) } else { String::new() };
    let id = paint(LOOK.id, short(snapshot.id));
    format!("{id} {label}  {}{mark}{tags}", paint(LOOK.dim, facts))
}

/// The user's words if there are any, else the end of the last message.
fn last_line(entry: &LoggedSnapshot, room: usize) -> String {
    match (own_words(&entry.snapshot), &entry.snapshot.last_words) {
        (Some(words), _) => cut(&words, room.min(90)),
        (None, Some(words)) => paint(LOOK.dim, spoken(&clean(words), room.min(90))),
        (None, None) => String::new(),
    }
}

/// `Speaker: …end` cut at the front of what was said, so that the speaker and the last words stay.
fn spoken(words: &str, room: usize) -> String {
    match words.split_once(": ") {
        Some((speaker, said)) if speaker.chars().count() < 30 => {
            let room = room.saturating_sub(speaker.chars().count() + 2);
            format!("{speaker}: {}", cut_front(said, room))
        }
        _ => cut_front(words, room),
    }
}
