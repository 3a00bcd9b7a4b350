use std::io;
use std::path::Path;

use clap_complete::engine::ArgValueCompleter;

use super::complete::timelines;
use super::error::Result;
use super::output::{LOOK, Out, ask, bold_name, paint};
use super::wording::{clean, count, name, shell, size};
use stvc::copies::LastBackup;
use stvc::library::TimelineName;
use stvc::lines::answers::{Decision, Erasure};
use stvc::verbs::erase::{Options, Report, TraceKind};
use stvc::{Workspace, errors, verbs};

#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// The timelines: chats that are deleted in SillyTavern already; with --copies none, to remove the copies of what was erased before
    #[arg(add = ArgValueCompleter::new(timelines), value_name = "TIMELINE", required_unless_present = "copies")]
    pub timelines: Vec<String>,

    /// Also remove it from SillyTavern's own backups and from folder backups, and its lorebook, pictures and files if nothing else uses them
    #[arg(long)]
    pub copies: bool,

    /// Do it without asking
    #[arg(long, short)]
    pub yes: bool,

    /// Only show what would be done
    #[arg(long, short = 'n')]
    pub dry_run: bool,
}

const HELP: &str = "For what nobody shall read again. The snapshots go with their tags, out of the history and the operation log, and what only they had is off the disk when the command ends. \
                    Chats that were forked from it stay, with the messages that they share with it. Nothing that was done before can be undone afterwards. Backups are named that \
                    still have it; `sync` does not bring it back. Without a name, `stvc erase --copies` removes the copies in reach of what was erased before.";

pub fn run(args: &Args, workspace: &Workspace, out: &mut Out) -> Result<u8> {
    if args.timelines.is_empty() {
        return finish(args, workspace, out);
    }
    let options = Options { timelines: args.timelines.clone(), dry_run: true };
    let plan = match verbs::erase::erase(workspace, &options, &mut out.progress()) {
        Err(error) => {
            let left = || verbs::erase::left_copies(workspace);
            if is_unknown(&error) && left().is_ok_and(|left| has_copies(&left)) {
                out.warn("Copies of what was erased before are in reach: `stvc erase --copies`, without a name, removes them.");
            }
            return Err(error.into());
        }
        plan => plan?,
    };
    let asks = !args.dry_run && !args.yes;
    if asks || args.dry_run {
        tell(&plan, Copies::Stay, out);
    }
    if args.dry_run || asks && !(out.may_ask() && agreed_to(FOR_GOOD)) {
        return Ok(unchanged(&plan, args, out));
    }
    let can_be_removed =
        has_removable_traces(&plan) || plan.backups.iter().any(LastBackup::is_folder_in_reach);
    let copies = args.copies || can_be_removed && asks && agreed_to(COPIES);
    // The copies go first: until the timeline is gone from the store, the command can be repeated.
    let mut removed = Vec::new();
    if copies {
        verbs::erase::must_know_copies(workspace, &plan)?;
        removed = remove_copies(&plan, workspace, out)?;
    }
    let options = Options { dry_run: false, ..options };
    let report = verbs::erase::erase(workspace, &options, &mut out.progress())?;
    let decision = if copies { Decision::ErasedWithCopies } else { Decision::Erased };
    let erasure = Erasure { plan: &plan, report: &report, removed: &removed, decision };
    let text = |out: &mut Out| {
        if !asks {
            tell(&report, if copies { Copies::Go } else { Copies::Stay }, out);
        }
        out.say(format!("Gone for good; {} freed.", size(report.bytes)));
        if can_be_removed && !copies {
            out.say("`stvc erase --copies` removes the copies that are in reach.");
        }
    };
    Ok(out.answer(&erasure, text))
}

/// It may have been erased before.
fn is_unknown(error: &verbs::Error) -> bool {
    let verbs::Error::Engine(errors::EngineError::History(error)) = error else { return false };
    matches!(error, errors::MomentError::NoSuchTimeline { .. })
}

fn has_removable_traces(report: &Report) -> bool {
    report.traces.iter().any(|trace| trace.kind.can_be_removed())
}

fn has_copies(report: &Report) -> bool {
    has_removable_traces(report) || !report.backups.is_empty()
}

/// Removes the reachable copies of timelines that were erased before.
fn finish(args: &Args, workspace: &Workspace, out: &mut Out) -> Result<u8> {
    let plan = Report { dry_run: args.dry_run, ..verbs::erase::left_copies(workspace)? };
    for trace in &plan.traces {
        let what = match trace.kind {
            TraceKind::Unreadable => "cannot be read: it may use files of what was erased",
            kind if kind.can_be_removed() => "has text of what was erased",
            _ => "has text of what was erased, and stays: others use it by now",
        };
        out.say(format!("{} {what}", clean(&trace.path)));
    }
    for taken in &plan.backups {
        out.say(format!("the backup in {} has text of what was erased", clean(&taken.destination)));
    }
    let is_any = has_copies(&plan);
    let (mut removed, decision) = (Vec::new(), Decision::ErasedWithCopies);
    let asks = !args.dry_run && !args.yes;
    if is_any && (args.dry_run || asks && !(out.may_ask() && agreed_to(FOR_GOOD))) {
        return Ok(unchanged(&plan, args, out));
    }
    if is_any {
        removed = remove_copies(&plan, workspace, out)?;
    } else {
        out.say("Nothing to do: no copy in reach has text of what was erased.");
    }
    Ok(out.answer(&Erasure { plan: &plan, report: &plan, removed: &removed, decision }, |_| {}))
}

fn unchanged(plan: &Report, args: &Args, out: &mut Out) -> u8 {
    let decision = if args.dry_run { Decision::Planned } else { Decision::Declined };
    let text = |out: &mut Out| {
        out.say(if args.dry_run || out.may_ask() {
            "Nothing has been changed."
        } else {
            "Nothing has been changed: there is nobody to ask. Add --yes to do it."
        })
    };
    out.answer(&Erasure { plan, report: plan, removed: &[], decision }, text)
}

fn remove_copies(plan: &Report, workspace: &Workspace, out: &mut Out) -> Result<Vec<String>> {
    let mut removed = Vec::new();
    if has_removable_traces(plan) {
        removed = verbs::erase::remove_traces(workspace, plan)?;
        // Together with a chat, its lorebook is erased.
        if plan.timelines.is_empty() {
            verbs::erase::erase_removed_books(workspace, &removed, &mut out.progress())?;
        }
    }
    for path in &removed {
        out.say(format!("removed  {}", clean(path)));
    }
    for folder in plan.backups.iter().filter(|taken| taken.is_folder_in_reach()) {
        let path = Path::new(&folder.destination);
        let gone = verbs::erase::erase_from_folder(workspace, path, plan, &mut out.progress())?;
        let (gone, place) = (count(gone, "snapshot"), clean(&folder.destination));
        out.say(format!("removed  {gone} from the backup in {place}"));
        removed.push(folder.destination.clone());
    }
    Ok(removed)
}

const FOR_GOOD: &str = "This cannot be taken back. Type yes to do it: ";
const COPIES: &str = "Also remove it from SillyTavern's backups and the folder backups above, with the lorebook, pictures and files that nothing else uses? Type yes to do it: ";

#[derive(Clone, Copy, PartialEq, Eq)]
enum Copies {
    Stay,
    Go,
}

fn tell(report: &Report, copies: Copies, out: &mut Out) {
    let verb = if report.dry_run { "would go" } else { "went" };
    for timeline in &report.timelines {
        let mut facts = count(timeline.snapshots, "snapshot");
        if !timeline.tags.is_empty() {
            let tags: Vec<_> = timeline.tags.iter().map(|tag| clean(tag)).collect();
            facts.push_str(&format!(", tags {}", tags.join(", ")));
        }
        out.say(format!("{}: {facts} {verb}", bold_name(&timeline.name)));
    }
    let names = |names: &[TimelineName]| names.iter().map(name).collect::<Vec<_>>().join(", ");
    if !report.forks.is_empty() {
        let forks = names(&report.forks);
        out.say(format!("Forked from it, and kept with the messages that they share: {forks}."));
    }
    if !report.parents.is_empty() {
        let parents = names(&report.parents);
        out.say(format!("Forked from {parents}: the messages before the fork stay there, and in the backups of it."));
    }
    out.say("All that was done so far can no longer be undone.");
    let way_there = if report.dry_run { "`--copies`" } else { "`stvc erase --copies`" };
    for trace in &report.traces {
        let path = clean(&trace.path);
        let has = match trace.kind {
            TraceKind::Attachment | TraceKind::SharedAttachment => "belongs to it",
            TraceKind::Unreadable => "cannot be read",
            _ => "has text of it",
        };
        let is_removed = copies == Copies::Go && trace.kind.can_be_removed();
        let way = match trace.kind {
            _ if is_removed => continue,
            TraceKind::ChatBackup => {
                format!("a backup that SillyTavern made; {way_there} deletes it")
            }
            TraceKind::Lorebook => {
                format!("its lorebook, which nothing else uses; {way_there} deletes it")
            }
            TraceKind::SharedLorebook => "its lorebook, which others use: it stays".into(),
            TraceKind::Attachment => {
                format!("a file of its messages, which nothing else uses; {way_there} deletes it")
            }
            TraceKind::SharedAttachment => {
                "a file of its messages, which others use or may use: it stays".into()
            }
            TraceKind::Unreadable => "it may have text of it, or use its files".into(),
            TraceKind::Mailbox => {
                "written for SillyTavern's page; it is removed with the chat".into()
            }
        };
        out.warn(&format!("{}: {path} {has}: {way}", paint(LOOK.warn, "warning")));
    }
    let is_left = |taken: &&LastBackup| copies == Copies::Stay || !taken.is_folder_in_reach();
    for taken in report.backups.iter().filter(is_left) {
        let place = clean(&taken.destination);
        let way = match taken.kind.as_str() {
            "file" => "delete that file, and take a new one".to_owned(),
            "folder" => format!("{way_there} removes it there, too"),
            _ => format!(
                "`stvc backup {} --prune` takes it from its branches; the server keeps it until it cleans up",
                shell(&taken.destination)
            ),
        };
        out.warn(&format!("{}: {place} still has it; {way}", paint(LOOK.warn, "warning")));
    }
}

fn agreed_to(question: &str) -> bool {
    ask(question, &mut io::stdin().lock(), &mut io::stderr()).eq_ignore_ascii_case("yes")
}
