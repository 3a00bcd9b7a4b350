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
}

impl From<TimelineFiles> for LoadedFiles {
    fn from(files: TimelineFiles) -> Self {
        let is_card = files.timeline.category() == Category::Card;
        let card = is_card.then(|| OpenCard::of(&files.main.bytes));
        Self { files, card }
    }
}

impl Comparison {
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
    let mut findings = Vec::new();
    let mut load = |moment: &Moment| -> Result<Option<LoadedFiles>> {
        let then = StateThen::rebuild(&store, moment, NeedBook::IfKnown)?;
        findings.extend(then.findings);
        Ok(Some(then.contents.files.into()))
    };
    let old = load(&before)?;
    let new = match &after {
        Some(after) => load(after)?,
        None => {
            let library = workspace.library()?;
            let groups = library.scan()?.groups;
            Some(st::capture(&library, &groups, &before.timeline, &Disk)?.files.into())
        }
    };
    let shared = is_fork.then(|| side(&old).shared_with(&side(&new)));
    let (before, after) = (Some(Compared::of(&before)), after.as_ref().map(Compared::of));
    Ok(Comparison { before, after, shared, findings, old, new })
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
    let load = |moment: &Moment| -> Result<(LoadedFiles, Vec<Finding>)> {
        let then = StateThen::rebuild(&store, moment, NeedBook::Yes)?;
        Ok((then.contents.files.into(), then.findings))
    };
    let mut new = None;
    for (n, after) in own.iter().enumerate().take(options.limit.unwrap_or(usize::MAX)) {
        let before = own.get(n + 1).or(origin.as_ref());
        let (loaded, mut findings) = match new {
            Some(loaded) => (loaded, Vec::new()),
            None => load(after)?,
        };
        let old = match before {
            Some(before) => {
                let (old, found) = load(before)?;
                findings.extend(found);
                Some(old)
            }
            None => None,
        };
        let comparison = Comparison {
            before: before.map(Compared::of),
            after: Some(Compared::of(after)),
            shared: None,
            findings,
            old,
            new: Some(loaded),
        };
        each(&comparison);
        new = comparison.old;
    }
    Ok(())
}
