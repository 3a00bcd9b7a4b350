use unicode_width::UnicodeWidthStr;

use super::error::Result;
use super::output::{LOOK, Out, paint};
use super::wording::{clean, count, cut, cut_middle, name, pad, size};
use stvc::engine::Workspace;
use stvc::verbs;
use stvc::verbs::stats::Report;

/// How many timelines are listed.
const LISTED: usize = 10;

pub fn run(workspace: &Workspace, out: &mut Out) -> Result<u8> {
    let report = verbs::stats::stats(workspace, &mut out.progress())?;
    Ok(out.answer(&report, |out| tell(&report, out)))
}

fn tell(report: &Report, out: &mut Out) {
    out.line(format!(
        "{} of {}, {}.",
        count(report.snapshots as u64, "snapshot"),
        count(report.timelines.len() as u64, "timeline"),
        count(report.tags as u64, "tag")
    ));
    let times = report.bytes_as_copies.checked_div(report.bytes_stored).unwrap_or(0);
    let times = if times >= 2 { format!(": 1/{times}") } else { String::new() };
    out.line(format!(
        "As copies of the files they would take {}; the store takes {}{times}.",
        paint(LOOK.name, size(report.bytes_as_copies)),
        paint(LOOK.name, size(report.bytes_stored))
    ));
    if report.damaged > 0 {
        out.error_line(&format!(
            "{} could not be read: see `stvc check`",
            count(report.damaged as u64, "snapshot")
        ));
    }
    if !report.timelines.is_empty() {
        out.line("");
        out.line(paint(LOOK.dim, "stored for it alone   as copies  snapshots  timeline"));
    }
    let room = out.columns().saturating_sub(44).max(20);
    for share in report.timelines.iter().take(LISTED) {
        out.line(format!(
            "{:>19}  {:>10}  {:>9}  {}",
            size(share.bytes),
            size(share.bytes_as_copies),
            share.snapshots,
            cut_middle(&name(&share.name), room)
        ));
    }
    if report.timelines.len() > LISTED {
        out.line(format!("… and {} more", report.timelines.len() - LISTED));
    }
    if report.bytes_shared > 0 {
        out.line(format!("{:>19}  shared by several timelines", size(report.bytes_shared)));
    }
    if !report.largest.is_empty() {
        out.line("");
        out.line("The largest messages now:");
    }
    for large in &report.largest {
        let parts = [
            (large.text, "text"),
            (large.swipes, "swipes"),
            (large.lorebook, "copies of the lorebook"),
            (large.rest, "other"),
        ];
        let parts: Vec<_> = parts
            .iter()
            .filter(|(bytes, _)| *bytes > 0)
            .map(|(bytes, what)| format!("{what} {}", size(*bytes)))
            .collect();
        let parts = parts.join(", ");
        let place = format!("{}  #{}", pad(&size(large.bytes), 9), large.index);
        let speaker = cut(&clean(&large.name), 20);
        let taken = [place.as_str(), " ", &speaker, " in ", ": ", &parts];
        let taken: usize = taken.iter().map(|part| part.width()).sum();
        let room = out.columns().saturating_sub(taken).max(12);
        let timeline = cut_middle(&name(&large.timeline), room);
        out.line(format!("{place} {speaker} in {timeline}: {parts}"));
    }
    out.findings(report.left_out.as_slice());
}
