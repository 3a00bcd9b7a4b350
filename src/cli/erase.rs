use std::io::{self, BufRead, Write};
use std::path::Path;

use super::error::Result;
use super::output::{LOOK, Out, paint};
use super::wording::{clean, count, name, shell, size};
use super::{args, exit};
use stvc::engine::Workspace;
use stvc::engine::copies::last_backups::LastBackup;
use stvc::lines::{CopyLine, Counts, ErasedLine, TraceLine};
use stvc::verbs;
use stvc::verbs::erase::{Options, Report, TraceKind};

pub fn run(args: &args::Erase, workspace: &Workspace, out: &mut Out) -> Result<u8> {
    let options = Options { timelines: args.timelines.clone(), dry_run: true };
    let plan = verbs::erase::erase(workspace, &options, &mut out.progress())?;
    let asks = !args.dry_run && !args.yes;
    if asks || args.dry_run {
        tell(&plan, Copies::Stay, out);
    }
    if args.dry_run || asks && !(out.may_ask() && agreed_to(FOR_GOOD)) {
        out.say(match args.dry_run || out.may_ask() {
            true => "Nothing has been changed.",
            false => "Nothing has been changed: there is nobody to ask. Add --yes to do it.",
        });
        let code = summary(&plan, &plan, &[], out);
        return Ok(if asks { exit::REFUSED } else { code });
    }
    let can_be_removed = plan.traces.iter().any(|trace| trace.kind.can_be_removed())
        || plan.backups.iter().any(is_folder);
    let mut removed = Vec::new();
    let copies = can_be_removed && (args.copies || asks && agreed_to(COPIES));
    if copies {
        removed = verbs::erase::remove_traces(workspace, &plan)?;
        for path in &removed {
            out.say(format!("removed  {}", clean(path)));
        }
    }
    let report = verbs::erase::erase(
        workspace,
        &Options { dry_run: false, ..options },
        &mut out.progress(),
    )?;
    if !asks {
        tell(&report, if copies { Copies::Go } else { Copies::Stay }, out);
    }
    out.say(format!("Gone for good; {} freed.", size(report.bytes)));
    if copies {
        for folder in plan.backups.iter().filter(|taken| is_folder(taken)) {
            let path = Path::new(&folder.destination);
            let gone =
                verbs::erase::erase_from_folder(workspace, path, &plan, &mut out.progress())?;
            let (gone, place) = (count(gone as u64, "snapshot"), clean(&folder.destination));
            out.say(format!("removed  {gone} from the backup in {place}"));
            removed.push(folder.destination.clone());
        }
    }
    Ok(summary(&report, &plan, &removed, out))
}

/// Returns whether a backup is a folder that is in reach.
fn is_folder(taken: &LastBackup) -> bool {
    taken.kind == "folder" && Path::new(&taken.destination).is_dir()
}

const FOR_GOOD: &str = "This cannot be taken back. Type yes to do it: ";
const COPIES: &str = "Also remove it from SillyTavern's backups, its own lorebook and the folder backups above? Type yes to do it: ";

/// Whether the copies that are in reach are removed as well.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Copies {
    Stay,
    Go,
}

/// What goes, what stays, and where else it is.
fn tell(report: &Report, copies: Copies, out: &mut Out) {
    let verb = if report.dry_run { "would go" } else { "went" };
    for timeline in &report.timelines {
        out.object(ErasedLine::from(timeline));
        let mut facts = count(timeline.snapshots as u64, "snapshot");
        if !timeline.tags.is_empty() {
            let tags: Vec<_> = timeline.tags.iter().map(|tag| clean(tag)).collect();
            facts.push_str(&format!(", tags {}", tags.join(", ")));
        }
        out.say(format!("{}: {facts} {verb}", paint(LOOK.name, name(&timeline.name))));
    }
    if !report.forks.is_empty() {
        let forks: Vec<_> = report.forks.iter().map(name).collect();
        out.say(format!(
            "Forked from it, and kept with the messages that they share: {}.",
            forks.join(", ")
        ));
    }
    out.say("All that was done so far can no longer be undone.");
    for trace in &report.traces {
        let path = clean(&trace.path);
        let way = match trace.kind {
            TraceKind::ChatBackup => "a backup that SillyTavern made; `--copies` deletes it",
            TraceKind::Lorebook => "its lorebook, which nothing else uses; `--copies` deletes it",
            TraceKind::SharedLorebook => "its lorebook, which others use: it stays",
            TraceKind::Mailbox => "written for SillyTavern's page; it is removed with the chat",
        };
        out.warn(&format!("{}: {path} has text of it: {way}", paint(LOOK.warn, "warning")));
    }
    let is_left = |taken: &&LastBackup| copies == Copies::Stay || !is_folder(taken);
    for taken in report.backups.iter().filter(is_left) {
        let place = clean(&taken.destination);
        let way = match taken.kind.as_str() {
            "file" => "delete that file, and take a new one".to_owned(),
            "folder" => "`--copies` removes it there, too".to_owned(),
            _ => format!(
                "`stvc backup {} --prune` takes it from its branches; the server keeps it until it cleans up",
                shell(&taken.destination)
            ),
        };
        out.warn(&format!("{}: {place} still has it; {way}", paint(LOOK.warn, "warning")));
    }
}

/// The lines about where the text still is, and the last one; `plan` named the files that were removed since.
fn summary(report: &Report, plan: &Report, removed: &[String], out: &mut Out) -> u8 {
    for trace in &plan.traces {
        let is_gone = trace.kind == TraceKind::Mailbox && !report.dry_run;
        out.object(TraceLine::new(trace, is_gone || removed.contains(&trace.path)));
    }
    let is_left = |taken: &&LastBackup| !removed.contains(&taken.destination);
    for taken in report.backups.iter().filter(is_left) {
        out.object(CopyLine::from(taken));
    }
    let counts = Counts::Erase {
        timelines: report.timelines.len(),
        snapshots: report.timelines.iter().map(|timeline| timeline.snapshots).sum(),
        forks: report.forks.len(),
        backups: report.backups.iter().filter(is_left).count(),
        bytes: report.bytes,
        dry_run: report.dry_run,
    };
    out.summary("erase", true, counts);
    exit::DONE
}

fn agreed_to(question: &str) -> bool {
    let mut answer = String::new();
    let asked = io::stderr()
        .write_all(question.as_bytes())
        .and_then(|()| io::stdin().lock().read_line(&mut answer));
    asked.is_ok() && answer.trim().eq_ignore_ascii_case("yes")
}
