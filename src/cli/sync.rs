use super::args::ClosedArgs;
use super::diff::Page;
use super::error::{Error, Result};
use super::merge::conflict_lines;
use super::output::{LOOK, Out, bold_name, dim, paint};
use super::wording::{clean, count, shell};
use stvc::copies::{Conflict, CopyPlace, Outcome, Purpose, ReceivedTimeline, last_backups};
use stvc::files::Action;
use stvc::lines::answers::sides;
use stvc::verbs::sync::{Options, Report};
use stvc::{Workspace, verbs};

#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// A folder, or a git server such as ssh://host/chats.git or me@host:chats.git; the last one if not given
    #[arg(value_name = "REMOTE")]
    pub remote: Option<String>,

    /// Only show what would be done
    #[arg(long, short = 'n')]
    pub dry_run: bool,

    #[command(flatten)]
    pub closed: ClosedArgs,
}

const HELP: &str = "First a snapshot of every chat that changed is taken. A chat that went on elsewhere is brought up to date here. One that went on on both sides stays as two: what came to REMOTE \
                    first keeps its name, the other is called `… (other version DAY)`. A lorebook that both changed is merged, entry by entry and field by field; where both changed one value, both \
                    lorebooks stay and the command that settles it is shown. What changed since its snapshot is left alone. `stvc undo` takes back what came; what was deleted here and is \
                    still there comes back.";

/// How many places of a conflict are shown.
const PLACES: usize = 5;

pub fn run(args: &Args, workspace: &Workspace, out: &mut Out) -> Result<u8> {
    let remote = match &args.remote {
        Some(remote) => remote.clone(),
        None => {
            let last = last_backups::remembered(workspace, Purpose::Sync)?;
            let (place, _) = last.ok_or(Error::NoPlace { command: "sync" })?;
            out.note(&format!("With {}, as the last time.", clean(&place)));
            place
        }
    };
    let place = CopyPlace::parse(&remote)?;
    let (asks, closed) = (out.may_ask(), args.closed.state());
    let options = Options { place, asks, closed, dry_run: args.dry_run };
    let report = verbs::sync::sync(workspace, &options, &mut out.progress())?;
    Ok(out.answer(&report, |out| tell(&report, out)))
}

fn tell(report: &Report, out: &mut Out) {
    if report.taken_first > 0 {
        let first = count(report.taken_first, "snapshot");
        let verb = if report.dry_run { "would be taken" } else { "taken" };
        out.say(format!("First, {first} {verb} of the chats as they are now."));
    }
    for entry in &report.entries {
        if entry.outcome != Outcome::Known {
            out.say(line(entry));
        }
        if let Some(conflict) = &entry.conflict {
            say_conflict(entry, conflict, out);
        }
    }
    out.findings(&report.findings);
    tell_totals(report, out);
}

fn say_conflict(entry: &ReceivedTimeline, conflict: &Conflict, out: &mut Out) {
    let (of_other, of_book) = match &conflict.set_aside_by {
        None => ("local".to_owned(), "remote".to_owned()),
        Some(device) => (format!("remote ({})", clean(&device.name)), "local".to_owned()),
    };
    let page = Page::of(out, 16);
    for place in conflict.places.iter().take(PLACES) {
        let lines = conflict_lines(place, (&of_other, &of_book), false, page);
        lines.iter().for_each(|line| out.say(line));
    }
    let (sign, book) = (paint(LOOK.warn, "!"), clean(conflict.book.as_str()));
    let places = count(conflict.count(), "place");
    let (into, from) = sides(entry);
    match &conflict.other {
        Some(other) if !entry.timeline.is_chat() => {
            let other = clean(other.file().as_str());
            out.say(format!("  {sign} {places} to settle: {book} has the {of_book} values,"));
            out.say(format!("    {other} the {of_other} ones."));
            let merge = format!("stvc merge {} {}", shell(into), shell(from));
            out.say(format!("    Keep the local values:   {merge} --keep local --yes"));
            out.say(format!("    Keep the remote values:  {merge} --keep remote --yes"));
        }
        Some(_) => {
            let settle = stvc::verbs::ways_to_settle(into, from, None);
            out.say(format!("  {sign} {book} differs in {places}; both stay. {settle}"));
        }
        None => {
            let what = "both stay. No chat uses the local one";
            out.say(format!("  {sign} {book} differs in {places}; {what}"));
        }
    }
}

fn tell_totals(report: &Report, out: &mut Out) {
    let came = report.entries.iter().filter(|entry| entry.outcome != Outcome::Known);
    let stays = |outcome: &Outcome| {
        use Outcome::{Erased, ErasedElsewhere, ForkOfErased, Left};
        matches!(outcome, Left(_) | Erased | ErasedElsewhere | ForkOfErased)
    };
    let came = came.filter(|entry| !stays(&entry.outcome)).count();
    let files = report.files.iter().filter(|file| file.action != Action::Keep).count();
    let verb = if report.dry_run { "would come" } else { "came" };
    let took = match came {
        0 => "Nothing new came".to_owned(),
        came => {
            let timelines = count(came, "timeline");
            format!("{timelines} {verb}, {} changed", count(files, "file"))
        }
    };
    match &report.sent {
        Some(sent) if sent.moved == 0 => out.say(format!("{took}; nothing was to be sent.")),
        Some(sent) => {
            let new = count(sent.new_snapshots, "snapshot");
            out.say(format!("{took}; {new} sent to {}.", clean(&sent.backup.destination)));
        }
        None => out.say(format!("{took}. Nothing has been changed.")),
    }
    if came > 0 && !report.dry_run {
        out.say(dim("`stvc undo` takes back what came."));
    }
}

fn line(entry: &ReceivedTimeline) -> String {
    let snapshots = count(entry.snapshots, "snapshot");
    let what = match &entry.outcome {
        Outcome::New => format!("new, {snapshots}"),
        Outcome::Forward => format!("{snapshots} more"),
        Outcome::Merged => "changed on both sides, and merged".into(),
        Outcome::Apart(other) => {
            format!("went on here, too: that is now {}", bold_name(other))
        }
        Outcome::Erased => "was erased; it is removed from the remote, too".into(),
        Outcome::ErasedElsewhere => format!(
            "{}: it was erased on another device. To remove it here, delete the chat in SillyTavern, then run `stvc erase {}`",
            paint(LOOK.warn, "stays here and is not sent"),
            shell(entry.timeline.as_str())
        ),
        Outcome::ForkOfErased => format!(
            "{}: the chat it was forked from was erased on another device. Erase that chat on each device that has it, then sync again",
            paint(LOOK.warn, "left alone")
        ),
        Outcome::Left(why) => {
            format!("{}: {why}; `stvc snapshot`, then sync again", paint(LOOK.warn, "left alone"))
        }
        _ => entry.outcome.word().into(),
    };
    let former = match (&entry.former, &entry.outcome) {
        (None, _) | (_, Outcome::Left(_)) => String::new(),
        (Some(former), _) => format!(" (was {})", bold_name(former)),
    };
    format!("{}  {what}{former}", bold_name(&entry.timeline))
}
