use clap::ValueHint;

use super::args::ClosedArgs;
use super::diff::Page;
use super::error::{Error, Result};
use super::merge::{Choice, conflict_lines};
use super::output::{Output, STYLES, bold_name, dim, paint};
use super::wording::{clean, count, shell};
use stvc::copies::{Conflict, Outcome, Purpose, ReceivedTimeline, last_backups};
use stvc::files::Action;
use stvc::json_output::answers::sides;
use stvc::verbs::sync::{Options, Report};
use stvc::{Workspace, verbs};

#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// Remote, folder, or git server such as ssh://host/chats.git (default: the configured one, the
    /// first of `stvc remote list`, or the last one)
    #[arg(value_hint = ValueHint::AnyPath, value_name = "REMOTE")]
    pub remote: Option<String>,

    /// Only show what would be done
    #[arg(long, short = 'n')]
    pub dry_run: bool,

    #[command(flatten)]
    pub closed: ClosedArgs,
}

const HELP: &str = "Creates a snapshot of every changed chat first. A chat that continued only on another device \
    is updated here. A chat that continued on both devices becomes two chats: the version that \
    reached REMOTE first keeps its name, the other is called `… (other version DAY)`. A lorebook \
    that changed on both devices is merged, entry by entry and field by field. If both changed \
    the same value, both lorebooks stay, and the command that resolves the conflict is shown. \
    Files that changed since their latest snapshot are not touched. Run `stvc undo` to undo what \
    was received. A chat that was deleted here stays deleted here; run `stvc restore` to restore it.";

/// The maximum number of conflicting values that are shown per lorebook.
const PLACES: usize = 5;

pub fn run(args: &Args, workspace: &Workspace, out: &mut Output) -> Result<u8> {
    let remote = match &args.remote {
        Some(remote) => remote.clone(),
        None => {
            let last = last_backups::remembered(workspace, Purpose::Sync)?;
            let (place, _) = last.ok_or(Error::NoPlace { command: "sync" })?;
            out.note(&format!("Syncing with {}.", clean(&place)));
            place
        }
    };
    let place = workspace.copy_place(&remote)?;
    let (closed, dry_run) = (args.closed.state(), args.dry_run);
    let options = Options { place, closed, dry_run, receive_only: false };
    let report = verbs::sync::sync(workspace, &options, &mut out.progress())?;
    Ok(out.answer(&report, |out| print(&report, out)))
}

fn print(report: &Report, out: &mut Output) {
    if report.taken_first > 0 {
        let first = count(report.taken_first, "snapshot");
        let verb = if report.dry_run { "Would create" } else { "Created" };
        out.say(format!("{verb} {first} first."));
    }
    for entry in &report.entries {
        if entry.outcome != Outcome::Known {
            out.say(line(entry));
        }
        if let Some(conflict) = &entry.conflict {
            print_conflict(entry, conflict, out);
        }
    }
    out.findings(&report.findings);
    out.say(format!("{}.", totals(report)));
    if report.received() > 0 && !report.dry_run {
        out.say(dim("Run `stvc undo` to undo what was received."));
    }
}

fn print_conflict(entry: &ReceivedTimeline, conflict: &Conflict, out: &mut Output) {
    let (of_other, of_book) = match &conflict.set_aside_by {
        None => ("local".to_owned(), "remote".to_owned()),
        Some(device) => (format!("remote ({})", clean(&device.name)), "local".to_owned()),
    };
    let page = Page::of(out, 16);
    for place in conflict.places.iter().take(PLACES) {
        let lines = conflict_lines(place, (&of_other, &of_book), Choice::Open, page);
        lines.iter().for_each(|line| out.say(line));
    }
    let (sign, book) = (paint(STYLES.warn, "!"), clean(conflict.book.as_str()));
    let places = count(conflict.count(), "conflict");
    let (into, from) = sides(entry);
    match &conflict.other {
        Some(other) if !entry.timeline.is_chat() => {
            let other = clean(other.file().as_str());
            out.say(format!("  {sign} {places}: {book} has the {of_book} values,"));
            out.say(format!("    {other} has the {of_other} values."));
            let merge = format!("stvc merge {} {}", shell(into), shell(from));
            out.say(format!("    Keep the local values:   {merge} --keep local --yes"));
            out.say(format!("    Keep the remote values:  {merge} --keep remote --yes"));
        }
        Some(_) => {
            let settle = stvc::verbs::ways_to_settle(into, from, None);
            out.say(format!(
                "  {sign} {book} has {places}; both versions are kept. To resolve: {settle}"
            ));
        }
        None => {
            let what = "both versions are kept. No chat uses the local one";
            out.say(format!("  {sign} {book} has {places}; {what}"));
        }
    }
}

/// Returns what was received and sent, in one sentence without a full stop.
pub fn totals(report: &Report) -> String {
    let files = report.files.iter().filter(|file| file.action != Action::Keep).count();
    let verb = if report.dry_run { "would be received" } else { "received" };
    let took = match report.received() {
        0 => "Nothing received".to_owned(),
        received => {
            let timelines = count(received, "timeline");
            format!("{timelines} {verb}, {} changed", count(files, "file"))
        }
    };
    match &report.sent {
        Some(sent) if sent.moved == 0 => format!("{took}; nothing to send"),
        Some(sent) => {
            let new = count(sent.new_snapshots, "snapshot");
            format!("{took}; {new} sent to {}", clean(&sent.backup.destination))
        }
        None => format!("{took}. Nothing has been changed"),
    }
}

fn line(entry: &ReceivedTimeline) -> String {
    let snapshots = count(entry.snapshots, "snapshot");
    let what = match &entry.outcome {
        Outcome::New => format!("new, {snapshots}"),
        Outcome::Forward => format!("updated, {snapshots}"),
        Outcome::Merged => "changed on both sides; merged".into(),
        Outcome::Apart(other) => {
            format!("diverged: the local version is now {}", bold_name(other))
        }
        Outcome::Erased => "erased; also removed from the remote".into(),
        Outcome::ErasedElsewhere => format!(
            "{}: it was erased on another device. To remove it here, delete the chat in SillyTavern, then run `stvc erase {}`",
            paint(STYLES.warn, "kept here, not sent"),
            shell(entry.timeline.as_str())
        ),
        Outcome::ForkOfErased => format!(
            "{}: its parent was erased on another device. Erase the parent on each device that has it, then sync again",
            paint(STYLES.warn, "skipped")
        ),
        Outcome::Left(why) => {
            format!(
                "{}: {why}; run `stvc snapshot`, then sync again",
                paint(STYLES.warn, "skipped")
            )
        }
        _ => entry.outcome.word().into(),
    };
    let former = match (&entry.former, &entry.outcome) {
        (None, _) | (_, Outcome::Left(_)) => String::new(),
        (Some(former), _) => format!(" (was {})", bold_name(former)),
    };
    format!("{}  {what}{former}", bold_name(&entry.timeline))
}
