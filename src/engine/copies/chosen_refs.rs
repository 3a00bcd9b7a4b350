//! Chooses the branches and tags of a backup: all of them, or those of some timelines. The choice
//! is the same for backups to a file, a folder and a server.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use crate::archive::{SnapshotId, branch, is_branch};
use crate::engine::{Result, Workspace};
use crate::history::pairs::Books;
use crate::history::{History, name_lookup};
use crate::st::TimelineName;
use crate::store::{ObjectId, RefName, RemoteError, Store, Url, name_encoding};

/// Branches and tags, with their targets.
pub type Refs = BTreeMap<RefName, ObjectId>;

/// The refs that a backup will contain.
pub struct ChosenRefs {
    pub history: History,
    pub refs: Refs,
    pub timelines: Vec<String>,
    /// Whether all branches and tags are chosen.
    pub whole: bool,
}

impl ChosenRefs {
    /// Chooses the refs of the named timelines, or all refs if no timeline is named. Omits refs
    /// that cannot be read, see [`History::broken`].
    pub fn of(workspace: &Workspace, store: &Store, named: &[String]) -> Result<Self> {
        let history = History::load(store)?;
        let owners = history.owners();
        let library = workspace.library().ok();
        let mut chosen = BTreeSet::new();
        for text in named {
            chosen.insert(name_lookup::stored(text, &history, library.as_ref())?.timeline.clone());
        }
        // Also choose the lorebooks of the chosen chats, which have their own timelines: a moment
        // of a chat includes the state of its lorebook.
        let books = Books::of(&history);
        for head in chosen.clone().iter().filter_map(|name| history.head(name)) {
            let own = history.own(head).0;
            chosen.extend(own.into_iter().filter_map(|own| books.of_chat_today(own)));
        }
        drop(books);
        let mut refs = Refs::new();
        let mut timelines = BTreeSet::new();
        for (name, id) in ours(store)? {
            // Skip a ref that cannot be read, or that was moved after the history was loaded. The
            // next backup contains a moved ref.
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

    pub fn has_tag_of(&self, snapshot: ObjectId) -> bool {
        self.refs.iter().any(|(name, id)| name.as_str().starts_with(TAGS) && *id == snapshot)
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

/// Returns the refs as text, for the record of a backup or the header of a backup file.
pub fn in_words(refs: &Refs) -> BTreeMap<String, String> {
    refs.iter().map(|(name, id)| (name.to_string(), id.to_string())).collect()
}

/// Returns the branches, tags and hidden refs of stvc in the list of a server. Fails if the list
/// contains any other branch, because stvc did not create such a repository.
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
        // Other refs of the server are ignored.
        if ours || tag {
            let name = RefName::try_from(name.clone())
                .map_err(|_| RemoteError::Foreign { url: url.to_string(), what: name.clone() })?;
            refs.insert(name, *id);
        }
    }
    Ok(refs)
}
