use std::collections::BTreeMap;
use std::path::PathBuf;

use super::args::{ClosedArgs, Secret};
use super::error::Result;
use super::output::{LOOK, Out, bold_name, paint};
use super::passphrase;
use super::wording::{clean, count, size};
use stvc::copies::{self, CopyPlace, Outcome, ReceivedTimeline};
use stvc::findings::lost_attachments;
use stvc::verbs::import::chat_backups::{ChatBackupOutcome, Options, Report};
use stvc::verbs::import::stvc_backup;
use stvc::{Workspace, verbs};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// A backup: a file, a folder or a git server; or a folder of SillyTavern's backups. SillyTavern's own backups/ if not given
    #[arg(value_name = "SRC")]
    pub source: Option<PathBuf>,

    /// Only show what would be done
    #[arg(long, short = 'n')]
    pub dry_run: bool,

    #[command(flatten)]
    pub closed: ClosedArgs,
}

pub fn run(args: &Args, secret: &Secret, workspace: &Workspace, out: &mut Out) -> Result<u8> {
    // SillyTavern's backups are a folder, too, but not a repository.
    if let Some(source) = &args.source {
        match CopyPlace::parse(&source.to_string_lossy())? {
            CopyPlace::Folder(folder) if !copies::is_repository(&folder) => {}
            source => {
                let options = stvc_backup::Options {
                    passphrase: passphrase::of_place(secret, &source)?,
                    source,
                    asks: out.may_ask(),
                    closed: args.closed.state(),
                    dry_run: args.dry_run,
                };
                let report = stvc_backup::take_in(workspace, &options, &mut out.progress())?;
                return Ok(out.answer(&report, |out| tell_backup(&report, out)));
            }
        }
    }
    let options = Options { source: args.source.clone(), dry_run: args.dry_run };
    let report = verbs::import::chat_backups::import(workspace, &options, &mut out.progress())?;
    Ok(out.answer(&report, |out| tell(&report, out)))
}

fn tell(report: &Report, out: &mut Out) {
    if report.taken_first > 0 {
        let first = count(report.taken_first, "snapshot");
        out.say(format!("First, {first} of the chats as they are now."));
    }
    out.findings(&report.findings);
    list(report, out);
    let imported = report.count(|outcome| matches!(outcome, ChatBackupOutcome::Imported(_)));
    let known = report.count(|outcome| matches!(outcome, ChatBackupOutcome::Known(_)));
    let verb = if report.dry_run { "would become" } else { "became" };
    if report.entries.is_empty() {
        // `.` says little at the end of a sentence.
        let source = std::path::absolute(&report.source).unwrap_or_else(|_| report.source.clone());
        out.say(format!("There are no backups in {}.", clean(&source.display().to_string())));
    } else {
        let (backups, there) = (count(report.entries.len(), "backup"), size(report.bytes_there));
        let more = if report.dry_run { "little".into() } else { size(report.bytes_written) };
        out.say(format!("{imported} of {backups} {verb} snapshots, {known} known already. The backups take {there}; in the store, {more} more."));
    }
    if report.rewritten > 0 {
        let rewritten = count(report.rewritten, "snapshot");
        out.say(format!("{rewritten} after them got new ids; the old ids still work."));
    }
}

fn list(report: &Report, out: &mut Out) {
    let mut timelines: BTreeMap<_, (u64, u64)> = BTreeMap::new();
    for entry in &report.entries {
        match &entry.outcome {
            ChatBackupOutcome::Imported(timeline) => timelines.entry(timeline).or_default().0 += 1,
            ChatBackupOutcome::Known(timeline) => timelines.entry(timeline).or_default().1 += 1,
            ChatBackupOutcome::Empty => {
                let skipped = paint(LOOK.warn, "skipped");
                out.error_line(&format!("{skipped}: {}: nothing is in it", clean(&entry.file)));
            }
            ChatBackupOutcome::Failed(why) => {
                let failed = paint(LOOK.bad, "not taken");
                out.error_line(&format!("{failed}: {}: {}", clean(&entry.file), clean(why)));
            }
        }
    }
    for (timeline, (imported, known)) in timelines {
        let is_new = report.new_timelines.contains(timeline);
        let new = if is_new { "  (a chat that is not there any more)" } else { "" };
        let new = paint(LOOK.good, new);
        let what = match (imported, known) {
            (0, known) => format!("{known} known"),
            (imported, 0) => count(imported, "backup"),
            (imported, known) => format!("{}, {known} known", count(imported, "backup")),
        };
        out.say(format!("{}  {what}{new}", bold_name(timeline)));
    }
}

fn tell_backup(report: &stvc_backup::Report, out: &mut Out) {
    for entry in report.entries.iter().filter(|entry| entry.outcome != Outcome::Known) {
        out.say(backup_line(entry));
    }
    for tag in report.tags.iter().filter(|tag| tag.here != tag.name) {
        let (was, is) = (clean(&tag.name), clean(&tag.here));
        out.say(format!("The tag [{was}] names something else here: the backup's is [{is}]."));
    }
    out.findings(&report.findings);
    let dry_run = report.dry_run;
    let known = report.count(|outcome| *outcome == Outcome::Known);
    let came = report.entries.len() - known;
    let beside = report.count(|it| matches!(it, Outcome::Beside(_) | Outcome::Tagged(_)));
    let is_nothing = came == 0 && report.tags.is_empty();
    if is_nothing && report.left_out > 0 {
        out.say("Nothing was taken in: what is sound in the backup is here already.");
    } else if is_nothing {
        let known = count(known, "timeline");
        out.say(format!("Nothing to do: all {known} of the backup are here, as far or further."));
    } else {
        let verb = if dry_run { "would be taken in" } else { "taken in" };
        let (came, day) = (count(came, "timeline"), clean(report.header.day()));
        let more = if dry_run { "a little".into() } else { size(report.bytes) };
        out.say(format!("{came} {verb} from the backup of {day}, {known} known already; {more} more in the store."));
        if beside > 0 {
            out.say("What moved on here and in the backup stands side by side; its files were not touched.");
        }
        if !dry_run {
            out.say("`stvc restore --all` brings the files back that are missing.");
        }
    }
    if report.left_out > 0 {
        let left_out = count(report.left_out, "snapshot");
        out.say(format!(
            "{left_out} of the backup cannot be taken in, and the others were joined up."
        ));
    }
    let attachments_lost = lost_attachments(&report.findings);
    if attachments_lost > 0 {
        let lost = count(attachments_lost, "attachment");
        out.say(format!("The backup lacks {lost}; everything else of these chats was taken in."));
    }
}

fn backup_line(entry: &ReceivedTimeline) -> String {
    let snapshots = count(entry.snapshots, "snapshot");
    let what = match &entry.outcome {
        Outcome::New => format!("new, {snapshots}"),
        Outcome::Forward => format!("{snapshots} more"),
        Outcome::Beside(beside) => {
            format!("moved on here, too: the backup's is now {}", bold_name(beside))
        }
        Outcome::Tagged(tag) => {
            let tag = paint(LOOK.tag, clean(tag));
            format!("moved on here, too: the backup's is of a newer format, and has the tag {tag}")
        }
        _ => entry.outcome.word().into(),
    };
    format!("{}  {what}", bold_name(&entry.timeline))
}
