use std::collections::BTreeMap;
use std::path::PathBuf;

use super::args::{ClosedArgs, Secret};
use super::error::Result;
use super::output::{Output, STYLES, bold_name, paint};
use super::wording::{clean, count, size};
use super::{passphrase, restore_all};
use stvc::copies::{self, CopyError, CopyPlace, Outcome, ReceivedTimeline};
use stvc::files::WritePermissions;
use stvc::findings::lost_attachments;
use stvc::json_output::answers::Recovered;
use stvc::verbs::import::chat_backups::{ChatBackupOutcome, Options, Report};
use stvc::verbs::import::stvc_backup;
use stvc::verbs::restore::Overwrite;
use stvc::verbs::restore::all::{AllOptions, restore_all as restore_everything};
use stvc::{Workspace, verbs};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Backup to import: a file, a folder or a git server, or a folder of SillyTavern's backups
    /// (default: SillyTavern's own backups/)
    #[arg(value_name = "SRC")]
    pub source: Option<PathBuf>,

    /// Then restore every timeline, as `stvc restore --all`
    ///
    /// A file that differs is replaced only if nobody worked on it: SillyTavern created it at its
    /// first start, or an earlier snapshot has the same content. It is stored first.
    #[arg(long, requires = "source")]
    pub restore: bool,

    /// Only show what would be done
    #[arg(long, short = 'n')]
    pub dry_run: bool,

    #[command(flatten)]
    pub closed: ClosedArgs,
}

pub fn run(args: &Args, secret: &Secret, workspace: &Workspace, out: &mut Output) -> Result<u8> {
    // A folder that is not a repository contains SillyTavern's own backups.
    if let Some(source) = &args.source {
        match workspace.copy_place(&source.to_string_lossy())? {
            CopyPlace::Folder(folder) if !copies::is_repository(&folder) => {
                if args.restore {
                    let destination = folder.display().to_string();
                    let why = "--restore needs a backup that stvc created";
                    return Err(CopyError::UnknownDestination { destination, why }.into());
                }
            }
            source => {
                let options = stvc_backup::Options {
                    passphrase: passphrase::of_place(secret, &source)?,
                    source,
                    closed: args.closed.state(),
                    dry_run: args.dry_run,
                };
                let report = stvc_backup::take_in(workspace, &options, &mut out.progress())?;
                let exit = out.answer(&report, |out| print_backup(&report, args.restore, out));
                if !args.restore || args.dry_run {
                    return Ok(exit);
                }
                let options = AllOptions {
                    overwrite: Overwrite::Unedited,
                    permissions: WritePermissions {
                        closed: args.closed.state(),
                        ..WritePermissions::default()
                    },
                    ..AllOptions::default()
                };
                let restored = restore_everything(workspace, &options, &mut out.progress())?;
                let recovered = Recovered { imported: &report, restored: &restored };
                return Ok(out.answer(&recovered, |out| restore_all::print(&restored, out)));
            }
        }
    }
    let options = Options { source: args.source.clone(), dry_run: args.dry_run };
    let report = verbs::import::chat_backups::import(workspace, &options, &mut out.progress())?;
    Ok(out.answer(&report, |out| print(&report, out)))
}

fn print(report: &Report, out: &mut Output) {
    if report.taken_first > 0 {
        let first = count(report.taken_first, "snapshot");
        out.say(format!("Created {first} first."));
    }
    out.findings(&report.findings);
    list(report, out);
    let imported = report.count(|outcome| matches!(outcome, ChatBackupOutcome::Imported(_)));
    let known = report.count(|outcome| matches!(outcome, ChatBackupOutcome::Known(_)));
    let verb = if report.dry_run { "would be imported" } else { "imported" };
    if report.entries.is_empty() {
        // The source may be `.`, which would be confusing at the end of a sentence.
        let source = std::path::absolute(&report.source).unwrap_or_else(|_| report.source.clone());
        out.say(format!("There are no backups in {}.", clean(&source.display().to_string())));
    } else {
        let (backups, there) = (count(report.entries.len(), "backup"), size(report.bytes_there));
        let more = if report.dry_run { "little".into() } else { size(report.bytes_written) };
        out.say(format!("{imported} of {backups} {verb} as snapshots, {known} already known. The backups take {there}; added to the store: {more}."));
    }
    if report.rewritten > 0 {
        let rewritten = count(report.rewritten, "snapshot");
        out.say(format!("{rewritten} got new ids; the old ids still work."));
    }
}

fn list(report: &Report, out: &mut Output) {
    let mut timelines: BTreeMap<_, (u64, u64)> = BTreeMap::new();
    for entry in &report.entries {
        match &entry.outcome {
            ChatBackupOutcome::Imported(timeline) => timelines.entry(timeline).or_default().0 += 1,
            ChatBackupOutcome::Known(timeline) => timelines.entry(timeline).or_default().1 += 1,
            ChatBackupOutcome::Empty => {
                let skipped = paint(STYLES.warn, "skipped");
                out.error_line(&format!("{skipped}: {}: it is empty", clean(&entry.file)));
            }
            ChatBackupOutcome::Failed(why) => {
                let failed = paint(STYLES.bad, "not imported");
                out.error_line(&format!("{failed}: {}: {}", clean(&entry.file), clean(why)));
            }
        }
    }
    for (timeline, (imported, known)) in timelines {
        let is_new = report.new_timelines.contains(timeline);
        let new = if is_new { "  (deleted chat)" } else { "" };
        let new = paint(STYLES.good, new);
        let what = match (imported, known) {
            (0, known) => format!("{known} known"),
            (imported, 0) => count(imported, "backup"),
            (imported, known) => format!("{}, {known} known", count(imported, "backup")),
        };
        out.say(format!("{}  {what}{new}", bold_name(timeline)));
    }
}

fn print_backup(report: &stvc_backup::Report, restores: bool, out: &mut Output) {
    for entry in report.entries.iter().filter(|entry| entry.outcome != Outcome::Known) {
        out.say(backup_line(entry));
    }
    for tag in report.tags.iter().filter(|tag| tag.here != tag.name) {
        let (was, is) = (clean(&tag.name), clean(&tag.here));
        out.say(format!(
            "The tag [{was}] names another snapshot here: the backup's tag is imported as [{is}]."
        ));
    }
    out.findings(&report.findings);
    let dry_run = report.dry_run;
    let known = report.count(|outcome| *outcome == Outcome::Known);
    let came = report.entries.len() - known;
    let beside = report.count(|it| matches!(it, Outcome::Beside(_) | Outcome::Tagged(_)));
    let is_nothing = came == 0 && report.tags.is_empty();
    if is_nothing && report.left_out > 0 {
        out.say("Nothing was imported: the store already has every valid snapshot of the backup.");
    } else if is_nothing {
        let known = count(known, "timeline");
        out.say(format!("Nothing to do: the store already has everything in the backup, {known}."));
    } else {
        let verb = if dry_run { "would be imported" } else { "imported" };
        let (came, day) = (count(came, "timeline"), clean(report.header.day()));
        let more = if dry_run { "little".into() } else { size(report.bytes) };
        out.say(format!("{came} {verb} from the backup of {day}, {known} already known; added to the store: {more}."));
        if beside > 0 {
            out.say("Timelines that diverged are kept side by side; their files are not changed.");
        }
        match (restores, dry_run) {
            (false, false) => out.say("Run `stvc restore --all` to restore missing files."),
            (true, true) => out.say("Every timeline would then be restored."),
            _ => {}
        }
    }
    if report.left_out > 0 {
        let left_out = count(report.left_out, "snapshot");
        out.say(format!(
            "Skipped {left_out} of the backup that cannot be imported; the rest of the history was joined."
        ));
    }
    let attachments_lost = lost_attachments(&report.findings);
    if attachments_lost > 0 {
        let lost = count(attachments_lost, "attachment");
        out.say(format!("The backup lacks {lost}; everything else in these chats was imported."));
    }
}

fn backup_line(entry: &ReceivedTimeline) -> String {
    let snapshots = count(entry.snapshots, "snapshot");
    let what = match &entry.outcome {
        Outcome::New => format!("new, {snapshots}"),
        Outcome::Forward => format!("{snapshots} more"),
        Outcome::Beside(beside) => {
            format!("diverged: the backup's timeline is imported as {}", bold_name(beside))
        }
        Outcome::Tagged(tag) => {
            let tag = paint(STYLES.tag, clean(tag));
            format!(
                "diverged: the backup's latest snapshot has a newer format and is kept under the tag {tag}"
            )
        }
        _ => entry.outcome.word().into(),
    };
    format!("{}  {what}", bold_name(&entry.timeline))
}
