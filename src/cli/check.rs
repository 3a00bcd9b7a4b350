use std::path::PathBuf;

use super::args::Secret;
use super::error::Result;
use super::output::Output;
use super::passphrase;
use super::wording::{clean, count};
use stvc::copies::CopyPlace;
use stvc::findings::Level;
use stvc::verbs::check::Report;
use stvc::{Workspace, verbs};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Backup to verify: a file, a folder or a git server (default: the store)
    #[arg(value_name = "SRC")]
    pub source: Option<PathBuf>,
}

pub fn run(args: &Args, secret: &Secret, workspace: &Workspace, out: &mut Output) -> Result<u8> {
    let mut what = "store";
    let mut workspace = workspace.clone();
    if let Some(source) = &args.source {
        match workspace.copy_place(&source.to_string_lossy())? {
            // A folder backup is checked like a store, so that its unreachable objects are read as
            // well.
            CopyPlace::Folder(folder) => {
                what = "backup";
                workspace.store = Some(folder);
            }
            place => return backup(&place, secret, &workspace, out),
        }
    }
    let report = verbs::check::check(&workspace, &mut out.progress())?;
    let all = "all read, rebuilt and compared.".to_owned();
    Ok(out.answer(&report, |out| print(what, &report, all, out)))
}

fn backup(
    source: &CopyPlace,
    secret: &Secret,
    workspace: &Workspace,
    out: &mut Output,
) -> Result<u8> {
    let passphrase = passphrase::of_place(secret, source)?;
    let passphrase = passphrase.as_ref();
    let checked = verbs::check::check_copy(workspace, source, passphrase, &mut out.progress())?;
    let timelines = count(checked.header.timelines.len(), "timeline");
    let taken = clean(&checked.header.taken);
    let all =
        format!("all read, rebuilt and compared. It has {timelines} and was created {taken}.");
    Ok(out.answer(&checked.report, |out| print("backup", &checked.report, all, out)))
}

fn print(what: &str, report: &Report, all: String, out: &mut Output) {
    out.all_findings(&report.findings);
    let snapshots = count(report.snapshots, "snapshot");
    let objects = count(report.objects, "object");
    let errors = report.findings.iter().filter(|finding| finding.level == Level::Error).count();
    let (damaged, newer) = (report.damaged, report.newer);
    out.say(if report.is_valid() {
        format!("The {what} is valid: {objects} and {snapshots}, {all}")
    } else if damaged > 0 {
        format!("The {what} is damaged: {damaged} of {snapshots} cannot be restored ({objects} read).")
    } else if errors > newer {
        format!("The {what} is damaged, but every snapshot found in it can be restored ({snapshots}, {objects} read).")
    } else {
        format!("The {what} is not damaged, but this version of stvc cannot read {newer} of {snapshots}: update stvc ({objects} read).")
    });
}
