//! Searches the messages with all their swipes, the lorebook entries and the cards of all
//! snapshots.
//!
//! Each text is read at most once: an index of words (`index`) tells which texts need not be read.
//! A text is reported with the first snapshot that contains it, in this
//! order: latest snapshots of existing timelines, latest snapshots of deleted timelines, all other
//! snapshots from newest to oldest. A text that still exists is therefore reported with a latest
//! snapshot, and a deleted text with the last snapshot that contains it.

mod families;
mod index;
mod listing;
mod terms;
mod texts;

use std::collections::{BTreeSet, HashSet};

use serde::{Deserialize, Serialize};

use crate::archive::{Blake3, NewText, Snapshot, TextKinds, id_and_time};
use crate::engine::{Workspace, changed_timelines};
use crate::history::{self, name_lookup};
use crate::parallel::{both, cores, each};
use crate::progress::Monitor;
use crate::st::TimelineName;
use crate::store::{self, Loss, ObjectId, Reader};
use crate::verbs::{Error, Result};
use families::Families;
use index::Index;
use listing::{Listing, SnapshotTexts};
use terms::Terms;
use texts::each_text;

pub use terms::Excerpt;
pub use texts::MatchPlace;

/// The text to search for, and filters.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Options {
    /// Words to search for. All words must occur in the same text.
    pub text: String,
    /// The words must occur directly after each other.
    #[serde(default)]
    pub phrase: bool,
    /// `text` is a regular expression.
    #[serde(default)]
    pub regex: bool,
    /// Part of the speaker's name, or of a lorebook entry's title.
    pub who: Option<String>,
    /// Start of the period, in seconds since 1970. A text without a date has the date of its
    /// snapshot.
    #[serde(skip)]
    pub since: Option<i64>,
    /// End of the period, in seconds since 1970.
    #[serde(skip)]
    pub until: Option<i64>,
    /// Searches only this timeline. `None` searches all.
    pub timeline: Option<String>,
    /// Searches only this kind of text. `None` searches all.
    pub only: Option<Part>,
    /// Searches only texts in this state. `None` searches all.
    pub state: Option<TextState>,
    /// Maximum number of matches. `None` returns all.
    #[serde(skip)]
    pub limit: Option<usize>,
}

/// A part of a timeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Part {
    /// Messages.
    Chat,
    /// Entries of lorebooks.
    Lorebook,
    /// Texts of character cards.
    #[serde(rename = "card")]
    Character,
}

/// Whether a text still exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TextState {
    /// It is in the latest snapshot of an existing timeline.
    Current,
    /// It is only in older snapshots, or its timeline was deleted.
    Deleted,
}

/// A text that was found.
#[derive(Serialize)]
pub struct Match {
    /// Latest snapshot with the text.
    #[serde(flatten, serialize_with = "id_and_time")]
    pub snapshot: Snapshot,
    /// Current name of the timeline of `snapshot`.
    pub timeline: TimelineName,
    /// Whether the file of the timeline no longer exists.
    pub deleted: bool,
    /// Whether `snapshot` is the latest snapshot of an existing timeline.
    pub live: bool,
    /// The timeline in which the text first appeared. For a message before the fork point, this is
    /// the parent.
    pub first: TimelineName,
    /// Other existing timelines that contain the message now.
    pub others: Vec<TimelineName>,
    /// Date of the message, in seconds since 1970.
    #[serde(serialize_with = "store::in_utc")]
    pub said: Option<i64>,
    /// The place of the text in the snapshot.
    #[serde(flatten)]
    pub place: MatchPlace,
    /// Part of the text around the match.
    #[serde(flatten)]
    pub excerpt: Excerpt,
}

/// The result of a search.
#[derive(Default)]
#[non_exhaustive]
pub struct Report {
    /// Matches in current chats first, then in deleted chats, then in older snapshots.
    pub matches: Vec<Match>,
    /// Whether there are more matches than the limit.
    pub more: bool,
    /// Number of snapshots that were searched.
    pub snapshots: usize,
    /// Number of different texts that were searched.
    pub texts: usize,
    /// Descriptions of snapshots and texts that cannot be read.
    pub broken: Vec<String>,
}

/// Whether a search uses the index of words, which it also builds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum UseOfIndex {
    IfPossible,
    /// Every text is read.
    #[cfg(any(test, feature = "internals"))]
    Never,
}

/// Searches all snapshots.
pub fn search(
    workspace: &Workspace,
    options: &Options,
    monitor: &mut dyn Monitor,
) -> Result<Report> {
    search_with(workspace, options, UseOfIndex::IfPossible, monitor)
}

/// Searches all snapshots and reads every text. The report is the same, which tests compare.
#[cfg(any(test, feature = "internals"))]
#[doc(hidden)]
pub fn search_without_index(workspace: &Workspace, options: &Options) -> Result<Report> {
    search_with(workspace, options, UseOfIndex::Never, &mut crate::progress::NoProgress)
}

fn search_with(
    workspace: &Workspace,
    options: &Options,
    index: UseOfIndex,
    monitor: &mut dyn Monitor,
) -> Result<Report> {
    let store = workspace.open_store()?;
    let library = workspace.library().ok();
    let history = &*workspace.history_with_kept(&store)?;
    let owners = history.owners();
    let deleted = changed_timelines::deleted(library.as_ref(), history);
    let mut snapshots = history.newest_first();
    if let Some(text) = &options.timeline {
        let names: BTreeSet<_> =
            snapshots.iter().map(|snapshot| owners.of_snapshot(snapshot).clone()).collect();
        let name = match name_lookup::timeline(text, library.as_ref(), &names, || Ok(Some(history)))
        {
            Err(history::Error::NoSuchTimeline { .. }) => {
                name_lookup::stored(text, history, library.as_ref())?.timeline.clone()
            }
            other => other?,
        };
        snapshots.retain(|snapshot| *owners.of_snapshot(snapshot) == name);
        if snapshots.is_empty() {
            return Err(history::Error::no_such_timeline(text.clone()).into());
        }
    }
    let is_head = |snapshot: &Snapshot| {
        history.head(owners.of_snapshot(snapshot)).is_some_and(|head| head.id == snapshot.id)
    };
    snapshots.sort_by_key(|snapshot| (!is_head(snapshot), deleted.contains(&snapshot.id)));

    let terms = match &options.text {
        text if options.regex => Terms::pattern(text).map_err(|why| Error::BadPattern { why })?,
        text if options.phrase => Terms::phrase(text),
        text => Terms::words(text),
    };
    let who = options.who.as_ref().map(|who| who.to_lowercase());
    let is_wanted = |hit: &Hit, snapshot: &Snapshot| {
        let (MatchPlace::Message { name, .. }
        | MatchPlace::Entry { title: name, .. }
        | MatchPlace::Field { field: name }) = &hit.place;
        let time = hit.said.unwrap_or(snapshot.time.seconds);
        who.as_ref().is_none_or(|who| name.to_lowercase().contains(who))
            && options.since.is_none_or(|since| time >= since)
            && options.until.is_none_or(|until| time <= until)
    };
    let index = match index {
        UseOfIndex::IfPossible => Index::open(&store, history, &terms.required(), monitor)?,
        #[cfg(any(test, feature = "internals"))]
        UseOfIndex::Never => None,
    };
    let mut families = Families::new(history, owners, &deleted, store.reader());
    let wants = |part| options.only.is_none_or(|only| only == part);
    let wanted = TextKinds {
        chat: wants(Part::Chat),
        lorebook: wants(Part::Lorebook),
        card: wants(Part::Character),
    };
    let mut listing = Listing::new(&store, index.as_ref(), snapshots, wanted);
    let broken = history.broken.iter().map(ToString::to_string).collect();
    let mut report = Report { broken, ..Report::default() };
    let limit = options.limit.unwrap_or(usize::MAX);
    let mut reported = HashSet::new();
    monitor.begin("searching", Some(listing.len() as u64));
    // All batches use the same reader, because it caches objects that many texts are stored as
    // deltas of.
    let reader = store.reader();
    let mut listed = listing.next_some();
    while !listed.is_empty() && report.matches.len() <= limit {
        // List the next batch while this batch is searched.
        let read = || listed.iter().map(|look| read_all(&reader, &look.texts, &terms)).collect();
        let (found, next): (Vec<_>, _) = both(read, || listing.next_some());
        for (look, found) in std::mem::replace(&mut listed, next).into_iter().zip(found) {
            let SnapshotTexts { snapshot, is_said, count, .. } = look;
            let (mut hits, failed) = found?;
            report.broken.extend(failed);
            report.snapshots += usize::from(is_said || !snapshot.timeline.is_chat());
            report.texts += count;
            // An equal text in another message of this snapshot is a separate match. An equal text
            // in a snapshot that is searched later is not reported again.
            hits.retain(|hit| !reported.contains(&hit.text) && is_wanted(hit, snapshot));
            reported.extend(hits.iter().map(|hit| hit.text));
            let timeline = owners.of_snapshot(snapshot);
            let is_deleted = history.head(timeline).is_some_and(|head| deleted.contains(&head.id));
            let is_live = !is_deleted && is_head(snapshot);
            // All texts are read, because a text has the state of the first snapshot in which it is
            // found: the latest snapshot of a chat may contain an old version of its lorebook.
            if options.state.is_some_and(|state| (state == TextState::Current) != is_live) {
                hits.clear();
            }
            for hit in hits.into_iter().take(limit.saturating_add(1) - report.matches.len()) {
                let (first, others) = match hit.place {
                    MatchPlace::Message { index, .. } => families.of(timeline, index, hit.id)?,
                    _ => (timeline.clone(), Vec::new()),
                };
                report.matches.push(Match {
                    snapshot: snapshot.clone(),
                    timeline: timeline.clone(),
                    deleted: is_deleted,
                    live: is_live,
                    first,
                    others,
                    said: hit.said,
                    place: hit.place,
                    excerpt: hit.excerpt,
                });
            }
            monitor.advance(1);
            if report.matches.len() > limit {
                break;
            }
        }
    }
    report.more = report.matches.len() > limit;
    report.matches.truncate(limit);
    for error in listing.into_broken() {
        if error.is_loss() {
            report.broken.push(error.to_string())
        } else {
            return Err(error.into());
        }
    }
    Ok(report)
}

struct Hit {
    place: MatchPlace,
    id: ObjectId,
    said: Option<i64>,
    text: Blake3,
    excerpt: Excerpt,
}

/// Minimum number of texts per thread. For fewer texts, a thread costs more time than it saves.
const WORTH_A_THREAD: usize = 256;

/// Returns the matches, and descriptions of texts that cannot be read.
fn read_all(
    reader: &Reader,
    texts: &[NewText],
    terms: &Terms,
) -> store::Result<(Vec<Hit>, Vec<String>)> {
    let read = |reader: &Reader, texts: &[NewText]| {
        let (mut hits, mut broken, mut buffer) = (Vec::new(), Vec::new(), Vec::new());
        for NewText { id, place } in texts {
            match reader.read(*id, store::Kind::Blob, &mut buffer) {
                Ok(bytes) => each_text(place, bytes, &mut |place, text, said| {
                    if terms.is_in(text) {
                        let (id, excerpt) = (*id, terms.excerpt(text));
                        let text = Blake3::of(text.as_bytes());
                        hits.push(Hit { place, id, said, text, excerpt });
                    }
                }),
                Err(error) if error.is_loss() => broken.push(error.to_string()),
                Err(error) => return Err(error),
            }
        }
        Ok((hits, broken))
    };
    let stretch = texts.len().div_ceil(cores()).max(WORTH_A_THREAD);
    if texts.len() <= stretch {
        return read(reader, texts);
    }
    let readers = reader.shared();
    let parts = each(texts.chunks(stretch), |part| read(&readers.reader(), part));
    let parts = parts.into_iter().collect::<store::Result<Vec<_>>>()?;
    let (hits, broken): (Vec<_>, Vec<_>) = parts.into_iter().unzip();
    Ok((hits.into_iter().flatten().collect(), broken.concat()))
}
