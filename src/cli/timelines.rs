//! `timelines` and `status`: the same report, all of it or what changed.

use std::cmp::{Ordering, Reverse};
use std::collections::HashSet;

use clap::ValueEnum;
use clap_complete::engine::ArgValueCompleter;

use super::backup;
use super::clock::Clock;
use super::complete::timelines;
use super::error::Result;
use super::output::{LOOK, Out, paint};
use super::table::{self, Cell};
use super::tree::{self, notes};
use super::wording::{clean, count, fork_point, messages_in_short, name, shell, short};
use stvc::engine::Workspace;
use stvc::lines::answers::Timelines as Answered;
use stvc::verbs::timelines::parent::Parent;
use stvc::verbs::timelines::{Report, Timeline, TimelineChange};
use stvc::{verbs, watch};

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

/// Every timeline.
pub fn run(args: &Args, workspace: &Workspace, out: &mut Out) -> Result<u8> {
    if let (Some(timeline), true) = (&args.name, args.no_parent || args.parent.is_some()) {
        return set_parent(timeline, args.parent.as_deref(), workspace, out);
    }
    let mut report = verbs::timelines::timelines(workspace, &mut out.progress())?;
    let nothing = nothing(&report);
    choose(&mut report, args.name.as_deref(), args.sort.unwrap_or(usual_order(out)));
    let answer = Answered { command: "timelines", report: &report };
    let text = |out: &mut Out| {
        if args.tree {
            let columns = out.columns();
            for branch in verbs::timelines::tree::tree(&report.timelines) {
                out.line(tree::line(&branch, columns));
            }
        } else {
            list(&report.timelines.iter().collect::<Vec<_>>(), out);
        }
        if report.timelines.is_empty() {
            out.say(nothing);
        }
        // The listing is the answer; only what keeps a timeline from being read belongs here.
        out.findings(&answer.unreadable().cloned().collect::<Vec<_>>());
    };
    Ok(out.answer(&answer, text))
}

fn set_parent(
    timeline: &str,
    parent: Option<&str>,
    workspace: &Workspace,
    out: &mut Out,
) -> Result<u8> {
    let report = verbs::timelines::parent::set_parent(workspace, timeline, parent)?;
    Ok(out.answer(&report, |out| tell_parent(&report, out)))
}

fn tell_parent(report: &Parent, out: &mut Out) {
    let child = paint(LOOK.name, name(&report.timeline));
    match &report.parent {
        Some((parent, shared)) => out.say(format!(
            "{child} comes from {} ({}).",
            paint(LOOK.name, name(parent)),
            fork_point(*shared)
        )),
        None => out.say(format!("{child} comes from no other timeline.")),
    }
    if report.rewritten > 0 {
        let rewritten = count(report.rewritten as u64, "snapshot");
        out.say(format!(
            "{rewritten} got new ids; the old ids still work. `stvc undo` takes it back."
        ));
    }
}

/// A person wants what they are at; a program, what does not change from one time to the next.
fn usual_order(out: &Out) -> Order {
    if out.is_json() { Order::Name } else { Order::Recent }
}

/// Only those that have `part` in their name, in this order.
fn choose(report: &mut Report, part: Option<&str>, order: Order) {
    if let Some(part) = part.map(str::to_lowercase) {
        report.timelines.retain(|timeline| {
            [timeline.name.as_str().to_owned(), name(&timeline.name)]
                .iter()
                .any(|name| name.to_lowercase().contains(&part))
        });
        let named: HashSet<_> =
            report.timelines.iter().map(|timeline| timeline.name.as_str()).collect();
        report.findings.retain(|finding| named.contains(finding.subject.as_str()));
    }
    report.timelines.sort_by(|a, b| by_number(a.name.as_str(), b.name.as_str()));
    match order {
        Order::Name => {}
        Order::Recent => {
            // Chats are what people look for.
            report
                .timelines
                .sort_by_key(|timeline| (!timeline.name.is_chat(), Reverse(timeline.saved)));
        }
        Order::Messages => report.timelines.sort_by_key(|timeline| Reverse(timeline.messages)),
    }
}

/// `Branch #2` before `Branch #10`.
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

/// What changed.
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

/// Says why none of the timelines is listed, of which some may be left out later.
fn nothing(report: &Report) -> &'static str {
    if report.timelines.is_empty() {
        "There are no chats here yet."
    } else {
        "No timeline has that in its name."
    }
}

fn tell_status(report: &Report, nothing: &str, out: &mut Out) {
    let changed: Vec<_> = report
        .timelines
        .iter()
        .filter(|timeline| timeline.change != TimelineChange::Unchanged)
        .collect();
    list(&changed, out);
    out.findings(&report.findings);
    let of = |change| report.timelines.iter().filter(|timeline| timeline.change == change).count();
    let takeable = of(TimelineChange::New) + of(TimelineChange::Changed);
    let unchanged = of(TimelineChange::Unchanged);
    match (takeable, report.timelines.len()) {
        (_, 0) => out.say(nothing),
        (0, _) if of(TimelineChange::Deleted) > 0 => {
            let deleted = report.timelines.iter().find(|it| it.change == TimelineChange::Deleted);
            let example = deleted.map(|deleted| shell(deleted.name.as_str())).unwrap_or_default();
            out.say(format!(
                "Nothing to take: {unchanged} unchanged. What was deleted can be brought back: `stvc restore {example}`."
            ));
        }
        (0, _) => out.say(format!(
            "Nothing changed since the last snapshots; {}.",
            count(unchanged as u64, "timeline")
        )),
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
    paint(LOOK.dim, format!("{watch} {backup}"))
}

fn list(timelines: &[&Timeline], out: &mut Out) {
    let clock = out.clock;
    let rows: Vec<_> = timelines.iter().map(|timeline| row(timeline, clock)).collect();
    table::lines(&rows).into_iter().for_each(|line| out.line(line));
}

fn row(timeline: &Timeline, clock: Clock) -> Vec<Cell> {
    let style = match timeline.change {
        TimelineChange::New | TimelineChange::Changed => LOOK.good,
        TimelineChange::Deleted => LOOK.warn,
        TimelineChange::Unreadable => LOOK.bad,
        TimelineChange::Unchanged | TimelineChange::Stored => LOOK.dim,
    };
    let head = timeline.head.as_ref();
    let fork = timeline.parent.as_ref().zip(timeline.fork_at);
    let fork = fork.map(|(parent, at)| format!("{} of {}", fork_point(at), clean(parent.chat())));
    let snapshots = match head {
        Some(_) => count(timeline.snapshots as u64, "snapshot"),
        None => "no snapshot yet".into(),
    };
    let damaged = timeline.damaged.map(|_| "damaged".to_owned());
    let notes: Vec<_> = damaged.into_iter().chain(notes(timeline)).collect();
    vec![
        Cell::new(style, timeline.change.as_str()),
        Cell::new(LOOK.name, name(&timeline.name)).cut(),
        Cell::plain(messages(timeline)),
        // What was forked from where is best seen in the tree; ids and counts are for those who have the room.
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
        let entries = |n: u64| if n == 1 { "1 entry".to_owned() } else { format!("{n} entries") };
        let before = timeline.head.as_ref().and_then(|head| head.entries);
        return match (before, timeline.entries) {
            (Some(before), Some(now)) if before != now => format!("{before} → {}", entries(now)),
            (_, now) => now.map(entries).unwrap_or_default(),
        };
    }
    let before = timeline.head.as_ref().map(|head| head.messages);
    match before {
        Some(before)
            if timeline.change == TimelineChange::Changed && before != timeline.messages =>
        {
            format!("{before} → {} msgs", timeline.messages)
        }
        _ => messages_in_short(timeline.messages),
    }
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
