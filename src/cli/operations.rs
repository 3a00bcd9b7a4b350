use super::clock;
use super::error::Result;
use super::output::{LOOK, Out, bold, dim, paint};
use super::wording::{clean, count, shell};
use stvc::stores::LoggedOperation;
use stvc::verbs::operations::Report;
use stvc::{Workspace, verbs};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// At most this many
    #[arg(short = 'n', long = "limit", value_name = "N")]
    pub limit: Option<usize>,
}

pub fn run(args: &Args, workspace: &Workspace, out: &mut Out) -> Result<u8> {
    let report = verbs::operations::operations(workspace, args.limit)?;
    Ok(out.answer(&report, |out| tell(&report, out)))
}

fn tell(report: &Report, out: &mut Out) {
    for entry in &report.entries {
        let operation = &entry.operation;
        let number = paint(LOOK.id, format!("{:>4}", operation.number));
        let undone = match (entry.undone_by, operation.effect.undoes, operation.effect.finishes) {
            (Some(by), ..) => {
                paint(LOOK.warn, format!("  (undone by {by}; `stvc undo {by}` redoes it)"))
            }
            (None, Some(undoes), _) => dim(format!("  (undid {undoes})")),
            (None, None, Some(number)) => dim(format!("  (found {number} interrupted)")),
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
        out.say("Nothing was done yet.");
    }
    if report.unreadable > 0 {
        out.error_line(&format!("{} of the log cannot be read", count(report.unreadable, "line")));
    }
}

/// Returns the command as it was typed, the program without its folder.
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
        (of("refs/heads/", false, true), "began", "timeline"),
        (of("refs/heads/", true, true), "went on with", "timeline"),
        (of("refs/heads/", true, false), "ended", "timeline"),
        (of("refs/tags/", false, true), "set", "tag"),
        (of("refs/tags/", true, true), "moved", "tag"),
        (of("refs/tags/", true, false), "removed", "tag"),
        (effect.files.len() - deleted, "wrote", "file"),
        (deleted, "removed", "file"),
    ];
    let parts = parts.iter().filter(|(n, ..)| *n > 0);
    let parts: Vec<_> = parts.map(|(n, verb, what)| format!("{verb} {}", count(n, what))).collect();
    match (parts.is_empty(), effect.finishes) {
        (true, Some(number)) => format!("brought operation {number} to its end"),
        (true, None) => "nothing that is left".into(),
        (false, _) => parts.join(", "),
    }
}
