use serde_json::json;

use super::args;
use super::output::Out;
use super::passphrase;
use super::words::{clean, count};
use crate::ops::backup::Place;
use crate::ops::{self, Workspace};

pub fn run(
    args: &args::Check,
    secret: &args::Secret,
    workspace: &Workspace,
    out: &mut Out,
) -> ops::Result<u8> {
    let mut what = "store";
    let mut workspace = workspace.clone();
    if let Some(source) = &args.source {
        match Place::parse(&source.to_string_lossy())? {
            // A store like any other; also what nothing refers to is read.
            Place::Folder(folder) => {
                what = "backup";
                workspace.store = Some(folder);
            }
            place => return backup(&place, secret, &workspace, out),
        }
    }
    let report = ops::check::check(&workspace, &mut out.progress())?;
    out.findings(&report.findings);
    let sound = report.is_sound();
    let snapshots = count(report.snapshots as u64, "snapshot");
    let objects = count(report.objects, "object");
    if sound {
        out.say(format!(
            "The {what} is sound: {objects}, {snapshots}, every one read, rebuilt and compared."
        ));
    } else if report.damaged == 0 {
        out.say(format!("The {what} is damaged, but all of {snapshots} that could be found can be restored ({objects} read)."));
    } else {
        out.say(format!(
            "The {what} is damaged: {} of {snapshots} cannot be restored ({objects} read).",
            report.damaged
        ));
    }
    let counts = json!({ "objects": report.objects, "snapshots": report.snapshots, "damaged": report.damaged });
    out.summary("check", sound, counts);
    Ok(if sound { super::DONE } else { super::FAILED })
}

/// What is not sound is an error, and says why.
fn backup(
    source: &Place,
    secret: &args::Secret,
    workspace: &Workspace,
    out: &mut Out,
) -> ops::Result<u8> {
    let passphrase = passphrase::of_place(secret, source)?;
    let asks = out.may_ask();
    let report =
        ops::backup::check(workspace, source, passphrase.as_ref(), asks, &mut out.progress())?;
    out.say(format!(
        "The backup is sound: {}, {} of {}, every one read, rebuilt and compared. It was taken {}.",
        count(report.objects, "object"),
        count(report.snapshots as u64, "snapshot"),
        count(report.header.timelines.len() as u64, "timeline"),
        clean(&report.header.taken),
    ));
    let counts = json!({ "objects": report.objects, "snapshots": report.snapshots, "damaged": 0 });
    out.summary("check", true, counts);
    Ok(super::DONE)
}
