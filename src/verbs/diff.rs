//! Compares two snapshots, a snapshot with the files, two timelines since their fork point, or each
//! snapshot of a timeline with the one before it.

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
    /// A moment; without `after` also `A...B`: two timelines since their fork point.
    pub before: String,
    /// `None`: the files as they are now.
    pub after: Option<String>,
    pub only: Option<Part>,
    #[serde(default)]
    pub stat: bool,
    /// Only for [`history`].
    #[serde(skip)]
    pub limit: Option<usize>,
}

/// Two states ready to be compared. Changes are slices of what was read, so they live as long as
/// this.
pub struct Comparison {
    /// `None`: there was nothing before.
    pub before: Option<Compared>,
    /// `None`: the files as they are now.
    pub after: Option<Compared>,
    /// For two timelines: the number of first messages that they share.
    pub shared: Option<usize>,
    pub findings: Vec<Finding>,
    old: Option<Loaded>,
    new: Option<Loaded>,
}

/// A compared moment.
pub struct Compared {
    pub snapshot: Snapshot,
    /// The snapshot with the lorebook, if it changed after `snapshot` was created.
    pub book: Option<Snapshot>,
    pub at: Option<usize>,
    /// The name that always means this moment.
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

struct Loaded {
    files: TimelineFiles,
    card: Option<OpenCard>,
}

impl From<TimelineFiles> for Loaded {
    fn from(files: TimelineFiles) -> Self {
        let is_card = files.timeline.category() == Category::Card;
        let card = is_card.then(|| OpenCard::of(&files.main.bytes));
        Self { files, card }
    }
}

impl Comparison {
    /// Returns all changes, or only those of one part.
    pub fn changes(&self, only: Option<Part>) -> Vec<Change<'_>> {
        let mut changes = compare(&side(&self.old), &side(&self.new), only);
        // An unknown lorebook was neither added nor removed.
        if self.findings.iter().any(|finding| finding.code == Code::LorebookThenUnknown) {
            changes.retain(|change| change.part != Part::Lorebook);
        }
        changes
    }
}

fn side(loaded: &Option<Loaded>) -> Side<'_> {
    match loaded {
        Some(loaded) => Side::of(&loaded.files, loaded.card.as_ref()),
        None => Side::nothing(),
    }
}

/// Reads two states.
pub fn diff(workspace: &Workspace, options: &Options) -> Result<Comparison> {
    let store = workspace.open_store()?;
    let (before, after, is_fork) = sides(workspace, options, &store)?;
    let mut findings = Vec::new();
    let mut load = |moment: &Moment| -> Result<Option<Loaded>> {
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
    // A chat's name may contain dots itself.
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

/// Calls `each` with every moment of a timeline compared with the one before it, newest first. The
/// first moment of a fork is compared with its fork point, and comes last. One pair at a time is in
/// memory.
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
    let load = |moment: &Moment| -> Result<(Loaded, Vec<Finding>)> {
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
