use super::error::Result;
use super::output::Output;
use super::wording::clean;
use stvc::{Workspace, verbs};

pub fn run(workspace: &Workspace, out: &mut Output) -> Result<u8> {
    let report = verbs::init::init(workspace)?;
    let text = |out: &mut Output| {
        let done = if report.created { "Created a store at" } else { "A store already exists at" };
        out.say(format!("{done} {}", clean(&report.path.display().to_string())));
    };
    Ok(out.answer(&report, text))
}
