//! `import` of a backup.

use super::error::Result;
use super::output::{LOOK, Out, paint};
use super::wording::{clean, closed, count, name, size};
use super::{exit, import, passphrase};
use stvc::engine::Workspace;
use stvc::engine::copies::CopyPlace;
use stvc::lines::{Counts, FileLine, TagLine, TakenInLine};
use stvc::rules::lost_attachments;
use stvc::verbs::import::stvc_backup::{ImportOutcome, ImportedTimeline, Options, Report, take_in};

pub fn run(
    source: &CopyPlace,
    args: &import::Args,
    secret: &passphrase::Secret,
    workspace: &Workspace,
    out: &mut Out,
) -> Result<u8> {
    let dry_run = args.dry_run;
    let options = Options {
        source: source.clone(),
        passphrase: passphrase::of_place(secret, source)?,
        asks: out.may_ask(),
        closed: closed(args.chat_closed),
        dry_run,
    };
    let report = take_in(workspace, &options, &mut out.progress())?;
    for entry in &report.entries {
        out.object(TakenInLine::from(entry));
        if entry.outcome != ImportOutcome::Known {
            out.say(line(entry));
        }
    }
    tags(&report, out);
    for file in &report.files {
        out.object(FileLine::from(file));
    }
    out.findings(&report.findings);
    let of = |wanted: fn(&ImportOutcome) -> bool| {
        report.entries.iter().filter(|entry| wanted(&entry.outcome)).count()
    };
    let new = of(|outcome| *outcome == ImportOutcome::New);
    let forward = of(|outcome| *outcome == ImportOutcome::Forward);
    let known = of(|outcome| *outcome == ImportOutcome::Known);
    let beside =
        of(|outcome| matches!(outcome, ImportOutcome::Beside(_) | ImportOutcome::Tagged(_)));
    let new_tags = report.tags.iter().filter(|tag| !tag.known).count();
    if new + forward + beside + new_tags == 0 && report.left_out > 0 {
        out.say("Nothing was taken in: what is sound in the backup is here already.");
    } else if new + forward + beside + new_tags == 0 {
        out.say(format!(
            "Nothing to do: all {} of the backup are here, as far or further.",
            count(known as u64, "timeline")
        ));
    } else {
        let verb = if dry_run { "would be taken in" } else { "taken in" };
        out.say(format!(
            "{} {verb} from the backup of {}, {known} known already; {} more in the store.",
            count((new + forward + beside) as u64, "timeline"),
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
    let counts = Counts::ImportStore {
        new,
        forward,
        known,
        beside,
        tags: new_tags,
        left_out: report.left_out,
        attachments_lost,
        objects: report.objects,
        bytes_written: report.bytes,
        created_store: report.created_store,
        dry_run,
    };
    let all = report.left_out == 0 && attachments_lost == 0;
    out.summary("import", all, counts);
    Ok(if all { exit::DONE } else { exit::PARTLY })
}

fn line(entry: &ImportedTimeline) -> String {
    let snapshots = count(entry.snapshots as u64, "snapshot");
    let what = match &entry.outcome {
        ImportOutcome::New => format!("new, {snapshots}"),
        ImportOutcome::Forward => format!("{snapshots} more"),
        ImportOutcome::Known => "known".into(),
        ImportOutcome::Beside(beside) => {
            format!("moved on here, too: the backup's is now {}", paint(LOOK.name, name(beside)))
        }
        ImportOutcome::Tagged(tag) => {
            let tag = paint(LOOK.tag, clean(tag));
            format!("moved on here, too: the backup's is of a newer format, and has the tag {tag}")
        }
    };
    format!("{}  {what}", paint(LOOK.name, name(&entry.timeline)))
}

fn tags(report: &Report, out: &mut Out) {
    for tag in report.tags.iter().filter(|tag| !tag.known) {
        let entry = report.entries.iter().find(|entry| entry.head.id == tag.snapshot);
        out.object(TagLine {
            name: &tag.here,
            snapshot: tag.snapshot,
            timeline: entry.map_or("", |entry| entry.timeline.as_str()),
        });
        if tag.here != tag.name {
            let (was, is) = (clean(&tag.name), clean(&tag.here));
            out.say(format!("The tag [{was}] names something else here: the backup's is [{is}]."));
        }
    }
}
