use std::time::Duration;

use clap_complete::engine::ArgValueCompleter;

use super::complete::timelines;
use super::error::Result;
use super::output::{Output, bold_name, short_id};
use super::wording::{count, length, size};
use stvc::retention::{Policy, parse_span};
use stvc::verbs::forget::{Options, Report};
use stvc::{Workspace, verbs};

#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// Remove snapshots only from these timelines (default: all)
    #[arg(add = ArgValueCompleter::new(timelines), value_name = "TIMELINE")]
    pub timelines: Vec<String>,

    /// Keep the latest N snapshots of each timeline
    #[arg(long, value_name = "N")]
    pub keep_last: Option<u64>,

    /// Keep the latest snapshot of each hour, for the last N hours that have snapshots
    #[arg(long, value_name = "N")]
    pub keep_hourly: Option<u64>,

    /// Keep the latest snapshot of each day, for the last N days that have snapshots
    #[arg(long, value_name = "N")]
    pub keep_daily: Option<u64>,

    /// Keep the latest snapshot of each week, for the last N weeks that have snapshots
    #[arg(long, value_name = "N")]
    pub keep_weekly: Option<u64>,

    /// Keep the latest snapshot of each month, for the last N months that have snapshots
    #[arg(long, value_name = "N")]
    pub keep_monthly: Option<u64>,

    /// Keep snapshots newer than this, for example 30d or 36h
    #[arg(long, value_name = "TIME", value_parser = parse_span)]
    pub keep_within: Option<Duration>,

    /// Keep only tagged snapshots, fork points and the latest snapshots
    ///
    /// These are always kept. Given together with other options, this one changes nothing.
    #[arg(long)]
    pub keep_tag: bool,

    /// Only show what would be removed, and how much space that frees
    #[arg(long, short = 'n')]
    pub dry_run: bool,
}

const HELP: &str = "A snapshot that no option keeps is removed. Without options, the [retention] table in stvc/config.toml in the store applies, for example:\n\n  \
                    [retention]\n  keep-last = 10\n  keep-daily = 30\n  keep-within = \"7d\"\n\n\
                    `stvc undo` restores removed snapshots until `stvc gc` deletes them and frees their space.";

const LISTED: usize = 5;

pub fn run(args: &Args, workspace: &Workspace, out: &mut Output) -> Result<u8> {
    let policy = Policy {
        keep_last: args.keep_last,
        keep_hourly: args.keep_hourly,
        keep_daily: args.keep_daily,
        keep_weekly: args.keep_weekly,
        keep_monthly: args.keep_monthly,
        keep_within: args.keep_within,
        keep_tag: args.keep_tag,
    };
    let options = Options { timelines: args.timelines.clone(), policy, dry_run: args.dry_run };
    let report = verbs::forget::forget(workspace, &options, &mut out.progress())?;
    Ok(out.answer(&report, |out| print(&report, out)))
}

fn print(report: &Report, out: &mut Output) {
    let gone = if report.dry_run { "would be removed" } else { "removed" };
    for timeline in &report.timelines {
        let forgotten = count(timeline.forgotten.len(), "snapshot");
        let (name, kept) = (bold_name(&timeline.name), timeline.kept);
        out.say(format!("{name}: {forgotten} {gone}, {kept} kept"));
        for snapshot in timeline.forgotten.iter().take(LISTED) {
            let length = length(snapshot).map_or(String::new(), |length| format!("{length}, "));
            let age = out.clock.age(snapshot.time);
            out.say(format!("  {}  {length}{age}", short_id(snapshot.id)));
        }
        if timeline.forgotten.len() > LISTED {
            out.say(format!("  … and {} more", timeline.forgotten.len() - LISTED));
        }
    }
    let (kept, freed) = (report.kept, size(report.bytes));
    if report.forgotten() == 0 {
        return out.say(format!("Nothing to remove: {} kept.", count(kept, "snapshot")));
    }
    let forgotten = count(report.forgotten(), "snapshot");
    if report.dry_run {
        return out.say(format!(
            "{forgotten} would be removed and {kept} kept; that would free {freed}."
        ));
    }
    out.say(format!("{forgotten} removed, {kept} kept."));
    if report.rewritten > 0 {
        let rewritten = count(report.rewritten, "snapshot");
        out.say(format!("{rewritten} got new ids; the old ids still work."));
    }
    out.say(format!("Run `stvc undo` to restore them. `stvc gc` frees their space, {freed}, after 30 days, or at once with `--keep-undo 0d --grace 0d`."));
}
