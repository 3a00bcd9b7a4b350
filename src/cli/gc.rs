use std::time::Duration;

use super::error::Result;
use super::output::Output;
use super::wording::{count, size};
use stvc::retention::parse_span;
use stvc::verbs::gc::{Options, Report};
use stvc::{Workspace, verbs};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Keep operations of this period undoable
    ///
    /// Data that only older operations need is deleted.
    #[arg(long, value_name = "TIME", default_value = "30d", value_parser = parse_span)]
    pub keep_undo: Duration,

    /// Keep unreachable objects that are newer than this
    #[arg(long, value_name = "TIME", default_value = "14d", value_parser = parse_span)]
    pub grace: Duration,

    /// Only show what would be done
    #[arg(long, short = 'n')]
    pub dry_run: bool,
}

pub fn run(args: &Args, workspace: &Workspace, out: &mut Output) -> Result<u8> {
    let options = Options { undo: args.keep_undo, grace: args.grace, dry_run: args.dry_run };
    let report = verbs::gc::gc(workspace, &options, &mut out.progress())?;
    Ok(out.answer(&report, |out| print(&report, out)))
}

fn print(report: &Report, out: &mut Output) {
    let collected = &report.collected;
    let (before, after) = (collected.bytes_before, collected.bytes_after);
    if collected.changed {
        let objects = count(collected.packed.objects, "object");
        let (deltas, times) = (collected.packed.deltas, before / after.max(1));
        let times = if times >= 2 { format!(" (1/{times})") } else { String::new() };
        let (before, after) = (size(before), size(after));
        out.say(format!(
            "{objects} in one pack, {deltas} of them as deltas: {before} before, {after} now{times}."
        ));
    } else if !report.dry_run {
        out.say(format!("Nothing to do: the store is already compact, {}.", size(after)));
    } else {
        let packs = count(collected.packs_before, "pack");
        out.say(format!("{packs} ({}) would become one.", size(before)));
    }
    if collected.dropped > 0 {
        let verb = if report.dry_run { "would be deleted" } else { "deleted" };
        out.say(format!("{} {verb}.", count(collected.dropped, "unreachable object")));
    }
    if collected.spared > 0 {
        let spared = count(collected.spared, "unreachable object");
        out.say(format!("{spared} kept: newer than the grace period."));
    }
    if report.expired > 0 {
        let verb = if report.dry_run { "could no longer" } else { "can no longer" };
        out.say(format!("{} {verb} be undone.", count(report.expired, "old operation")));
    }
}
