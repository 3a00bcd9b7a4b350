//! The graph of snapshots, drawn by the crate that Sapling and jj use.

use std::collections::HashSet;

use renderdag::{Ancestor, GraphRowRenderer, Renderer};

use super::output::{LOOK, paint};
use crate::archive::SnapshotId;
use crate::ops::log::Entry;

/// Draw `entries`, newest first; `words` gives each snapshot its lines.
pub fn draw(entries: &[Entry], words: impl Fn(&Entry) -> String, mut line: impl FnMut(&str)) {
    let shown: HashSet<SnapshotId> = entries.iter().map(|entry| entry.snapshot.id).collect();
    let mut renderer = GraphRowRenderer::new().output().with_min_row_height(2).build_box_drawing();
    for entry in entries {
        let parent = |id: &SnapshotId| match shown.contains(id) {
            true => Ancestor::Parent(*id),
            false => Ancestor::Anonymous,
        };
        let parents = entry.snapshot.parents.iter().map(parent).collect();
        let glyph = if entry.is_head { paint(LOOK.good, "◉") } else { "○".into() };
        let row = renderer.next_row(entry.snapshot.id, parents, glyph, words(entry));
        row.lines().for_each(|text| line(text.trim_end()));
    }
}
