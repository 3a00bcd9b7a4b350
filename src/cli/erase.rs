use std::io;
use std::path::Path;

use clap_complete::engine::ArgValueCompleter;

use super::complete::deleted;
use super::error::Result;
use super::output::{Output, STYLES, ask, bold_name, paint};
use super::wording::{clean, count, name, shell, size};
use stvc::copies::LastBackup;
use stvc::json_output::answers::{Decision, Erasure};
use stvc::library::TimelineName;
use stvc::verbs::erase::{Options, Report, TraceKind};
use stvc::{Workspace, verbs};

#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// Timelines of chats that are already deleted in SillyTavern
    ///
    /// With --copies and no names, copies of timelines erased earlier are removed.
    #[arg(add = ArgValueCompleter::new(deleted), value_name = "TIMELINE", required_unless_present = "copies")]
    pub timelines: Vec<String>,

    /// Also remove copies in SillyTavern's own backups and in mirrors
    ///
    /// The lorebook, pictures and files of the chat are removed too if nothing else uses them.
    #[arg(long)]
    pub copies: bool,

    /// Erase without asking
    #[arg(long, short)]
    pub yes: bool,

    /// Only show what would be done
    #[arg(long, short = 'n')]
    pub dry_run: bool,
}

const HELP: &str = "For chats that nobody should read again. Their snapshots and tags are removed \
    from the history and the operation log, and data that only they used is deleted from the disk \
    when the command ends. Forks stay, with the messages that they share with the erased chat. \
    Earlier operations cannot be undone afterwards. The command lists backups that still have the \
    chat; `sync` does not restore it. Without names, `stvc erase --copies` removes the accessible \
    copies of timelines erased earlier.";

pub fn run(args: &Args, workspace: &Workspace, out: &mut Output) -> Result<u8> {
    if args.timelines.is_empty() {
        return finish(args, workspace, out);
    }
    let options = Options { timelines: args.timelines.clone(), dry_run: true };
    let plan = match verbs::erase::erase(workspace, &options, &mut out.progress()) {
        Err(error) => {
            let left = || verbs::erase::left_copies(workspace);
            if error.is_unknown_timeline() && left().is_ok_and(|left| has_copies(&left)) {
                out.warn("There are copies of timelines erased earlier. Run `stvc erase --copies`, without a name, to remove them.");
            }
            return Err(error.into());
        }
        plan => plan?,
    };
    let asks = !args.dry_run && !args.yes;
    if asks || args.dry_run {
        print(&plan, Copies::Stay, out);
    }
    if args.dry_run || asks && !(out.may_ask() && agreed_to(FOR_GOOD)) {
        return Ok(unchanged(&plan, args, out));
    }
    let can_be_removed =
        has_removable_traces(&plan) || plan.backups.iter().any(LastBackup::is_folder_in_reach);
    let copies = args.copies || can_be_removed && asks && agreed_to(COPIES);
    // Copies are removed before the timeline, so that the command can be repeated if removing a
    // copy fails.
    let mut removed = Vec::new();
    if copies {
        verbs::erase::must_know_copies(workspace, &plan)?;
        removed = remove_copies(&plan, workspace, out)?;
    }
    let options = Options { dry_run: false, ..options };
    let report = verbs::erase::erase(workspace, &options, &mut out.progress())?;
    let decision = if copies { Decision::ErasedWithCopies } else { Decision::Erased };
    let erasure = Erasure { plan: &plan, report: &report, removed: &removed, decision };
    let text = |out: &mut Output| {
        if !asks {
            print(&report, if copies { Copies::Go } else { Copies::Stay }, out);
        }
        out.say(format!("Erased; {} freed.", size(report.bytes)));
        if can_be_removed && !copies {
            out.say("Run `stvc erase --copies` to remove the accessible copies.");
        }
    };
    Ok(out.answer(&erasure, text))
}

fn has_removable_traces(report: &Report) -> bool {
    report.traces.iter().any(|trace| trace.kind.can_be_removed())
}

fn has_copies(report: &Report) -> bool {
    has_removable_traces(report) || !report.backups.is_empty()
}

/// Removes the copies of timelines that were erased earlier, as far as they are accessible.
fn finish(args: &Args, workspace: &Workspace, out: &mut Output) -> Result<u8> {
    let mut plan = verbs::erase::left_copies(workspace)?;
    plan.dry_run = args.dry_run;
    for trace in &plan.traces {
        let what = match trace.kind {
            TraceKind::Unreadable => "cannot be read: it may use files of an erased timeline",
            kind if kind.can_be_removed() => "has text of an erased timeline",
            _ => "has text of an erased timeline, but is kept: others use it now",
        };
        out.say(format!("{} {what}", clean(&trace.path)));
    }
    for taken in &plan.backups {
        out.say(format!(
            "the backup in {} has text of an erased timeline",
            clean(&taken.destination)
        ));
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
        out.say("Nothing to do: no accessible copy has text of an erased timeline.");
    }
    Ok(out.answer(&Erasure { plan: &plan, report: &plan, removed: &removed, decision }, |_| {}))
}

fn unchanged(plan: &Report, args: &Args, out: &mut Output) -> u8 {
    let decision = if args.dry_run { Decision::Planned } else { Decision::Declined };
    let text = |out: &mut Output| {
        out.say(if args.dry_run || out.may_ask() {
            "Nothing was changed."
        } else {
            "Nothing was changed: there is no terminal to ask on. Add --yes to erase."
        })
    };
    out.answer(&Erasure { plan, report: plan, removed: &[], decision }, text)
}

fn remove_copies(plan: &Report, workspace: &Workspace, out: &mut Output) -> Result<Vec<String>> {
    let mut removed = Vec::new();
    if has_removable_traces(plan) {
        removed = verbs::erase::remove_traces(workspace, plan)?;
        // If a chat is erased, `erase` also erases its lorebook.
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

const FOR_GOOD: &str = "This cannot be undone. Type yes to continue: ";
const COPIES: &str = "Also remove the copies in SillyTavern's backups and in the mirrors above, with the lorebook, pictures and files that nothing else uses? Type yes to continue: ";

#[derive(Clone, Copy, PartialEq, Eq)]
enum Copies {
    Stay,
    Go,
}

fn print(report: &Report, copies: Copies, out: &mut Output) {
    let verb = if report.dry_run { "would be erased" } else { "erased" };
    for timeline in &report.timelines {
        let mut facts = count(timeline.snapshots, "snapshot");
        if !timeline.tags.is_empty() {
            let tags: Vec<_> = timeline.tags.iter().map(|tag| clean(tag)).collect();
            facts.push_str(&format!(" (tags {})", tags.join(", ")));
        }
        out.say(format!("{}: {facts} {verb}", bold_name(&timeline.name)));
    }
    let names = |names: &[TimelineName]| names.iter().map(name).collect::<Vec<_>>().join(", ");
    if !report.forks.is_empty() {
        let forks = names(&report.forks);
        out.say(format!("Forks, kept with the messages that they share: {forks}."));
    }
    if !report.parents.is_empty() {
        let parents = names(&report.parents);
        out.say(format!("Messages up to the fork point stay in {parents} and in backups."));
    }
    out.say("Earlier operations cannot be undone after this.");
    let way_there = if report.dry_run { "`--copies`" } else { "`stvc erase --copies`" };
    for trace in &report.traces {
        let path = clean(&trace.path);
        let has = match trace.kind {
            TraceKind::Attachment | TraceKind::SharedAttachment => "belongs to an erased timeline",
            TraceKind::Unreadable => "cannot be read",
            _ => "has text of an erased timeline",
        };
        let is_removed = copies == Copies::Go && trace.kind.can_be_removed();
        let way = match trace.kind {
            _ if is_removed => continue,
            TraceKind::ChatBackup => {
                format!("a backup by SillyTavern; use {way_there} to delete it")
            }
            TraceKind::Lorebook => {
                format!("its lorebook, which nothing else uses; use {way_there} to delete it")
            }
            TraceKind::SharedLorebook => "its lorebook, which is kept because others use it".into(),
            TraceKind::Attachment => {
                format!("an attachment that nothing else uses; use {way_there} to delete it")
            }
            TraceKind::SharedAttachment => {
                "an attachment, which is kept because others may use it".into()
            }
            TraceKind::Unreadable => {
                "it may have text of an erased timeline, or use its files".into()
            }
            TraceKind::Mailbox => {
                "a message to SillyTavern's page, which is removed with the chat".into()
            }
        };
        out.warn(&format!("{}: {path} {has}: {way}", paint(STYLES.warn, "warning")));
    }
    let is_left = |taken: &&LastBackup| copies == Copies::Stay || !taken.is_folder_in_reach();
    for taken in report.backups.iter().filter(is_left) {
        let place = clean(&taken.destination);
        let way = match taken.kind.as_str() {
            "file" => "delete that file and create a new backup".to_owned(),
            "folder" => format!("use {way_there} to remove it there"),
            _ => format!(
                "run `stvc backup {} --prune` to remove it from the branches; the server's next garbage collection deletes it",
                shell(&taken.destination)
            ),
        };
        out.warn(&format!(
            "{}: the backup {place} still has it; {way}",
            paint(STYLES.warn, "warning")
        ));
    }
}

fn agreed_to(question: &str) -> bool {
    ask(question, &mut io::stdin().lock(), &mut io::stderr()).eq_ignore_ascii_case("yes")
}
