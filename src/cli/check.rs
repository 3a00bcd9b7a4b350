use std::path::PathBuf;

use super::args::Secret;
use super::error::Result;
use super::output::Out;
use super::passphrase;
use super::wording::{clean, count};
use stvc::engine::Workspace;
use stvc::engine::copies::CopyPlace;
use stvc::rules::Level;
use stvc::verbs;
use stvc::verbs::check::Report;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// A backup: a file, a folder or a git server; the store if not given
    #[arg(value_name = "SRC")]
    pub source: Option<PathBuf>,
}

pub fn run(args: &Args, secret: &Secret, workspace: &Workspace, out: &mut Out) -> Result<u8> {
    let mut what = "store";
    let mut workspace = workspace.clone();
    if let Some(source) = &args.source {
        match CopyPlace::parse(&source.to_string_lossy())? {
            // A store like any other; also what nothing refers to is read.
            CopyPlace::Folder(folder) => {
                what = "backup";
                workspace.store = Some(folder);
            }
            place => return backup(&place, secret, &workspace, out),
        }
    }
    let report = verbs::check::check(&workspace, &mut out.progress())?;
    let all = "every one read, rebuilt and compared.".to_owned();
    Ok(out.answer(&report, |out| tell(what, &report, all, out)))
}

/// A file or a server: all of it is unpacked first.
fn backup(source: &CopyPlace, secret: &Secret, workspace: &Workspace, out: &mut Out) -> Result<u8> {
    let passphrase = passphrase::of_place(secret, source)?;
    let asks = out.may_ask();
    let checked = verbs::check::check_copy(
        workspace,
        source,
        passphrase.as_ref(),
        asks,
        &mut out.progress(),
    )?;
    let all = format!(
        "every one read, rebuilt and compared. It has {} and was taken {}.",
        count(checked.header.timelines.len() as u64, "timeline"),
        clean(&checked.header.taken),
    );
    Ok(out.answer(&checked.report, |out| tell("backup", &checked.report, all, out)))
}

/// The same words for a store and for any backup.
fn tell(what: &str, report: &Report, all: String, out: &mut Out) {
    out.findings(&report.findings);
    let snapshots = count(report.snapshots as u64, "snapshot");
    let objects = count(report.objects, "object");
    let errors = report.findings.iter().filter(|finding| finding.level == Level::Error).count();
    if report.is_sound() {
        out.say(format!("The {what} is sound: {objects}, {snapshots}, {all}"));
    } else if report.damaged > 0 {
        out.say(format!(
            "The {what} is damaged: {} of {snapshots} cannot be restored ({objects} read).",
            report.damaged
        ));
    } else if errors > report.newer {
        out.say(format!("The {what} is damaged, but all of {snapshots} that could be found can be restored ({objects} read)."));
    } else {
        out.say(format!(
            "Nothing is damaged in the {what}, but {} of {snapshots} cannot be read by this program: update stvc ({objects} read).",
            report.newer
        ));
    }
}
