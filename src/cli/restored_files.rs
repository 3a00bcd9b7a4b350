//! Files that a command wrote or removed, in words.

use anstyle::Style;

use super::output::{LOOK, Out, paint};
use super::wording::{clean, count, size};
use stvc::engine::files::{Action, FileAction};
use stvc::verbs::restore::Report;

/// Says what became of one file.
pub fn tell_file(file: &FileAction, style: Style, word: &str, out: &mut Out) {
    let word = paint(style, format!("{word:<13}"));
    out.say(format!("{word}  {}  {}", clean(file.path.as_str()), size(file.bytes)));
}

/// Says what became of each file of a restore.
pub fn files(report: &Report, out: &mut Out) {
    report.written.files.iter().for_each(|file| restored(file, report, out));
}

/// Says it of those that were written: among many timelines a group's file, say, is one of them and belongs to others.
pub fn written_files(report: &Report, out: &mut Out) {
    let files = report.written.files.iter().filter(|file| file.action != Action::Keep);
    files.for_each(|file| restored(file, report, out));
}

/// Says that attachments are missing; the findings name each.
pub fn tell_lost_attachments(lost: usize, out: &mut Out) {
    if lost > 0 {
        let lost = count(lost as u64, "attachment");
        out.say(format!("Not restored: {lost}. The findings say why."));
    }
}

fn restored(file: &FileAction, report: &Report, out: &mut Out) {
    let (style, word) = match (file.action, report.dry_run) {
        (Action::Keep, _) => (LOOK.dim, "already there"),
        (Action::Delete, _) => (LOOK.warn, "removed"),
        (Action::Write, true) if file.replaces => (LOOK.warn, "would replace"),
        (Action::Write, true) => (LOOK.good, "would write"),
        (Action::Write, false) if file.replaces => (LOOK.warn, "replaced"),
        (Action::Write, false) => (LOOK.good, "restored"),
    };
    tell_file(file, style, word, out);
}
