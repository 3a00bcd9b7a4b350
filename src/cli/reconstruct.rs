use clap_complete::engine::ArgValueCompleter;

use super::clock::Clock;
use super::complete::timelines;
use super::error::Result;
use super::exit;
use super::output::{LOOK, Out, paint};
use super::wording::{clean, count, name, short};
use stvc::engine::Workspace;
use stvc::history::at_message::Origin;
use stvc::lines::{Counts, EntryLine, SnapshotLine};
use stvc::verbs;
use stvc::verbs::reconstruct::{Found, Options, Reconstruction};

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
    if report.taken_first {
        let verb = if report.dry_run { "would be" } else { "was" };
        out.say(format!("The chat as it is now {verb} snapshotted first."));
    }
    let (mut made, mut known, mut lost, mut of_parent) = (0, 0, 0, 0);
    for outcome in &report.outcomes {
        match &outcome.result {
            Found::Made(snapshot, origin) => {
                made += 1;
                tell(outcome, snapshot.as_deref(), origin, out.clock(workspace), out);
            }
            Found::Known(snapshot) => {
                known += 1;
                out.object(SnapshotLine::new(snapshot, &[]).unchanged(true));
                out.say(format!(
                    "{}  {}  is there already",
                    paint(LOOK.id, short(snapshot.id)),
                    place(outcome)
                ));
            }
            Found::Lost(findings) => {
                lost += 1;
                out.findings(findings);
            }
            Found::OfParent(parent) => {
                of_parent += 1;
                out.say(format!(
                    "{:10}  {}  is of before the fork: see {}",
                    "",
                    place(outcome),
                    name(parent)
                ));
            }
        }
    }
    out.findings(&report.findings);
    let verb = if report.dry_run { "would be reconstructed" } else { "reconstructed" };
    match report.outcomes.len() {
        0 => out.say(format!(
            "No message of {} ends a scene, so there is nothing to reconstruct from.",
            name(&report.timeline)
        )),
        _ => out.say(format!(
            "{} of {} {verb}{}.",
            count(made, "state"),
            name(&report.timeline),
            if known > 0 { format!(", {known} known already") } else { String::new() }
        )),
    }
    if report.rewritten > 0 {
        let rewritten = count(report.rewritten as u64, "snapshot");
        out.say(format!("{rewritten} after them got new ids; the old ids still work."));
    }
    let counts = Counts::Reconstruct {
        reconstructed: made,
        known,
        lost,
        of_parent,
        taken_first: report.taken_first,
        rewritten: report.rewritten,
        dry_run: report.dry_run,
    };
    out.summary("reconstruct", lost == 0, counts);
    Ok(match (lost, made + known) {
        (0, _) => exit::DONE,
        (_, 0) => exit::REFUSED,
        _ => exit::PARTLY,
    })
}

fn tell(
    outcome: &Reconstruction,
    snapshot: Option<&stvc::archive::Snapshot>,
    origin: &Origin,
    clock: Clock,
    out: &mut Out,
) {
    let entries = match &origin.scene {
        Some(_) => count(origin.entries.len() as u64, "lorebook entry"),
        None => "no lorebook".into(),
    };
    match snapshot {
        Some(snapshot) => {
            out.object(SnapshotLine::new(snapshot, &[]).unchanged(false));
            out.say(format!(
                "{}  {}  {}, {entries}, {}",
                paint(LOOK.id, short(snapshot.id)),
                place(outcome),
                count(snapshot.messages, "message"),
                clock.date(snapshot.time)
            ));
        }
        None => out.say(format!("would make  {}  {entries}", place(outcome))),
    }
    for entry in &origin.entries {
        out.object(EntryLine::new(entry, origin));
    }
}

fn place(outcome: &Reconstruction) -> String {
    let scene = outcome.scene.as_ref().map(|name| format!(" {}", clean(name)));
    format!("#{}{}", outcome.message, scene.unwrap_or_default())
}
