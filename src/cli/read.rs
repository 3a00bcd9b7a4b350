//! `stvc show --message` and `--text`: messages to read.

use super::error::Result;
use super::output::{LOOK, Out, paint};
use super::show;
use super::story::{self, Format, Style};
use super::wording::{clean, count, name};
use stvc::engine::Workspace;
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
    if let Some(path) = &args.output {
        verbs::read::write(path, told(args, &report, out).as_bytes())?;
    }
    let text = |out: &mut Out| {
        match &args.output {
            Some(path) => {
                let (many, path) = (count(report.messages.len() as u64, "message"), path.display());
                out.say(format!("{many} written to {}.", clean(&path.to_string())));
            }
            None => out.text(&told(args, &report, out)),
        }
        if report.hidden > 0 {
            let many = count(report.hidden as u64, "hidden message");
            out.warn(&paint(LOOK.dim, format!("{many} left out; --hidden tells them, too")));
        }
        out.broken(&report.broken);
    };
    Ok(out.answer(&report, text))
}

fn told(args: &show::Args, report: &Report, out: &Out) -> String {
    let (clock, zone) = (out.clock, report.snapshot.time);
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
