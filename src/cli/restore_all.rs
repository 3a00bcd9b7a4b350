//! `restore --all`.

use super::error::Result;
use super::exit::code_of_verb;
use super::output::{LOOK, Out, paint};
use super::restore::{leave, overwrite};
use super::restored_files::{tell_lost_attachments, written_files};
use super::wording::{clean, count, name, short};
use super::{exit, restore};
use stvc::engine::Workspace;
use stvc::engine::files::Action;
use stvc::lines::{Counts, FailedLine, RestoredLine, SnapshotLine};
use stvc::rules::{Code, lost_attachments};
use stvc::verbs::restore::all::{AllOptions, restore_all};
use stvc::verbs::{Error, RestoreError};

pub fn run(args: &restore::Args, workspace: &Workspace, out: &mut Out) -> Result<u8> {
    let options = AllOptions {
        deleted: args.deleted,
        overwrite: overwrite(args),
        leave: leave(args),
        any_attachments: args.any_attachments,
        dry_run: args.dry_run,
    };
    let restored = restore_all(workspace, &options, &mut out.progress())?;
    let (outcomes, left_out) = (restored.timelines, restored.left_out);
    let (mut restored, mut failed, mut written, mut kept) = (0, 0, 0, 0);
    let mut attachments_lost = 0;
    let mut codes = Vec::new();
    let mut reload = None;
    let (mut is_in_the_way, mut is_chat_missing) = (false, false);
    for outcome in &outcomes {
        match &outcome.result {
            Ok(report) => {
                restored += 1;
                let new =
                    report.written.files.iter().filter(|file| file.action == Action::Write).count();
                written += new;
                kept += report.written.files.len() - new;
                if let Some(safety) = &report.written.safety {
                    out.object(SnapshotLine::new(safety, &[]));
                    let id = paint(LOOK.id, short(safety.id));
                    out.say(format!("What was there is kept as snapshot {id}."));
                }
                written_files(report, out);
                if let Some(restored) = &report.written.restored {
                    out.object(SnapshotLine::new(restored, &[]));
                }
                out.object(RestoredLine::from(report));
                let (last, findings): (Vec<_>, Vec<_>) = report
                    .findings
                    .iter()
                    .cloned()
                    .partition(|finding| finding.code == Code::ReloadSillytavern);
                attachments_lost += lost_attachments(&findings);
                out.findings(&findings);
                // The same for all: told once.
                reload = reload.or_else(|| last.into_iter().next());
            }
            Err(error) => {
                failed += 1;
                is_in_the_way |= matches!(error, Error::Restore(RestoreError::InTheWay { .. }));
                is_chat_missing |= outcome.timeline.is_chat();
                codes.push(code_of_verb(error));
                let why = clean(&error.to_string());
                let line = format!("{}: {why}", name(&outcome.timeline));
                if out.is_json() {
                    out.object(FailedLine {
                        timeline: outcome.timeline.as_str(),
                        message: &error.to_string(),
                    })
                } else {
                    out.error_line(&format!("{}: {line}", paint(LOOK.bad, "not restored")))
                }
            }
        }
    }
    if let Some(reload) = reload {
        out.findings(&[reload]);
    }
    match (restored, failed, args.dry_run) {
        (0, 0, _) if !left_out.is_empty() => {}
        (0, 0, _) => out.say("There are no timelines in the store."),
        (_, _, true) => {}
        _ => out.say(format!(
            "{} restored and verified: {} written, {kept} already there.",
            count(restored, "timeline"),
            count(written as u64, "file"),
        )),
    }
    tell_lost_attachments(attachments_lost, out);
    if !left_out.is_empty() {
        let names: Vec<_> = left_out.iter().map(name).collect();
        out.say(format!(
            "{} had been deleted before and {} left out: {}. `stvc restore --all --deleted` brings {} back, too.",
            count(left_out.len() as u64, "timeline"),
            if left_out.len() == 1 { "is" } else { "are" },
            stvc::listed::listed(&names),
            if left_out.len() == 1 { "it" } else { "them" },
        ));
    }
    if failed > 0 {
        let hint = match (is_in_the_way, is_chat_missing) {
            // With `--overwrite` nothing is in the way.
            (true, _) => {
                " `stvc restore --all --overwrite` stores what is in the way and then replaces it; with `--as` one of them becomes a chat of its own."
            }
            (false, true) => {
                " `stvc restore NAME --as OTHER` restores one of the chats under another name."
            }
            (false, false) => "",
        };
        out.say(format!("{} not restored.{hint}", count(failed, "timeline")));
    }
    let counts = Counts::RestoreAll {
        restored,
        failed,
        left_out: left_out.iter().map(|name| name.to_string()).collect(),
        written,
        kept,
        attachments_lost,
        dropped_operations: 0,
        dry_run: args.dry_run,
    };
    out.summary("restore", failed + attachments_lost as u64 == 0, counts);
    let refused = codes.iter().all(|code| *code == exit::REFUSED);
    Ok(match (restored, failed) {
        (_, 0) if attachments_lost == 0 => exit::DONE,
        (_, 0) => exit::PARTLY,
        (0, _) if refused => exit::REFUSED,
        (0, _) => exit::FAILED,
        _ => exit::PARTLY,
    })
}
