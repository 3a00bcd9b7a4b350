//! Resolves the name that a user types to a timeline.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::ops::Deref;
use std::path::Path;

use super::{Error, History, Result};
use crate::archive::{Snapshot, SnapshotId};
use crate::similar::similar;
use crate::st::{Library, TimelineName};
use crate::store::{Reader, Store, unless_lost};

/// Returns the timeline that `text` names: by the path of its file, as `Character/Chat name`, or by
/// any unique part of this name. Of a chat and its forks, the chat is meant. `history` is only
/// called if several names match.
pub fn timeline<H: Deref<Target = History>>(
    text: &str,
    library: Option<&Library>,
    candidates: &BTreeSet<TimelineName>,
    history: impl FnOnce() -> Result<Option<H>>,
) -> Result<TimelineName> {
    let typed = match as_listed(text, library, candidates) {
        ParsedName::Timeline(name) => return Ok(name),
        ParsedName::Text(typed) => typed,
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
    // Meanings from the narrowest to the widest; the first meaning with a match decides.
    let meanings: [&dyn Fn(&&TimelineName) -> bool; 5] = [
        &is_exact,
        &|name| without_root(name) == bare,
        &|name| name.chat() == bare,
        // `Branch #3` must not match `Branch #30`.
        &|name| !part.is_empty() && ends_with_word(&name.as_str().to_lowercase(), &part),
        &|name| !part.is_empty() && name.as_str().to_lowercase().contains(&part),
    ];
    if let Some(file) = candidates.iter().find(|name| is_file(name)) {
        return Ok(file.clone());
    }
    // Chats take precedence over other timelines, because a character or a lorebook often has the
    // same name as a chat.
    for is_chat in [true, false] {
        for meaning in meanings {
            let fits = |name: &&TimelineName| name.is_chat() == is_chat && meaning(name);
            let found: Vec<_> = candidates.iter().filter(fits).collect();
            match found.as_slice() {
                [] => {}
                [one] => return Ok((*one).clone()),
                many => {
                    return match history()? {
                        Some(history) => parent_of_all(text, many, &history),
                        None => Err(ambiguous(text, many)),
                    };
                }
            }
        }
    }
    let named = candidates.iter().map(|name| (name.as_str(), name.clone()));
    Err(Error::NoSuchTimeline { name: text.into(), similar: similar(bare, named) })
}

/// Returns the timeline among `names` from which all the others were forked.
///
/// Forks are often named after their parent, so the parent's name would otherwise become ambiguous
/// with the first fork. If the names have no such timeline, the error lists them with the most
/// recently saved first.
fn parent_of_all(text: &str, names: &[&TimelineName], history: &History) -> Result<TimelineName> {
    let owners = history.owners();
    let descends_from = |name: &TimelineName, ancestor: &TimelineName| {
        let head = history.head(name);
        head.is_some_and(|head| {
            history.ancestry(head).any(|snapshot| owners.of_snapshot(snapshot) == ancestor)
        })
    };
    let is_parent = |parent: &&&TimelineName| names.iter().all(|name| descends_from(name, parent));
    if let Some(parent) = names.iter().find(is_parent) {
        return Ok((**parent).clone());
    }
    let mut names = names.to_vec();
    names.sort_by_key(|name| Reverse(history.head(name).map(|head| head.sequence)));
    Err(ambiguous(text, &names))
}

fn ambiguous(text: &str, names: &[&TimelineName]) -> Error {
    let candidates = names.iter().map(|name| name.to_string()).collect();
    Error::Ambiguous { name: text.into(), candidates }
}

/// Returns the timelines that have `text` as their full name, the more likely first. If one of them
/// exists, [`timeline`] does not return any other.
pub fn in_full(text: &str) -> impl Iterator<Item = TimelineName> {
    let bare = text.strip_suffix(".jsonl").unwrap_or(text);
    let whole = TimelineName::parse(bare).ok();
    let (folder, chat) = bare.split_once(" / ").or_else(|| bare.split_once('/')).unzip();
    let is_word = folder.is_none_or(|folder| place_of(folder).is_some() || folder == "group");
    let solo = folder.zip(chat).filter(|_| !is_word);
    let solo = solo.and_then(|(folder, chat)| TimelineName::solo(folder, chat).ok());
    whole.into_iter().chain(solo)
}

enum ParsedName {
    Timeline(TimelineName),
    Text(String),
}

/// Parses the notations in stvc's lists: `Character / Chat`, `group / Chat`, `lorebook / Lore`. A
/// character may be called `lorebook`, too.
fn as_listed(
    text: &str,
    library: Option<&Library>,
    candidates: &BTreeSet<TimelineName>,
) -> ParsedName {
    let is_word = |folder: &str| folder == "group" || place_of(folder).is_some();
    let listed = text.split_once(" / ");
    let typed = || text.split_once('/').filter(|(folder, _)| is_word(folder));
    let Some((folder, rest)) = listed.or_else(typed) else {
        return ParsedName::Text(text.to_owned());
    };
    if folder == "group" {
        return ParsedName::Text(format!("group chats/{rest}"));
    }
    let named =
        place_of(folder).and_then(|place| TimelineName::parse(&format!("{place}/{rest}")).ok());
    let group = || {
        let groups = library.filter(|_| place_of(folder) == Some("groups"))?.groups();
        groups
            .names()
            .find(|(name, called)| *called == rest && candidates.contains(name))
            .map(|it| it.0)
    };
    match named.filter(|name| candidates.contains(name)).or_else(group) {
        Some(name) => ParsedName::Timeline(name),
        None => ParsedName::Text(format!("{folder}/{rest}")),
    }
}

fn place_of(word: &str) -> Option<&'static str> {
    match word {
        "lorebook" => Some("worlds"),
        "character" => Some("characters"),
        "persona" => Some("User Avatars"),
        "members of group" => Some("groups"),
        _ => None,
    }
}

fn ends_with_word(name: &str, part: &str) -> bool {
    let before = name.strip_suffix(part).and_then(|before| before.chars().next_back());
    before.is_some_and(|before| !before.is_alphanumeric())
}

/// Returns the latest snapshot of the stored timeline that `text` names, by its current or a former
/// name.
pub fn stored<'h>(
    text: &str,
    history: &'h History,
    library: Option<&Library>,
) -> Result<&'h Snapshot> {
    let now = history.heads().map(|(name, _)| name.clone()).collect();
    let name = match timeline(text, library, &now, || Ok(Some(history))) {
        Err(Error::NoSuchTimeline { .. }) => {
            let ever = history.iter().map(|snapshot| snapshot.timeline.clone()).collect();
            timeline(text, library, &ever, || Ok(Some(history)))?
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

/// Returns the timeline that `text` names. In addition to those of [`stored`], finds timelines that
/// have only checkpoints.
pub fn ever(text: &str, history: &History, library: Option<&Library>) -> Result<TimelineName> {
    match stored(text, history, library) {
        Err(Error::NoSuchTimeline { .. }) => {
            let ever = history.iter().map(|snapshot| snapshot.timeline.clone()).collect();
            timeline(text, library, &ever, || Ok(Some(history)))
        }
        found => Ok(found?.timeline.clone()),
    }
}

pub fn is_like_id(text: &str) -> bool {
    text.len() >= 4 && text.len() <= 40 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Returns whether `text` is a name of the timeline: the full name, the folder and the chat's name,
/// or the chat's name alone. Case is ignored.
pub fn is_named(timeline: &TimelineName, text: &str) -> bool {
    let with_folder = timeline.folder().map(|folder| format!("{folder}/{}", timeline.chat()));
    let names = [Some(timeline.as_str()), with_folder.as_deref(), Some(timeline.chat())];
    names.into_iter().flatten().any(|name| name.to_lowercase() == text.to_lowercase())
}

/// Reads a snapshot; `None` if the snapshot is lost.
pub fn find(store: &Store, id: SnapshotId) -> Result<Option<Snapshot>> {
    find_with(&store.reader(), id)
}

/// Reads a snapshot with a reader that several reads share, so that its cache is reused; `None` if
/// the snapshot is lost.
pub fn find_with(reader: &Reader, id: SnapshotId) -> Result<Option<Snapshot>> {
    let read = || -> Result<Snapshot> { Ok(Snapshot::read(&reader.commit(id.0)?)?) };
    unless_lost(read())
}

pub fn read(store: &Store, id: SnapshotId) -> Result<Snapshot> {
    Ok(Snapshot::read(&store.reader().commit(id.0)?)?)
}

fn relative_to(path: &Path, root: &Path) -> Option<String> {
    let path = std::path::absolute(path).ok()?;
    let root = std::path::absolute(root).ok()?;
    let relative = path.strip_prefix(root).ok()?;
    let parts: Option<Vec<_>> = relative.iter().map(|part| part.to_str()).collect();
    Some(parts?.join("/"))
}
