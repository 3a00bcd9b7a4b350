use serde_json::json;

use super::exit;
use super::json::StoreLine;
use super::output::Out;
use super::wording::clean;
use crate::engine::{self, Workspace};
use crate::verbs;

pub fn run(workspace: &Workspace, out: &mut Out) -> engine::Result<u8> {
    let report = verbs::init::init(workspace)?;
    let path = report.path.display().to_string();
    let done = if report.created { "Made a store at" } else { "There is a store already at" };
    out.say(format!("{done} {}", clean(&path)));
    out.object(&StoreLine { kind_of_line: "store", path, created: report.created });
    out.summary("init", true, json!({ "created": report.created }));
    Ok(exit::DONE)
}
