use clap_complete::engine::ArgValueCompleter;
use unicode_width::UnicodeWidthStr;

use super::args::{date, last_date};
use super::clock::Clock;
use super::complete::timelines;
use super::diff::{Page, message_lines};
use super::error::Result;
use super::graph;
use super::output::{Output, STYLES, bold, dim, paint, short_id};
use super::wording::{
    clean, count, cut, cut_front, cut_middle, fork_point, length, messages_in_short, name,
    own_words, short, was_called,
};
use stvc::snapshots::{Kind, Snapshot};
use stvc::verbs::log::{LoggedSnapshot, Options, Report};
use stvc::verbs::message_versions::{self, MessageElsewhere, Version};
use stvc::{Workspace, library, verbs};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// List only the snapshots of this timeline, or of all chats with this character
    #[arg(add = ArgValueCompleter::new(timelines), value_name = "TIMELINE")]
    pub timeline: Option<String>,

    /// List every version of message N: edits, swipes, hiding, and its text in forks
    #[arg(long, value_name = "N", requires = "timeline", conflicts_with_all = ["graph", "since", "until", "all"])]
    pub message: Option<usize>,

    /// Draw a graph of the timelines and their fork points
    #[arg(long)]
    pub graph: bool,

    /// List only snapshots created since DATE: 2026-11-01, yesterday, "2 weeks ago"
    #[arg(long, value_name = "DATE", value_parser = date)]
    pub since: Option<i64>,

    /// List only snapshots created up to and including DATE
    #[arg(long, value_name = "DATE", value_parser = last_date)]
    pub until: Option<i64>,

    /// Show every snapshot in a long graph instead of folding them
    #[arg(long)]
    pub all: bool,

    /// Show at most N snapshots, or N versions with --message
    #[arg(short = 'n', long = "limit", value_name = "N")]
    pub limit: Option<usize>,
}

pub fn run(args: &Args, workspace: &Workspace, out: &mut Output) -> Result<u8> {
    if let Some(message) = args.message {
        let timeline = args.timeline.clone().unwrap_or_default();
        let options = message_versions::Options { timeline, message, limit: args.limit };
        let report = message_versions::message_versions(workspace, &options)?;
        return Ok(out.answer(&report, |out| print_versions(&report, out)));
    }
    let options = Options {
        timeline: args.timeline.clone(),
        since: args.since,
        until: args.until,
        limit: args.limit,
    };
    let report = verbs::log::log(workspace, &options)?;
    Ok(out.answer(&report, |out| print(args, &report, out)))
}

fn print(args: &Args, report: &Report, out: &mut Output) {
    let clock = out.clock;
    if args.graph {
        let lines = draw(args, &report.entries, clock, out.columns());
        lines.iter().for_each(|line| out.line(line));
    } else {
        list(&report.entries, clock, out);
    }
    if report.total == 0 && args.since.or(args.until).is_some() {
        out.say("There are no snapshots from that time.");
    } else if report.total == 0 {
        out.say("There are no snapshots yet. Run `stvc snapshot` to create the first.");
    } else if report.entries.len() < report.total {
        out.say(dim(format!("… and {} more", report.total - report.entries.len())));
    }
    out.broken(&report.broken);
}

/// The number of snapshots above which a graph is folded.
const FOLD_ABOVE: usize = 40;

fn draw(args: &Args, entries: &[LoggedSnapshot], clock: Clock, columns: usize) -> Vec<String> {
    let everything = args.all || args.timeline.is_some() || args.limit.is_some();
    // A snapshot of only the lorebook is not a commit of the chat, so the graph does not show it.
    let entries: Vec<_> = entries.iter().filter(|entry| entry.chat.is_none()).collect();
    let is_folded = !everything && entries.len() > FOLD_ABOVE;
    let rows = if is_folded { graph::folded(&entries) } else { graph::unfolded(&entries) };
    let room = |taken: usize| columns.saturating_sub(taken + 1).max(20);
    let words = |row: &[&LoggedSnapshot], taken: usize| match row {
        // A folded graph quotes only the last message of each timeline.
        [entry] if is_folded && !entry.is_head && own_words(&entry.snapshot).is_none() => {
            head_line(entry, clock, room(taken))
        }
        [entry] => words(entry, clock, room(taken)),
        [newest, .., oldest] => fold_line(row.len(), &oldest.snapshot, &newest.snapshot),
        [] => String::new(),
    };
    let mut lines = Vec::new();
    graph::draw(&rows, words, |line| lines.push(line.to_owned()));
    lines
}

fn list(entries: &[LoggedSnapshot], clock: Clock, out: &mut Output) {
    let room = out.columns() - 4;
    for entry in entries {
        let words = words(entry, clock, room);
        let indented =
            |(n, line): (usize, &str)| if n == 0 { line.to_owned() } else { format!("    {line}") };
        out.record(&words.lines().enumerate().map(indented).collect::<Vec<_>>());
    }
}

/// Returns the text of a folded run: `… 14 snapshots, 12 → 30 messages`.
fn fold_line(snapshots: usize, oldest: &Snapshot, newest: &Snapshot) -> String {
    let messages = if oldest.messages == newest.messages {
        count(newest.messages, "message")
    } else {
        format!("{} → {}", oldest.messages, count(newest.messages, "message"))
    };
    dim(format!("… {}, {messages}", count(snapshots, "snapshot")))
}

fn words(entry: &LoggedSnapshot, clock: Clock, room: usize) -> String {
    let said = last_line(entry, room);
    let head = head_line(entry, clock, room);
    if said.is_empty() { head } else { format!("{head}\n{said}") }
}

/// The width in columns up to which a name is not shortened. The facts are abbreviated first.
const NAME: usize = 28;

fn head_line(entry: &LoggedSnapshot, clock: Clock, room: usize) -> String {
    let snapshot = &entry.snapshot;
    let mut marks = Vec::new();
    marks.extend(entry.is_deleted.then(|| paint(STYLES.warn, "deleted")));
    marks.extend(entry.is_damaged.then(|| paint(STYLES.bad, "damaged")));
    let mark: String = marks.iter().map(|mark| format!(", {mark}")).collect();
    let tags: Vec<_> = entry.tags.iter().map(|tag| clean(tag)).collect();
    let tag_room: usize = tags.iter().map(|tag| tag.width() + 3).sum();
    // The id and the spaces need 13 columns.
    let room = room.saturating_sub(marks.len() * ", damaged".len() + tag_room + 13);
    let label = name(&snapshot.timeline);
    let mut facts = facts(entry, clock, room / 3, Length::Full);
    if room.saturating_sub(facts.width()) < label.width().min(NAME) {
        facts = self::facts(entry, clock, room / 3, Length::Brief);
    }
    let label = cut_middle(&label, room.saturating_sub(facts.width()).max(12));
    let label = if entry.is_head { bold(label) } else { label };
    let tags: String =
        tags.iter().map(|tag| format!(" {}", paint(STYLES.tag, format!("[{tag}]")))).collect();
    let id = short_id(snapshot.id);
    format!("{id} {label}  {}{mark}{tags}", dim(facts))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Length {
    Full,
    Brief,
}

fn facts(entry: &LoggedSnapshot, clock: Clock, room: usize, wanted: Length) -> String {
    let snapshot = &entry.snapshot;
    let brief = wanted == Length::Brief;
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
    // A deletion is not listed here, because the label `deleted` shows it while the timeline is
    // deleted.
    if ![Kind::SNAPSHOT, Kind::DELETED].contains(&snapshot.kind) {
        facts.push(clean(snapshot.kind.as_str()));
    }
    facts.extend(entry.lorebook_only.then(|| "lorebook only".to_owned()));
    facts.extend(snapshot.renamed_from.as_ref().map(|from| was_called(from, room)));
    facts.join(", ")
}

fn last_line(entry: &LoggedSnapshot, room: usize) -> String {
    match (own_words(&entry.snapshot), &entry.snapshot.last_words) {
        (Some(words), _) => cut(&words, room.min(90)),
        (None, Some(words)) => dim(spoken(&clean(words), room.min(90))),
        (None, None) => String::new(),
    }
}

/// Shortens `Speaker: text` to `room` columns. Keeps the speaker and the end of the text.
fn spoken(words: &str, room: usize) -> String {
    match words.split_once(": ") {
        Some((speaker, said)) if speaker.chars().count() < 30 => {
            let room = room.saturating_sub(speaker.chars().count() + 2);
            format!("{speaker}: {}", cut_front(said, room))
        }
        _ => cut_front(words, room),
    }
}

fn print_versions(report: &message_versions::Report, out: &mut Output) {
    let message = report.message;
    let page = Page::of(out, 8);
    let gone = if report.is_there {
        String::new()
    } else {
        format!(", no longer in the chat; last in snapshot {}", short(report.last.id))
    };
    let facts = format!("{}{gone}", count(report.total, "version"));
    let label = format!("{} #{message}", cut_middle(&name(&report.timeline), 60));
    out.line(format!("{}  {}", bold(label), dim(facts)));
    for version in &report.versions {
        print_version(version, report, page, out);
    }
    if report.versions.len() < report.total {
        let more = report.total - report.versions.len();
        out.say(dim(format!("… and {more} more; use -n N to show more")));
    }
    if !report.elsewhere.is_empty() {
        out.line("");
        out.line("In related timelines:");
    }
    for other in &report.elsewhere {
        let label = bold(cut_middle(&name(&other.timeline), 50));
        out.record(&[
            format!("  {label}"),
            format!("      {}", state_in_other_timeline(other, page)),
        ]);
    }
    if let Some(version) = report.versions.get(1) {
        let whole =
            format!("stvc show {} --message {}", short(version.snapshot.id), version.after.0);
        out.say("");
        out.say(format!("Run `{whole}` to print the previous version."));
    } else if !report.is_there {
        let whole = format!("stvc show {} --message {message}", short(report.last.id));
        out.say("");
        out.say(format!("Run `{whole}` to print it."));
    }
    out.broken(&report.broken);
}

fn print_version(
    version: &Version,
    report: &message_versions::Report,
    page: Page,
    out: &mut Output,
) {
    out.line("");
    let snapshot = &version.snapshot;
    let id = short_id(snapshot.id);
    let when = dim(out.clock.date(snapshot.time));
    // The timeline is named if it had another name, or was the parent, when the snapshot was
    // created.
    let label = if snapshot.timeline == report.timeline {
        String::new()
    } else {
        format!("  {}", cut_middle(&name(&snapshot.timeline), page.room.saturating_sub(30)))
    };
    out.line(format!("{id} {when}{label}"));
    if version.is_again {
        out.line("  added again");
    }
    match version.change() {
        Some(change) => message_lines(&change, page).iter().for_each(|line| out.line(line)),
        None if version.after.1.is_none() => {
            out.line(paint(STYLES.bad, "  this version cannot be read"));
        }
        None => out.line(paint(STYLES.bad, "  the previous version cannot be read")),
    }
}

fn state_in_other_timeline(other: &MessageElsewhere, page: Page) -> String {
    let Some((number, text)) = &other.now else { return dim("deleted there") };
    let at = format!("#{number}");
    match &other.same_as {
        _ if other.is_same => dim(format!("{at} identical")),
        Some(version) => dim(format!("{at} as in snapshot {}", short(version.id))),
        None => {
            let said = text.as_deref().and_then(library::text_of).map(|message| message.text);
            format!("{} {}", dim(at), page.gist(&said.unwrap_or_default(), 10))
        }
    }
}
