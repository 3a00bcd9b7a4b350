//! The graph of `log --graph`. Timelines are drawn one after the other, each fork right before the
//! snapshot it forked from, not interleaved by date: fifty timelines need a few columns, not fifty.
//! Among the branches at one point the newest comes first.

use std::collections::{HashMap, HashSet};

use renderdag::{Ancestor, GraphRowRenderer, Renderer};

use super::output::{LOOK, paint};
use super::wording::own_words;
use stvc::snapshots::SnapshotId;
use stvc::verbs::log::LoggedSnapshot;

/// A snapshot, or a folded run of them, newest first.
pub type Row<'e> = Vec<&'e LoggedSnapshot>;

/// Draws `rows`. `words` returns the text of a row, given the width of the drawing beside it.
pub fn draw(
    rows: &[Row<'_>],
    words: impl Fn(&[&LoggedSnapshot], usize) -> String,
    mut line: impl FnMut(&str),
) {
    // A row is named by its newest snapshot, and its parents are those of its oldest.
    let named: HashMap<SnapshotId, usize> = rows
        .iter()
        .enumerate()
        .filter_map(|(at, row)| Some((row.first()?.snapshot.id, at)))
        .collect();
    let mut renderer = GraphRowRenderer::new().output().with_min_row_height(1).build_box_drawing();
    let mut reserved = HashSet::new();
    for (at, parents) in in_drawing_order(rows, &named) {
        let row = &rows[at];
        let parents = parents.map(|parent| match parent {
            Some(parent) => Ancestor::Parent(parent),
            None => Ancestor::Anonymous,
        });
        let parents = parents.collect();
        let glyph = if row.iter().any(|entry| entry.is_head) {
            paint(LOOK.good, "◉")
        } else {
            "○".into()
        };
        let begins = row.iter().any(|entry| entry.is_head) && !reserved.contains(&at);
        if let Some(origin) = begins.then(|| origin_that_ends(rows, &named, at)).flatten() {
            // It comes below its forks; without a column of its own, the first fork would look like
            // the origin of the others.
            renderer.reserve(origin);
            reserved.insert(origin);
        }
        let width = renderer.width(Some(&at), Some(&parents)) as usize;
        let drawn = renderer.next_row(at, parents, glyph, words(row, width));
        drawn.lines().for_each(|text| line(text.trim_end()));
    }
}

/// Returns the row that the branch of row `at` forked from, if that is the head of its timeline.
fn origin_that_ends(
    rows: &[Row<'_>],
    named: &HashMap<SnapshotId, usize>,
    at: usize,
) -> Option<usize> {
    let timeline = |row: usize| rows[row].last().map(|entry| &entry.snapshot.timeline);
    let mut row = at;
    loop {
        let oldest = &rows[row].last()?.snapshot;
        let parent = *named.get(oldest.parents.first()?)?;
        if timeline(parent) != timeline(at) {
            return rows[parent].iter().any(|entry| entry.is_head).then_some(parent);
        }
        row = parent;
    }
}

pub fn unfolded<'e>(entries: &[&'e LoggedSnapshot]) -> Vec<Row<'e>> {
    entries.iter().map(|entry| vec![*entry]).collect()
}

/// Folds linear runs of snapshots without tags, forks, renames or a message of the user.
pub fn folded<'e>(entries: &[&'e LoggedSnapshot]) -> Vec<Row<'e>> {
    let mut children: HashMap<SnapshotId, usize> = HashMap::new();
    for parent in entries.iter().flat_map(|entry| &entry.snapshot.parents) {
        *children.entry(*parent).or_default() += 1;
    }
    let is_plain = |entry: &LoggedSnapshot| {
        let snapshot = &entry.snapshot;
        !entry.is_head
            && entry.tags.is_empty()
            && snapshot.kind.as_str() == "snapshot"
            && snapshot.fork_at.is_none()
            && snapshot.renamed_from.is_none()
            && snapshot.parents.len() <= 1
            && children.get(&snapshot.id) == Some(&1)
            && own_words(snapshot).is_none()
    };
    let mut rows: Vec<Row<'_>> = Vec::new();
    // Runs, by the parent of their oldest snapshot.
    let mut runs: HashMap<SnapshotId, usize> = HashMap::new();
    for entry in entries {
        let snapshot = &entry.snapshot;
        let is_plain = is_plain(entry);
        let run = runs.remove(&snapshot.id).filter(|_| is_plain);
        let at = run.unwrap_or(rows.len());
        match run {
            Some(run) => rows[run].push(entry),
            None => rows.push(vec![entry]),
        }
        if let (true, Some(parent)) = (is_plain, snapshot.parents.first()) {
            runs.insert(*parent, at);
        }
    }
    rows
}

/// Returns the rows, children before parents and the branches at a point one after the other, each
/// with the rows of its parents; `None` is a parent that is not shown.
fn in_drawing_order<'r>(
    rows: &'r [Row<'_>],
    named: &'r HashMap<SnapshotId, usize>,
) -> impl Iterator<Item = (usize, impl Iterator<Item = Option<usize>>)> {
    let parents = |at: usize| {
        let parents = rows[at].last().map(|entry| entry.snapshot.parents.as_slice());
        parents.unwrap_or_default().iter().map(|parent| named.get(parent).copied())
    };
    let mut children = vec![Vec::new(); rows.len()];
    let mut newest: Vec<i64> =
        rows.iter().map(|row| row.first().map_or(0, |entry| entry.snapshot.time.seconds)).collect();
    // Children come first, so that a row knows how new the rows above it are.
    for at in 0..rows.len() {
        for parent in parents(at).flatten() {
            children[parent].push(at);
            newest[parent] = newest[parent].max(newest[at]);
        }
    }
    let timeline = |at: usize| rows[at].last().map(|entry| &entry.snapshot.timeline);
    let mut open: Vec<usize> =
        (0..rows.len()).filter(|at| parents(*at).flatten().next().is_none()).collect();
    // The last one is drawn first. Equally new rows keep the order of the log.
    open.sort_by_key(|at| (newest[*at], std::cmp::Reverse(*at)));
    let mut order = Vec::with_capacity(rows.len());
    let mut begun = HashSet::with_capacity(rows.len());
    let mut done = HashSet::with_capacity(rows.len());
    while let Some(at) = open.last().copied() {
        if begun.insert(at) {
            let mut above = children[at].clone();
            above.sort_by_key(|child| {
                (newest[*child], timeline(*child) == timeline(at), std::cmp::Reverse(*child))
            });
            open.extend(above.into_iter().filter(|child| !begun.contains(child)));
        } else {
            open.pop();
            if done.insert(at) {
                order.push(at);
            }
        }
    }
    order.into_iter().map(move |at| (at, parents(at)))
}
