use chrono::DateTime;

use super::error::Result;
use super::output::{LOOK, Out, paint};
use super::wording::{clean, count, shell};
use stvc::engine::Workspace;
use stvc::store::{LoggedOperation, Time};
use stvc::verbs;
use stvc::verbs::operations::Report;

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
    let clock = out.clock;
    for entry in &report.entries {
        let operation = &entry.operation;
        let number = paint(LOOK.id, format!("{:>4}", operation.number));
        let undone = match (entry.undone_by, operation.effect.undoes, operation.effect.finishes) {
            (Some(by), ..) => {
                paint(LOOK.warn, format!("  (undone by {by}; `stvc undo {by}` redoes it)"))
            }
            (None, Some(undoes), _) => paint(LOOK.dim, format!("  (undid {undoes})")),
            (None, None, Some(number)) => {
                paint(LOOK.dim, format!("  (found {number} interrupted)"))
            }
            (None, None, None) => match entry.continued_by {
                Some(by) => paint(LOOK.dim, format!("  (part of {by}, undone with it)")),
                None => String::new(),
            },
        };
        let time = DateTime::parse_from_rfc3339(&operation.time).ok();
        let time = time.map(|time| clock.date(Time { seconds: time.timestamp(), offset: 0 }));
        let time = paint(LOOK.dim, time.unwrap_or_else(|| clean(&operation.time)));
        let command = paint(LOOK.name, command_line(operation));
        let command = format!("{number}  {time}  {command}{undone}");
        out.record(&[command, format!("      {}", effect(operation))]);
    }
    if report.entries.is_empty() {
        out.say("Nothing was done yet.");
    }
    if report.unreadable > 0 {
        out.error_line(&format!(
            "{} of the log cannot be read",
            count(report.unreadable as u64, "line")
        ));
    }
}

/// The command as it was typed, the program without its folder.
pub fn command_line(operation: &LoggedOperation) -> String {
    let mut words = operation.command.iter();
    let program = words.next().map(|program| program.rsplit(['/', '\\']).next().unwrap_or(program));
    let words: Vec<_> = program.into_iter().chain(words.map(String::as_str)).map(shell).collect();
    words.join(" ")
}

/// What an operation did, in a few words.
pub fn effect(operation: &LoggedOperation) -> String {
    let branch = |name: &str| name.starts_with("refs/heads/");
    let tag = |name: &str| name.starts_with("refs/tags/");
    let of = |kind: &dyn Fn(&str) -> bool, was: bool, is: bool| {
        let refs = operation.effect.refs.iter().filter(|change| kind(change.name.as_str()));
        refs.filter(|change| change.before.is_some() == was && change.after.is_some() == is).count()
            as u64
    };
    let mut parts = Vec::new();
    let mut part = |n: u64, verb: &str, what: &str| {
        if n > 0 {
            parts.push(format!("{verb} {}", count(n, what)));
        }
    };
    part(of(&branch, false, true), "began", "timeline");
    part(of(&branch, true, true), "went on with", "timeline");
    part(of(&branch, true, false), "ended", "timeline");
    part(of(&tag, false, true), "set", "tag");
    part(of(&tag, true, true), "moved", "tag");
    part(of(&tag, true, false), "removed", "tag");
    let deleted = operation.effect.files.iter().filter(|file| file.after.is_none()).count() as u64;
    part(operation.effect.files.len() as u64 - deleted, "wrote", "file");
    part(deleted, "removed", "file");
    match (parts.is_empty(), operation.effect.finishes) {
        (true, Some(number)) => format!("brought operation {number} to its end"),
        (true, None) => "nothing that is left".into(),
        (false, _) => parts.join(", "),
    }
}
