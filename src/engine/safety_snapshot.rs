//! A snapshot of what is on disk, before something else is written there.

use super::operation::{Follows, Operation};
use super::{Result, changed_timelines};
use crate::archive::{self, Kind, Manifest, Snapshot, State, branch};
use crate::st::{Groups, Library, TimelineName};
use crate::store::Store;

/// Snapshot what is on disk for this timeline, unless its newest snapshot has it already; that one then. None if there is no chat.
pub(crate) fn take(
    store: &Store,
    library: &Library,
    timeline: &TimelineName,
    operation: &mut Operation<'_>,
) -> Result<Option<(Snapshot, Manifest)>> {
    if !timeline.file().under(library.root()).exists() {
        return Ok(None);
    }
    let groups = if timeline.is_group() { library.scan()?.groups } else { Groups::default() };
    let look = changed_timelines::look(Some(store), library, &groups, timeline, &mut None)?;
    let Some(captured) = look.captured else { return Ok(None) };
    match (look.head, look.unchanged) {
        (Some(head), true) => {
            if look.astray {
                operation.move_ref(branch(timeline), head.id)?;
            }
            let manifest = archive::read_manifest(&store.reader(), head.tree)?;
            Ok(Some((head, manifest)))
        }
        (head, _) => {
            let state = State::of(&captured.files);
            let follows = head.map(Follows::previous).unwrap_or_default();
            let taken = operation.take(&state, Kind::SAFETY, follows)?;
            Ok(Some((taken, state.manifest)))
        }
    }
}
