//! Where the tags of a backup or a remote go. A tag whose name the other side uses for another snapshot gets a number.

use std::collections::BTreeMap;

use super::outcome::ReceivedTag;
use super::plan::Policy;
use crate::archive::SnapshotId;
use crate::history::History;

pub(super) fn plan_tags(ours: &History, theirs: &History, policy: Policy) -> Vec<ReceivedTag> {
    let here: BTreeMap<_, _> = ours.tags().collect();
    let mut taken = all_tags([ours]);
    if policy == Policy::Join {
        taken.extend(all_tags([theirs]));
    }
    let mut tags = Vec::new();
    for (name, snapshot) in theirs.tags().filter(|(name, id)| here.get(name) != Some(id)) {
        let received = |here: String, snapshot| ReceivedTag { name: name.into(), here, snapshot };
        let makes_room = match policy {
            Policy::KeepLocal => Some(snapshot),
            Policy::Join => {
                tags.push(received(name.into(), snapshot));
                here.get(name).copied()
            }
        };
        if let Some(snapshot) = makes_room
            && let Some(free) = free_tag(name, snapshot, &taken)
            && taken.insert(free.clone(), snapshot).is_none()
        {
            tags.push(received(free, snapshot));
        }
    }
    tags
}

/// Returns all tags of some histories; of two with one name the last.
pub(super) fn all_tags<'h>(
    histories: impl IntoIterator<Item = &'h History>,
) -> BTreeMap<String, SnapshotId> {
    let tags = histories.into_iter().flat_map(History::tags);
    tags.map(|(name, id)| (name.to_owned(), id)).collect()
}

/// Returns a tag that nothing else has: this one, or with a number.
pub(super) fn free_tag(
    name: &str,
    snapshot: SnapshotId,
    taken: &BTreeMap<String, SnapshotId>,
) -> Option<String> {
    let numbered = (2..).map(|n| format!("{name} ({n})"));
    let mut names = std::iter::once(name.to_owned()).chain(numbered);
    names.find(|name| taken.get(name).is_none_or(|id| *id == snapshot))
}
