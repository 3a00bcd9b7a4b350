use std::path::PathBuf;

use anstyle::Style;
use clap_complete::engine::ArgValueCompleter;

use super::args::{ClosedArgs, QueueArgs, SNAPSHOT_HELP, one_of, seconds};
use super::complete::snapshots;
use super::error::Result;
use super::output::{Output, STYLES, bold, bold_name, paint, short_id};
use super::wording::{clean, count, in_parentheses, name, recap, removed_characters, short, size};
use stvc::files::{Action, FileAction, WritePermissions};
use stvc::findings::lost_attachments;
use stvc::moments::{BookSource, Origin};
use stvc::readiness::{GatePolicy, WaitLimit};
use stvc::snapshots::Role;
use stvc::verbs::restore::{Options, Overwrite, Report, RestoreRange, Target};
use stvc::{Workspace, verbs};

#[derive(Debug, clap::Args)]
#[command(after_help = SNAPSHOT_HELP)]
pub struct Args {
    /// Snapshot to restore
    #[arg(add = ArgValueCompleter::new(snapshots), value_name = "SNAPSHOT", required_unless_present = "all")]
    pub snapshot: Option<String>,

    /// Restore the latest snapshot of every timeline
    #[arg(long, conflicts_with_all = ["snapshot", "name", "at", "to", "only", "clear_queue", "trim_queue"])]
    pub all: bool,

    /// With --all: include timelines that are recorded as deleted
    #[arg(long, requires = "all")]
    pub deleted: bool,

    /// Restore as a new chat with this name and its own lorebook
    #[arg(long = "as", value_name = "NAME", conflicts_with_all = ["to", "overwrite", "only"])]
    pub name: Option<String>,

    /// Restore messages 0 to N, with the recap and the lorebook as of message N
    #[arg(long, value_name = "N")]
    pub at: Option<usize>,

    /// Restore into this new or empty folder instead of SillyTavern's
    #[arg(long, value_name = "DIR")]
    pub to: Option<PathBuf>,

    /// Restore only the chat or only the lorebook
    #[arg(long, value_name = "PART", value_parser = one_of([("chat", Role::Chat), ("lorebook", Role::Lorebook)]))]
    pub only: Option<Role>,

    /// Replace files that differ, after creating a snapshot of them
    #[arg(long, conflicts_with = "to")]
    pub overwrite: bool,

    /// Confirm that the chat is closed in SillyTavern (menu ☰, "Close chat")
    ///
    /// SillyTavern may keep running, because it has nothing to write back.
    #[arg(long, requires = "overwrite")]
    pub chat_closed: bool,

    /// With --as: refuse, instead of warning, if the message does not end a scene, the scene's
    /// lorebook entry is not finished or the running recap does not include it
    #[arg(long, requires = "name")]
    pub strict: bool,

    /// With --as: wait for the lorebook's queue to finish, at most SECONDS if given
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, default_missing_value = "", value_parser = seconds, requires = "name")]
    pub wait: Option<WaitLimit>,

    /// Restore even if ST-Auto-Recap has pending work in the lorebook
    ///
    /// With --overwrite, this is the lorebook that is replaced; with --as, the lorebook of the
    /// chat.
    #[arg(long)]
    pub allow_active_queue: bool,

    /// Restore attachments that may run code, even if received from elsewhere
    ///
    /// These are web pages, scripts and programs that came from a backup or another device.
    #[arg(long)]
    pub any_attachments: bool,

    #[command(flatten)]
    pub queue: QueueArgs,

    /// Only show what would be done
    #[arg(long, short = 'n')]
    pub dry_run: bool,
}

pub fn run(args: &Args, snapshot: &str, workspace: &Workspace, out: &mut Output) -> Result<u8> {
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
        (None, None) => {
            Target::InPlace { only, overwrite: overwrite(args), permissions: permissions(args) }
        }
    };
    let options = Options {
        snapshot: snapshot.to_owned(),
        until: args.at.map_or(RestoreRange::End, RestoreRange::Message),
        target,
        any_attachments: args.any_attachments,
        queue: args.queue.change(),
        dry_run: args.dry_run,
    };
    let report = verbs::restore::restore(workspace, &options, &mut out.progress())?;
    let text = |out: &mut Output| {
        print(&report, out);
        let new = report.written.fork.as_ref().map(|snapshot| snapshot.timeline.chat());
        let removed =
            args.name.as_deref().zip(new).and_then(|(asked, chat)| removed_characters(asked, chat));
        removed.iter().for_each(|removed| out.say(removed));
    };
    Ok(out.answer(&report, text))
}

fn print(report: &Report, out: &mut Output) {
    if let Some(safety) = &report.written.safety {
        out.say(format!("The previous version is kept as snapshot {}.", short_id(safety.id)));
    }
    if report.written.kept {
        out.say("The previous version is kept; run `stvc undo` to restore it.");
    }
    files(report, out);
    print_result(report, out);
    if let Some(origin) = &report.source.origin {
        print_origin(origin, out);
    }
    state(report, out);
    print_lost_attachments(lost_attachments(&report.findings), out);
    out.findings(&report.findings);
}

pub fn overwrite(args: &Args) -> Overwrite {
    if args.overwrite { Overwrite::All } else { Overwrite::None }
}

pub fn permissions(args: &Args) -> WritePermissions {
    WritePermissions {
        closed: ClosedArgs { chat_closed: args.chat_closed }.state(),
        active_queue: args.allow_active_queue,
    }
}

fn print_result(report: &Report, out: &mut Output) {
    let snapshot = &report.source.snapshot;
    let when = match &report.source.origin {
        None => format!("created {}", out.clock.age(snapshot.time)),
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
            out.say(format!("Nothing to do: the files match snapshot {id} ({what})."));
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
        out.say(format!("The new timeline is {name}, snapshot {id}; {book}."));
    }
    if report.dropped_operations > 0 {
        let verb = if report.dry_run { "would be removed" } else { "removed" };
        let dropped = count(report.dropped_operations, "operation");
        out.say(format!("{dropped} {verb} from the lorebook's queue."));
    }
}

fn state(report: &Report, out: &mut Output) {
    let (state, snapshot) = (report.state.as_ref(), &report.source.snapshot);
    if state.is_none() && report.source.tags.is_empty() {
        return;
    }
    if report.source.origin.is_none() {
        out.say(format!("Checkpoint:     {}", clean(report.label())));
    }
    recaps(report, out);
    if report.source.origin.is_none() {
        let taken = out.clock.both(snapshot.time);
        out.say(format!("Created:        {taken}"));
    }
    if let Some(state) = state.filter(|state| !state.queue_was_empty) {
        let active = count(state.active_operations, "operation");
        out.say(format!("Queue:          {active} pending when this snapshot was created"));
    }
}

/// Prints the state of the recaps and of the lorebook in the restored snapshot.
pub fn recaps(report: &Report, out: &mut Output) {
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

/// Prints the sources from which the chat and the lorebook were reconstructed.
pub fn print_origin(origin: &Origin, out: &mut Output) {
    let trimmed = &origin.trimmed;
    if trimmed.versions_before > trimmed.versions_after {
        let current = trimmed.current_version.map(|n| format!(", v{n} in use")).unwrap_or_default();
        let (before, after) = (trimmed.versions_before, trimmed.versions_after);
        out.say(format!("Running recap: {after} of {before} versions existed then{current}."));
    }
    if let Some(covered) = trimmed.combined_dropped {
        let covered = count(covered, "message");
        out.say(format!("The combined recap covered {covered} and was removed."));
    }
    let Some((message, scene)) = &origin.scene else {
        match &origin.book_of {
            Some(id) => {
                let id = short_id(id);
                out.say(format!("Lorebook: from snapshot {id}, which was created at that message."))
            }
            None if origin.with_book => out.say("The chat had no lorebook."),
            None => {}
        }
        return;
    };
    let scene = in_parentheses(scene.as_ref());
    let entries = count(origin.entries.len(), "entry");
    out.say(format!(
        "Lorebook: as recorded at message {message}{scene}, {entries}, with an empty queue."
    ));
    for (n, book) in origin.books.iter().enumerate() {
        let from = origin.entries.iter().filter(|entry| entry.filled_from == Some(n)).count();
        let what = match book {
            BookSource::Snapshot(id) => format!("snapshot {}", short_id(id)),
            BookSource::Here => "the current lorebook".into(),
        };
        if from > 0 {
            let entries = count(from, "entry");
            out.say(format!("  {entries}: missing values are from {what}"));
        }
    }
    let alone = origin.entries.iter().filter(|entry| entry.filled_from.is_none()).count();
    if alone > 0 {
        let entries = count(alone, "entry");
        let what = "missing values are SillyTavern's defaults";
        out.say(format!("  {entries}: not in any other lorebook; {what}"));
    }
}

pub fn print_file(file: &FileAction, style: Style, word: &str, out: &mut Output) {
    let word = paint(style, format!("{word:<13}"));
    out.say(format!("{word}  {}  {}", clean(file.path.as_str()), size(file.bytes)));
}

pub fn files(report: &Report, out: &mut Output) {
    report.written.files.iter().for_each(|file| restored(file, report, out));
}

/// Prints the files that were written. Unchanged files are left out; the file of a group, for
/// example, belongs to several timelines.
pub fn written_files(report: &Report, out: &mut Output) {
    let files = report.written.files.iter().filter(|file| file.action != Action::Keep);
    files.for_each(|file| restored(file, report, out));
}

pub fn print_lost_attachments(lost: usize, out: &mut Output) {
    if lost > 0 {
        let lost = count(lost, "attachment");
        out.say(format!("Not restored: {lost}. See the findings."));
    }
}

fn restored(file: &FileAction, report: &Report, out: &mut Output) {
    let (style, word) = match (file.action, report.dry_run) {
        (Action::Keep, _) => (STYLES.dim, "unchanged"),
        (Action::Delete, _) => (STYLES.warn, "removed"),
        (Action::Write, true) if file.replaces => (STYLES.warn, "would replace"),
        (Action::Write, true) => (STYLES.good, "would write"),
        (Action::Write, false) if file.replaces => (STYLES.warn, "replaced"),
        (Action::Write, false) => (STYLES.good, "restored"),
    };
    print_file(file, style, word, out);
}
