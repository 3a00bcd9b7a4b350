//! From what a user types to the state of a timeline that is meant. All commands read it here.

mod words;

use chrono::{DateTime, FixedOffset};

use super::at_message::{Past, Then};
use super::name_lookup::{find, in_full, is_like_id, is_named, read, stored, timeline};
use super::{Error, History, Result};
use crate::archive::{Snapshot, SnapshotId, branch};
use crate::st::Library;
use crate::store::{Kind, ObjectId, RefName, Store};
pub(crate) use words::Step;

/// A state that somebody named.
#[derive(Clone, Debug)]
pub(crate) struct Moment {
    /// The snapshot.
    pub snapshot: Snapshot,
    /// What it was when this message was its last.
    pub message: Option<usize>,
    /// Whether a timeline was named, and this is what it is now.
    pub is_newest: bool,
}

/// What names can stand for.
#[derive(Clone, Copy)]
pub(crate) struct Names<'a> {
    pub store: &'a Store,
    pub library: Option<&'a Library>,
    pub now: DateTime<FixedOffset>,
}

impl Names<'_> {
    /// The state that `text` names: an id's beginning, `b3:` and a content id's beginning, a tag, or a timeline (its newest), with steps behind it.
    pub fn moment(&self, text: &str) -> Result<Moment> {
        let mut unknown = None;
        for (name, rest) in words::splits(text) {
            // The sign of a content id is no step.
            if name == "b3" {
                break;
            }
            match (self.base(name), words::steps(rest, self.now)) {
                (Err(error @ Error::NoSuchSnapshot { .. }), _) => {
                    unknown.get_or_insert(error);
                }
                (found, Ok(steps)) => return self.walk(found?, name, &steps),
                // A name with a slip in it is likelier than a slip behind half of it.
                (Ok(_), Err(stop)) if !has_similar(&unknown) => {
                    let at = name.len() + stop.at;
                    return Err(Error::Unreadable {
                        text: text.into(),
                        at,
                        expected: stop.expected,
                    });
                }
                (_, Err(_)) => {}
            }
        }
        let none = || Error::NoSuchSnapshot { name: text.into(), similar: Vec::new() };
        Err(unknown.unwrap_or_else(none))
    }

    /// The snapshot that `text` names. A message's number stands for the snapshot that was taken then.
    pub fn snapshot(&self, text: &str) -> Result<Snapshot> {
        let moment = self.moment(text)?;
        let Some(message) = moment.message else { return Ok(moment.snapshot) };
        let history = History::load(self.store)?;
        let (timeline, reader) = (moment.snapshot.timeline.clone(), self.store.reader());
        let past = Past::of(self.store, &history, &timeline, Some(&moment.snapshot));
        let tree = crate::archive::Tree::open(&reader, moment.snapshot.tree)?;
        match past.at(&tree.materialise(&reader)?.files, message, false)? {
            Then::Snapshot(taken, _) => Ok(*taken),
            Then::Made(_) => Err(Error::NotTakenThen { timeline, message }),
        }
    }

    /// Steps without a name, as somebody writes them who has named the timeline before.
    pub fn steps(&self, text: &str) -> Result<Vec<Step>> {
        words::steps(text, self.now).map_err(|stop| Error::Unreadable {
            text: text.into(),
            at: stop.at,
            expected: stop.expected,
        })
    }

    fn walk(
        &self,
        (from, is_timeline): (Snapshot, bool),
        name: &str,
        steps: &[Step],
    ) -> Result<Moment> {
        let newest = from.id;
        let mut moment = Moment { snapshot: from, message: None, is_newest: false };
        for step in steps {
            match step {
                Step::Back(steps) => moment.snapshot = self.back(moment.snapshot, name, *steps)?,
                Step::Then(then) => moment.snapshot = self.as_of(moment.snapshot, name, *then)?,
                Step::Message(message) => moment.message = Some(*message),
            }
        }
        let is_itself = moment.snapshot.id == newest && moment.message.is_none();
        Ok(Moment { is_newest: is_timeline && is_itself, ..moment })
    }

    fn back(&self, from: Snapshot, name: &str, steps: usize) -> Result<Snapshot> {
        let mut snapshot = from;
        for taken in 0..steps {
            let parent = snapshot.parents.first();
            let parent = parent.ok_or(Error::NotSoFarBack { name: name.into(), steps: taken })?;
            snapshot = read(self.store, *parent)?;
        }
        Ok(snapshot)
    }

    /// What a timeline was at a moment: the last snapshot before it.
    fn as_of(&self, from: Snapshot, name: &str, then: DateTime<FixedOffset>) -> Result<Snapshot> {
        let mut snapshot = from;
        while snapshot.time.seconds > then.timestamp() {
            // What it was forked from is another chat.
            let parent = snapshot.parents.first().filter(|_| snapshot.fork_at.is_none());
            let Some(parent) = parent else {
                let first = snapshot.time.moment().unwrap_or(then);
                return Err(Error::NotThatOld { name: name.into(), first });
            };
            snapshot = read(self.store, *parent)?;
        }
        Ok(snapshot)
    }

    /// The snapshot that a name alone stands for, and whether it is the name of a timeline.
    fn base(&self, text: &str) -> Result<(Snapshot, bool)> {
        if let Some(prefix) = text.strip_prefix("b3:") {
            return Ok((self.by_content(text, prefix)?, false));
        }
        if let Some(tag) = RefName::tag(text)
            && let Some(id) = self.store.ref_target(&tag)?
        {
            return Ok((self.tagged(text, id)?, false));
        }
        if is_like_id(text)
            && let Some(found) = self.by_id(text)?
        {
            return Ok((found, false));
        }
        // Whoever gives the whole name need not wait until all are read.
        for name in in_full(text) {
            if let Some(id) = self.store.ref_target(&branch(&name))?
                && let Some(head) = find(self.store, SnapshotId(id))?
                && head.timeline == name
            {
                return Ok((head, true));
            }
        }
        let heads = super::heads(self.store)?;
        let names = heads.iter().map(|head| head.timeline.clone()).collect();
        match timeline(text, self.library, &names) {
            Ok(name) => {
                let head = heads.into_iter().find(|head| head.timeline == name);
                let none = || Error::NoSuchSnapshot { name: text.into(), similar: Vec::new() };
                Ok((head.ok_or_else(none)?, true))
            }
            // Perhaps it was called that once.
            Err(Error::NoSuchTimeline { .. }) => {
                match stored(text, &History::load(self.store)?, self.library) {
                    Err(Error::NoSuchTimeline { name, similar }) => {
                        Err(Error::NoSuchSnapshot { name, similar })
                    }
                    other => Ok((other?.clone(), true)),
                }
            }
            Err(error) => Err(error),
        }
    }

    fn tagged(&self, text: &str, id: ObjectId) -> Result<Snapshot> {
        let tagged = read(self.store, SnapshotId(id))?;
        // Earlier versions let a tag be called like something else.
        match self.shadowed(text, &tagged)? {
            others if others.is_empty() => Ok(tagged),
            mut candidates => {
                candidates.insert(0, format!("{} {} (the tag)", tagged.id, tagged.subject));
                Err(Error::Ambiguous { name: text.into(), candidates })
            }
        }
    }

    /// What else the name of a tag stands for: other snapshots by their ids, and timelines.
    fn shadowed(&self, text: &str, tagged: &Snapshot) -> Result<Vec<String>> {
        let mut others = Vec::new();
        if is_like_id(text) {
            let ids = self.store.reader().with_prefix(&text.to_lowercase(), Kind::Commit)?;
            let found = self.readable(ids)?;
            let found = found.iter().filter(|found| found.id != tagged.id);
            others.extend(found.map(|found| format!("{} {}", found.id, found.subject)));
        }
        let heads = super::heads(self.store)?;
        let named =
            heads.iter().filter(|head| head.id != tagged.id && is_named(&head.timeline, text));
        others.extend(named.map(|head| head.timeline.to_string()));
        Ok(others)
    }

    /// By its id, or by one that it had.
    fn by_id(&self, text: &str) -> Result<Option<Snapshot>> {
        let prefix = text.to_lowercase();
        let ids = self.store.reader().with_prefix(&prefix, Kind::Commit)?;
        if let Some(found) = single(text, self.readable(ids)?)? {
            return Ok(Some(found));
        }
        let ids = self.store.find_former(&prefix)?;
        single(text, self.readable(ids)?)
    }

    fn by_content(&self, text: &str, prefix: &str) -> Result<Snapshot> {
        let history = History::load(self.store)?;
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

    /// Those of some commits that are snapshots and not lost.
    fn readable(&self, ids: Vec<ObjectId>) -> Result<Vec<Snapshot>> {
        let mut found = Vec::new();
        for id in ids {
            found.extend(find(self.store, SnapshotId(id))?);
        }
        Ok(found)
    }
}

fn has_similar(unknown: &Option<Error>) -> bool {
    matches!(unknown, Some(Error::NoSuchSnapshot { similar, .. }) if !similar.is_empty())
}

fn single(text: &str, found: Vec<Snapshot>) -> Result<Option<Snapshot>> {
    if found.len() > 1 {
        let candidates =
            found.iter().map(|snapshot| format!("{} {}", snapshot.id, snapshot.subject)).collect();
        return Err(Error::Ambiguous { name: text.into(), candidates });
    }
    Ok(found.into_iter().next())
}
