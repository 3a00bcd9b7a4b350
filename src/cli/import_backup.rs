//! `import` of a backup.

use super::error::Result;
use super::output::{LOOK, Out, paint};
use super::wording::{clean, count, name, size};
use stvc::engine::Workspace;
use stvc::engine::receive::{Outcome, ReceivedTimeline};
use stvc::rules::lost_attachments;
use stvc::verbs::import::stvc_backup::{Options, Report, take_in};

pub fn run(options: &Options, workspace: &Workspace, out: &mut Out) -> Result<u8> {
    let report = take_in(workspace, options, &mut out.progress())?;
    Ok(out.answer(&report, |out| tell(&report, out)))
}

fn tell(report: &Report, out: &mut Out) {
    for entry in report.entries.iter().filter(|entry| entry.outcome != Outcome::Known) {
        out.say(line(entry));
    }
    for tag in report.tags.iter().filter(|tag| tag.here != tag.name) {
        let (was, is) = (clean(&tag.name), clean(&tag.here));
        out.say(format!("The tag [{was}] names something else here: the backup's is [{is}]."));
    }
    out.findings(&report.findings);
    let dry_run = report.dry_run;
    let known = report.count(|outcome| *outcome == Outcome::Known);
    let came = report.entries.len() - known;
    let beside = report.count(|it| matches!(it, Outcome::Beside(_) | Outcome::Tagged(_)));
    let is_nothing = came == 0 && report.tags.is_empty();
    if is_nothing && report.left_out > 0 {
        out.say("Nothing was taken in: what is sound in the backup is here already.");
    } else if is_nothing {
        out.say(format!(
            "Nothing to do: all {} of the backup are here, as far or further.",
            count(known as u64, "timeline")
        ));
    } else {
        let verb = if dry_run { "would be taken in" } else { "taken in" };
        out.say(format!(
            "{} {verb} from the backup of {}, {known} known already; {} more in the store.",
            count(came as u64, "timeline"),
            clean(report.header.day()),
            if dry_run { "a little".into() } else { size(report.bytes) },
        ));
        if beside > 0 {
            out.say(
                "What moved on here and in the backup stands side by side; its files were not touched.",
            );
        }
        if !dry_run {
            out.say("`stvc restore --all` brings the files back that are missing.");
        }
    }
    if report.left_out > 0 {
        let left_out = count(report.left_out as u64, "snapshot");
        out.say(format!(
            "{left_out} of the backup cannot be taken in, and the others were joined up."
        ));
    }
    let attachments_lost = lost_attachments(&report.findings);
    if attachments_lost > 0 {
        let lost = count(attachments_lost as u64, "attachment");
        out.say(format!("The backup lacks {lost}; everything else of these chats was taken in."));
    }
}

fn line(entry: &ReceivedTimeline) -> String {
    let snapshots = count(entry.snapshots as u64, "snapshot");
    let what = match &entry.outcome {
        Outcome::New => format!("new, {snapshots}"),
        Outcome::Forward => format!("{snapshots} more"),
        Outcome::Beside(beside) => {
            format!("moved on here, too: the backup's is now {}", paint(LOOK.name, name(beside)))
        }
        Outcome::Tagged(tag) => {
            let tag = paint(LOOK.tag, clean(tag));
            format!("moved on here, too: the backup's is of a newer format, and has the tag {tag}")
        }
        _ => entry.outcome.word().into(),
    };
    format!("{}  {what}", paint(LOOK.name, name(&entry.timeline)))
}
