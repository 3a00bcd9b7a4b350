use serde_json::json;

use super::output::Out;
use super::words::count;
use crate::ops::{self, Workspace};

pub fn run(workspace: &Workspace, out: &mut Out) -> ops::Result<u8> {
    let report = ops::check::check(workspace, &mut out.progress())?;
    out.findings(&report.findings);
    let sound = report.is_sound();
    let what = format!(
        "{}, {}",
        count(report.objects, "object"),
        count(report.snapshots as u64, "snapshot")
    );
    if sound {
        out.say(format!("The store is sound: {what}, every one read, rebuilt and compared."));
    } else if report.damaged == 0 {
        out.say(format!(
            "The store is damaged, but every snapshot that could be found can be restored: {what}."
        ));
    } else {
        let whole = report.snapshots - report.damaged;
        out.say(format!(
            "The store is damaged: {} of {what} cannot be restored, {whole} can.",
            report.damaged
        ));
    }
    let counts = json!({ "objects": report.objects, "snapshots": report.snapshots, "damaged": report.damaged });
    out.summary("check", sound, counts);
    Ok(if sound { super::DONE } else { super::FAILED })
}
