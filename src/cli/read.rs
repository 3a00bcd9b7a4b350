//! `stvc show --message` and `--text`: messages to read.

use super::error::Result;
use super::output::{LOOK, Out, paint};
use super::show;
use super::story::{self, Format, Style};
use super::wording::{clean, count, name};
use stvc::engine::Workspace;
use stvc::lines::answers::Answer;
use stvc::store::Time;
use stvc::verbs;
use stvc::verbs::read::{Options, Report, SpokenMessage};

pub fn run(args: &show::Args, workspace: &Workspace, out: &mut Out) -> Result<u8> {
    let options = Options {
        snapshot: args.snapshot.clone(),
        messages: args.message.clone(),
        with_hidden: args.hidden,
    };
    let report = verbs::read::read(workspace, &options)?;
    if out.is_json() && args.output.is_none() {
        return Ok(out.answer(&report));
    }
    let told = tell(args, &report, workspace, out);
    match &args.output {
        Some(path) => {
            verbs::read::write(path, told.as_bytes())?;
            let (many, path) = (count(report.messages.len() as u64, "message"), path.display());
            out.say(format!("{many} written to {}.", clean(&path.to_string())));
        }
        None => out.text(&told),
    }
    if report.hidden > 0 {
        let many = count(report.hidden as u64, "hidden message");
        out.warn(&paint(LOOK.dim, format!("{many} left out; --hidden tells them, too")));
    }
    for broken in &report.broken {
        out.error_line(&format!("{}: {}", paint(LOOK.bad, "error"), clean(broken)));
    }
    if out.is_json() { Ok(out.answer(&report)) } else { Ok(report.exit()) }
}

fn tell(args: &show::Args, report: &Report, workspace: &Workspace, out: &Out) -> String {
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
