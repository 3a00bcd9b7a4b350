use clap_complete::engine::ArgValueCompleter;

use super::complete::timelines;
use super::error::Result;
use super::output::{Out, short_id};
use super::wording::{clean, count, name};
use stvc::moments::Origin;
use stvc::snapshots::Snapshot;
use stvc::verbs::reconstruct::{Found, Options, Reconstruction, Report};
use stvc::{Workspace, verbs};

#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// The chat: a file, `Character/Chat name`, or any part of that which fits only one
    #[arg(add = ArgValueCompleter::new(timelines), value_name = "TIMELINE")]
    pub timeline: String,

    /// The state at message N
    #[arg(long, value_name = "N", conflicts_with = "all")]
    pub at: Option<usize>,

    /// The state at the end of every scene; so it is without --at, too
    #[arg(long)]
    pub all: bool,

    /// Only show what would be done
    #[arg(long, short = 'n')]
    pub dry_run: bool,
}

const HELP: &str = "ST-Auto-Recap notes the whole lorebook on each message that ends a scene. From that, the state of then is put together: messages 0 to N, the running recap \
                    without later versions, the lorebook with its UIDs and an empty queue. Such a snapshot says that it is reconstructed. What the note does not hold comes \
                    from the nearest snapshot's lorebook or today's, where the same entry stands, else it is SillyTavern's default; --json tells which, for every entry.";

pub fn run(args: &Args, workspace: &Workspace, out: &mut Out) -> Result<u8> {
    let options = Options { timeline: args.timeline.clone(), at: args.at, dry_run: args.dry_run };
    let report = verbs::reconstruct::reconstruct(workspace, &options, &mut out.progress())?;
    Ok(out.answer(&report, |out| tell_all(&report, out)))
}

fn tell_all(report: &Report, out: &mut Out) {
    if report.taken_first {
        let verb = if report.dry_run { "would be" } else { "was" };
        out.say(format!("The chat as it is now {verb} snapshotted first."));
    }
    for outcome in &report.outcomes {
        match &outcome.result {
            Found::Made(snapshot, origin) => {
                tell(outcome, snapshot.as_deref(), origin, out);
            }
            Found::Known(snapshot) => {
                out.say(format!("{}  {}  is there already", short_id(snapshot.id), place(outcome)))
            }
            Found::Lost(findings) => out.findings(findings),
            Found::OfParent(parent) => {
                let (place, parent) = (place(outcome), name(parent));
                out.say(format!("{:10}  {place}  is of before the fork: see {parent}", ""));
            }
        }
    }
    out.findings(&report.findings);
    let made = report.count(|found| matches!(found, Found::Made(..)));
    let known = report.count(|found| matches!(found, Found::Known(_)));
    let verb = if report.dry_run { "would be reconstructed" } else { "reconstructed" };
    let (made, timeline) = (count(made, "state"), name(&report.timeline));
    let known = if known > 0 { format!(", {known} known already") } else { String::new() };
    out.say(if report.outcomes.is_empty() {
        format!("No message of {timeline} ends a scene, so there is nothing to reconstruct from.")
    } else {
        format!("{made} of {timeline} {verb}{known}.")
    });
    if report.rewritten > 0 {
        let rewritten = count(report.rewritten, "snapshot");
        out.say(format!("{rewritten} after them got new ids; the old ids still work."));
    }
}

fn tell(outcome: &Reconstruction, snapshot: Option<&Snapshot>, origin: &Origin, out: &mut Out) {
    let entries = match &origin.scene {
        Some(_) => count(origin.entries.len(), "lorebook entry"),
        None => "no lorebook".into(),
    };
    let place = place(outcome);
    let Some(snapshot) = snapshot else {
        return out.say(format!("would make  {place}  {entries}"));
    };
    let (id, messages) = (short_id(snapshot.id), count(snapshot.messages, "message"));
    let date = out.clock.date(snapshot.time);
    out.say(format!("{id}  {place}  {messages}, {entries}, {date}"));
}

fn place(outcome: &Reconstruction) -> String {
    let scene = outcome.scene.as_ref().map(|name| format!(" {}", clean(name)));
    format!("#{}{}", outcome.message, scene.unwrap_or_default())
}
