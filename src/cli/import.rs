use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::args::Secret;
use super::error::Result;
use super::output::{LOOK, Out, paint};
use super::wording::{clean, closed, count, name, size};
use super::{import_backup, passphrase};
use stvc::engine::Workspace;
use stvc::engine::copies::{self, CopyPlace};
use stvc::verbs;
use stvc::verbs::import::chat_backups::{ChatBackupOutcome, Options, Report};
use stvc::verbs::import::stvc_backup;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// A backup: a file, a folder or a git server; or a folder of SillyTavern's backups. SillyTavern's own backups/ if not given
    #[arg(value_name = "SRC")]
    pub source: Option<PathBuf>,

    /// Only show what would be done
    #[arg(long, short = 'n')]
    pub dry_run: bool,

    /// SillyTavern is running, and the chats that are replaced are closed there (menu ☰, "Close chat"): it has nothing to write back
    #[arg(long)]
    pub chat_closed: bool,
}

pub fn run(args: &Args, secret: &Secret, workspace: &Workspace, out: &mut Out) -> Result<u8> {
    // SillyTavern's backups are a folder, too, but no repository.
    if let Some(source) = &args.source {
        match CopyPlace::parse(&source.to_string_lossy())? {
            CopyPlace::Folder(folder) if !copies::is_repository(&folder) => {}
            source => {
                let options = stvc_backup::Options {
                    passphrase: passphrase::of_place(secret, &source)?,
                    source,
                    asks: out.may_ask(),
                    closed: closed(args.chat_closed),
                    dry_run: args.dry_run,
                };
                return import_backup::run(&options, workspace, out);
            }
        }
    }
    let options = Options { source: args.source.clone(), dry_run: args.dry_run };
    let report = verbs::import::chat_backups::import(workspace, &options, &mut out.progress())?;
    Ok(out.answer(&report, |out| tell(&report, out)))
}

fn tell(report: &Report, out: &mut Out) {
    if report.taken_first > 0 {
        out.say(format!(
            "First, {} of the chats as they are now.",
            count(report.taken_first as u64, "snapshot")
        ));
    }
    out.findings(&report.findings);
    list(report, out);
    let imported = report.count(|outcome| matches!(outcome, ChatBackupOutcome::Imported(_)));
    let known = report.count(|outcome| matches!(outcome, ChatBackupOutcome::Known(_)));
    let verb = if report.dry_run { "would become" } else { "became" };
    if report.entries.is_empty() {
        out.say(format!(
            "There are no backups in {}.",
            clean(&whole(&report.source).display().to_string())
        ));
    } else {
        out.say(format!(
            "{} of {} {verb} snapshots, {known} known already. The backups take {}; in the store, {} more.",
            imported,
            count(report.entries.len() as u64, "backup"),
            size(report.bytes_there),
            if report.dry_run { "little".into() } else { size(report.bytes_written) },
        ));
    }
    if report.rewritten > 0 {
        out.say(format!(
            "{} after them got new ids; the old ids still work.",
            count(report.rewritten as u64, "snapshot")
        ));
    }
}

/// `.` says little at the end of a sentence.
fn whole(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

fn list(report: &Report, out: &mut Out) {
    let mut timelines: BTreeMap<_, (u64, u64)> = BTreeMap::new();
    for entry in &report.entries {
        match &entry.outcome {
            ChatBackupOutcome::Imported(timeline) => timelines.entry(timeline).or_default().0 += 1,
            ChatBackupOutcome::Known(timeline) => timelines.entry(timeline).or_default().1 += 1,
            ChatBackupOutcome::Empty => out.error_line(&format!(
                "{}: {}: nothing is in it",
                paint(LOOK.warn, "skipped"),
                clean(&entry.file)
            )),
            ChatBackupOutcome::Failed(why) => out.error_line(&format!(
                "{}: {}: {}",
                paint(LOOK.bad, "not taken"),
                clean(&entry.file),
                clean(why)
            )),
        }
    }
    for (timeline, (imported, known)) in timelines {
        let is_new = report.new_timelines.contains(timeline);
        let new = if is_new {
            paint(LOOK.good, "  (a chat that is not there any more)")
        } else {
            String::new()
        };
        let what = match (imported, known) {
            (0, known) => format!("{known} known"),
            (imported, 0) => count(imported, "backup"),
            (imported, known) => format!("{}, {known} known", count(imported, "backup")),
        };
        out.say(format!("{}  {what}{new}", paint(LOOK.name, name(timeline))));
    }
}
