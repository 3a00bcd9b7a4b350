//! `status` answers whether the chats are protected: what changed since the latest snapshots, the
//! problems, the last backup, and whether the watch is running. Unless the user names timelines or
//! asks for everything, the answer has at most ten lines.

use std::time::SystemTime;

use chrono::{DateTime, FixedOffset};
use clap_complete::engine::ArgValueCompleter;

use super::backup;
use super::complete::timelines;
use super::error::Result;
use super::output::{Output, bold, dim};
use super::timelines::{Order, choose, list, nothing, usual_order};
use super::wording::{clean, count, cut_middle, name, shell};
use stvc::api::extension::{self, State};
use stvc::copies::last_sync::{self, LastSync};
use stvc::findings::{Finding, Level};
use stvc::json_output::answers::{Answer, Emit, Timelines};
use stvc::json_output::{Counts, Line, ProtectionLine};
use stvc::snapshots::{Snapshot, Time};
use stvc::verbs::timelines::{Report, Timeline, TimelineChange};
use stvc::{Workspace, verbs, watch};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// List the changes of timelines whose name contains NAME
    #[arg(add = ArgValueCompleter::new(timelines), value_name = "NAME")]
    pub name: Option<String>,

    /// Sort in this order (default: recent, with --json name)
    #[arg(long, value_name = "ORDER")]
    pub sort: Option<Order>,
}

/// The number of changed timelines that are listed without a request.
const LISTED: usize = 3;

struct Status<'r> {
    timelines: Timelines<'r>,
    latest: Option<Snapshot>,
    is_watched: bool,
    watched_since: Option<Time>,
    extension: Option<String>,
    sync: Option<LastSync>,
}

impl Status<'_> {
    fn report(&self) -> &Report {
        self.timelines.report
    }
}

impl Answer for Status<'_> {
    fn lines<'a>(&'a self, tell: Emit<'_, 'a>) {
        self.timelines.lines(tell);
        let backup = self.report().last_backup.as_ref();
        tell(Line::Protection(ProtectionLine {
            watch: self.is_watched,
            watch_since: self.watched_since,
            extension: self.extension.as_deref(),
            snapshot: self.latest.as_ref().map(|latest| latest.id),
            snapshot_time: self.latest.as_ref().map(|latest| latest.time),
            backup: backup.map(|backup| &*backup.taken.destination),
            backup_time: backup.map(|backup| &*backup.taken.taken),
            backup_in_reach: backup.and_then(|backup| backup.taken.is_in_reach()),
            snapshots_since: backup.map(|backup| backup.snapshots),
            sync: self.sync.as_ref().map(|sync| &*sync.remote),
            sync_time: self.sync.as_ref().and_then(|sync| sync.succeeded.as_deref()),
            sync_failure: self
                .sync
                .as_ref()
                .and_then(|sync| sync.failure.as_ref())
                .map(|it| &*it.message),
        }));
    }

    fn counts(&self) -> (&'static str, Counts) {
        self.timelines.counts()
    }

    fn exit(&self) -> u8 {
        self.timelines.exit()
    }
}

pub fn run(args: &Args, workspace: &Workspace, out: &mut Output) -> Result<u8> {
    let mut report = verbs::timelines::timelines(workspace, &mut out.progress())?;
    let (is_any, nothing) = (!report.timelines.is_empty(), nothing(&report));
    let snapshots = report.timelines.iter().filter_map(|it| it.latest.snapshot.as_ref());
    let latest = snapshots.max_by_key(|it| (it.time.seconds, it.timeline.is_chat())).cloned();
    choose(&mut report, args.name.as_deref(), args.sort.unwrap_or(usual_order(out)));
    let extension = match extension::state(workspace) {
        Ok(State::Installed(installed)) => Some(installed.version().to_owned()),
        Ok(State::Absent | State::Foreign) | Err(_) => None,
    };
    let status = Status {
        timelines: Timelines { command: "status", report: &report },
        latest,
        is_watched: watch::is_running(workspace),
        watched_since: watch::started(workspace).map(|time| at(time, workspace.now)),
        extension,
        sync: last_sync::last(workspace)?,
    };
    let text = |out: &mut Output| {
        let in_full = args.name.is_some() || out.verbose;
        print_changes(&report, nothing, in_full, out);
        print_problems(&report.findings, in_full, out);
        if report.has_store && is_any {
            print_protection(&status, out);
        }
    };
    Ok(out.answer(&status, text))
}

fn at(time: SystemTime, now: DateTime<FixedOffset>) -> Time {
    let time = DateTime::<FixedOffset>::from(DateTime::<chrono::Utc>::from(time));
    Time { seconds: time.timestamp(), offset: now.offset().local_minus_utc() }
}

fn print_changes(report: &Report, nothing: &str, in_full: bool, out: &mut Output) {
    let is_changed = |timeline: &&Timeline| timeline.latest.change != TimelineChange::Unchanged;
    let changed: Vec<_> = report.timelines.iter().filter(is_changed).collect();
    let listed = if in_full || changed.len() <= LISTED { changed.len() } else { LISTED - 1 };
    list(&changed[..listed], out);
    if listed < changed.len() {
        let more = changed.len() - listed;
        out.say(dim(format!("… and {more} more changed; `stvc status -v` lists all")));
    }
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
                "No changes: {unchanged} unchanged. Run `stvc restore {example}` to restore what was deleted."
            ));
        }
        (0, _) => {
            let timelines = count(unchanged, "timeline");
            out.say(format!("No changes since the latest snapshots of {timelines}."));
        }
        _ if !report.has_store => {
            out.say("There are no snapshots yet. Run `stvc snapshot` to create the first.")
        }
        _ => out.say(format!("{unchanged} unchanged. Run `stvc snapshot` to store the changes.")),
    }
}

/// Prints a single error or warning as it is, and several as their number.
fn print_problems(findings: &[Finding], in_full: bool, out: &mut Output) {
    if in_full {
        return out.findings(findings);
    }
    for (level, word) in [(Level::Error, "error"), (Level::Warning, "warning")] {
        let of_level: Vec<_> = findings.iter().filter(|it| it.level == level).cloned().collect();
        match of_level.as_slice() {
            [] => {}
            [_] => out.findings(&of_level),
            [first, ..] => {
                let command = match first.code.listed_by() {
                    Some(command) => format!("stvc {command}"),
                    None => "stvc status -v".to_owned(),
                };
                let (subject, message) = (clean(&first.subject), clean(&first.message));
                let n = count(of_level.len(), word);
                out.note(&format!("{n}, for example {subject}: {message}. `{command}` lists all."));
            }
        }
    }
}

fn print_protection(status: &Status<'_>, out: &mut Output) {
    let clock = out.clock;
    let latest = status.latest.as_ref().map(|latest| {
        let label = bold(cut_middle(&name(&latest.timeline), 24));
        format!("Last snapshot: {}, {label}. ", clock.age(latest.time))
    });
    let backup = match &status.report().last_backup {
        Some(last) => {
            let reach = match last.taken.is_in_reach() {
                Some(false) => "; it cannot be reached now",
                Some(true) | None => "",
            };
            format!("Last backup: {}{reach}.", backup::line(last, clock))
        }
        None => "There is no backup yet.".into(),
    };
    out.say(format!("{}{backup}", latest.unwrap_or_default()));
    if let Some(sync) = &status.sync {
        print_sync(sync, out);
    }
    if !status.is_watched {
        return out.say("Not protected: no watch is running. Run `stvc setup`.");
    }
    let since = status.watched_since.map(|since| format!(", started {}", clock.age(since)));
    let extension = match &status.extension {
        Some(version) => format!("the extension {} is installed", clean(version)),
        None => "the extension is not installed".into(),
    };
    out.say(format!("Protected: a watch is running{}; {extension}.", since.unwrap_or_default()));
}

fn print_sync(sync: &LastSync, out: &mut Output) {
    let remote = bold(cut_middle(&clean(&sync.remote), 40));
    let age = sync.succeeded.as_deref().map(|time| backup::age(time, out.clock));
    let age = age.unwrap_or_else(|| "never".into());
    match &sync.failure {
        None => out.say(format!("Last sync: {age}, {remote}.")),
        Some(failure) => {
            let why = clean(&failure.message);
            out.note(&format!("The last sync with {remote} failed: {why}. Last success: {age}."));
        }
    }
}
