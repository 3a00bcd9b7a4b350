use serde_json::json;

use super::args;
use super::graph;
use super::json::SnapshotLine;
use super::output::{LOOK, Out, paint};
use super::words::{
    age, clean, count, cut, cut_front, cut_middle, fork_point, name, own_words, short,
};
use crate::ops::log::{Entry, Options};
use crate::ops::{self, Workspace};

pub fn run(args: &args::Log, workspace: &Workspace, out: &mut Out) -> ops::Result<u8> {
    let options = Options { timeline: args.timeline.clone(), limit: args.limit };
    let report = ops::log::log(workspace, &options)?;
    for entry in &report.entries {
        out.object(&SnapshotLine::new(&entry.snapshot, &entry.tags));
    }
    let columns = out.columns();
    let words = |entry: &Entry, room: usize| {
        let said = last_line(entry, room);
        let head = head_line(entry, workspace, room);
        if said.is_empty() { head } else { format!("{head}\n{said}") }
    };
    if args.graph {
        graph::draw(
            &report.entries,
            |entry| words(entry, columns.saturating_sub(6)),
            |text| out.line(text),
        );
    } else {
        for entry in &report.entries {
            for (n, text) in words(entry, columns - 4).lines().enumerate() {
                out.line(if n == 0 { text.to_owned() } else { format!("    {text}") });
            }
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
        json!({ "snapshots": report.entries.len(), "total": report.total }),
    );
    Ok(if report.broken.is_empty() { super::DONE } else { super::PARTLY })
}

/// Id, chat, messages, age, tags.
fn head_line(entry: &Entry, workspace: &Workspace, room: usize) -> String {
    let snapshot = &entry.snapshot;
    let mut facts = vec![count(snapshot.messages, "message"), age(snapshot.time, workspace.now)];
    facts.extend(snapshot.fork_at.map(fork_point));
    if !matches!(snapshot.kind.as_str(), "snapshot") {
        facts.push(clean(snapshot.kind.as_str()));
    }
    let facts = facts.join(", ");
    let tags: Vec<_> = entry.tags.iter().map(|tag| clean(tag)).collect();
    let tag_room: usize = tags.iter().map(|tag| tag.chars().count() + 3).sum();
    let label = cut_middle(
        &name(&snapshot.timeline),
        room.saturating_sub(facts.len() + tag_room + 13).max(20),
    );
    let label = if entry.is_head { paint(LOOK.name, label) } else { label };
    let tags: String =
        tags.iter().map(|tag| format!(" {}", paint(LOOK.tag, format!("[{tag}]")))).collect();
    format!("{} {label}  {}{tags}", paint(LOOK.id, short(snapshot.id)), paint(LOOK.dim, facts))
}

/// The user's words if there are any, else the end of the last message.
fn last_line(entry: &Entry, room: usize) -> String {
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
