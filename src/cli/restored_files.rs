//! The files of a restore, in words.

use super::output::{LOOK, Out, paint};
use super::wording::{clean, count, size};
use stvc::engine::files::Action;
use stvc::verbs::restore::Report;

/// Say what became of each file.
pub fn files(report: &Report, out: &mut Out) {
    tell(report, |_| true, out);
}

/// The same of those that were written, for people: among many timelines a group's file, say, is one of them and belongs to others.
pub fn written_files(report: &Report, out: &mut Out) {
    tell(report, |action| action != Action::Keep, out);
}

/// Says that attachments are missing; the findings name each.
pub fn tell_lost_attachments(lost: usize, out: &mut Out) {
    if lost > 0 {
        let lost = count(lost as u64, "attachment");
        out.say(format!("Not restored: {lost}. The findings say why."));
    }
}

fn tell(report: &Report, is_told: impl Fn(Action) -> bool, out: &mut Out) {
    for file in &report.written.files {
        if !is_told(file.action) {
            continue;
        }
        let (style, verb) = match (file.action, report.dry_run) {
            (Action::Keep, _) => (LOOK.dim, "already there"),
            (Action::Delete, _) => (LOOK.warn, "removed"),
            (Action::Write, true) if file.replaces => (LOOK.warn, "would replace"),
            (Action::Write, true) => (LOOK.good, "would write"),
            (Action::Write, false) if file.replaces => (LOOK.warn, "replaced"),
            (Action::Write, false) => (LOOK.good, "restored"),
        };
        out.say(format!(
            "{}  {}  {}",
            paint(style, format!("{verb:<13}")),
            clean(file.path.as_str()),
            size(file.bytes)
        ));
    }
}
