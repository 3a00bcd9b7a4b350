//! Compares two snapshots, a snapshot with the current files, two timelines since their fork point,
//! or each snapshot of a timeline with the previous snapshot.

use serde::Deserialize;

use crate::archive::Snapshot;
use crate::archive::diff::{Change, Part, Side, diff as compare};
use crate::engine::Workspace;
use crate::history::Error as NoSuch;
use crate::history::moment::{Book, Moment};
use crate::history::state_then::{NeedBook, StateThen};
use crate::rules::{Code, Finding};
use crate::st::{self, Category, Disk, OpenCard, TimelineFiles};
use crate::store::Store;
use crate::verbs::Result;

/// Moments to compare.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Options {
    /// The older moment. If `after` is `None`, `A...B` is also accepted and compares two timelines
    /// since their fork point.
    pub before: String,
    /// The newer moment. `None` compares `before` with the current files.
    pub after: Option<String>,
    /// Restricts the changes to the chat or the lorebook. `None` selects both.
    pub only: Option<Part>,
    /// Count the changes instead of listing them. The comparison is the same.
    #[serde(default)]
    pub stat: bool,
    /// Maximum number of comparisons. Only [`history`] uses this limit.
    #[serde(skip)]
    pub limit: Option<usize>,
}

/// The loaded files of two moments. The result of [`Comparison::changes`] borrows from these files.
#[non_exhaustive]
pub struct Comparison {
    /// The older moment. `None` if `after` is the first moment of its timeline.
    pub before: Option<Compared>,
    /// The newer moment. `None` if the newer side is the current files.
    pub after: Option<Compared>,
    /// Number of messages that both timelines share at the beginning. `None` unless two timelines
    /// are compared.
    pub shared: Option<usize>,
    /// Problems that prevent a complete comparison.
    pub findings: Vec<Finding>,
    old: Option<LoadedFiles>,
    new: Option<LoadedFiles>,
}

/// One side of a comparison.
pub struct Compared {
    /// The snapshot that was compared, or that precedes the current files.
    pub snapshot: Snapshot,
    /// The snapshot that contains the lorebook of this moment. `None` if the lorebook did not
    /// change after `snapshot` was created.
    pub book: Option<Snapshot>,
    /// Number of the last compared message, if the moment is between snapshots.
    pub at: Option<usize>,
    /// Permanent name of this moment; see docs/moments.md.
    pub moment: String,
}

impl Compared {
    fn of(moment: &Moment) -> Self {
        let book = match &moment.book {
            Book::Snapshot(book) => Some((**book).clone()),
            _ => None,
        };
        let (snapshot, at) = (moment.snapshot.clone(), moment.upto.message());
        Self { snapshot, book, at, moment: moment.id() }
    }
}

struct LoadedFiles {
    files: TimelineFiles,
    card: Option<OpenCard>,
    findings: Vec<Finding>,
}

impl LoadedFiles {
    fn of(files: TimelineFiles, findings: Vec<Finding>) -> Self {
        let is_card = files.timeline.category() == Category::Card;
        let card = is_card.then(|| OpenCard::of(&files.main.bytes));
        Self { files, card, findings }
    }

    fn load(store: &Store, moment: &Moment, need: NeedBook) -> Result<Self> {
        Ok(StateThen::rebuild(store, moment, need)?.into())
    }
}

impl From<StateThen> for LoadedFiles {
    fn from(then: StateThen) -> Self {
        Self::of(then.contents.files, then.findings)
    }
}

/// Compares two moments; without `before`, everything in `after` counts as added. Messages that
/// both chats have at the start and at the end are not read.
pub(crate) fn moments(
    store: &Store,
    before: Option<&Moment>,
    after: &Moment,
    need: NeedBook,
) -> Result<Comparison> {
    let (old, new) = match before {
        Some(before) => {
            let [old, new] = StateThen::rebuild_pair(store, [before, after], need)?;
            (Some(old.into()), new.into())
        }
        None => (None, LoadedFiles::load(store, after, need)?),
    };
    Ok(Comparison::of((before, old), (Some(after), new)))
}

impl Comparison {
    fn of(
        (before, old): (Option<&Moment>, Option<LoadedFiles>),
        (after, new): (Option<&Moment>, LoadedFiles),
    ) -> Self {
        let findings = old.iter().chain([&new]).flat_map(|it| it.findings.clone()).collect();
        let (before, after) = (before.map(Compared::of), after.map(Compared::of));
        Self { before, after, shared: None, findings, old, new: Some(new) }
    }

    /// Returns the changes of one part, or of all parts if `only` is `None`.
    pub fn changes(&self, only: Option<Part>) -> Vec<Change<'_>> {
        let mut changes = compare(&side(&self.old), &side(&self.new), only);
        // If the lorebook of one moment is unknown, the comparison would report the other lorebook
        // as added or removed.
        if self.findings.iter().any(|finding| finding.code == Code::LorebookThenUnknown) {
            changes.retain(|change| change.part != Part::Lorebook);
        }
        changes
    }
}

fn side(loaded: &Option<LoadedFiles>) -> Side<'_> {
    match loaded {
        Some(loaded) => Side::of(&loaded.files, loaded.card.as_ref()),
        None => Side::nothing(),
    }
}

/// Loads the files of both moments.
pub fn diff(workspace: &Workspace, options: &Options) -> Result<Comparison> {
    let store = workspace.open_store()?;
    let (before, after, is_fork) = sides(workspace, options, &store)?;
    let need = NeedBook::IfKnown;
    match after {
        Some(after) if !is_fork => moments(&store, Some(&before), &after, need),
        Some(after) => {
            let old = LoadedFiles::load(&store, &before, need)?;
            let new = LoadedFiles::load(&store, &after, need)?;
            let mut comparison = Comparison::of((Some(&before), Some(old)), (Some(&after), new));
            let shared = side(&comparison.old).shared_with(&side(&comparison.new));
            comparison.shared = Some(shared);
            Ok(comparison)
        }
        None => {
            let old = LoadedFiles::load(&store, &before, need)?;
            let library = workspace.library()?;
            let groups = library.scan()?.groups;
            let new = st::capture(&library, &groups, &before.timeline, &Disk)?.files;
            let new = LoadedFiles::of(new, Vec::new());
            Ok(Comparison::of((Some(&before), Some(old)), (None, new)))
        }
    }
}

fn sides(
    workspace: &Workspace,
    options: &Options,
    store: &Store,
) -> Result<(Moment, Option<Moment>, bool)> {
    let library = workspace.library().ok();
    let names = workspace.names(store, library.as_ref());
    if let Some(after) = &options.after {
        return Ok((names.moment(&options.before)?, Some(names.moment(after)?), false));
    }
    // A chat's name may contain `...`, so the text is first looked up as a single moment.
    let not_one = match names.moment(&options.before) {
        Err(error @ (NoSuch::NoSuchSnapshot { .. } | NoSuch::Unreadable { .. })) => error,
        found => return Ok((found?, None, false)),
    };
    let mut problem = None;
    for (at, dots) in options.before.match_indices("...") {
        let (a, b) = (&options.before[..at], &options.before[at + dots.len()..]);
        if a.is_empty() || b.is_empty() {
            continue;
        }
        match (names.moment(a), names.moment(b)) {
            (Ok(a), Ok(b)) => return Ok((a, Some(b), true)),
            (Err(error), _) | (_, Err(error)) => problem = problem.or(Some(error)),
        }
    }
    Err(problem.unwrap_or(not_one).into())
}

/// Compares each moment of a timeline with the previous moment and passes each comparison to
/// `each`, newest first. The oldest moment of a fork is compared with the fork point in the parent.
/// Only one comparison is in memory at a time.
pub fn history(
    workspace: &Workspace,
    options: &Options,
    each: &mut dyn FnMut(&Comparison),
) -> Result<()> {
    let store = workspace.open_store()?;
    let library = workspace.library().ok();
    let names = workspace.names(&store, library.as_ref());
    let moment = names.moment(&options.before)?;
    moment.taken()?;
    let (own, origin) = names.back_from(&moment)?;
    let mut reported = Vec::new();
    for (n, after) in own.iter().enumerate().take(options.limit.unwrap_or(usize::MAX)) {
        let before = own.get(n + 1).or(origin.as_ref());
        let mut comparison = moments(&store, before, after, NeedBook::Yes)?;
        // The findings of `after` were reported with the previous comparison.
        let findings = comparison.findings.clone();
        comparison.findings.retain(|finding| !reported.contains(finding));
        reported = findings;
        each(&comparison);
    }
    Ok(())
}
