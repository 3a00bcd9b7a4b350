use std::path::PathBuf;

use clap_complete::engine::ArgValueCompleter;

use super::args::{SNAPSHOT_HELP, one_of, seconds};
use super::complete::snapshots;
use super::error::Result;
use super::output::{LOOK, Out, paint};
use super::restored_files::{files, tell_lost_attachments};
use super::wording::{clean, closed, count, name, recap, short};
use stvc::archive::Role;
use stvc::engine::Workspace;
use stvc::engine::files::Leave;
use stvc::engine::gate::{GatePolicy, SceneRule, Wait};
use stvc::history::at_message::{BookSource, Origin};
use stvc::rules::lost_attachments;
use stvc::verbs;
use stvc::verbs::restore::{Options, Overwrite, QueueChange, Report, Target, Until};

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

    /// Drop all work that waits in the lorebook's queue (ST-Auto-Recap)
    #[arg(long)]
    pub clear_queue: bool,

    /// Drop the work in the queue that is about messages which this state does not have
    #[arg(long, conflicts_with = "clear_queue")]
    pub trim_queue: bool,

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
                scene: if args.strict { SceneRule::Strict } else { SceneRule::Warn },
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
        queue: queue_change(args.clear_queue, args.trim_queue),
        dry_run: args.dry_run,
    };
    let report = verbs::restore::restore(workspace, &options, &mut out.progress())?;
    Ok(out.answer(&report, |out| tell(&report, out)))
}

fn tell(report: &Report, out: &mut Out) {
    if let Some(safety) = &report.written.safety {
        out.say(format!(
            "What was there is kept as snapshot {}.",
            paint(LOOK.id, short(safety.id))
        ));
    }
    if report.written.kept {
        out.say("What was there is kept; `stvc undo` brings it back.");
    }
    files(report, out);
    told(report, out);
    if let Some(origin) = &report.source.origin {
        made(origin, out);
    }
    state(report, out);
    tell_lost_attachments(lost_attachments(&report.findings), out);
    out.findings(&report.findings);
}

pub fn overwrite(args: &Args) -> Overwrite {
    if args.overwrite { Overwrite::All } else { Overwrite::None }
}

pub fn leave(args: &Args) -> Leave {
    Leave { closed: closed(args.chat_closed), active_queue: args.allow_active_queue }
}

/// What `--clear-queue` and `--trim-queue` say.
pub fn queue_change(clear: bool, trim: bool) -> QueueChange {
    match (clear, trim) {
        (true, _) => QueueChange::Clear,
        (_, true) => QueueChange::Trim,
        _ => QueueChange::Keep,
    }
}

fn told(report: &Report, out: &mut Out) {
    let snapshot = &report.source.snapshot;
    let messages = report.messages;
    let when = match &report.source.origin {
        None => format!("taken {}", out.clock.age(snapshot.time)),
        Some(made) => {
            format!("as of message {}, from snapshot {}", made.message, short(snapshot.id))
        }
    };
    let what = format!("{}, {}, {when}", name(&report.source.timeline), count(messages, "message"));
    match (report.written.count(), report.dry_run) {
        (0, _) if lost_attachments(&report.findings) > 0 => {
            out.say(format!("No file was written: {what}."));
        }
        (0, _) => out.say(format!(
            "Nothing to do: the files are those of snapshot {} ({what}).",
            short(snapshot.id)
        )),
        (_, true) => {}
        _ => out.say(format!(
            "Restored and verified in {}: {what}.",
            clean(&report.written.root.display().to_string())
        )),
    }
    if let Some(fork) = &report.written.fork {
        let book = fork.lorebook.as_deref().map_or_else(
            || "it has no lorebook".to_owned(),
            |book| format!("its lorebook is {}", paint(LOOK.name, clean(book))),
        );
        out.say(format!(
            "It is a timeline of its own now, {}, snapshot {}; {book}.",
            paint(LOOK.name, name(&fork.timeline)),
            paint(LOOK.id, short(fork.id))
        ));
    }
    if report.dropped_operations > 0 {
        let verb = if report.dry_run { "would be dropped" } else { "dropped" };
        let dropped = count(report.dropped_operations as u64, "operation");
        out.say(format!("{dropped} {verb} from the lorebook's queue."));
    }
}

/// What a writer who took it as a checkpoint, or uses ST-Auto-Recap, wants to know of the state.
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

/// The recaps and the lorebook of the restored state.
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

/// Where the parts of a state that was put together come from.
pub fn made(origin: &Origin, out: &mut Out) {
    let trimmed = &origin.trimmed;
    if trimmed.versions_before > trimmed.versions_after {
        let current =
            trimmed.current_version.map_or_else(String::new, |n| format!(", v{n} in use"));
        out.say(format!(
            "Running recap: {} of {} versions had been written then{current}.",
            trimmed.versions_after, trimmed.versions_before
        ));
    }
    if let Some(count) = trimmed.combined_dropped {
        out.say(format!("The combined recap told of {count} messages, and is taken out."));
    }
    let Some((message, scene)) = &origin.scene else {
        match &origin.book_of {
            Some(id) => out.say(format!(
                "Lorebook as snapshot {} has it, which was taken at that message.",
                paint(LOOK.id, short(id))
            )),
            None if origin.with_book => out.say("The chat had no lorebook."),
            None => {}
        }
        return;
    };
    let scene = scene.as_ref().map(|name| format!(" ({})", clean(name))).unwrap_or_default();
    out.say(format!(
        "Lorebook as noted at message {message}{scene}: {}, with an empty queue.",
        count(origin.entries.len() as u64, "entry")
    ));
    for (n, book) in origin.books.iter().enumerate() {
        let from = origin.entries.iter().filter(|entry| entry.filled_from == Some(n)).count();
        let what = match book {
            BookSource::Snapshot(id) => format!("snapshot {}", paint(LOOK.id, short(id))),
            BookSource::Here => "the lorebook beside it".into(),
        };
        if from > 0 {
            let entries = count(from as u64, "entry");
            out.say(format!("  {entries}: what the note does not hold is from {what}"));
        }
    }
    let alone = origin.entries.iter().filter(|entry| entry.filled_from.is_none()).count();
    if alone > 0 {
        let entries = count(alone as u64, "entry");
        out.say(format!(
            "  {entries}: found in no book; what the note does not hold is SillyTavern's default"
        ));
    }
}
