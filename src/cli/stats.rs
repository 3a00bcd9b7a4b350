use unicode_width::UnicodeWidthStr;

use super::error::Result;
use super::output::{Output, bold, dim};
use super::wording::{clean, count, cut, cut_middle, name, pad, size, snapshots_of};
use stvc::verbs::stats::Report;
use stvc::{Workspace, verbs};

const LISTED: usize = 10;

pub fn run(workspace: &Workspace, out: &mut Output) -> Result<u8> {
    let report = verbs::stats::stats(workspace, &mut out.progress())?;
    Ok(out.answer(&report, |out| print(&report, out)))
}

fn print(report: &Report, out: &mut Output) {
    let snapshots = snapshots_of(report.snapshots, report.timelines.len());
    out.line(format!("{snapshots}, {}.", count(report.tags, "tag")));
    let times = report.bytes_as_copies.checked_div(report.bytes_stored).unwrap_or(0);
    let times = if times >= 2 { format!(" (1/{times})") } else { String::new() };
    let (copies, stored) = (bold(size(report.bytes_as_copies)), bold(size(report.bytes_stored)));
    out.line(format!("Separate copies would take {copies}; the store takes {stored}{times}."));
    if report.damaged > 0 {
        let damaged = count(report.damaged, "snapshot");
        out.error_line(&format!("cannot read {damaged}; run `stvc check` for details"));
    }
    if !report.timelines.is_empty() {
        out.line("");
        out.line(dim("         not shared   as copies  snapshots  timeline"));
    }
    let room = out.columns().saturating_sub(44).max(20);
    for share in report.timelines.iter().take(LISTED) {
        let (alone, copies) = (size(share.bytes), size(share.bytes_as_copies));
        let name = cut_middle(&name(&share.name), room);
        out.line(format!("{alone:>19}  {copies:>10}  {:>9}  {name}", share.snapshots));
    }
    if report.timelines.len() > LISTED {
        out.line(format!("… and {} more", report.timelines.len() - LISTED));
    }
    if report.bytes_shared > 0 {
        out.line(format!("{:>19}  shared by several timelines", size(report.bytes_shared)));
    }
    if !report.largest.is_empty() {
        out.line("");
        out.line("Largest messages:");
    }
    for large in &report.largest {
        let parts = [
            (large.text, "text"),
            (large.swipes, "swipes"),
            (large.lorebook, "copies of the lorebook"),
            (large.rest, "other"),
        ];
        let parts = parts.iter().filter(|(bytes, _)| *bytes > 0);
        let parts: Vec<_> = parts.map(|(n, what)| format!("{what} {}", size(*n))).collect();
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
