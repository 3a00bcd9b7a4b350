//! An index of the words of all stored texts. With it, a search for a rare word reads few texts and
//! no trees.
//!
//! The index is a cache in `stvc/search/`, which every search completes. It only excludes texts
//! that cannot match; every other text is read and searched, so a stale index costs time and does
//! not change results. An index that is damaged, or that does not agree with the store, is built
//! again.
//!
//! The files are a chain: each begins with the checksum of the one before, because its numbers
//! continue those of the files before. Only the last file is ever replaced by a longer one.

mod build;
mod dictionary;
mod packed;
mod segment;
mod trees;
mod words;

use std::collections::HashSet;

use crate::archive::{Blake3, TextKinds};
use crate::engine::search_files;
use crate::history::History;
use crate::parallel::in_turn;
use crate::progress::Monitor;
use crate::store::{ObjectFileStamps, ObjectId, Reader, Store};
use crate::verbs::Result;
use build::{Builder, SEGMENT};
use packed::Flags;
use segment::Segment;
use trees::Trees;
use words::Plan;

pub(super) use trees::Listed;

/// The index, and the texts that may contain the searched words.
#[derive(Default)]
pub(super) struct Index {
    trees: Trees,
    candidates: Flags,
    /// Texts that are read in every search.
    unfiltered: Flags,
}

/// The store as it was when the search began.
struct State<'s> {
    store: &'s Store,
    plan: Plan,
    erasures: [u8; 32],
    files: ObjectFileStamps,
}

/// The files of the index as far as they were read or written.
#[derive(Default)]
struct Files {
    /// Number of files before the last.
    count: usize,
    /// Checksum of the file before the last.
    after: [u8; 32],
    /// The last file and its checksum.
    last: Option<(Segment, [u8; 32])>,
}

#[derive(PartialEq, Eq)]
enum Agreement {
    None,
    Full,
    /// All objects exist, but in other files.
    InOtherFiles,
}

impl Index {
    /// Opens the index of a store and adds the snapshots of `history` that it lacks. `required` are
    /// texts that every matching text contains. Returns `None` if the store cannot be indexed.
    pub fn open(
        store: &Store,
        history: &History,
        required: &[String],
        monitor: &mut dyn Monitor,
    ) -> Result<Option<Self>> {
        // A mirror contains nothing but the backup, and an unfinished erasure has not removed all
        // texts yet.
        if store.is_mirror() || store.erasing()?.is_some() || store.borrows_objects()? {
            return Ok(None);
        }
        let (plan, erasures) = (Plan::of(required), erasures(store)?);
        let state = State { store, plan, erasures, files: store.object_file_stamps()? };
        let (mut index, mut files) = Self::load(&state);
        let agreement = index.agreement(&files, &state, history)?;
        if agreement == Agreement::None {
            (index, files) = Default::default();
        }
        let mut roots: Vec<_> = history.newest_first().iter().rev().map(|it| it.tree).collect();
        roots.retain(|root| !index.trees.roots.contains_key(root));
        if roots.is_empty() {
            if agreement == Agreement::InOtherFiles {
                files.record(&state)?;
            }
            return Ok(Some(index));
        }
        // Building an index that cannot be stored would take longer than the search.
        let can_add = !index.trees.ids.is_empty() || search_files::are_writable(store);
        Ok((can_add && index.add(&state, &roots, files, monitor)?).then_some(index))
    }

    /// Returns a listing of the texts that may contain the searched words.
    pub fn list(&self, reader: Reader, wanted: TextKinds) -> Listed<'_> {
        Listed::new(&self.trees, &self.candidates, reader, wanted)
    }

    /// Loads the files up to the first that is damaged or does not follow the file before.
    fn load(state: &State<'_>) -> (Self, Files) {
        let (mut index, mut files) = (Self::default(), Files::default());
        let numbers: Vec<_> = (0..search_files::count(state.store)).collect();
        let read = |number: &usize| {
            let file = search_files::read(state.store, *number)?;
            let (segment, checksum) = Segment::decode(&file)?;
            let found = segment.words.find(&state.plan, segment.blocks.len())?;
            Some((segment, checksum, found))
        };
        let mut is_invalid = false;
        // The files after the first unusable one are ignored, and replaced later.
        let _ = in_turn(&numbers, read, |number, segment| {
            let (segment, checksum, found) = segment.ok_or(())?;
            let after = files.last.as_ref().map_or([0; 32], |(_, checksum)| *checksum);
            if segment.after != after
                || segment.erasures != state.erasures
                || segment.first as usize != index.trees.ids.len()
                || segment.first_name as usize != index.trees.names.len()
            {
                return Err(());
            }
            if index.add_segment(&segment, &found).is_none() {
                is_invalid = true;
                return Err(());
            }
            files = Files { count: *number, after, last: Some((segment, checksum)) };
            Ok(())
        });
        if is_invalid { Default::default() } else { (index, files) }
    }

    /// Adds the objects and records of a segment. `None` if they are invalid, in which case the
    /// index must not be used.
    fn add_segment(&mut self, segment: &Segment, found: &Flags) -> Option<()> {
        let end = segment.end()? as usize;
        for id in &segment.ids {
            self.trees.add_object(*id)?;
        }
        self.trees.names.extend(segment.names.iter().cloned());
        self.trees.add_records(&segment.trees)?;
        if segment.unfiltered.iter().any(|text| *text as usize >= end) {
            return None;
        }
        self.add_candidates(segment, found, end);
        Some(())
    }

    fn add_candidates(&mut self, segment: &Segment, found: &Flags, end: usize) {
        self.candidates.grow(end);
        self.unfiltered.grow(end);
        let mut start = segment.first as usize;
        for (number, end) in segment.blocks.iter().enumerate() {
            if found.has(number) {
                self.candidates.insert_all(start..*end as usize);
            }
            start = *end as usize;
        }
        for text in &segment.unfiltered {
            self.unfiltered.insert(*text as usize);
            self.candidates.insert(*text as usize);
        }
    }

    /// Returns whether the index can be used and completed. It cannot if a file with objects was
    /// changed, if objects are missing, or if most of its snapshots no longer exist.
    fn agreement(&self, files: &Files, state: &State<'_>, history: &History) -> Result<Agreement> {
        let Some((last, _)) = &files.last else { return Ok(Agreement::None) };
        let reader = state.store.reader();
        let is_changed = |(name, stamp)| state.files.get(name).is_some_and(|now| now != stamp);
        let many = 2 * history.len() + 16;
        if last.files.iter().any(is_changed)
            || self.trees.roots.len() > many
            || self.trees.is_any_repaired(&reader)?
        {
            return Ok(Agreement::None);
        }
        if last.files.keys().all(|name| state.files.contains_key(name)) {
            return Ok(Agreement::Full);
        }
        let broken: HashSet<_> = self.trees.broken.iter().map(|tree| *tree as usize).collect();
        for (number, id) in self.trees.ids.iter().enumerate() {
            let is_known = self.unfiltered.has(number) || broken.contains(&number);
            if !is_known && !reader.has(*id)? {
                return Ok(Agreement::None);
            }
        }
        Ok(Agreement::InOtherFiles)
    }

    /// Adds snapshots and stores the new segments. Returns `false` if the store cannot be indexed.
    fn add(
        &mut self,
        state: &State<'_>,
        roots: &[ObjectId],
        mut files: Files,
        monitor: &mut dyn Monitor,
    ) -> Result<bool> {
        monitor.begin("indexing", Some(roots.len() as u64));
        let mut trees = std::mem::take(&mut self.trees);
        let mut builder = Builder::new(state.store.reader(), &mut trees);
        for (number, root) in roots.iter().enumerate() {
            let Some(is_complete) = builder.add(*root)? else { return Ok(false) };
            monitor.advance(1);
            if is_complete || number + 1 == roots.len() {
                let Some(mut segment) = builder.finish()? else { return Ok(false) };
                let found = segment.words.find(&state.plan, segment.blocks.len());
                let (Some(found), Some(end)) = (found, segment.end()) else { return Ok(false) };
                self.add_candidates(&segment, &found, end as usize);
                (segment.files, segment.erasures) = (state.files.clone(), state.erasures);
                files.add(state, segment)?;
            }
        }
        self.trees = trees;
        Ok(true)
    }
}

impl Files {
    /// Stores a segment: as a part of the last file, or after it if the last file is complete.
    fn add(&mut self, state: &State<'_>, segment: Segment) -> Result<()> {
        self.last = match self.last.take() {
            Some((last, checksum)) if last.bytes >= SEGMENT => {
                (self.count, self.after) = (self.count + 1, checksum);
                Some((segment, checksum))
            }
            Some((last, checksum)) => last.join(segment).map(|joined| (joined, checksum)),
            None => Some((segment, [0; 32])),
        };
        self.write(state)
    }

    /// Records the present files of the store's objects.
    fn record(&mut self, state: &State<'_>) -> Result<()> {
        if let Some((last, _)) = &mut self.last {
            last.files.clone_from(&state.files);
        }
        self.write(state)
    }

    /// Writes the last file. Not if erased texts may be in it: an erasure that began after this
    /// search has already deleted the index.
    fn write(&mut self, state: &State<'_>) -> Result<()> {
        let Some((last, checksum)) = &mut self.last else { return Ok(()) };
        last.after = self.after;
        let (bytes, new) = last.encode();
        *checksum = new;
        let store = state.store;
        let is_current = || -> Result<bool> {
            Ok(erasures(store)? == state.erasures && store.erasing()?.is_none())
        };
        if is_current()? {
            search_files::write(store, self.count, &bytes);
            search_files::remove_from(store, self.count + 1);
            if !is_current()? {
                search_files::forget(store)?;
            }
        }
        Ok(())
    }
}

/// Returns the hash of the record of erasures. An index that was built before an erasure is not
/// used, because it may contain erased words.
fn erasures(store: &Store) -> Result<[u8; 32]> {
    let lines = store.erasures()?;
    let lines: String = lines.iter().map(|(hex, changes)| format!("{hex} {changes}\n")).collect();
    Ok(*Blake3::of(lines.as_bytes()).as_bytes())
}
