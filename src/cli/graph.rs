//! Draws the graph of `log --graph`. Timelines are drawn one after the other, each fork directly
//! above the snapshot that it was forked from. They are not interleaved by date, so that fifty
//! timelines need a few columns, not fifty. Of several forks at the same point, the newest is drawn
//! first.

use std::collections::{HashMap, HashSet};

use renderdag::{Ancestor, GraphRowRenderer, Renderer};

use super::output::{STYLES, paint};
use super::wording::own_words;
use stvc::snapshots::SnapshotId;
use stvc::verbs::log::LoggedSnapshot;

/// A snapshot, or a folded run of snapshots, newest first.
pub type Row<'e> = Vec<&'e LoggedSnapshot>;

/// Draws `rows`. `words` returns the text of a row, given the width of the graph to its left.
pub fn draw(
    rows: &[Row<'_>],
    words: impl Fn(&[&LoggedSnapshot], usize) -> String,
    mut line: impl FnMut(&str),
) {
    // A row is identified by its newest snapshot. Its parents are the parents of its oldest
    // snapshot.
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
            paint(STYLES.good, "◉")
        } else {
            "○".into()
        };
        let begins = row.iter().any(|entry| entry.is_head) && !reserved.contains(&at);
        if let Some(origin) = begins.then(|| origin_that_ends(rows, &named, at)).flatten() {
            // The fork point is drawn below its forks. Without a column of its own, it would look
            // as if the first fork were the parent of the others.
            renderer.reserve(origin);
            reserved.insert(origin);
        }
        let width = renderer.width(Some(&at), Some(&parents)) as usize;
        let drawn = renderer.next_row(at, parents, glyph, words(row, width));
        drawn.lines().for_each(|text| line(text.trim_end()));
    }
}

/// Returns the row that the timeline of row `at` was forked from, if that row is the head of the
/// parent timeline.
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

/// Folds linear runs of snapshots. Snapshots with a tag, a fork, a rename or a message of the user
/// are not folded.
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
    // The index of each run, by the parent of its oldest snapshot.
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

/// Returns the rows in drawing order, each with the rows of its parents. Children precede their
/// parents, and forks at the same point are listed one after the other. A parent is `None` if it is
/// not shown.
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
    // Children precede their parents in `rows`, so `newest[at]` is final when it is read.
    for at in 0..rows.len() {
        for parent in parents(at).flatten() {
            children[parent].push(at);
            newest[parent] = newest[parent].max(newest[at]);
        }
    }
    let timeline = |at: usize| rows[at].last().map(|entry| &entry.snapshot.timeline);
    let mut open: Vec<usize> =
        (0..rows.len()).filter(|at| parents(*at).flatten().next().is_none()).collect();
    // The last row is drawn first. Rows with the same time keep the order of the log.
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
