use std::time::Duration;

use clap_complete::engine::ArgValueCompleter;

use super::complete::timelines;
use super::error::Result;
use super::output::{Out, bold_name, short_id};
use super::wording::{count, size};
use stvc::retention::{Policy, parse_span};
use stvc::verbs::forget::{Options, Report};
use stvc::{Workspace, verbs};

#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// Only these timelines; all if none is named
    #[arg(add = ArgValueCompleter::new(timelines), value_name = "TIMELINE")]
    pub timelines: Vec<String>,

    /// Keep the newest N of each timeline
    #[arg(long, value_name = "N")]
    pub keep_last: Option<u64>,

    /// Keep the newest of each of the last N hours that have any
    #[arg(long, value_name = "N")]
    pub keep_hourly: Option<u64>,

    /// Keep the newest of each of the last N days that have any
    #[arg(long, value_name = "N")]
    pub keep_daily: Option<u64>,

    /// Keep the newest of each of the last N weeks that have any
    #[arg(long, value_name = "N")]
    pub keep_weekly: Option<u64>,

    /// Keep the newest of each of the last N months that have any
    #[arg(long, value_name = "N")]
    pub keep_monthly: Option<u64>,

    /// Keep those younger than this, such as 30d or 36h
    #[arg(long, value_name = "TIME", value_parser = parse_span)]
    pub keep_within: Option<Duration>,

    /// Keep tagged ones: they always stay, so on its own it means that nothing else does
    #[arg(long)]
    pub keep_tag: bool,

    /// Only show what would go, and how much space that frees
    #[arg(long, short = 'n')]
    pub dry_run: bool,
}

const HELP: &str = "Each option keeps some; what none keeps goes. Without any, the [retention] table in stvc/config.toml of the store is used, for example:\n\n  \
                    [retention]\n  keep-last = 10\n  keep-daily = 30\n  keep-within = \"7d\"\n\n\
                    `stvc undo` brings them back until `stvc gc` drops them; what they take is freed then.";

const LISTED: usize = 5;

pub fn run(args: &Args, workspace: &Workspace, out: &mut Out) -> Result<u8> {
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
    Ok(out.answer(&report, |out| tell(&report, out)))
}

fn tell(report: &Report, out: &mut Out) {
    let gone = if report.dry_run { "would go" } else { "gone" };
    for timeline in &report.timelines {
        let forgotten = count(timeline.forgotten.len(), "snapshot");
        let (name, kept) = (bold_name(&timeline.name), timeline.kept);
        out.say(format!("{name}: {forgotten} {gone}, {kept} kept"));
        for snapshot in timeline.forgotten.iter().take(LISTED) {
            let (messages, age) =
                (count(snapshot.messages, "message"), out.clock.age(snapshot.time));
            out.say(format!("  {}  {messages}, {age}", short_id(snapshot.id)));
        }
        if timeline.forgotten.len() > LISTED {
            out.say(format!("  … and {} more", timeline.forgotten.len() - LISTED));
        }
    }
    let (kept, freed) = (report.kept, size(report.bytes));
    if report.forgotten() == 0 {
        return out.say(format!("Nothing to forget: all {} stay.", count(kept, "snapshot")));
    }
    let forgotten = count(report.forgotten(), "snapshot");
    if report.dry_run {
        return out.say(format!("{forgotten} would go and {kept} stay; that would free {freed}."));
    }
    out.say(format!("{forgotten} gone, {kept} stay."));
    if report.rewritten > 0 {
        let rewritten = count(report.rewritten, "snapshot");
        out.say(format!("New ids for {rewritten}; the old ids still work."));
    }
    out.say(format!("`stvc undo` brings them back. `stvc gc` frees what they take, {freed}, once that is no longer wanted: after 30 days, or at once with `--keep-undo 0d --grace 0d`."));
}
