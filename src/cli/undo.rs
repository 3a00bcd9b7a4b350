use anstyle::Style;

use super::args::ClosedArgs;
use super::error::Result;
use super::operations::{command_line, effect};
use super::output::{Output, bold};
use super::restore::print_file;
use super::wording::count;
use stvc::files::Action;
use stvc::verbs::undo::{Options, Report};
use stvc::{Workspace, verbs};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Number of the operation, from `stvc operations` (default: the last one that is not undone)
    #[arg(value_name = "NUMBER")]
    pub operation: Option<u64>,

    /// Only show what would be done
    #[arg(long, short = 'n')]
    pub dry_run: bool,

    #[command(flatten)]
    pub closed: ClosedArgs,
}

pub fn run(args: &Args, workspace: &Workspace, out: &mut Output) -> Result<u8> {
    let options =
        Options { operation: args.operation, closed: args.closed.state(), dry_run: args.dry_run };
    let report = verbs::undo::undo(workspace, &options)?;
    Ok(out.answer(&report, |out| print(&report, out)))
}

fn print(report: &Report, out: &mut Output) {
    let Some(operation) = &report.operation else {
        return out.say("Nothing to undo. Run `stvc operations` to list all operations.");
    };
    if let (true, Some(by)) = (report.already, report.redo) {
        let number = operation.number;
        return out.say(format!(
            "Nothing to do: operation {number} was undone by operation {by}. Run `stvc undo {by}` to redo it."
        ));
    }
    let verb = if report.dry_run { "Would undo" } else { "Undid" };
    out.say(format!("{verb} operation {}: {}", operation.number, bold(command_line(operation))));
    out.say(format!("That operation {}.", effect(operation)));
    if !report.passed_by.is_empty() {
        let later = count(report.passed_by.len(), "later operation");
        out.say(format!("Not undone: {later} by `stvc watch`."));
    }
    for file in &report.files {
        let word = match file.action {
            Action::Keep => "unchanged",
            Action::Write => "restored",
            Action::Delete => "removed",
        };
        print_file(file, Style::new(), word, out);
    }
    if let Some(redo) = report.redo {
        out.say(format!("Run `stvc undo {redo}` to redo it."));
    }
    out.findings(&report.findings);
}
