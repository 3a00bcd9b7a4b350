use clap_complete::engine::ArgValueCompleter;
use unicode_width::UnicodeWidthStr;

use super::args::{date, last_date};
use super::clock::Clock;
use super::complete::timelines;
use super::error::Result;
use super::graph;
use super::output::{LOOK, Out, paint};
use super::wording::{
    clean, count, cut, cut_front, cut_middle, fork_point, length, messages_in_short, name,
    own_words, short, was_called,
};
use stvc::archive::{Kind, Snapshot};
use stvc::engine::Workspace;
use stvc::verbs;
use stvc::verbs::log::{LoggedSnapshot, Options, Report};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Only this timeline
    #[arg(add = ArgValueCompleter::new(timelines), value_name = "TIMELINE")]
    pub timeline: Option<String>,

    /// Every version of this message of the timeline: edits, swipes, hiding, and what it is in other forks
    #[arg(long, value_name = "N", requires = "timeline", conflicts_with_all = ["graph", "since", "until", "all"])]
    pub message: Option<usize>,

    /// Draw the timelines with their fork points
    #[arg(long)]
    pub graph: bool,

    /// Only snapshots taken from then on: 2026-11-01, yesterday, "2 weeks ago"
    #[arg(long, value_name = "DATE", value_parser = date)]
    pub since: Option<i64>,

    /// Only snapshots taken until then; a day counts whole
    #[arg(long, value_name = "DATE", value_parser = last_date)]
    pub until: Option<i64>,

    /// In a long graph, show every snapshot: nothing is folded
    #[arg(long)]
    pub all: bool,

    /// At most this many
    #[arg(short = 'n', long = "limit", value_name = "N")]
    pub limit: Option<usize>,
}

pub fn run(args: &Args, workspace: &Workspace, out: &mut Out) -> Result<u8> {
    let options = Options {
        timeline: args.timeline.clone(),
        since: args.since,
        until: args.until,
        limit: args.limit,
    };
    let report = verbs::log::log(workspace, &options)?;
    Ok(out.answer(&report, |out| tell(args, &report, out)))
}

fn tell(args: &Args, report: &Report, out: &mut Out) {
    let clock = out.clock;
    if args.graph {
        let text = draw(args, &report.entries, clock, out.columns());
        if !text.is_empty() {
            out.line(text.trim_end_matches('\n'));
        }
    } else {
        list(&report.entries, clock, out);
    }
    if report.total == 0 && args.since.or(args.until).is_some() {
        out.say("No snapshot was taken then.");
    } else if report.total == 0 {
        out.say("There are no snapshots yet. `stvc snapshot` takes the first ones.");
    } else if report.entries.len() < report.total {
        out.say(paint(LOOK.dim, format!("… and {} more", report.total - report.entries.len())));
    }
    out.broken(&report.broken);
}

/// Above so many rows, what is linear is folded.
const FOLD_ABOVE: usize = 40;

fn draw(args: &Args, entries: &[LoggedSnapshot], clock: Clock, columns: usize) -> String {
    let everything = args.all || args.timeline.is_some() || args.limit.is_some();
    // A change of the lorebook alone has no place among the chat's commits; the list has it.
    let entries: Vec<_> = entries.iter().filter(|entry| entry.chat.is_none()).collect();
    let is_folded = !everything && entries.len() > FOLD_ABOVE;
    let rows = if is_folded { graph::folded(&entries) } else { graph::unfolded(&entries) };
    let room = |taken: usize| columns.saturating_sub(taken + 1).max(20);
    let words = |row: &[&LoggedSnapshot], taken: usize| match row {
        // In a long graph only the end of each timeline is quoted.
        [entry] if is_folded && !entry.is_head && own_words(&entry.snapshot).is_none() => {
            head_line(entry, clock, room(taken))
        }
        [entry] => words(entry, clock, room(taken)),
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

fn list(entries: &[LoggedSnapshot], clock: Clock, out: &mut Out) {
    let room = out.columns() - 4;
    for entry in entries {
        let words = words(entry, clock, room);
        let indented =
            |(n, line): (usize, &str)| if n == 0 { line.to_owned() } else { format!("    {line}") };
        out.record(&words.lines().enumerate().map(indented).collect::<Vec<_>>());
    }
}

/// `… 14 snapshots, 12 → 30 messages`.
fn fold_line(snapshots: usize, oldest: &Snapshot, newest: &Snapshot) -> String {
    let messages = if oldest.messages == newest.messages {
        count(newest.messages, "message")
    } else {
        format!("{} → {}", oldest.messages, count(newest.messages, "message"))
    };
    paint(LOOK.dim, format!("… {}, {messages}", count(snapshots as u64, "snapshot")))
}

fn words(entry: &LoggedSnapshot, clock: Clock, room: usize) -> String {
    let said = last_line(entry, room);
    let head = head_line(entry, clock, room);
    if said.is_empty() { head } else { format!("{head}\n{said}") }
}

/// A name is not cut below this for the sake of facts that can be said in fewer words.
const NAME: usize = 28;

/// Id, chat, messages, date, what became of it, tags.
fn head_line(entry: &LoggedSnapshot, clock: Clock, room: usize) -> String {
    let snapshot = &entry.snapshot;
    let mut marks = Vec::new();
    marks.extend(entry.is_deleted.then(|| paint(LOOK.warn, "deleted")));
    marks.extend(entry.is_damaged.then(|| paint(LOOK.bad, "damaged")));
    let mark: String = marks.iter().map(|mark| format!(", {mark}")).collect();
    let tags: Vec<_> = entry.tags.iter().map(|tag| clean(tag)).collect();
    let tag_room: usize = tags.iter().map(|tag| tag.width() + 3).sum();
    // The id, and what stands between.
    let room = room.saturating_sub(marks.len() * ", damaged".len() + tag_room + 13);
    let label = name(&snapshot.timeline);
    let mut facts = facts(entry, clock, room / 3, false);
    if room.saturating_sub(facts.width()) < label.width().min(NAME) {
        facts = self::facts(entry, clock, room / 3, true);
    }
    let label = cut_middle(&label, room.saturating_sub(facts.width()).max(12));
    let label = if entry.is_head { paint(LOOK.name, label) } else { label };
    let tags: String =
        tags.iter().map(|tag| format!(" {}", paint(LOOK.tag, format!("[{tag}]")))).collect();
    let id = paint(LOOK.id, short(snapshot.id));
    format!("{id} {label}  {}{mark}{tags}", paint(LOOK.dim, facts))
}

fn facts(entry: &LoggedSnapshot, clock: Clock, room: usize, brief: bool) -> String {
    let snapshot = &entry.snapshot;
    let facts = if brief {
        let messages = snapshot.timeline.is_chat().then_some(snapshot.messages);
        let length = messages.map(messages_in_short).or_else(|| length(snapshot));
        [length, Some(clock.day(snapshot.time))]
    } else {
        [length(snapshot), Some(clock.date(snapshot.time))]
    };
    let mut facts: Vec<_> = facts.into_iter().flatten().collect();
    let fork = snapshot.fork_at.map(|shared| {
        if snapshot.timeline.is_chat() { fork_point(shared) } else { "a copy".into() }
    });
    facts.extend(fork.map(|fork| if brief { fork.replace("forked ", "") } else { fork }));
    // Of a deleted one the mark says it, or it came back.
    if ![Kind::SNAPSHOT, Kind::DELETED].contains(&snapshot.kind) {
        facts.push(clean(snapshot.kind.as_str()));
    }
    facts.extend(entry.lorebook_only.then(|| "lorebook only".to_owned()));
    facts.extend(snapshot.renamed_from.as_ref().map(|from| was_called(from, room)));
    facts.join(", ")
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
