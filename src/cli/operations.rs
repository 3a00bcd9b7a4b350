use super::clock;
use super::error::Result;
use super::output::{Output, STYLES, bold, dim, paint};
use super::wording::{clean, count, shell};
use stvc::stores::LoggedOperation;
use stvc::verbs::operations::Report;
use stvc::{Workspace, verbs};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// List at most N operations
    #[arg(short = 'n', long = "limit", value_name = "N")]
    pub limit: Option<usize>,
}

pub fn run(args: &Args, workspace: &Workspace, out: &mut Output) -> Result<u8> {
    let report = verbs::operations::operations(workspace, args.limit)?;
    Ok(out.answer(&report, |out| print(&report, out)))
}

fn print(report: &Report, out: &mut Output) {
    for entry in &report.entries {
        let operation = &entry.operation;
        let number = paint(STYLES.id, format!("{:>4}", operation.number));
        let undone = match (entry.undone_by, operation.effect.undoes, operation.effect.finishes) {
            (Some(by), ..) => {
                paint(STYLES.warn, format!("  (undone by {by}; run `stvc undo {by}` to redo it)"))
            }
            (None, Some(undoes), _) => dim(format!("  (undid {undoes})")),
            (None, None, Some(number)) => {
                dim(format!("  (finished {number}, which was interrupted)"))
            }
            (None, None, None) => match entry.continued_by {
                Some(by) => dim(format!("  (part of {by}, undone with it)")),
                None => String::new(),
            },
        };
        let time = clock::parse(&operation.time).map(|time| out.clock.date(time));
        let time = dim(time.unwrap_or_else(|| clean(&operation.time)));
        let command = bold(command_line(operation));
        let command = format!("{number}  {time}  {command}{undone}");
        out.record(&[command, format!("      {}", effect(operation))]);
    }
    if report.entries.is_empty() {
        out.say("There are no operations yet.");
    }
    if report.unreadable > 0 {
        out.error_line(&format!(
            "{} of the operation log cannot be read",
            count(report.unreadable, "line")
        ));
    }
}

/// Returns the command line of an operation, without the path of the program.
pub fn command_line(operation: &LoggedOperation) -> String {
    let mut words = operation.command.iter();
    let program = words.next().map(|program| program.rsplit(['/', '\\']).next().unwrap_or(program));
    let words: Vec<_> = program.into_iter().chain(words.map(String::as_str)).map(shell).collect();
    words.join(" ")
}

pub fn effect(operation: &LoggedOperation) -> String {
    let effect = &operation.effect;
    let of = |kind: &str, was: bool, is: bool| {
        let refs = effect.refs.iter().filter(|change| change.name.as_str().starts_with(kind));
        refs.filter(|change| change.before.is_some() == was && change.after.is_some() == is).count()
    };
    let deleted = effect.files.iter().filter(|file| file.after.is_none()).count();
    let parts = [
        (of("refs/heads/", false, true), "created", "timeline"),
        (of("refs/heads/", true, true), "updated", "timeline"),
        (of("refs/heads/", true, false), "deleted", "timeline"),
        (of("refs/tags/", false, true), "created", "tag"),
        (of("refs/tags/", true, true), "moved", "tag"),
        (of("refs/tags/", true, false), "deleted", "tag"),
        (effect.files.len() - deleted, "wrote", "file"),
        (deleted, "deleted", "file"),
    ];
    let parts = parts.iter().filter(|(n, ..)| *n > 0);
    let parts: Vec<_> = parts.map(|(n, verb, what)| format!("{verb} {}", count(n, what))).collect();
    match (parts.is_empty(), effect.finishes) {
        (true, Some(number)) => format!("finished operation {number}"),
        (true, None) => "recorded no changes".into(),
        (false, _) => parts.join(", "),
    }
}
