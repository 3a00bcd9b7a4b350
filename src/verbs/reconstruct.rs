//! Creates snapshots of earlier moments from the data in messages. These snapshots have the kind
//! `reconstructed`, and are inserted into the history before the snapshots of later moments.

use std::collections::BTreeMap;

use crate::archive::{self, Ancestry, ContentId, Kind, NewSnapshot, Snapshot, State};
use crate::auto_recap::scene_breaks;
use crate::engine::operation::{Operation, RunMode};
use crate::engine::safety_snapshots::take_as_it_is;
use crate::engine::{self, Workspace, gate};
use crate::history::at_message::{Origin, PastPairs, RebuiltState, StateAtMessage, make};
use crate::history::origin::{Lineage, NewTimeline};
use crate::history::pairs::{Pair, Pairs, StartBook};
use crate::history::rewrite_history::{Insertion, insert};
use crate::history::{self, History, name_lookup};
use crate::progress::Monitor;
use crate::rules::Finding;
use crate::st::{self, Captured, Disk, TimelineName};
use crate::store::{Store, Time};
use crate::verbs::Result;

/// The moments to reconstruct.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Name of the chat.
    pub timeline: String,
    /// Number of the last message of the moment. `None` selects the end of every scene.
    pub at: Option<usize>,
    /// Reconstruct the moments, and store nothing.
    pub dry_run: bool,
}

/// The outcome for the moment at which `message` was the last message.
pub struct Reconstruction {
    /// Number of the moment's last message.
    pub message: usize,
    /// Name of the scene that this message ends.
    pub scene: Option<String>,
    /// The snapshot, or the reason why there is none.
    pub result: ReconstructOutcome,
}

/// The outcome of reconstructing one moment.
pub enum ReconstructOutcome {
    /// The moment was reconstructed. The snapshot is `None` in a dry run.
    Made(Option<Box<Snapshot>>, Box<Origin>),
    /// The store already has a snapshot of this moment.
    Known(Box<Snapshot>),
    /// The moment cannot be reconstructed, for the reasons in the findings.
    Lost(Vec<Finding>),
    /// The message precedes the fork point, so the moment belongs to the history of this parent.
    OfParent(TimelineName),
}

/// The outcomes of a reconstruction.
#[non_exhaustive]
pub struct Report {
    /// Current name of the chat.
    pub timeline: TimelineName,
    /// Results in the order of the messages.
    pub outcomes: Vec<Reconstruction>,
    /// Problems of the reconstructed moments.
    pub findings: Vec<Finding>,
    /// Whether a snapshot of the current files was created first.
    pub taken_first: bool,
    /// Number of existing snapshots that got a new id because reconstructed snapshots were inserted
    /// before them.
    pub rewritten: usize,
    /// Whether nothing was stored.
    pub dry_run: bool,
}

impl Report {
    /// Counts the moments whose outcome matches `wanted`.
    pub fn count(&self, wanted: impl Fn(&ReconstructOutcome) -> bool) -> usize {
        self.outcomes.iter().filter(|outcome| wanted(&outcome.result)).count()
    }
}

/// Creates snapshots of the requested moments, and inserts them into the history.
pub fn reconstruct(
    workspace: &Workspace,
    options: &Options,
    monitor: &mut dyn Monitor,
) -> Result<Report> {
    if options.dry_run {
        let (_folder, elsewhere) = workspace.on_a_copy()?;
        return carry_out(&elsewhere, options, monitor);
    }
    // Plan on a copy of the store first, so that errors occur before anything is written, and so
    // that nothing is written if no moment can be reconstructed.
    let planned = Options { dry_run: true, ..options.clone() };
    let plan = reconstruct(workspace, &planned, monitor)?;
    if !plan.outcomes.iter().any(|outcome| matches!(outcome.result, ReconstructOutcome::Made(..))) {
        return Ok(Report { taken_first: false, dry_run: false, ..plan });
    }
    carry_out(workspace, options, monitor)
}

fn carry_out(
    workspace: &Workspace,
    options: &Options,
    monitor: &mut dyn Monitor,
) -> Result<Report> {
    let library = workspace.library()?;
    let scan = library.scan()?;
    let here = scan.chats.iter().cloned().collect();
    let store = workspace.find_store()?;
    let history = || workspace.history_if_any(store.as_ref());
    let name = name_lookup::timeline(&options.timeline, Some(&library), &here, history)?;
    let captured = st::capture(&library, &scan.groups, &name, &Disk)?;
    let wanted = wanted(&captured, options)?;
    // A reconstructed snapshot is inserted before an existing snapshot, so the chat must have at
    // least one snapshot.
    let first = take_as_it_is(workspace, Some(std::slice::from_ref(&name)), monitor)?;
    let (store, held) = workspace.open(RunMode::of_dry_run(options.dry_run))?;
    let mut lineage = Lineage::load(&store, &scan)?;
    let mut operation = Operation::new(workspace, &store, None);
    let history = History::load(&store)?;
    let all = Pairs::new(&store, &history);
    let pairs = match history.head(&name) {
        Some(head) => all.back_from(head, StartBook::Latest)?,
        None => Vec::new(),
    };
    let past = PastPairs::new(&store, &all.books, &pairs);
    let mut report = Report {
        timeline: name.clone(),
        outcomes: Vec::new(),
        findings: first.findings,
        taken_first: first.new > 0,
        rewritten: 0,
        dry_run: options.dry_run,
    };
    let fork = fork_of(&lineage, &name);
    monitor.begin("reconstructing", Some(wanted.len() as u64));
    let mut made = Vec::new();
    for (message, scene) in wanted {
        let result = match &fork {
            Some((shared, parent)) if (message as u64) < *shared => {
                ReconstructOutcome::OfParent(parent.clone())
            }
            _ => find(&store, &past, &captured, message, &mut made, &mut report.findings)?,
        };
        report.outcomes.push(Reconstruction { message, scene, result });
        monitor.advance(1);
    }
    if options.at.is_some()
        && let [Reconstruction { result: ReconstructOutcome::Lost(findings), .. }] =
            report.outcomes.as_slice()
    {
        return Err(engine::Error::Refused { findings: findings.clone() }.into());
    }
    if let Some(held) = &held {
        let insertions = insertions(&lineage, &captured, made, &mut operation)?;
        let contents: Vec<_> =
            insertions.iter().map(|(message, content, _)| (*message, *content)).collect();
        let list: Vec<_> = insertions.into_iter().map(|(_, _, insertion)| insertion).collect();
        if !list.is_empty() {
            let all = BTreeMap::from([(name.clone(), list)]);
            let rewritten = insert(&mut operation.pack, &store, &mut lineage, all)?;
            report.rewritten = operation.follow(&rewritten)?.len();
            operation.finish(held)?;
            lineage.save();
        }
        name_new(&mut report, &History::load(&store)?, &contents);
    }
    Ok(report)
}

/// Returns the numbers of the messages to reconstruct. Each has the name of the scene that ends
/// with this message, if there is such a scene.
fn wanted(captured: &Captured, options: &Options) -> Result<Vec<(usize, Option<String>)>> {
    let chat = captured.files.split();
    let breaks = scene_breaks(&chat);
    match options.at {
        Some(at) => {
            gate::must_have(&captured.files, at)?;
            let scene = breaks.iter().find(|(message, _)| *message == at);
            Ok(vec![(at, scene.and_then(|(_, scene)| scene.name()))])
        }
        None => Ok(breaks.into_iter().map(|(message, scene)| (message, scene.name())).collect()),
    }
}

/// Returns the number of messages that a timeline shares with its parent, and the parent. Returns
/// `None` if the timeline is not a fork.
fn fork_of(lineage: &Lineage, name: &TimelineName) -> Option<(u64, TimelineName)> {
    let (own, origin) = lineage.own(name)?;
    Some((own.first()?.fork_at?, origin?.timeline))
}

fn find(
    store: &Store,
    past: &PastPairs<'_>,
    captured: &Captured,
    message: usize,
    made: &mut Vec<(usize, RebuiltState)>,
    findings: &mut Vec<Finding>,
) -> Result<ReconstructOutcome> {
    let chat = captured.files.split().upto(message);
    let bound = captured.files.lorebook.is_some();
    let tells = |pair: &Pair<'_>| {
        pair.own.kind != Kind::IMPORT && pair.is_own && (!bound || pair.own.lorebook.is_some())
    };
    if let Some(known) = past.latest_moment_with_messages(&chat, tells)? {
        return Ok(ReconstructOutcome::Known(Box::new(known.own.clone())));
    }
    let rebuilt = match past.find(&captured.files, message) {
        Ok(StateAtMessage::Taken { snapshot, .. }) => {
            return Ok(ReconstructOutcome::Known(snapshot));
        }
        Ok(StateAtMessage::Cut { book }) => {
            make(&store.reader(), &captured.files, message, Some(&book))
        }
        Err(error) => Err(error),
    };
    match rebuilt {
        Ok(state) => {
            findings.extend(state.findings.clone());
            let origin = Box::new(state.origin.clone());
            made.push((message, state));
            Ok(ReconstructOutcome::Made(None, origin))
        }
        Err(history::Error::Unknowable { finding }) => Ok(ReconstructOutcome::Lost(vec![*finding])),
        Err(error) => Err(error.into()),
    }
}

/// Writes the contents of the reconstructed snapshots into the pack. Returns the commits to insert,
/// oldest first, with message numbers and content ids.
fn insertions(
    lineage: &Lineage,
    captured: &Captured,
    made: Vec<(usize, RebuiltState)>,
    operation: &mut Operation<'_>,
) -> Result<Vec<(usize, ContentId, Insertion)>> {
    let own = lineage.own(&captured.files.timeline).map(|(own, _)| own).unwrap_or_default();
    let offset = own.last().map_or(0, |newest| newest.time.offset);
    let mut list = Vec::new();
    // Iterates from the longest state to the shortest, so that no state gets a later time than a
    // longer state. The time in a scene's record may be too late, because the record may have been
    // rewritten long after the scene ended.
    let mut latest = i64::MAX;
    for (message, state) in made.into_iter().rev() {
        let whole = State::assembled(&state.files, Some(message as u64));
        let messages = whole.manifest.messages;
        let longer = own.iter().filter(|taken| taken.messages > messages);
        let before = longer.map(|taken| taken.time.seconds).min().unwrap_or(i64::MAX);
        latest = latest.min(before);
        let seconds = state.seconds.unwrap_or(latest).min(latest);
        latest = seconds;
        let written = archive::write(&whole, &[], &mut operation.pack)?;
        let source = match (&state.origin.scene, &state.origin.book_of) {
            (Some((noted, _)), _) => format!("the lorebook noted at message {noted}"),
            (None, Some(id)) => format!("the lorebook of snapshot {id}"),
            (None, None) => "the chat's own messages".into(),
        };
        let time = Time { seconds, offset };
        let ancestry = Ancestry { source: Some(source), ..Ancestry::default() };
        let new = NewSnapshot::of(&whole, Kind::RECONSTRUCTED, time);
        let newcomer = NewTimeline::of_state(&whole);
        let commit = new.commit(written.tree, ancestry, None);
        list.push((message, whole.manifest.content, Insertion { commit, newcomer }));
    }
    list.reverse();
    Ok(list)
}

/// Adds the new snapshots to the report. Their ids are known only after the insertion.
fn name_new(report: &mut Report, history: &History, contents: &[(usize, ContentId)]) {
    let Some(head) = history.head(&report.timeline) else { return };
    let (own, _) = history.own(head);
    for outcome in &mut report.outcomes {
        let ReconstructOutcome::Made(snapshot, _) = &mut outcome.result else { continue };
        let content = contents.iter().find(|(message, _)| *message == outcome.message);
        let found = content.and_then(|(_, content)| {
            own.iter().find(|found| found.content == *content && found.kind == Kind::RECONSTRUCTED)
        });
        *snapshot = found.map(|found| Box::new((*found).clone()));
    }
}
