use super::error::Result;
use super::output::Out;
use super::wording::clean;
use stvc::{Workspace, verbs};

pub fn run(workspace: &Workspace, out: &mut Out) -> Result<u8> {
    let report = verbs::init::init(workspace)?;
    let text = |out: &mut Out| {
        let done = if report.created { "Made a store at" } else { "There is a store already at" };
        out.say(format!("{done} {}", clean(&report.path.display().to_string())));
    };
    Ok(out.answer(&report, text))
}
