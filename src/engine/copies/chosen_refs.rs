//! Which branches and tags go into a backup, whatever its kind: all of them, or those of some
//! timelines. The same for every kind, so that each is as good as the others.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use crate::archive::{SnapshotId, branch, is_branch};
use crate::engine::{Result, Workspace};
use crate::history::owner_of_snapshot::Owners;
use crate::history::pairs::Books;
use crate::history::{History, name_lookup};
use crate::st::TimelineName;
use crate::store::{ObjectId, RefName, RemoteError, Store, Url, name_encoding};

/// Branches and tags with what they name.
pub type Refs = BTreeMap<RefName, ObjectId>;

/// The refs of a backup.
pub struct Chosen {
    pub history: History,
    pub refs: Refs,
    pub timelines: Vec<String>,
    /// Nothing is left out.
    pub whole: bool,
}

impl Chosen {
    /// Chooses the refs of these timelines, or all if none is named. Leaves out refs that cannot be
    /// read: see [`History::broken`].
    pub fn of(workspace: &Workspace, store: &Store, named: &[String]) -> Result<Self> {
        let history = History::load(store)?;
        let owners = Owners::of(&history);
        let library = workspace.library().ok();
        let mut chosen = BTreeSet::new();
        for text in named {
            chosen.insert(name_lookup::stored(text, &history, library.as_ref())?.timeline.clone());
        }
        // The moments of a chat need the states of its lorebooks, which have timelines of their
        // own.
        let books = Books::of(&history);
        for head in chosen.clone().iter().filter_map(|name| history.head(name)) {
            let own = history.own(head).0;
            chosen.extend(own.into_iter().filter_map(|own| books.of_chat_today(own)));
        }
        drop(books);
        let mut refs = Refs::new();
        let mut timelines = BTreeSet::new();
        for (name, id) in ours(store)? {
            // It cannot be read, or moved since the history was read: then it will be in the next
            // backup.
            let Some(snapshot) = history.get(SnapshotId(id)) else { continue };
            let owner = owners.of_snapshot(snapshot);
            if !chosen.is_empty() && !chosen.contains(owner) {
                continue;
            }
            if name.as_str().starts_with(HEADS) {
                timelines.insert(owner.as_str().to_owned());
            }
            refs.insert(name, id);
        }
        let timelines = timelines.into_iter().collect();
        let whole = chosen.is_empty();
        drop(owners);
        Ok(Self { history, refs, timelines, whole })
    }

    pub fn without(mut self, except: &BTreeSet<RefName>) -> Self {
        self.whole &= except.is_empty();
        self.refs.retain(|name, _| !except.contains(name));
        let is_left = |name: &str| {
            let name = TimelineName::parse(name);
            name.is_ok_and(|name| except.contains(&branch(&name)))
        };
        self.timelines.retain(|timeline| !is_left(timeline));
        self
    }

    pub fn snapshots(&self) -> HashSet<SnapshotId> {
        self.history.past(self.refs.values().copied().map(SnapshotId))
    }
}

pub const HEADS: &str = "refs/heads/";
pub const TAGS: &str = "refs/tags/";

pub fn ours(store: &Store) -> Result<Refs> {
    let mut refs = Refs::new();
    for prefix in [HEADS, TAGS] {
        refs.extend(store.refs(prefix)?.refs);
    }
    Ok(refs)
}

pub(crate) fn spoken(name: &RefName) -> String {
    let short = name.as_str().trim_start_matches(HEADS).trim_start_matches(TAGS);
    name_encoding::decode(short)
}

/// Returns the refs as a note or header stores them.
pub fn in_words(refs: &Refs) -> BTreeMap<String, String> {
    refs.iter().map(|(name, id)| (name.to_string(), id.to_string())).collect()
}

/// Returns our branches and tags in the list of a server. A foreign branch makes it a foreign
/// repository.
pub fn ours_of(
    list: &BTreeMap<String, ObjectId>,
    url: &Url,
) -> std::result::Result<Refs, RemoteError> {
    let mut refs = BTreeMap::new();
    for (name, id) in list {
        let ours = is_branch(name);
        let foreign = name.starts_with(HEADS) && !ours;
        let tag = name.starts_with(TAGS) || name.starts_with("refs/stvc/kept/");
        if foreign {
            return Err(RemoteError::Foreign { url: url.to_string(), what: name.clone() });
        }
        // Servers have refs of their own beside branches and tags; they are nobody's business.
        if ours || tag {
            let name = RefName::try_from(name.clone())
                .map_err(|_| RemoteError::Foreign { url: url.to_string(), what: name.clone() })?;
            refs.insert(name, *id);
        }
    }
    Ok(refs)
}
