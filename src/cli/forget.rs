use super::error::Result;
use super::output::{LOOK, Out, paint};
use super::wording::{count, name, short, size};
use super::{args, exit};
use stvc::engine::Workspace;
use stvc::history::retention::Policy;
use stvc::lines::{Counts, SnapshotLine};
use stvc::verbs;
use stvc::verbs::forget::Options;

/// How many of a timeline are listed.
const LISTED: usize = 5;

pub fn run(args: &args::Forget, workspace: &Workspace, out: &mut Out) -> Result<u8> {
    let policy = Policy {
        keep_last: args.keep_last,
        keep_hourly: args.keep_hourly,
        keep_daily: args.keep_daily,
        keep_weekly: args.keep_weekly,
        keep_monthly: args.keep_monthly,
        keep_within: args.keep_within.map(|span| span.0),
        keep_tag: args.keep_tag,
    };
    let options = Options { timelines: args.timelines.clone(), policy, dry_run: args.dry_run };
    let report = verbs::forget::forget(workspace, &options, &mut out.progress())?;
    let mut gone = 0;
    for timeline in &report.timelines {
        gone += timeline.forgotten.len();
        out.say(format!(
            "{}: {} {}, {} kept",
            paint(LOOK.name, name(&timeline.name)),
            count(timeline.forgotten.len() as u64, "snapshot"),
            if report.dry_run { "would go" } else { "gone" },
            timeline.kept
        ));
        for (n, snapshot) in timeline.forgotten.iter().enumerate() {
            out.object(SnapshotLine::new(snapshot, &[]));
            if n < LISTED {
                out.say(format!(
                    "  {}  {}, {}",
                    paint(LOOK.id, short(snapshot.id)),
                    count(snapshot.messages, "message"),
                    out.clock(workspace).age(snapshot.time)
                ));
            }
        }
        if timeline.forgotten.len() > LISTED {
            out.say(format!("  … and {} more", timeline.forgotten.len() - LISTED));
        }
    }
    match (gone, report.dry_run) {
        (0, _) => out
            .say(format!("Nothing to forget: all {} stay.", count(report.kept as u64, "snapshot"))),
        (_, true) => out.say(format!(
            "{} would go and {} stay; that would free {}.",
            count(gone as u64, "snapshot"),
            report.kept,
            size(report.bytes)
        )),
        _ => {
            out.say(format!("{} gone, {} stay.", count(gone as u64, "snapshot"), report.kept));
            if report.rewritten > 0 {
                let rewritten = count(report.rewritten as u64, "snapshot");
                out.say(format!("New ids for {rewritten}; the old ids still work."));
            }
            out.say(format!(
                "`stvc undo` brings them back. `stvc gc` frees what they take, {}, once that is no longer wanted: after 30 days, or at once with `--keep-undo 0d --grace 0d`.",
                size(report.bytes)
            ));
        }
    }
    let counts = Counts::Forget {
        forgotten: gone,
        kept: report.kept,
        rewritten: report.rewritten,
        bytes: report.bytes,
        dry_run: report.dry_run,
    };
    out.summary("forget", true, counts);
    Ok(exit::DONE)
}
