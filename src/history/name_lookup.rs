//! From what a user types to the timeline or snapshot that is meant.

use std::collections::BTreeSet;
use std::path::Path;

use chrono::{DateTime, FixedOffset};

use super::{Error, History, Result, dates};
use crate::archive::{Snapshot, SnapshotId, branch};
use crate::st::{Library, TimelineName};
use crate::store::{Kind, ObjectId, RefName, Store, unless_lost};

/// The timeline that `text` names: its file, `Character/Chat name`, or any unique part of that.
pub fn timeline(
    text: &str,
    library: Option<&Library>,
    candidates: &BTreeSet<TimelineName>,
) -> Result<TimelineName> {
    let typed = match as_listed(text, candidates) {
        Listed::Timeline(name) => return Ok(name),
        Listed::Text(typed) => typed,
    };
    let bare = typed.strip_suffix(".jsonl").unwrap_or(&typed);
    let as_file = library.and_then(|library| relative_to(Path::new(bare), library.root()));
    let is_exact =
        |name: &&TimelineName| name.as_str() == bare || as_file.as_deref() == Some(name.as_str());
    let as_path = library.and_then(|library| relative_to(Path::new(&typed), library.root()));
    let is_file = |name: &TimelineName| {
        let file = name.file();
        name.as_str() == bare || file.as_str() == typed || as_path.as_deref() == Some(file.as_str())
    };
    let without_root = |name: &TimelineName| match name.folder() {
        Some(folder) => format!("{folder}/{}", name.chat()),
        None => name.chat().to_owned(),
    };
    let part = bare.to_lowercase();
    // From the narrowest meaning to the widest; the first that fits anything decides.
    let meanings: [&dyn Fn(&&TimelineName) -> bool; 5] = [
        &is_exact,
        &|name| without_root(name) == bare,
        &|name| name.chat() == bare,
        // `Branch #3` is not `Branch #30`.
        &|name| !part.is_empty() && ends_with_word(&name.as_str().to_lowercase(), &part),
        &|name| !part.is_empty() && name.as_str().to_lowercase().contains(&part),
    ];
    if let Some(file) = candidates.iter().find(|name| is_file(name)) {
        return Ok(file.clone());
    }
    // A chat is meant before what belongs to one: a character is often called like its first chat, and a lorebook, too.
    for is_chat in [true, false] {
        for meaning in meanings {
            let fits = |name: &&TimelineName| name.is_chat() == is_chat && meaning(name);
            let found: Vec<_> = candidates.iter().filter(fits).collect();
            match found.as_slice() {
                [] => {}
                [one] => return Ok((*one).clone()),
                many => {
                    let candidates = many.iter().map(|name| name.to_string()).collect();
                    return Err(Error::Ambiguous { name: text.into(), candidates });
                }
            }
        }
    }
    Err(Error::NoSuchTimeline { name: text.into(), similar: similar(bare, candidates) })
}

/// What the listings print for a timeline.
enum Listed {
    Timeline(TimelineName),
    /// What it is called otherwise.
    Text(String),
}

/// As the listings print it: `Character / Chat`, `group / Chat`, `lorebook / Lore`. A character may be called `lorebook`, too.
fn as_listed(text: &str, candidates: &BTreeSet<TimelineName>) -> Listed {
    let Some((folder, rest)) = text.split_once(" / ") else { return Listed::Text(text.to_owned()) };
    let place = match folder {
        "group" => return Listed::Text(format!("group chats/{rest}")),
        "lorebook" => Some("worlds"),
        "character" => Some("characters"),
        "persona" => Some("User Avatars"),
        "members of group" => Some("groups"),
        _ => None,
    };
    let named = place.and_then(|place| TimelineName::parse(&format!("{place}/{rest}")).ok());
    match named.filter(|name| candidates.contains(name)) {
        Some(name) => Listed::Timeline(name),
        None => Listed::Text(format!("{folder}/{rest}")),
    }
}

/// Whether a name ends with these words, whole ones.
fn ends_with_word(name: &str, part: &str) -> bool {
    let before = name.strip_suffix(part).and_then(|before| before.chars().next_back());
    before.is_some_and(|before| !before.is_alphanumeric())
}

/// Names that are nearly the one that was typed, the nearest first.
fn similar(typed: &str, candidates: &BTreeSet<TimelineName>) -> Vec<TimelineName> {
    const NEAR: f64 = 0.75;
    const MANY: usize = 3;
    let typed = typed.to_lowercase();
    let words = |text: &str| -> Vec<String> {
        text.split(|c: char| !c.is_alphanumeric())
            .filter(|word| !word.is_empty())
            .map(str::to_owned)
            .collect()
    };
    let typed_words = words(&typed);
    let nearness = |name: &TimelineName| {
        let name = name.as_str().to_lowercase();
        let chat = name.rsplit('/').next().unwrap_or(&name);
        let whole = strsim::normalized_damerau_levenshtein(&typed, chat);
        // A part of the name, with a slip in it.
        let there = words(&name);
        let nearest = |word: &String| {
            let each =
                there.iter().map(|other| strsim::normalized_damerau_levenshtein(word, other));
            each.fold(0.0, f64::max)
        };
        let by_words = typed_words.iter().map(nearest).fold(1.0, f64::min);
        if typed_words.is_empty() { whole } else { whole.max(by_words) }
    };
    let mut near: Vec<_> = candidates
        .iter()
        .map(|name| (nearness(name), name))
        .filter(|(nearness, _)| *nearness >= NEAR)
        .collect();
    near.sort_by(|a, b| b.0.total_cmp(&a.0));
    near.into_iter().take(MANY).map(|(_, name)| name.clone()).collect()
}

/// The stored timeline that `text` names, by its name now or by one that it had before it was renamed: its newest snapshot.
pub fn stored<'h>(
    text: &str,
    history: &'h History,
    library: Option<&Library>,
) -> Result<&'h Snapshot> {
    let now = history.heads().map(|(name, _)| name.clone()).collect();
    let name = match timeline(text, library, &now) {
        Err(Error::NoSuchTimeline { .. }) => {
            let ever = history.iter().map(|snapshot| snapshot.timeline.clone()).collect();
            timeline(text, library, &ever)?
        }
        other => other?,
    };
    let had =
        |head: &Snapshot| history.own(head).0.iter().any(|snapshot| snapshot.timeline == name);
    let head = history
        .head(&name)
        .or_else(|| history.heads().map(|(_, head)| head).find(|head| had(head)));
    head.ok_or_else(|| Error::no_such_timeline(text))
}

/// The snapshot that `text` names: an id's beginning, `b3:` and a content id's beginning, a tag, or a timeline (its newest);
/// each with `~N` for N steps back, or `@DATE` for what it was then.
pub fn snapshot(
    text: &str,
    store: &Store,
    library: Option<&Library>,
    now: DateTime<FixedOffset>,
) -> Result<Snapshot> {
    // A name may itself end in something like `~2` or `@18h30m`.
    let unknown = match base(text, store, library) {
        Err(unknown @ Error::NoSuchSnapshot { .. }) => unknown,
        other => return other,
    };
    if let Some((name, moment)) = moment(text, now) {
        let newest = snapshot(name, store, library, now)?;
        return as_of(newest, name, moment, store);
    }
    let Some((name, steps)) = text.rsplit_once('~') else { return Err(unknown) };
    let steps = if steps.is_empty() { Some(1) } else { steps.parse::<usize>().ok() };
    let Some(steps) = steps else { return Err(unknown) };
    let mut snapshot = snapshot(name, store, library, now)?;
    for taken in 0..steps {
        let parent = snapshot
            .parents
            .first()
            .ok_or(Error::NotSoFarBack { name: name.into(), steps: taken })?;
        snapshot = read(store, *parent)?;
    }
    Ok(snapshot)
}

/// Whether what was named is a timeline as it is now, and not one of its snapshots.
pub fn is_newest(text: &str, found: &Snapshot, store: &Store) -> Result<bool> {
    let by_id = found.id.to_string().starts_with(&text.to_lowercase()) || text.starts_with("b3:");
    let tag = RefName::tag(text).map(|tag| store.ref_target(&tag)).transpose()?.flatten();
    let head = store.ref_target(&branch(&found.timeline))?;
    Ok(!by_id && tag.is_none() && head == Some(found.id.0))
}

/// `Chat@yesterday`, `Chat@{2026-11-01 18:30}`: what is named, and when. A day is its end.
fn moment(text: &str, now: DateTime<FixedOffset>) -> Option<(&str, DateTime<FixedOffset>)> {
    let (name, date) = text.rsplit_once('@')?;
    let date = date.strip_prefix('{').and_then(|date| date.strip_suffix('}')).unwrap_or(date);
    let moment = dates::parse_end(date, now).ok()?;
    (!name.is_empty()).then_some((name, moment))
}

/// What a timeline was at a moment: the last snapshot before it.
fn as_of(
    newest: Snapshot,
    name: &str,
    moment: DateTime<FixedOffset>,
    store: &Store,
) -> Result<Snapshot> {
    let mut snapshot = newest;
    while snapshot.time.seconds > moment.timestamp() {
        // What it was forked from is another chat.
        let parent = snapshot.parents.first().filter(|_| snapshot.fork_at.is_none());
        let Some(parent) = parent else {
            let first = snapshot.time.moment().unwrap_or(moment);
            return Err(Error::NotThatOld { name: name.into(), first });
        };
        snapshot = read(store, *parent)?;
    }
    Ok(snapshot)
}

fn base(text: &str, store: &Store, library: Option<&Library>) -> Result<Snapshot> {
    if let Some(prefix) = text.strip_prefix("b3:") {
        return by_content(text, prefix, store);
    }
    if let Some(tag) = RefName::tag(text)
        && let Some(id) = store.ref_target(&tag)?
    {
        let tagged = read(store, SnapshotId(id))?;
        // Earlier versions let a tag be called like something else.
        return match shadowed(text, &tagged, store)? {
            others if others.is_empty() => Ok(tagged),
            mut candidates => {
                candidates.insert(0, format!("{} {} (the tag)", tagged.id, tagged.subject));
                Err(Error::Ambiguous { name: text.into(), candidates })
            }
        };
    }
    if is_like_id(text) {
        let reader = store.reader();
        let ids = reader.with_prefix(&text.to_lowercase(), Kind::Commit)?;
        if let Some(found) = single(text, readable(store, ids)?)? {
            return Ok(found);
        }
        // Perhaps it was called that once.
        let ids = store.find_former(&text.to_lowercase())?;
        if let Some(found) = single(text, readable(store, ids)?)? {
            return Ok(found);
        }
    }
    let heads = super::heads(store)?;
    let names = heads.iter().map(|head| head.timeline.clone()).collect();
    match timeline(text, library, &names) {
        Ok(name) => heads
            .into_iter()
            .find(|head| head.timeline == name)
            .ok_or_else(|| Error::NoSuchSnapshot { name: text.into(), similar: Vec::new() }),
        // Perhaps it was called that once.
        Err(Error::NoSuchTimeline { .. }) => match stored(text, &History::load(store)?, library) {
            Err(Error::NoSuchTimeline { name, similar }) => {
                Err(Error::NoSuchSnapshot { name, similar })
            }
            other => other.cloned(),
        },
        Err(error) => Err(error),
    }
}

/// Whether it can be the beginning of an id.
pub fn is_like_id(text: &str) -> bool {
    text.len() >= 4 && text.len() <= 40 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Whether a name is a timeline's own: in full, with its folder, or the chat's alone.
pub fn is_named(timeline: &TimelineName, text: &str) -> bool {
    let with_folder = timeline.folder().map(|folder| format!("{folder}/{}", timeline.chat()));
    let names = [Some(timeline.as_str()), with_folder.as_deref(), Some(timeline.chat())];
    names.into_iter().flatten().any(|name| name.to_lowercase() == text.to_lowercase())
}

/// What else the name of a tag stands for: other snapshots by their ids, and timelines.
fn shadowed(text: &str, tagged: &Snapshot, store: &Store) -> Result<Vec<String>> {
    let mut others = Vec::new();
    if is_like_id(text) {
        let ids = store.reader().with_prefix(&text.to_lowercase(), Kind::Commit)?;
        let found = readable(store, ids)?;
        let found = found.iter().filter(|found| found.id != tagged.id);
        others.extend(found.map(|found| format!("{} {}", found.id, found.subject)));
    }
    let heads = super::heads(store)?;
    let named = heads.iter().filter(|head| head.id != tagged.id && is_named(&head.timeline, text));
    others.extend(named.map(|head| head.timeline.to_string()));
    Ok(others)
}

fn by_content(text: &str, prefix: &str, store: &Store) -> Result<Snapshot> {
    let history = History::load(store)?;
    let prefix = prefix.to_lowercase();
    let mut found: Vec<&Snapshot> = Vec::new();
    if prefix.len() >= 4 {
        // The same content may have been there twice; the newest stands for it.
        for snapshot in history.newest_first() {
            let same = found.iter().any(|other| other.content == snapshot.content);
            if !same && snapshot.content.to_string().starts_with(&prefix) {
                found.push(snapshot);
            }
        }
    }
    let found = found.into_iter().cloned().collect();
    let none = || Error::NoSuchSnapshot { name: text.into(), similar: Vec::new() };
    single(text, found)?.ok_or_else(none)
}

fn single(text: &str, found: Vec<Snapshot>) -> Result<Option<Snapshot>> {
    if found.len() > 1 {
        let candidates =
            found.iter().map(|snapshot| format!("{} {}", snapshot.id, snapshot.subject)).collect();
        return Err(Error::Ambiguous { name: text.into(), candidates });
    }
    Ok(found.into_iter().next())
}

/// Those of some commits that are snapshots and not lost.
fn readable(store: &Store, ids: Vec<ObjectId>) -> Result<Vec<Snapshot>> {
    let mut found = Vec::new();
    for id in ids {
        found.extend(find(store, SnapshotId(id))?);
    }
    Ok(found)
}

/// Read one snapshot; `None` if it is lost.
pub fn find(store: &Store, id: SnapshotId) -> Result<Option<Snapshot>> {
    unless_lost(read(store, id))
}

/// Read one snapshot.
pub fn read(store: &Store, id: SnapshotId) -> Result<Snapshot> {
    Ok(Snapshot::read(&store.reader().commit(id.0)?)?)
}

/// `path` as the user would have to type it inside `root`.
fn relative_to(path: &Path, root: &Path) -> Option<String> {
    let path = std::path::absolute(path).ok()?;
    let root = std::path::absolute(root).ok()?;
    let relative = path.strip_prefix(root).ok()?;
    let parts: Option<Vec<_>> = relative.iter().map(|part| part.to_str()).collect();
    Some(parts?.join("/"))
}
