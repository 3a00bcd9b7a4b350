//! `stvc show --message` and `--text`: messages to read.

use super::error::Result;
use super::output::{LOOK, Out, paint};
use super::story::{self, Format, Style};
use super::wording::{clean, count, name};
use super::{args, exit};
use stvc::engine::Workspace;
use stvc::lines::{Counts, MessageLine};
use stvc::store::Time;
use stvc::verbs;
use stvc::verbs::read::{Options, Report, SpokenMessage};

pub fn run(args: &args::Show, workspace: &Workspace, out: &mut Out) -> Result<u8> {
    let options = Options {
        snapshot: args.snapshot.clone(),
        messages: args.message.clone().map(|args::Messages(range)| range),
        with_hidden: args.hidden,
    };
    let report = verbs::read::read(workspace, &options)?;
    for message in &report.messages {
        out.object(MessageLine::new(&report.snapshot, message));
    }
    let told = tell(args, &report, workspace, out);
    match &args.output {
        Some(path) => {
            verbs::read::write(path, told.as_bytes())?;
            let (many, path) = (count(report.messages.len() as u64, "message"), path.display());
            out.say(format!("{many} written to {}.", clean(&path.to_string())));
        }
        None if !out.is_json() => out.text(&told),
        None => {}
    }
    if report.hidden > 0 {
        let many = count(report.hidden as u64, "hidden message");
        out.warn(&paint(LOOK.dim, format!("{many} left out; --hidden tells them, too")));
    }
    for broken in &report.broken {
        out.error_line(&format!("{}: {}", paint(LOOK.bad, "error"), clean(broken)));
    }
    let counts = Counts::Read { messages: report.messages.len(), hidden: report.hidden };
    out.summary("show", report.broken.is_empty(), counts);
    Ok(if report.broken.is_empty() { exit::DONE } else { exit::PARTLY })
}

fn tell(args: &args::Show, report: &Report, workspace: &Workspace, out: &Out) -> String {
    let (clock, zone) = (out.clock(workspace), report.snapshot.time);
    // Whoever asks for single messages wants to know which they are.
    let is_named = args.message.is_some();
    let dates = args.dates || is_named;
    let date = move |message: &SpokenMessage| {
        let said = message.said.filter(|_| dates)?;
        Some(clock.date(Time { seconds: said, ..zone }))
    };
    let style = Style {
        format: args.format.unwrap_or(Format::Text),
        names: !args.no_names,
        numbers: is_named,
        date: Box::new(date),
        swipes: args.swipes,
        reasoning: args.reasoning,
    };
    story::tell(&name(&report.snapshot.timeline), &report.messages, &style)
}
