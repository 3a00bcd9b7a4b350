use clap_complete::engine::ArgValueCompleter;

use super::args::{one_of, seconds};
use super::complete::existing;
use super::error::Result;
use super::output::{Output, STYLES, bold, dim, paint};
use super::table::{self, Cell};
use super::wording::{clean, count, fork_point, length, name, recap, short, size, was_called};
use stvc::json_output::answers::Snapshots;
use stvc::library::Category;
use stvc::readiness::{GatePolicy, READINESS, SceneRule, WaitLimit};
use stvc::snapshots::{CheckpointState, Kind, Snapshot};
use stvc::verbs::snapshot::{Options, Report, SnapshotRequest, SnapshotResult};
use stvc::{Workspace, verbs};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Chats: a file, `Character/Chat name`, or any part of it that matches only one chat (default:
    /// all that changed)
    #[arg(add = ArgValueCompleter::new(existing), value_name = "TIMELINE")]
    pub timelines: Vec<String>,

    /// Create snapshots only of changed files of this kind
    #[arg(long, value_name = "KIND", conflicts_with_all = ["timelines", "at", "scenes", "tag"], value_parser = one_of(KINDS))]
    pub only: Vec<&'static [Category]>,

    /// Create a checkpoint at message N: messages 0 to N under a tag, outside the timeline
    #[arg(long, value_name = "N")]
    pub at: Option<usize>,

    /// Create a tagged checkpoint at every message that ends a scene (ST-Auto-Recap) and has none
    /// yet
    #[arg(long, conflicts_with_all = ["at", "tag"])]
    pub scenes: bool,

    /// With --scenes or --at: name the checkpoints after this template
    ///
    /// Placeholders: {scene_number}, {scene_name}, {chat}, {character} and {message}. The default
    /// for --scenes is `Scene {scene_number} - {scene_name}`.
    #[arg(long = "name", value_name = "TEMPLATE", conflicts_with = "tag")]
    pub template: Option<String>,

    /// Describe the snapshot in your own words
    #[arg(long, short, value_name = "TEXT")]
    pub message: Option<String>,

    /// Tag the snapshot with this name
    #[arg(long, value_name = "NAME")]
    pub tag: Option<String>,

    /// Refuse, instead of warning, if the message does not end a scene, the scene's lorebook entry
    /// is not finished or the running recap does not include it
    #[arg(long)]
    pub strict: bool,

    /// Refuse if the message does not end a scene; only warn about the rest
    #[arg(long)]
    pub require_scene_break: bool,

    /// Do not warn about an unfinished scene; the snapshot still records it
    #[arg(long)]
    pub no_scene_warnings: bool,

    /// Wait for the lorebook's queue to finish, at most SECONDS if given
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, default_missing_value = "", value_parser = seconds)]
    pub wait: Option<WaitLimit>,

    /// Create the snapshot even if work is pending in the lorebook's queue; the snapshot records it
    #[arg(long)]
    pub allow_active_queue: bool,

    /// Only show what would be done
    #[arg(long, short = 'n')]
    pub dry_run: bool,
}

const KINDS: [(&str, &[Category]); 6] = [
    ("chats", &[Category::Chat, Category::GroupChat]),
    ("lorebooks", &[Category::Lorebook]),
    ("characters", &[Category::Card]),
    ("personas", &[Category::Persona]),
    ("groups", &[Category::Group]),
    ("settings", &[Category::Settings]),
];

pub fn run(args: &Args, workspace: &Workspace, out: &mut Output) -> Result<u8> {
    let subject = SnapshotRequest {
        timelines: args.timelines.clone(),
        only: args.only.concat(),
        at: args.at,
        scenes: args.scenes,
        template: args.template.clone(),
        tag: args.tag.clone(),
        holds: None,
    };
    let scene = match (args.strict, args.require_scene_break) {
        (true, _) => SceneRule::Strict,
        (false, true) => SceneRule::RequireBreak,
        (false, false) => SceneRule::Warn,
    };
    let options = Options {
        subject: subject.try_into()?,
        gate: GatePolicy { scene, wait: args.wait, allow_active_queue: args.allow_active_queue },
        autosave: false,
        message: args.message.clone(),
        dry_run: args.dry_run,
        tell_all: out.is_json(),
    };
    let mut report = verbs::snapshot::snapshot(workspace, &options, &mut out.progress())?;
    if args.no_scene_warnings {
        report.findings.retain(|finding| !READINESS.contains(&finding.code));
    }
    let answer = Snapshots { report: &report, dry_run: args.dry_run };
    Ok(out.answer(&answer, |out| print(&report, options.subject.is_named(), args.dry_run, out)))
}

fn print(report: &Report, named: bool, dry_run: bool, out: &mut Output) {
    let mut rows = Vec::new();
    let mut unchanged = report.untouched as u64;
    let mut taken = 0;
    for finding in &report.unreadable {
        not_taken(&clean(&finding.subject), &finding.message, out);
    }
    for outcome in &report.timelines {
        let label = name(&outcome.timeline);
        match &outcome.result {
            SnapshotResult::New(snapshot, tags) => {
                taken += 1;
                rows.push(new_snapshot(report, snapshot, tags, label));
            }
            SnapshotResult::WouldBeNew(messages, before) => {
                taken += 1;
                let was = before.map_or("new".to_owned(), |before| format!("was {before}"));
                let facts = format!("{} ({was})", count(*messages, "message"));
                let name = Cell::new(STYLES.name, label).cut();
                rows.push(vec![Cell::plain("would create"), name, Cell::plain(facts)]);
            }
            SnapshotResult::Unchanged(snapshot, tags) => {
                unchanged += 1;
                if named || !tags.is_empty() {
                    rows.push(row(snapshot, label, "unchanged".into(), tags));
                }
            }
            SnapshotResult::Refused(why) => out.findings(why),
            SnapshotResult::Failed(why) => not_taken(&label, why, out),
        }
    }
    rows.extend(report.newly_deleted.iter().map(was_deleted));
    let listed = if out.verbose || rows.len() <= ROWS { rows.len() } else { ROWS - 1 };
    table::lines(&rows[..listed]).iter().for_each(|line| out.say(line));
    if listed < rows.len() {
        out.say(dim(format!("… and {} more; `stvc log` lists all", rows.len() - listed)));
    }
    out.findings(&report.findings);
    let mut rest = String::new();
    if unchanged > 0 && taken > 0 {
        rest.push_str(&format!(", {unchanged} unchanged"));
    }
    if report.deleted > 0 {
        rest.push_str(&format!(", {} deleted (see `stvc timelines`)", report.deleted));
    }
    let tagged = report.timelines.iter().any(|outcome| match &outcome.result {
        SnapshotResult::New(_, tags) | SnapshotResult::Unchanged(_, tags) => !tags.is_empty(),
        _ => false,
    });
    let verb = if dry_run { "would be created" } else { "created" };
    let what = count(taken, "snapshot");
    let written =
        if report.bytes > 0 { format!("; {} written", size(report.bytes)) } else { String::new() };
    match (taken, report.timelines.len() + report.unreadable.len() + report.untouched) {
        (_, 0) if named => {}
        (_, 0) if report.deleted == 0 => out.say("There are no chats here yet."),
        (0, _) if report.failed() + report.refused() == 0 => {
            if !tagged {
                out.say(format!("Nothing changed in {}{rest}.", count(unchanged, "timeline")));
            }
        }
        _ => out.say(format!("{what} {verb}{rest}{written}.")),
    }
}

/// The number of rows that fit on a small screen together with the result.
const ROWS: usize = 20;

fn not_taken(label: &str, why: &str, out: &mut Output) {
    let (bad, label) = (paint(STYLES.bad, "snapshot failed"), bold(label));
    out.warn(&format!("{bad}: {label}: {}", clean(why)));
}

pub(super) fn new_snapshot(
    report: &Report,
    snapshot: &Snapshot,
    tags: &[String],
    label: String,
) -> Vec<Cell> {
    let mut facts: Vec<_> = length(snapshot).into_iter().collect();
    facts.extend((snapshot.kind == Kind::AUTOSAVE).then(|| "autosave".to_owned()));
    facts.extend(snapshot.fork_at.map(fork_point));
    facts.extend(report.states.get(&snapshot.id).and_then(recap_facts));
    facts.extend(snapshot.renamed_from.as_ref().map(|from| was_called(from, 40)));
    row(snapshot, label, facts.join(", "), tags)
}

pub(super) fn was_deleted(last: &Snapshot) -> Vec<Cell> {
    let facts = match length(last) {
        Some(length) => format!("deleted; {length} kept"),
        None => "deleted; its latest snapshot is kept".to_owned(),
    };
    row(last, name(&last.timeline), facts, &[])
}

fn row(snapshot: &Snapshot, label: String, facts: String, tags: &[String]) -> Vec<Cell> {
    let tags: Vec<_> = tags.iter().map(|tag| clean(tag)).collect();
    vec![
        Cell::new(STYLES.id, short(snapshot.id)),
        Cell::new(STYLES.name, label).cut(),
        Cell::plain(facts),
        Cell::new(STYLES.tag, tags.join("  ")),
    ]
}

fn recap_facts(state: &CheckpointState) -> Option<String> {
    state.running_recap_version?;
    let combined = state.combined_recap_message_count.and_then(|n| u64::try_from(n).ok());
    let combined = combined.map(|n| format!(", combined recap of {}", count(n, "message")));
    Some(format!("recap {}{}", recap(state), combined.unwrap_or_default()))
}
