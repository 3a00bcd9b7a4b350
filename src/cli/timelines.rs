//! `timelines` and `status`: the same report, all of it or what changed.

use unicode_width::UnicodeWidthStr;

use super::error::Result;
use super::output::{LOOK, Out, paint};
use super::tree::{self, notes};
use super::wording::{age, clean, count, cut_middle, fork_point, name, pad, short};
use super::{args, exit};
use stvc::engine::Workspace;
use stvc::lines::{Counts, TimelineLine};
use stvc::rules::{Code, Finding};
use stvc::verbs;
use stvc::verbs::timelines::{Report, Timeline, TimelineChange};

/// Every timeline.
pub fn run(args: &args::Timelines, workspace: &Workspace, out: &mut Out) -> Result<u8> {
    if let (Some(timeline), true) = (&args.name, args.no_parent || args.parent.is_some()) {
        return set_parent(timeline, args.parent.as_deref(), workspace, out);
    }
    let mut report = verbs::timelines::timelines(workspace, &mut out.progress())?;
    let is_any = report.timelines.is_empty();
    if let Some(part) = &args.name {
        let part = part.to_lowercase();
        let fits = |timeline: &Timeline| {
            let name = &timeline.name;
            [name.as_str().to_owned(), super::wording::name(name)]
                .iter()
                .any(|name| name.to_lowercase().contains(&part))
        };
        report.timelines.retain(fits);
    }
    if args.tree && !out.is_json() {
        let columns = out.columns();
        for branch in verbs::timelines::tree::tree(&report.timelines) {
            out.line(tree::line(&branch, columns));
        }
    } else {
        list(&report.timelines.iter().collect::<Vec<_>>(), workspace, out);
    }
    match report.timelines.is_empty() {
        true if is_any => out.say("There are no chats here yet."),
        true => out.say("No timeline has that in its name."),
        false => {}
    }
    Ok(finish("timelines", &report, out))
}

fn set_parent(
    timeline: &str,
    parent: Option<&str>,
    workspace: &Workspace,
    out: &mut Out,
) -> Result<u8> {
    let report = verbs::timelines::parent::set_parent(workspace, timeline, parent)?;
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
    out.summary("timelines", true, Counts::Parent { rewritten: report.rewritten });
    Ok(exit::DONE)
}

/// What changed.
pub fn status(workspace: &Workspace, out: &mut Out) -> Result<u8> {
    let report = verbs::timelines::timelines(workspace, &mut out.progress())?;
    let changed: Vec<_> = report
        .timelines
        .iter()
        .filter(|timeline| timeline.change != TimelineChange::Unchanged)
        .collect();
    if out.is_json() {
        list(&report.timelines.iter().collect::<Vec<_>>(), workspace, out);
    } else {
        list(&changed, workspace, out);
    }
    out.findings(&report.findings);
    let of = |change| report.timelines.iter().filter(|timeline| timeline.change == change).count();
    let takeable = of(TimelineChange::New) + of(TimelineChange::Changed);
    let unchanged = of(TimelineChange::Unchanged);
    match (takeable, report.timelines.len()) {
        (_, 0) => out.say("There are no chats here yet."),
        (0, _) if of(TimelineChange::Deleted) > 0 => out.say(format!(
            "Nothing to take: {unchanged} unchanged. What was deleted can be brought back: `stvc restore NAME`."
        )),
        (0, _) => out.say(format!(
            "Nothing changed since the last snapshots; {}.",
            count(unchanged as u64, "timeline")
        )),
        _ if !report.has_store => {
            out.say("Nothing is stored yet. `stvc snapshot` takes the first snapshots.")
        }
        _ => out.say(format!("{unchanged} unchanged. `stvc snapshot` takes the others.")),
    }
    Ok(finish("status", &report, out))
}

fn list(timelines: &[&Timeline], workspace: &Workspace, out: &mut Out) {
    let room = out.columns().saturating_sub(52).max(24);
    let width =
        timelines.iter().map(|timeline| name(&timeline.name).width()).max().unwrap_or(0).min(room);
    for timeline in timelines {
        out.object(TimelineLine::from(*timeline));
        let label = pad(&cut_middle(&name(&timeline.name), width), width);
        let style = match timeline.change {
            TimelineChange::New | TimelineChange::Changed => LOOK.good,
            TimelineChange::Deleted => LOOK.warn,
            TimelineChange::Unreadable => LOOK.bad,
            TimelineChange::Unchanged => LOOK.dim,
        };
        let state = paint(style, pad(timeline.change.as_str(), 10));
        let messages = pad(&messages(timeline), 14);
        let head = match &timeline.head {
            Some(head) => {
                let snapshots = pad(&count(timeline.snapshots as u64, "snapshot"), 13);
                format!(
                    "{snapshots} {} {}",
                    paint(LOOK.id, short(head.id)),
                    paint(LOOK.dim, age(head.time, workspace.now))
                )
            }
            None => "no snapshot yet".into(),
        };
        let fork = match (&timeline.parent, timeline.fork_at) {
            (Some(parent), Some(at)) => {
                format!("  {} of {}", fork_point(at), cut_middle(&clean(parent.chat()), 30))
            }
            _ => String::new(),
        };
        let notes: String = notes(timeline).into_iter().map(|note| format!("  {note}")).collect();
        out.line(
            format!("{state} {}  {messages} {head}{fork}{notes}", paint(LOOK.name, label))
                .trim_end(),
        );
    }
}

fn messages(timeline: &Timeline) -> String {
    let before = timeline.head.as_ref().map(|head| head.messages);
    match before {
        Some(before)
            if timeline.change == TimelineChange::Changed && before != timeline.messages =>
        {
            format!("{before} → {} msgs", timeline.messages)
        }
        _ if timeline.messages == 1 => "1 msg".into(),
        _ => format!("{} msgs", timeline.messages),
    }
}

/// Whether a timeline could not be looked at. What is wrong inside of it is no failure of the command.
fn is_unreadable(finding: &Finding) -> bool {
    finding.code == Code::Unreadable
}

fn finish(command: &'static str, report: &Report, out: &mut Out) -> u8 {
    let of = |change| report.timelines.iter().filter(|timeline| timeline.change == change).count();
    if command == "timelines" {
        // The listing is the answer; only what keeps a timeline from being read belongs here.
        let unread: Vec<_> =
            report.findings.iter().filter(|finding| is_unreadable(finding)).cloned().collect();
        out.findings(&unread);
    }
    let unreadable = report.findings.iter().any(is_unreadable);
    let counts = Counts::Timelines {
        timelines: report.timelines.len(),
        new: of(TimelineChange::New),
        changed: of(TimelineChange::Changed),
        unchanged: of(TimelineChange::Unchanged),
        deleted: of(TimelineChange::Deleted),
    };
    out.summary(command, !unreadable, counts);
    if unreadable { exit::PARTLY } else { exit::DONE }
}
