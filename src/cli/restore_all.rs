//! `restore --all`.

use super::error::Result;
use super::output::{Output, STYLES, paint, short_id};
use super::restore::{self, overwrite, permissions, print_lost_attachments, written_files};
use super::wording::{clean, count, name};
use stvc::Workspace;
use stvc::findings::Code;
use stvc::verbs::restore::all::{AllOptions, Restored, restore_all};

pub fn run(args: &restore::Args, workspace: &Workspace, out: &mut Output) -> Result<u8> {
    let options = AllOptions {
        deleted: args.deleted,
        overwrite: overwrite(args),
        permissions: permissions(args),
        any_attachments: args.any_attachments,
        dry_run: args.dry_run,
    };
    let restored = restore_all(workspace, &options, &mut out.progress())?;
    Ok(out.answer(&restored, |out| print(&restored, out)))
}

pub fn print(all: &Restored, out: &mut Output) {
    let (mut failed, mut is_in_the_way, mut is_chat_missing) = (0, false, false);
    let mut is_running = false;
    for outcome in &all.timelines {
        match &outcome.result {
            Ok(report) => {
                if let Some(safety) = &report.written.safety {
                    let id = short_id(safety.id);
                    out.say(format!("The previous version is kept as snapshot {id}."));
                }
                written_files(report, out);
                let own = report.findings.iter().filter(|it| it.code != Code::ReloadSillytavern);
                out.findings(&own.cloned().collect::<Vec<_>>());
            }
            Err(error) => {
                failed += 1;
                is_in_the_way |= error.is_file_in_the_way();
                is_running |= error.is_sillytavern_running();
                is_chat_missing |= outcome.timeline.is_chat();
                let line = format!("{}: {}", name(&outcome.timeline), clean(&error.to_string()));
                out.error_line(&format!("{}: {line}", paint(STYLES.bad, "not restored")));
            }
        }
    }
    out.findings(&all.reload().cloned().into_iter().collect::<Vec<_>>());
    let (restored, left_out) = (all.timelines.len() as u64 - failed, &all.left_out);
    match (restored, failed, all.dry_run) {
        (0, 0, _) if !left_out.is_empty() => {}
        (0, 0, _) => out.say("There are no timelines in the store."),
        (_, _, true) => {}
        _ => {
            let written: usize = all.restored().map(|report| report.written.count()).sum();
            let files: usize = all.restored().map(|report| report.written.files.len()).sum();
            let (timelines, kept) = (count(restored, "timeline"), files - written);
            let written = count(written, "file");
            out.say(format!(
                "{timelines} restored and verified: {written} written, {kept} unchanged."
            ));
        }
    }
    print_lost_attachments(all.attachments_lost(), out);
    if !left_out.is_empty() {
        let names: Vec<_> = left_out.iter().map(name).collect();
        let (many, names) = (count(left_out.len(), "timeline"), stvc::words::listed(&names));
        let them = if left_out.len() == 1 { "it" } else { "them" };
        out.say(format!("{many} skipped, recorded as deleted: {names}. Run `stvc restore --all --deleted` to restore {them}, too."));
    }
    if failed > 0 {
        let hint = match (is_in_the_way, is_chat_missing) {
            _ if is_running => {
                " Close SillyTavern's page, then run `stvc restore --all --overwrite --chat-closed` to replace the files in the way, after creating snapshots of them."
            }
            // With `--overwrite`, no file is in the way.
            (true, _) => {
                " Run `stvc restore --all --overwrite` to replace the files in the way, after creating snapshots of them; or run `stvc restore NAME --as OTHER` to restore one under another name."
            }
            (false, true) => {
                " Run `stvc restore NAME --as OTHER` to restore a chat under another name."
            }
            (false, false) => "",
        };
        out.say(format!("{} not restored.{hint}", count(failed, "timeline")));
    }
}
