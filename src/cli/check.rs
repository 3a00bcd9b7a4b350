use serde_json::json;

use super::output::Out;
use super::words::count;
use crate::ops::{self, Workspace};

pub fn run(workspace: &Workspace, out: &mut Out) -> ops::Result<u8> {
    let report = ops::check::check(workspace, &mut out.progress())?;
    out.findings(&report.findings);
    let sound = report.is_sound();
    let snapshots = count(report.snapshots as u64, "snapshot");
    let objects = count(report.objects, "object");
    if sound {
        out.say(format!(
            "The store is sound: {objects}, {snapshots}, every one read, rebuilt and compared."
        ));
    } else if report.damaged == 0 {
        out.say(format!("The store is damaged, but all of {snapshots} that could be found can be restored ({objects} read)."));
    } else {
        out.say(format!(
            "The store is damaged: {} of {snapshots} cannot be restored ({objects} read).",
            report.damaged
        ));
    }
    let counts = json!({ "objects": report.objects, "snapshots": report.snapshots, "damaged": report.damaged });
    out.summary("check", sound, counts);
    Ok(if sound { super::DONE } else { super::FAILED })
}
