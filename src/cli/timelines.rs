//! `timelines` lists all timelines.

use std::cmp::{Ordering, Reverse};
use std::collections::HashSet;

use clap::ValueEnum;
use clap_complete::engine::ArgValueCompleter;
use unicode_width::UnicodeWidthStr;

use super::clock::Clock;
use super::complete::timelines;
use super::error::Result;
use super::output::{Output, STYLES, bold, bold_name, dim, paint};
use super::table::{self, Cell};
use super::wording::{
    clean, count, cut, cut_middle, fork_point, messages_in_short, name, short, was_called,
};
use stvc::json_output::answers::Timelines as Answered;
use stvc::verbs::timelines::parent::{Parent, set_parent};
use stvc::verbs::timelines::tree::{Branch, tree};
use stvc::verbs::timelines::{Report, Timeline, TimelineChange};
use stvc::{Workspace, verbs};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Show a tree: each fork below its parent, with its fork point
    #[arg(long)]
    pub tree: bool,

    /// Show only timelines whose name contains NAME
    #[arg(add = ArgValueCompleter::new(timelines), value_name = "NAME")]
    pub name: Option<String>,

    /// Sort in this order (default: recent, with --json name)
    #[arg(long, value_name = "ORDER", conflicts_with = "tree")]
    pub sort: Option<Order>,

    /// Set PARENT as the parent of timeline NAME, if stvc did not detect it
    #[arg(add = ArgValueCompleter::new(timelines), long, value_name = "PARENT", requires = "name", conflicts_with = "tree")]
    pub parent: Option<String>,

    /// Record that timeline NAME has no parent
    #[arg(long, requires = "name", conflicts_with_all = ["tree", "parent"])]
    pub no_parent: bool,
}

/// Sort order of timelines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Order {
    /// Last save, newest first
    Recent,
    /// Name, with numbers in numeric order
    Name,
    /// Number of messages, largest first
    Messages,
}

pub fn run(args: &Args, workspace: &Workspace, out: &mut Output) -> Result<u8> {
    if let (Some(timeline), true) = (&args.name, args.no_parent || args.parent.is_some()) {
        let report = set_parent(workspace, timeline, args.parent.as_deref())?;
        return Ok(out.answer(&report, |out| print_parent(&report, out)));
    }
    let mut report = verbs::timelines::timelines(workspace, &mut out.progress())?;
    let nothing = nothing(&report);
    choose(&mut report, args.name.as_deref(), args.sort.unwrap_or(usual_order(out)));
    let answer = Answered { command: "timelines", report: &report };
    let text = |out: &mut Output| {
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
        // The other findings are printed only by `status`.
        out.findings(&answer.unreadable().cloned().collect::<Vec<_>>());
    };
    Ok(out.answer(&answer, text))
}

fn print_parent(report: &Parent, out: &mut Output) {
    let child = bold_name(&report.timeline);
    match &report.parent {
        Some((parent, shared)) => out.say(format!(
            "{child} is a fork of {} ({}).",
            bold_name(parent),
            fork_point(*shared)
        )),
        None => out.say(format!("{child} has no parent.")),
    }
    if report.rewritten > 0 {
        let rewritten = count(report.rewritten, "snapshot");
        out.say(format!(
            "{rewritten} got new ids; the old ids still work. Run `stvc undo` to undo it."
        ));
    }
}

/// Returns the default order: latest first for people, and by name for programs, because that order
/// is stable.
pub(super) fn usual_order(out: &Output) -> Order {
    if out.is_json() { Order::Name } else { Order::Recent }
}

pub(super) fn choose(report: &mut Report, part: Option<&str>, order: Order) {
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

/// Compares names, and numbers in them by value: `Branch #2` comes before `Branch #10`.
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

pub(super) fn nothing(report: &Report) -> &'static str {
    if report.timelines.is_empty() {
        "There are no chats here yet."
    } else {
        "No timeline has a name that contains this text."
    }
}

pub(super) fn list(timelines: &[&Timeline], out: &mut Output) {
    let clock = out.clock;
    let rows: Vec<_> = timelines.iter().map(|timeline| row(timeline, clock)).collect();
    table::lines(&rows).into_iter().for_each(|line| out.line(line));
}

fn row(timeline: &Timeline, clock: Clock) -> Vec<Cell> {
    let style = match timeline.latest.change {
        TimelineChange::New | TimelineChange::Changed => STYLES.good,
        TimelineChange::Deleted => STYLES.warn,
        TimelineChange::Unreadable => STYLES.bad,
        TimelineChange::Unchanged | TimelineChange::Stored => STYLES.dim,
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
        Cell::new(STYLES.name, name(&timeline.name)).cut(),
        Cell::plain(messages(timeline)),
        // The cell of the fork point is the first to be left out, because `--tree` shows it as
        // well.
        Cell::new(STYLES.good, timeline.changed_parts().join(", ")).spare(4),
        Cell::plain(snapshots).spare(1),
        Cell::new(STYLES.id, head.map(|head| short(head.id)).unwrap_or_default()).spare(3),
        Cell::new(STYLES.dim, head.map(|head| clock.age(head.time)).unwrap_or_default()),
        Cell::plain(fork.unwrap_or_default()).spare(0),
        Cell::new(STYLES.tag, notes.join("  ")).spare(2),
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
            format!("{before} → {}", messages_in_short(timeline.messages))
        }
        _ => messages_in_short(timeline.messages),
    }
}

/// Returns `├─ after #12  Before the ferry   13 messages, 0 after the fork   (deleted)`.
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
        messages
            .push_str(&format!(", {} after the fork", timeline.messages.saturating_sub(shared)));
    }
    let state = match timeline.latest.change {
        TimelineChange::Unchanged => String::new(),
        other => format!("   ({})", other.as_str()),
    };
    let style = match timeline.latest.change {
        TimelineChange::Deleted => STYLES.warn,
        TimelineChange::Unreadable => STYLES.bad,
        _ => STYLES.good,
    };
    let notes: String = notes(timeline).into_iter().map(|note| format!("   {note}")).collect();
    let around = [lines.as_str(), &place, "   ", &messages, &state, &notes];
    let taken: usize = around.iter().map(|part| part.width()).sum();
    let room = columns.saturating_sub(taken).max(SHORTEST);
    let label = bold(cut_middle(&label, room));
    let (lines, messages) = (dim(lines), dim(messages));
    format!("{lines}{place}{label}   {messages}{}{}", paint(style, state), paint(STYLES.tag, notes))
}

/// The width in columns up to which names are not shortened, at any depth of the tree.
const SHORTEST: usize = 16;

const TAGS: usize = 3;

fn notes(timeline: &Timeline) -> Vec<String> {
    let former = timeline.renamed_from.as_ref().map(|former| was_called(former, 40));
    let mut tags: Vec<_> =
        timeline.tags.iter().take(TAGS).map(|tag| format!("[{}]", cut(&clean(tag), 30))).collect();
    if timeline.tags.len() > TAGS {
        tags.push(format!("and {}", count(timeline.tags.len() - TAGS, "more tag")));
    }
    former.into_iter().chain(tags).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_names_are_sorted_numerically() {
        let mut names = ["b", "Branch #10", "branch #2", "Branch #2 - 1", "", "9", "10"];
        names.sort_by(|a, b| by_number(a, b));
        assert_eq!(names, ["", "b", "branch #2", "Branch #2 - 1", "Branch #10", "9", "10"]);
    }
}
