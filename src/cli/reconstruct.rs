use clap_complete::engine::ArgValueCompleter;

use super::complete::chats;
use super::error::Result;
use super::output::{Output, short_id};
use super::wording::{clean, count, name};
use stvc::moments::Origin;
use stvc::snapshots::Snapshot;
use stvc::verbs::reconstruct::{Options, ReconstructOutcome, Reconstruction, Report};
use stvc::{Workspace, verbs};

#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// Chat to reconstruct: a file, `Character/Chat name`, or any part of it that matches only one
    /// chat
    #[arg(add = ArgValueCompleter::new(chats), value_name = "TIMELINE")]
    pub timeline: String,

    /// Reconstruct the chat as of message N
    #[arg(long, value_name = "N", conflicts_with = "all")]
    pub at: Option<usize>,

    /// Reconstruct the chat as of the end of every scene (default)
    #[arg(long)]
    pub all: bool,

    /// Only show what would be done
    #[arg(long, short = 'n')]
    pub dry_run: bool,
}

const HELP: &str = "ST-Auto-Recap records the whole lorebook on each message that ends a scene. stvc \
    reconstructs the chat at that message from this record: messages 0 to N, the running recap \
    without later versions, and the lorebook with its UIDs and an empty queue. The snapshot is \
    marked as reconstructed. Values that the record does not have come from the same entry in \
    the lorebook of the nearest snapshot or in the current lorebook, or else are SillyTavern's \
    defaults. Use --json to list the source of every entry.";

pub fn run(args: &Args, workspace: &Workspace, out: &mut Output) -> Result<u8> {
    let options = Options { timeline: args.timeline.clone(), at: args.at, dry_run: args.dry_run };
    let report = verbs::reconstruct::reconstruct(workspace, &options, &mut out.progress())?;
    Ok(out.answer(&report, |out| print_all(&report, out)))
}

fn print_all(report: &Report, out: &mut Output) {
    if report.taken_first {
        let verb = if report.dry_run { "would be" } else { "was" };
        out.say(format!("A snapshot of the current chat {verb} created first."));
    }
    for outcome in &report.outcomes {
        match &outcome.result {
            ReconstructOutcome::Made(snapshot, origin) => {
                print(outcome, snapshot.as_deref(), origin, out);
            }
            ReconstructOutcome::Known(snapshot) => {
                out.say(format!("{}  {}  already exists", short_id(snapshot.id), place(outcome)))
            }
            ReconstructOutcome::Lost(findings) => out.findings(findings),
            ReconstructOutcome::OfParent(parent) => {
                let (place, parent) = (place(outcome), name(parent));
                out.say(format!("{:10}  {place}  is before the fork point; see {parent}", ""));
            }
        }
    }
    out.findings(&report.findings);
    let made = report.count(|found| matches!(found, ReconstructOutcome::Made(..)));
    let known = report.count(|found| matches!(found, ReconstructOutcome::Known(_)));
    let verb = if report.dry_run { "would be reconstructed" } else { "reconstructed" };
    let (made, timeline) = (count(made, "snapshot"), name(&report.timeline));
    let known = if known > 0 { format!(", {known} already known") } else { String::new() };
    out.say(if report.outcomes.is_empty() {
        format!("Nothing to reconstruct: no message of {timeline} ends a scene.")
    } else {
        format!("{made} of {timeline} {verb}{known}.")
    });
    if report.rewritten > 0 {
        let rewritten = count(report.rewritten, "snapshot");
        out.say(format!("{rewritten} after them got new ids; the old ids still work."));
    }
}

fn print(outcome: &Reconstruction, snapshot: Option<&Snapshot>, origin: &Origin, out: &mut Output) {
    let entries = match &origin.scene {
        Some(_) => count(origin.entries.len(), "lorebook entry"),
        None => "no lorebook".into(),
    };
    let place = place(outcome);
    let Some(snapshot) = snapshot else {
        return out.say(format!("would add   {place}  {entries}"));
    };
    let (id, messages) = (short_id(snapshot.id), count(snapshot.messages, "message"));
    let date = out.clock.date(snapshot.time);
    out.say(format!("{id}  {place}  {messages}, {entries}, {date}"));
}

fn place(outcome: &Reconstruction) -> String {
    let scene = outcome.scene.as_ref().map(|name| format!(" {}", clean(name)));
    format!("#{}{}", outcome.message, scene.unwrap_or_default())
}
