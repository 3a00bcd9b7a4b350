//! `stvc log --message`: what one message was over time.

use super::diff::{Page, message_lines};
use super::error::Result;
use super::log;
use super::output::{LOOK, Out, paint};
use super::wording::{count, cut_middle, name, short};
use stvc::engine::Workspace;
use stvc::lines::message_change_of;
use stvc::st;
use stvc::verbs::message_versions::{Elsewhere, Options, Report, Version, message_versions};

pub fn run(args: &log::Args, message: usize, workspace: &Workspace, out: &mut Out) -> Result<u8> {
    let options =
        Options { timeline: args.timeline.clone().unwrap_or_default(), message, limit: args.limit };
    let report = message_versions(workspace, &options)?;
    Ok(out.answer(&report, |out| tell_all(&report, out)))
}

fn tell_all(report: &Report, out: &mut Out) {
    let message = report.message;
    let columns = out.columns();
    let page = Page { colored: out.is_colored(), room: columns.saturating_sub(8) };
    let gone = if report.is_there {
        String::new()
    } else {
        format!(", not in it any more; snapshot {} had it last", short(report.last.id))
    };
    let facts = format!("{}{gone}", count(report.total as u64, "version"));
    let label = format!("{} #{message}", cut_middle(&name(&report.timeline), 60));
    out.line(format!("{}  {}", paint(LOOK.name, label), paint(LOOK.dim, facts)));
    for version in &report.versions {
        tell(version, report, page, out);
    }
    if report.versions.len() < report.total {
        let more = report.total - report.versions.len();
        out.say(paint(LOOK.dim, format!("… and {more} more; -n N shows more of them")));
    }
    if !report.elsewhere.is_empty() {
        out.line("");
        out.line("In other timelines that come from the same one:");
    }
    for other in &report.elsewhere {
        let label = paint(LOOK.name, cut_middle(&name(&other.timeline), 50));
        out.record(&[format!("  {label}"), format!("      {}", now_there(other, page))]);
    }
    if let Some(version) = report.versions.get(1) {
        let whole =
            format!("stvc show {} --message {}", short(version.snapshot.id), version.after.0);
        out.say("");
        out.say(format!("`{whole}` prints it as it was before."));
    } else if !report.is_there {
        let whole = format!("stvc show {} --message {message}", short(report.last.id));
        out.say("");
        out.say(format!("`{whole}` prints it."));
    }
    out.broken(&report.broken);
}

fn tell(version: &Version, report: &Report, page: Page, out: &mut Out) {
    out.line("");
    let snapshot = &version.snapshot;
    let id = paint(LOOK.id, short(snapshot.id));
    let when = paint(LOOK.dim, out.clock.date(snapshot.time));
    // Before a fork or a rename it stood in another one.
    let label = if snapshot.timeline == report.timeline {
        String::new()
    } else {
        format!("  {}", cut_middle(&name(&snapshot.timeline), page.room.saturating_sub(30)))
    };
    out.line(format!("{id} {when}{label}"));
    if version.is_again {
        out.line("  it is there again");
    }
    match message_change_of(version) {
        Some(change) => message_lines(&change, page).iter().for_each(|line| out.line(line)),
        None if version.after.1.is_none() => {
            out.line(paint(LOOK.bad, "  what it said then cannot be read"));
        }
        None => out.line(paint(LOOK.bad, "  what it said before cannot be read")),
    }
}

fn now_there(other: &Elsewhere, page: Page) -> String {
    let Some((number, text)) = &other.now else { return paint(LOOK.dim, "not there any more") };
    let at = format!("#{number}");
    match &other.same_as {
        _ if other.is_same => paint(LOOK.dim, format!("{at} the same")),
        Some(version) => paint(LOOK.dim, format!("{at} as in {}", short(version.id))),
        None => {
            let said = text.as_deref().and_then(st::text_of).map(|message| message.text);
            format!("{} {}", paint(LOOK.dim, at), page.gist(&said.unwrap_or_default(), 10))
        }
    }
}
