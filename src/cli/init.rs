use super::error::Result;
use super::exit;
use super::output::Out;
use super::wording::clean;
use stvc::engine::Workspace;
use stvc::lines::{Counts, StoreLine};
use stvc::verbs;

pub fn run(workspace: &Workspace, out: &mut Out) -> Result<u8> {
    let report = verbs::init::init(workspace)?;
    let path = report.path.display().to_string();
    let done = if report.created { "Made a store at" } else { "There is a store already at" };
    out.say(format!("{done} {}", clean(&path)));
    out.object(StoreLine { path, created: report.created });
    out.summary("init", true, Counts::Init { created: report.created });
    Ok(exit::DONE)
}
