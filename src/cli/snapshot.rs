use clap_complete::engine::ArgValueCompleter;

use super::args::{one_of, seconds};
use super::complete::timelines;
use super::error::Result;
use super::output::{LOOK, Out, bold, paint};
use super::table::{self, Cell};
use super::wording::{clean, count, fork_point, length, name, recap, short, size, was_called};
use stvc::library::Category;
use stvc::lines::answers::Snapshots;
use stvc::readiness::{GatePolicy, READINESS, SceneRule, Wait};
use stvc::snapshots::{CheckpointState, Kind, Snapshot};
use stvc::verbs::snapshot::{Asked, Options, Report, Taken};
use stvc::{Workspace, verbs};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Chats: a file, `Character/Chat name`, or any part of that which fits only one
    #[arg(add = ArgValueCompleter::new(timelines), value_name = "TIMELINE")]
    pub timelines: Vec<String>,

    /// Only these, and not all that changed
    #[arg(long, value_name = "KIND", conflicts_with_all = ["timelines", "at", "scenes", "tag"], value_parser = one_of(KINDS))]
    pub only: Vec<&'static [Category]>,

    /// A checkpoint at message N: messages 0 to N, kept under a tag; the timeline itself stays as it is
    #[arg(long, value_name = "N")]
    pub at: Option<usize>,

    /// A checkpoint at every message that ends a scene (ST-Auto-Recap) and has none yet, each under a name
    #[arg(long, conflicts_with_all = ["at", "tag"])]
    pub scenes: bool,

    /// With --scenes or --at: what checkpoints are called; {scene_number}, {scene_name}, {chat}, {character} and {message} are filled in. Scenes are called `Scene {scene_number} - {scene_name}` if not given
    #[arg(long = "name", value_name = "TEMPLATE", conflicts_with = "tag")]
    pub template: Option<String>,

    /// Say what it is, in your own words
    #[arg(long, short, value_name = "TEXT")]
    pub message: Option<String>,

    /// Give it a name
    #[arg(long, value_name = "NAME")]
    pub tag: Option<String>,

    /// Refuse where the message ends no scene, the scene's lorebook entry is not finished or the running recap does not have it, instead of warning
    #[arg(long)]
    pub strict: bool,

    /// Refuse where the message ends no scene, and only warn of the rest
    #[arg(long)]
    pub require_scene_break: bool,

    /// Do not say what of the scene is not finished; the snapshot records it all the same
    #[arg(long)]
    pub no_scene_warnings: bool,

    /// Wait for the lorebook's queue to finish, at most so many seconds
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, default_missing_value = "", value_parser = seconds)]
    pub wait: Option<Wait>,

    /// Take it though work is pending in the lorebook's queue; the snapshot says so
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

pub fn run(args: &Args, workspace: &Workspace, out: &mut Out) -> Result<u8> {
    let subject = Asked {
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
    Ok(out.answer(&answer, |out| tell(&report, options.subject.is_named(), args.dry_run, out)))
}

fn tell(report: &Report, named: bool, dry_run: bool, out: &mut Out) {
    let mut rows = Vec::new();
    let mut unchanged = report.untouched as u64;
    let mut taken = 0;
    for finding in &report.unreadable {
        not_taken(&clean(&finding.subject), &finding.message, out);
    }
    for outcome in &report.timelines {
        let label = name(&outcome.timeline);
        match &outcome.result {
            Taken::New(snapshot, tags) => {
                taken += 1;
                rows.push(new_snapshot(report, snapshot, tags, label));
            }
            Taken::WouldBeNew(messages, before) => {
                taken += 1;
                let was = before.map_or("new".to_owned(), |before| format!("was {before}"));
                let facts = format!("{} ({was})", count(*messages, "message"));
                let name = Cell::new(LOOK.name, label).cut();
                rows.push(vec![Cell::plain("would take"), name, Cell::plain(facts)]);
            }
            Taken::Unchanged(snapshot, tags) => {
                unchanged += 1;
                if named || !tags.is_empty() {
                    rows.push(row(snapshot, label, "unchanged".into(), tags));
                }
            }
            Taken::Refused(why) => out.findings(why),
            Taken::Failed(why) => not_taken(&label, why, out),
        }
    }
    rows.extend(report.newly_deleted.iter().map(was_deleted));
    table::lines(&rows).iter().for_each(|line| out.say(line));
    let mut rest = String::new();
    if unchanged > 0 && taken > 0 {
        rest.push_str(&format!(", {unchanged} unchanged"));
    }
    if report.deleted > 0 {
        rest.push_str(&format!(", {} deleted (`stvc timelines` shows them)", report.deleted));
    }
    let tagged = report.timelines.iter().any(|outcome| match &outcome.result {
        Taken::New(_, tags) | Taken::Unchanged(_, tags) => !tags.is_empty(),
        _ => false,
    });
    let verb = if dry_run { "would be taken" } else { "taken" };
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
    out.findings(&report.findings);
}

fn not_taken(label: &str, why: &str, out: &mut Out) {
    let (bad, label) = (paint(LOOK.bad, "not taken"), bold(label));
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
        Some(length) => format!("was deleted; {length} kept"),
        None => "was deleted; its last state is kept".to_owned(),
    };
    row(last, name(&last.timeline), facts, &[])
}

fn row(snapshot: &Snapshot, label: String, facts: String, tags: &[String]) -> Vec<Cell> {
    let tags: Vec<_> = tags.iter().map(|tag| clean(tag)).collect();
    vec![
        Cell::new(LOOK.id, short(snapshot.id)),
        Cell::new(LOOK.name, label).cut(),
        Cell::plain(facts),
        Cell::new(LOOK.tag, tags.join("  ")),
    ]
}

fn recap_facts(state: &CheckpointState) -> Option<String> {
    state.running_recap_version?;
    let combined = state.combined_recap_message_count.and_then(|n| u64::try_from(n).ok());
    let combined = combined.map(|n| format!(", combined recap of {}", count(n, "message")));
    Some(format!("recap {}{}", recap(state), combined.unwrap_or_default()))
}
