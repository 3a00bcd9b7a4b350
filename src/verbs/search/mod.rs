//! Search what was ever said: the texts of all messages with all their swipes, and of all lorebook entries, in every snapshot.
//!
//! Each text is read once. The order of snapshots decides which one stands for it: first the newest states of timelines that are
//! still there, then those of deleted ones, then everything else, newest first. So a text that can still be found in a
//! chat is shown there, and a lost one where it was last.

mod families;
mod listing;
mod terms;

use std::collections::{BTreeSet, HashSet};

use serde::Deserialize;

use crate::archive::{Blake3, NewText, Snapshot, TextPlace, Wanted};
use crate::engine::{Workspace, changed_timelines};
use crate::history::owner_of_snapshot::Owners;
use crate::history::{self, History, name_lookup};
use crate::parallel::{both, cores, each};
use crate::progress::Monitor;
use crate::st::{self, Message, Raw, TimelineName};
use crate::store::{self, Loss, ObjectId, Reader};
use crate::verbs::{Error, Result};
use families::Families;
use listing::{Listing, Look};
use terms::Terms;

pub use terms::Excerpt;

/// What to search for, and where.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Options {
    /// The words, all of which must be in one text.
    pub text: String,
    /// They must stand together, as they are written.
    #[serde(default)]
    pub phrase: bool,
    /// It is a regular expression.
    #[serde(default)]
    pub regex: bool,
    /// Only what this one says: a part of the speaker's name, or of an entry's title.
    pub who: Option<String>,
    /// Only what was said, or stored where that is not known, from then on.
    #[serde(skip)]
    pub since: Option<i64>,
    /// Only until then.
    #[serde(skip)]
    pub until: Option<i64>,
    /// In the snapshots of this timeline only.
    pub timeline: Option<String>,
    /// In chats or in lorebooks only.
    pub only: Option<Part>,
    /// At most this many matches.
    #[serde(skip)]
    pub limit: Option<usize>,
}

/// What of a timeline is searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Part {
    /// Its messages.
    Chat,
    Lorebook,
    /// Characters' cards.
    #[serde(rename = "card")]
    Character,
}

/// A text that was found.
pub struct Match {
    /// The snapshot that has it.
    pub snapshot: Snapshot,
    /// Whose snapshot that is, by its present name.
    pub timeline: TimelineName,
    /// Whether the timeline's file is gone.
    pub deleted: bool,
    /// Whether the timeline is there and its newest snapshot has the text.
    pub live: bool,
    /// The timeline in which it was first said: where the one above was forked from, if it was said before that.
    pub first: TimelineName,
    /// Other timelines that have it now.
    pub others: Vec<TimelineName>,
    /// When it was said, in seconds since 1970, if that is known.
    pub said: Option<i64>,
    /// Where in the snapshot.
    pub place: MatchPlace,
    /// The text around the words.
    pub excerpt: Excerpt,
}

/// Where a text stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MatchPlace {
    /// In a message.
    Message {
        /// Its number.
        index: usize,
        /// Who says it.
        name: String,
        /// Whether it is hidden from the prompt.
        hidden: bool,
        /// For a swipe that is not shown: which, counted from 0, and of how many.
        swipe: Option<(usize, usize)>,
    },
    /// In an entry of the lorebook.
    Entry {
        /// The entry's key; none in a lorebook that cannot be read.
        uid: Option<String>,
        /// The entry's title.
        title: String,
    },
    /// In a character's card.
    Field {
        /// Where in it, such as `data.description`.
        field: String,
    },
}

/// What was found.
#[derive(Default)]
pub struct Report {
    pub matches: Vec<Match>,
    /// Whether there are more than the limit.
    pub more: bool,
    /// How many snapshots were looked at.
    pub snapshots: usize,
    /// How many different messages and entries were read.
    pub texts: usize,
    /// What could not be read, in words.
    pub broken: Vec<String>,
}

/// Search.
pub fn search(
    workspace: &Workspace,
    options: &Options,
    monitor: &mut dyn Monitor,
) -> Result<Report> {
    let store = workspace.open_store()?;
    let library = workspace.library().ok();
    let history = History::load_with_kept(&store)?;
    let owners = Owners::of(&history);
    let deleted = changed_timelines::deleted(library.as_ref(), &history);
    let mut snapshots = history.newest_first();
    if let Some(text) = &options.timeline {
        let names: BTreeSet<_> =
            snapshots.iter().map(|snapshot| owners.of_snapshot(snapshot).clone()).collect();
        let name = match name_lookup::timeline(text, library.as_ref(), &names) {
            Err(history::Error::NoSuchTimeline { .. }) => {
                name_lookup::stored(text, &history, library.as_ref())?.timeline.clone()
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

    let terms = if options.regex {
        Terms::pattern(&options.text).map_err(|why| Error::BadPattern { why })?
    } else {
        Terms::new(&options.text, options.phrase)
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
    let mut families = Families::new(&history, &owners, &deleted, store.reader());
    let wants = |part| options.only.is_none_or(|only| only == part);
    let wanted = Wanted {
        chat: wants(Part::Chat),
        lorebook: wants(Part::Lorebook),
        card: wants(Part::Character),
    };
    let mut listing = Listing::new(&store, snapshots, wanted);
    let broken = history.broken.iter().map(ToString::to_string).collect();
    let mut report = Report { broken, ..Report::default() };
    let limit = options.limit.unwrap_or(usize::MAX);
    let mut told = HashSet::new();
    monitor.begin("searching", Some(listing.len() as u64));
    // One for all: it keeps what many texts are made of.
    let reader = store.reader();
    let mut listed = listing.next_some();
    while !listed.is_empty() && report.matches.len() <= limit {
        // While some are read, the next are listed.
        let read = || listed.iter().map(|look| read_all(&reader, &look.texts, &terms)).collect();
        let (found, next): (Vec<_>, _) = both(read, || listing.next_some());
        for (look, found) in std::mem::replace(&mut listed, next).into_iter().zip(found) {
            let Look { snapshot, is_said, texts } = look;
            let (mut hits, failed) = found?;
            report.broken.extend(failed);
            report.snapshots += usize::from(is_said || !snapshot.timeline.is_chat());
            report.texts += texts.len();
            // The same words of another message of this snapshot are a match of their own; those of an older version are not.
            hits.retain(|hit| !told.contains(&hit.text) && is_wanted(hit, snapshot));
            told.extend(hits.iter().map(|hit| hit.text));
            let timeline = owners.of_snapshot(snapshot);
            let is_deleted = history.head(timeline).is_some_and(|head| deleted.contains(&head.id));
            for hit in hits.into_iter().take(limit.saturating_add(1) - report.matches.len()) {
                let (first, others) = match hit.place {
                    MatchPlace::Message { index, .. } => families.of(timeline, index, hit.id)?,
                    MatchPlace::Entry { .. } | MatchPlace::Field { .. } => {
                        (timeline.clone(), Vec::new())
                    }
                };
                let Hit { said, place, excerpt, .. } = hit;
                let (snapshot, timeline) = (snapshot.clone(), timeline.clone());
                let (deleted, live) = (is_deleted, !is_deleted && is_head(&snapshot));
                report.matches.push(Match {
                    snapshot,
                    timeline,
                    deleted,
                    live,
                    first,
                    others,
                    said,
                    place,
                    excerpt,
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

/// A text with the words in it.
struct Hit {
    place: MatchPlace,
    /// The object that holds it.
    id: Option<ObjectId>,
    said: Option<i64>,
    /// Tells it from others.
    text: Blake3,
    excerpt: Excerpt,
}

/// With fewer than this a thread costs more than it saves.
const WORTH_A_THREAD: usize = 256;

/// The texts with the words in them, and what could not be read, in words.
fn read_all(
    reader: &Reader,
    texts: &[NewText],
    terms: &Terms,
) -> store::Result<(Vec<Hit>, Vec<String>)> {
    let read = |reader: &Reader, texts: &[NewText]| {
        let (mut hits, mut broken) = (Vec::new(), Vec::new());
        let mut buffer = Vec::new();
        for text in texts {
            match reader.read(text.id, store::Kind::Blob, &mut buffer) {
                Ok(bytes) => look(text, bytes, terms, &mut hits),
                Err(error) if error.is_loss() => broken.push(error.to_string()),
                Err(error) => return Err(error),
            }
        }
        Ok((hits, broken))
    };
    let stretch = texts.len().div_ceil(cores()).max(WORTH_A_THREAD);
    let readers = reader.shared();
    let parts = if texts.len() <= stretch {
        vec![read(reader, texts)]
    } else {
        each(texts.chunks(stretch).collect(), |part| read(&readers.reader(), part))
    };
    let (mut hits, mut broken) = (Vec::new(), Vec::new());
    for part in parts {
        let (found, failed) = part?;
        hits.extend(found);
        broken.extend(failed);
    }
    Ok((hits, broken))
}

fn look(new: &NewText, bytes: &[u8], terms: &Terms, hits: &mut Vec<Hit>) {
    let text = String::from_utf8_lossy(bytes);
    let before = hits.len();
    match &new.place {
        TextPlace::Message(index) => look_at_message(*index, &text, terms, hits),
        TextPlace::Entry(key) => {
            let entry = Raw::parse_str(&text);
            look_at_entry(Some(key), entry, &text, terms, hits);
        }
        TextPlace::Book => {
            match Raw::parse_str(&text).and_then(|book| book.get("entries")?.members()) {
                Some(entries) => {
                    for entry in entries {
                        let (key, value) = (entry.key.to_string_lossy(), entry.value);
                        look_at_entry(Some(&key), Some(value), value.as_str(), terms, hits);
                    }
                }
                None => look_at_entry(None, None, &text, terms, hits),
            }
        }
        TextPlace::Field(field) => {
            let said = Raw::parse_str(&text).and_then(|text| text.string());
            let place = MatchPlace::Field { field: field.clone() };
            find(place, said.as_deref().unwrap_or(&text), None, terms, hits);
        }
        TextPlace::Card => {
            // Where a string was cut out there is none.
            let text = text.replace('\0', "0");
            st::each_string(&text, &mut |field, said| {
                find(MatchPlace::Field { field }, &said, None, terms, hits);
            });
        }
    }
    hits[before..].iter_mut().for_each(|hit| hit.id = Some(new.id));
}

/// The text that is shown and those of the other swipes, each once. A line that is no message is searched as it is.
fn look_at_message(index: usize, line: &str, terms: &Terms, hits: &mut Vec<Hit>) {
    let Some(message) = Message::read(line.as_bytes()) else {
        let place = MatchPlace::Message { index, name: String::new(), hidden: false, swipe: None };
        return find(place, line, None, terms, hits);
    };
    let said = message.send_date().and_then(st::send_millis).map(|ms| ms.div_euclid(1000));
    let place = |swipe| MatchPlace::Message {
        index,
        name: message.name().unwrap_or_default(),
        hidden: message.is_system(),
        swipe,
    };
    let mut seen = HashSet::new();
    if let Some(text) = message.text() {
        find(place(None), &text, said, terms, hits);
        seen.insert(text);
    }
    let swipes = message.swipes().unwrap_or_default();
    for (n, swipe) in swipes.iter().enumerate() {
        if let Some(text) = swipe.string()
            && !seen.contains(&text)
        {
            find(place(Some((n, swipes.len()))), &text, said, terms, hits);
            seen.insert(text);
        }
    }
}

/// Title, keys and content of an entry are one text.
fn look_at_entry(
    key: Option<&str>,
    entry: Option<Raw<'_>>,
    raw: &str,
    terms: &Terms,
    hits: &mut Vec<Hit>,
) {
    let parts = entry.and_then(|entry| entry.pick(["comment", "key", "keysecondary", "content"]));
    let text = |value: Option<Raw<'_>>| value.and_then(|value| value.string()).unwrap_or_default();
    let [title, keys, more_keys, content] = parts.unwrap_or_default();
    let title = text(title);
    let place = MatchPlace::Entry { uid: key.map(str::to_owned), title: title.clone() };
    if parts.is_none() {
        return find(place, raw, None, terms, hits);
    }
    let list = |keys: Option<Raw<'_>>| {
        let keys = keys.and_then(|keys| keys.items()).unwrap_or_default();
        keys.iter().filter_map(Raw::string).collect::<Vec<_>>()
    };
    let keys = [list(keys), list(more_keys)].concat().join(", ");
    let content = text(content);
    let parts: Vec<_> =
        [title, keys, content].into_iter().filter(|part| !part.is_empty()).collect();
    find(place, &parts.join(" · "), None, terms, hits);
}

fn find(place: MatchPlace, text: &str, said: Option<i64>, terms: &Terms, hits: &mut Vec<Hit>) {
    if terms.is_in(text) {
        let excerpt = terms.excerpt(text);
        hits.push(Hit { place, id: None, said, text: Blake3::of(text.as_bytes()), excerpt });
    }
}
