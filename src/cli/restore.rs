use std::path::PathBuf;

use anstyle::Style;
use clap_complete::engine::ArgValueCompleter;

use super::args::{ClosedArgs, QueueArgs, SNAPSHOT_HELP, one_of, seconds};
use super::complete::snapshots;
use super::error::Result;
use super::output::{LOOK, Out, bold, bold_name, paint, short_id};
use super::wording::{clean, count, in_parentheses, name, recap, short, size};
use stvc::files::{Action, FileAction, Leave};
use stvc::findings::lost_attachments;
use stvc::moments::{BookSource, Origin};
use stvc::readiness::{GatePolicy, Wait};
use stvc::snapshots::Role;
use stvc::verbs::restore::{Options, Overwrite, Report, Target, Until};
use stvc::{Workspace, verbs};

#[derive(Debug, clap::Args)]
#[command(after_help = SNAPSHOT_HELP)]
pub struct Args {
    /// The snapshot
    #[arg(add = ArgValueCompleter::new(snapshots), value_name = "SNAPSHOT", required_unless_present = "all")]
    pub snapshot: Option<String>,

    /// Every timeline, its newest snapshot: what is missing in the library comes back
    #[arg(long, conflicts_with_all = ["snapshot", "name", "at", "to", "only", "clear_queue", "trim_queue"])]
    pub all: bool,

    /// With --all: also timelines that had been deleted when the last snapshots were taken
    #[arg(long, requires = "all")]
    pub deleted: bool,

    /// As a chat of its own under this name, with a lorebook of its own: no other timeline is touched
    #[arg(long = "as", value_name = "NAME", conflicts_with_all = ["to", "overwrite", "only"])]
    pub name: Option<String>,

    /// As it was at message N: messages 0 to N, with the recap and the lorebook of then
    #[arg(long, value_name = "N")]
    pub at: Option<usize>,

    /// Into this new or empty folder; SillyTavern's files are not touched
    #[arg(long, value_name = "DIR")]
    pub to: Option<PathBuf>,

    /// Only the chat, or only the lorebook
    #[arg(long, value_name = "PART", value_parser = one_of([("chat", Role::Chat), ("lorebook", Role::Lorebook)]))]
    pub only: Option<Role>,

    /// Also where something else is now; a snapshot of that is taken first
    #[arg(long, conflicts_with = "to")]
    pub overwrite: bool,

    /// SillyTavern is running, and the chat is closed there (menu ☰, "Close chat"): it has nothing to write back
    #[arg(long, requires = "overwrite")]
    pub chat_closed: bool,

    /// With --as: refuse where the message ends no scene, the scene's lorebook entry is not finished or the running recap does not have it, instead of warning
    #[arg(long, requires = "name")]
    pub strict: bool,

    /// With --as: wait for the queue of the chat's lorebook to finish, at most so many seconds
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, default_missing_value = "", value_parser = seconds, requires = "name")]
    pub wait: Option<Wait>,

    /// With --overwrite: also while ST-Auto-Recap is at work in the lorebook that is replaced; with --as: also while it is at work in the chat's lorebook
    #[arg(long)]
    pub allow_active_queue: bool,

    /// Also write attachments that came from a backup or another device and that may run code: web pages, scripts, programs
    #[arg(long)]
    pub any_attachments: bool,

    #[command(flatten)]
    pub queue: QueueArgs,

    /// Only show what would be done
    #[arg(long, short = 'n')]
    pub dry_run: bool,
}

pub fn run(args: &Args, snapshot: &str, workspace: &Workspace, out: &mut Out) -> Result<u8> {
    let only = args.only;
    let target = match (&args.to, &args.name) {
        (Some(dir), _) => Target::Folder { dir: dir.clone(), only },
        (None, Some(name)) => {
            let gate = GatePolicy {
                scene: args.strict.into(),
                wait: args.wait,
                allow_active_queue: args.allow_active_queue,
            };
            Target::NewTimeline { name: name.clone(), gate: Some(gate) }
        }
        (None, None) => Target::InPlace { only, overwrite: overwrite(args), leave: leave(args) },
    };
    let options = Options {
        snapshot: snapshot.to_owned(),
        until: args.at.map_or(Until::End, Until::Message),
        target,
        any_attachments: args.any_attachments,
        queue: args.queue.change(),
        dry_run: args.dry_run,
    };
    let report = verbs::restore::restore(workspace, &options, &mut out.progress())?;
    Ok(out.answer(&report, |out| tell(&report, out)))
}

fn tell(report: &Report, out: &mut Out) {
    if let Some(safety) = &report.written.safety {
        out.say(format!("What was there is kept as snapshot {}.", short_id(safety.id)));
    }
    if report.written.kept {
        out.say("What was there is kept; `stvc undo` brings it back.");
    }
    files(report, out);
    tell_result(report, out);
    if let Some(origin) = &report.source.origin {
        tell_origin(origin, out);
    }
    state(report, out);
    tell_lost_attachments(lost_attachments(&report.findings), out);
    out.findings(&report.findings);
}

pub fn overwrite(args: &Args) -> Overwrite {
    if args.overwrite { Overwrite::All } else { Overwrite::None }
}

pub fn leave(args: &Args) -> Leave {
    Leave {
        closed: ClosedArgs { chat_closed: args.chat_closed }.state(),
        active_queue: args.allow_active_queue,
    }
}

fn tell_result(report: &Report, out: &mut Out) {
    let snapshot = &report.source.snapshot;
    let when = match &report.source.origin {
        None => format!("taken {}", out.clock.age(snapshot.time)),
        Some(made) => {
            format!("as of message {}, from snapshot {}", made.message, short(snapshot.id))
        }
    };
    let what =
        format!("{}, {}, {when}", name(&report.source.timeline), count(report.messages, "message"));
    match (report.written.count(), report.dry_run) {
        (0, _) if lost_attachments(&report.findings) > 0 => {
            out.say(format!("No file was written: {what}."));
        }
        (0, _) => {
            let id = short(snapshot.id);
            out.say(format!("Nothing to do: the files are those of snapshot {id} ({what})."));
        }
        (_, true) => {}
        _ => {
            let root = clean(&report.written.root.display().to_string());
            out.say(format!("Restored and verified in {root}: {what}."));
        }
    }
    if let Some(fork) = &report.written.fork {
        let book = match &fork.lorebook {
            Some(book) => format!("its lorebook is {}", bold(clean(book))),
            None => "it has no lorebook".to_owned(),
        };
        let (name, id) = (bold_name(&fork.timeline), short_id(fork.id));
        out.say(format!("It is a timeline of its own now, {name}, snapshot {id}; {book}."));
    }
    if report.dropped_operations > 0 {
        let verb = if report.dry_run { "would be dropped" } else { "dropped" };
        let dropped = count(report.dropped_operations, "operation");
        out.say(format!("{dropped} {verb} from the lorebook's queue."));
    }
}

fn state(report: &Report, out: &mut Out) {
    let (state, snapshot) = (report.state.as_ref(), &report.source.snapshot);
    if state.is_none() && report.source.tags.is_empty() {
        return;
    }
    if report.source.origin.is_none() {
        let scene = || state.and_then(|state| state.scene_break_name.clone());
        let called = report.source.tags.first().cloned().or_else(scene);
        let called = called.unwrap_or_else(|| report.source.timeline.chat().to_owned());
        out.say(format!("Checkpoint:     {}", clean(&called)));
    }
    recaps(report, out);
    if report.source.origin.is_none() {
        let taken = out.clock.both(snapshot.time);
        out.say(format!("Taken:          {taken}"));
    }
    if let Some(state) = state.filter(|state| !state.queue_was_empty) {
        let active = count(state.active_operations, "operation");
        out.say(format!("Queue:          {active} waited in it when this was taken"));
    }
}

/// Prints the recaps and the lorebook of the restored state.
pub fn recaps(report: &Report, out: &mut Out) {
    let Some(state) = &report.state else { return };
    out.say(format!("Running recap:  {}", recap(state)));
    let combined = state.combined_recap_message_count.and_then(|n| u64::try_from(n).ok());
    if let Some(n) = combined {
        out.say(format!("Combined recap: {}", count(n, "message")));
    }
    if let Some(n) = report.entries {
        out.say(format!("Lorebook:       {}", count(n, "entry")));
    }
}

/// Prints where the parts of a state that was put together come from.
pub fn tell_origin(origin: &Origin, out: &mut Out) {
    let trimmed = &origin.trimmed;
    if trimmed.versions_before > trimmed.versions_after {
        let current = trimmed.current_version.map(|n| format!(", v{n} in use")).unwrap_or_default();
        let (before, after) = (trimmed.versions_before, trimmed.versions_after);
        out.say(format!(
            "Running recap: {after} of {before} versions had been written then{current}."
        ));
    }
    if let Some(count) = trimmed.combined_dropped {
        out.say(format!("The combined recap told of {count} messages, and is taken out."));
    }
    let Some((message, scene)) = &origin.scene else {
        match &origin.book_of {
            Some(id) => {
                let id = short_id(id);
                out.say(format!(
                    "Lorebook as snapshot {id} has it, which was taken at that message."
                ))
            }
            None if origin.with_book => out.say("The chat had no lorebook."),
            None => {}
        }
        return;
    };
    let scene = in_parentheses(scene.as_ref());
    let entries = count(origin.entries.len(), "entry");
    out.say(format!(
        "Lorebook as noted at message {message}{scene}: {entries}, with an empty queue."
    ));
    for (n, book) in origin.books.iter().enumerate() {
        let from = origin.entries.iter().filter(|entry| entry.filled_from == Some(n)).count();
        let what = match book {
            BookSource::Snapshot(id) => format!("snapshot {}", short_id(id)),
            BookSource::Here => "the lorebook beside it".into(),
        };
        if from > 0 {
            let entries = count(from, "entry");
            out.say(format!("  {entries}: what the note does not hold is from {what}"));
        }
    }
    let alone = origin.entries.iter().filter(|entry| entry.filled_from.is_none()).count();
    if alone > 0 {
        let entries = count(alone, "entry");
        let what = "what the note does not hold is SillyTavern's default";
        out.say(format!("  {entries}: found in no book; {what}"));
    }
}

pub fn tell_file(file: &FileAction, style: Style, word: &str, out: &mut Out) {
    let word = paint(style, format!("{word:<13}"));
    out.say(format!("{word}  {}  {}", clean(file.path.as_str()), size(file.bytes)));
}

pub fn files(report: &Report, out: &mut Out) {
    report.written.files.iter().for_each(|file| restored(file, report, out));
}

/// Leaves out files that were there: a group's file, for example, belongs to several timelines.
pub fn written_files(report: &Report, out: &mut Out) {
    let files = report.written.files.iter().filter(|file| file.action != Action::Keep);
    files.for_each(|file| restored(file, report, out));
}

pub fn tell_lost_attachments(lost: usize, out: &mut Out) {
    if lost > 0 {
        let lost = count(lost, "attachment");
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
