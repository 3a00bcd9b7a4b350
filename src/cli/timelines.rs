//! `timelines` and `status`: all timelines, or those that changed.

use std::cmp::{Ordering, Reverse};
use std::collections::HashSet;

use clap::ValueEnum;
use clap_complete::engine::ArgValueCompleter;
use unicode_width::UnicodeWidthStr;

use super::backup;
use super::clock::Clock;
use super::complete::timelines;
use super::error::Result;
use super::output::{LOOK, Out, bold, bold_name, dim, paint};
use super::table::{self, Cell};
use super::wording::{
    clean, count, cut, cut_middle, fork_point, messages_in_short, name, shell, short, was_called,
};
use stvc::lines::answers::Timelines as Answered;
use stvc::verbs::timelines::parent::{Parent, set_parent};
use stvc::verbs::timelines::tree::{Branch, tree};
use stvc::verbs::timelines::{Report, Timeline, TimelineChange};
use stvc::{Workspace, verbs, watch};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// As a tree: each fork below the timeline it forked from, with the message after which it did
    #[arg(long)]
    pub tree: bool,

    /// Only timelines with this in their name
    #[arg(add = ArgValueCompleter::new(timelines), value_name = "NAME")]
    pub name: Option<String>,

    /// In which order; most recent first if not given, in JSON by name
    #[arg(long, value_name = "ORDER", conflicts_with = "tree")]
    pub sort: Option<Order>,

    /// Say that timeline NAME was forked from PARENT, where that was not found out rightly
    #[arg(add = ArgValueCompleter::new(timelines), long, value_name = "PARENT", requires = "name", conflicts_with = "tree")]
    pub parent: Option<String>,

    /// Say that timeline NAME was forked from none
    #[arg(long, requires = "name", conflicts_with_all = ["tree", "parent"])]
    pub no_parent: bool,
}

/// In which order timelines are listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Order {
    /// What was saved or taken last comes first
    Recent,
    /// By name; numbers count as numbers
    Name,
    /// The longest first
    Messages,
}

#[derive(Debug, clap::Args)]
pub struct StatusArgs {
    /// Only timelines with this in their name
    #[arg(add = ArgValueCompleter::new(timelines), value_name = "NAME")]
    pub name: Option<String>,

    /// In which order; most recent first if not given, in JSON by name
    #[arg(long, value_name = "ORDER")]
    pub sort: Option<Order>,
}

pub fn run(args: &Args, workspace: &Workspace, out: &mut Out) -> Result<u8> {
    if let (Some(timeline), true) = (&args.name, args.no_parent || args.parent.is_some()) {
        let report = set_parent(workspace, timeline, args.parent.as_deref())?;
        return Ok(out.answer(&report, |out| tell_parent(&report, out)));
    }
    let mut report = verbs::timelines::timelines(workspace, &mut out.progress())?;
    let nothing = nothing(&report);
    choose(&mut report, args.name.as_deref(), args.sort.unwrap_or(usual_order(out)));
    let answer = Answered { command: "timelines", report: &report };
    let text = |out: &mut Out| {
        if args.tree {
            let columns = out.columns();
            for branch in tree(&report.timelines) {
                out.line(tree_line(&branch, columns));
            }
        } else {
            list(&report.timelines.iter().collect::<Vec<_>>(), out);
        }
        if report.timelines.is_empty() {
            out.say(nothing);
        }
        // The listing is the answer; other findings belong to `status`.
        out.findings(&answer.unreadable().cloned().collect::<Vec<_>>());
    };
    Ok(out.answer(&answer, text))
}

fn tell_parent(report: &Parent, out: &mut Out) {
    let child = bold_name(&report.timeline);
    match &report.parent {
        Some((parent, shared)) => {
            out.say(format!("{child} comes from {} ({}).", bold_name(parent), fork_point(*shared)))
        }
        None => out.say(format!("{child} comes from no other timeline.")),
    }
    if report.rewritten > 0 {
        let rewritten = count(report.rewritten, "snapshot");
        out.say(format!(
            "{rewritten} got new ids; the old ids still work. `stvc undo` takes it back."
        ));
    }
}

/// People want recent timelines first; programs want an order that does not change.
fn usual_order(out: &Out) -> Order {
    if out.is_json() { Order::Name } else { Order::Recent }
}

fn choose(report: &mut Report, part: Option<&str>, order: Order) {
    if let Some(part) = part.map(str::to_lowercase) {
        report.timelines.retain(|timeline| {
            let names = [timeline.name.as_str().to_owned(), name(&timeline.name)];
            names.iter().any(|name| name.to_lowercase().contains(&part))
        });
        let named: HashSet<_> =
            report.timelines.iter().map(|timeline| timeline.name.as_str()).collect();
        report.findings.retain(|finding| named.contains(finding.subject.as_str()));
    }
    report.timelines.sort_by(|a, b| by_number(a.name.as_str(), b.name.as_str()));
    match order {
        Order::Name => {}
        Order::Recent => {
            report
                .timelines
                .sort_by_key(|timeline| (!timeline.name.is_chat(), Reverse(timeline.latest.saved)));
        }
        Order::Messages => report.timelines.sort_by_key(|timeline| Reverse(timeline.messages)),
    }
}

/// `Branch #2` comes before `Branch #10`.
fn by_number(a: &str, b: &str) -> Ordering {
    let pieces = |text: &str| -> Vec<(u64, String)> {
        let mut pieces = vec![(0, String::new())];
        for c in text.to_lowercase().chars() {
            let (number, rest) = match pieces.last_mut() {
                Some(last) => last,
                None => return pieces,
            };
            match c.to_digit(10) {
                Some(digit) if rest.is_empty() => {
                    *number = number.saturating_mul(10).saturating_add(digit.into());
                }
                Some(digit) => pieces.push((digit.into(), String::new())),
                None => rest.push(c),
            }
        }
        pieces
    };
    pieces(a).cmp(&pieces(b)).then_with(|| a.cmp(b))
}

pub fn status(args: &StatusArgs, workspace: &Workspace, out: &mut Out) -> Result<u8> {
    let mut report = verbs::timelines::timelines(workspace, &mut out.progress())?;
    let (is_any, nothing) = (!report.timelines.is_empty(), nothing(&report));
    choose(&mut report, args.name.as_deref(), args.sort.unwrap_or(usual_order(out)));
    let answer = Answered { command: "status", report: &report };
    let text = |out: &mut Out| {
        tell_status(&report, nothing, out);
        if report.has_store && is_any {
            out.say(keeping(&report, workspace, out));
        }
    };
    Ok(out.answer(&answer, text))
}

fn nothing(report: &Report) -> &'static str {
    if report.timelines.is_empty() {
        "There are no chats here yet."
    } else {
        "No timeline has that in its name."
    }
}

fn tell_status(report: &Report, nothing: &str, out: &mut Out) {
    let is_changed = |timeline: &&Timeline| timeline.latest.change != TimelineChange::Unchanged;
    let changed: Vec<_> = report.timelines.iter().filter(is_changed).collect();
    list(&changed, out);
    out.findings(&report.findings);
    let of = |change| {
        report.timelines.iter().filter(|timeline| timeline.latest.change == change).count()
    };
    let takeable = of(TimelineChange::New) + of(TimelineChange::Changed);
    let unchanged = of(TimelineChange::Unchanged);
    match (takeable, report.timelines.len()) {
        (_, 0) => out.say(nothing),
        (0, _) if of(TimelineChange::Deleted) > 0 => {
            let deleted =
                report.timelines.iter().find(|it| it.latest.change == TimelineChange::Deleted);
            let example = deleted.map(|deleted| shell(deleted.name.as_str())).unwrap_or_default();
            out.say(format!(
                "Nothing to take: {unchanged} unchanged. What was deleted can be brought back: `stvc restore {example}`."
            ));
        }
        (0, _) => {
            let timelines = count(unchanged, "timeline");
            out.say(format!("Nothing changed since the last snapshots; {timelines}."));
        }
        _ if !report.has_store => {
            out.say("Nothing is stored yet. `stvc snapshot` takes the first snapshots.")
        }
        _ => out.say(format!("{unchanged} unchanged. `stvc snapshot` takes the others.")),
    }
}

/// `A watch is running. Last backup: 3 days ago (D:\stick), 4 snapshots since.`
fn keeping(report: &Report, workspace: &Workspace, out: &Out) -> String {
    let watch =
        if watch::is_running(workspace) { "A watch is running." } else { "No watch is running." };
    let backup = match &report.last_backup {
        Some(last) => format!("Last backup: {}.", backup::line(last, out.clock)),
        None => "No backup was taken yet.".into(),
    };
    dim(format!("{watch} {backup}"))
}

fn list(timelines: &[&Timeline], out: &mut Out) {
    let clock = out.clock;
    let rows: Vec<_> = timelines.iter().map(|timeline| row(timeline, clock)).collect();
    table::lines(&rows).into_iter().for_each(|line| out.line(line));
}

fn row(timeline: &Timeline, clock: Clock) -> Vec<Cell> {
    let style = match timeline.latest.change {
        TimelineChange::New | TimelineChange::Changed => LOOK.good,
        TimelineChange::Deleted => LOOK.warn,
        TimelineChange::Unreadable => LOOK.bad,
        TimelineChange::Unchanged | TimelineChange::Stored => LOOK.dim,
    };
    let head = timeline.latest.snapshot.as_ref();
    let fork = timeline.fork.parent.as_ref().zip(timeline.fork.fork_at);
    let fork = fork.map(|(parent, at)| format!("{} of {}", fork_point(at), clean(parent.chat())));
    let snapshots = match head {
        Some(_) => count(timeline.snapshots, "snapshot"),
        None => "no snapshot yet".into(),
    };
    let damaged = timeline.latest.damaged.map(|_| "damaged".to_owned());
    let notes: Vec<_> = damaged.into_iter().chain(notes(timeline)).collect();
    vec![
        Cell::new(style, timeline.latest.change.as_str()),
        Cell::new(LOOK.name, name(&timeline.name)).cut(),
        Cell::plain(messages(timeline)),
        // The tree shows forks better; ids and counts are for wide screens.
        Cell::new(LOOK.good, timeline.changed_parts().join(", ")).spare(4),
        Cell::plain(snapshots).spare(1),
        Cell::new(LOOK.id, head.map(|head| short(head.id)).unwrap_or_default()).spare(3),
        Cell::new(LOOK.dim, head.map(|head| clock.age(head.time)).unwrap_or_default()),
        Cell::plain(fork.unwrap_or_default()).spare(0),
        Cell::new(LOOK.tag, notes.join("  ")).spare(2),
    ]
}

fn messages(timeline: &Timeline) -> String {
    if !timeline.name.is_chat() {
        let entries = |n: u64| count(n, "entry");
        let before = timeline.latest.snapshot.as_ref().and_then(|head| head.entries);
        return match (before, timeline.entries) {
            (Some(before), Some(now)) if before != now => format!("{before} → {}", entries(now)),
            (_, now) => now.map(entries).unwrap_or_default(),
        };
    }
    let before = timeline.latest.snapshot.as_ref().map(|head| head.messages);
    match before {
        Some(before)
            if timeline.latest.change == TimelineChange::Changed && before != timeline.messages =>
        {
            format!("{before} → {} msgs", timeline.messages)
        }
        _ => messages_in_short(timeline.messages),
    }
}

/// `├─ after #12  Before the ferry   13 messages, 0 of its own   (deleted)`.
fn tree_line(branch: &Branch<'_>, columns: usize) -> String {
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
        (false, entries) => entries.map(|it| count(it, "entry")).unwrap_or_default(),
    };
    if let Some((_, shared)) = branch.below.filter(|_| timeline.name.is_chat()) {
        messages.push_str(&format!(", {} of its own", timeline.messages.saturating_sub(shared)));
    }
    let state = match timeline.latest.change {
        TimelineChange::Unchanged => String::new(),
        other => format!("   ({})", other.as_str()),
    };
    let style = match timeline.latest.change {
        TimelineChange::Deleted => LOOK.warn,
        TimelineChange::Unreadable => LOOK.bad,
        _ => LOOK.good,
    };
    let notes: String = notes(timeline).into_iter().map(|note| format!("   {note}")).collect();
    let around = [lines.as_str(), &place, "   ", &messages, &state, &notes];
    let taken: usize = around.iter().map(|part| part.width()).sum();
    let room = columns.saturating_sub(taken).max(SHORTEST);
    let label = bold(cut_middle(&label, room));
    let (lines, messages) = (dim(lines), dim(messages));
    format!("{lines}{place}{label}   {messages}{}{}", paint(style, state), paint(LOOK.tag, notes))
}

/// A name is never cut below this, however deep it stands.
const SHORTEST: usize = 16;

const TAGS: usize = 3;

fn notes(timeline: &Timeline) -> Vec<String> {
    let former = timeline.renamed_from.as_ref().map(|former| was_called(former, 40));
    let mut tags: Vec<_> =
        timeline.tags.iter().take(TAGS).map(|tag| format!("[{}]", cut(&clean(tag), 30))).collect();
    if timeline.tags.len() > TAGS {
        tags.push(format!("and {} more tags", timeline.tags.len() - TAGS));
    }
    former.into_iter().chain(tags).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_names_count_as_numbers() {
        let mut names = ["b", "Branch #10", "branch #2", "Branch #2 - 1", "", "9", "10"];
        names.sort_by(|a, b| by_number(a, b));
        assert_eq!(names, ["", "b", "branch #2", "Branch #2 - 1", "Branch #10", "9", "10"]);
    }
}
