//! The record of erased data, in the file `stvc/erased`. It lists the ids of erased commits and the
//! *marks* of erased timelines: hashes that do not reveal the content, see `archive::erasure_mark`.
//! Backups and remotes have a copy of the record. Incoming snapshots are checked against it. Files
//! of the library that still contain erased text have marks, too: hashes of their path and content.

use std::collections::{BTreeMap, HashSet};

use super::commit::{self, NewCommit};
use super::files;
use super::tree::TreeEntry;
use super::{Kind, Lock, ObjectId, RefName, Result, Store, Time, id_lists, unless_lost};

/// File that exists while commits are being removed. It lists the ids of these commits.
const ERASING: &str = "erasing";
/// File with the marks of the library's files that still contain erased text and can be removed.
const COPIES: &str = "erased-copies";
/// Name of the file that contains the record, here and in a commit on a git server.
const ERASED_FILE: &str = "erased";

/// Record of erased data. Maps each id or mark, as hex digits, to the number of times that it was
/// erased or the erasure was withdrawn; an odd number means erased. Merging two records keeps the
/// greater number, so all devices end with the same record, whatever the order of merges.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Erasures(BTreeMap<String, u64>);

impl Erasures {
    fn parse(text: &[u8]) -> Self {
        let lines = String::from_utf8_lossy(text);
        let entry = |line: &str| {
            let (hex, changes) = line.split_once(' ').unwrap_or((line, "1"));
            is_entry(hex).then_some((hex.to_owned(), changes.parse().ok()?))
        };
        Self(lines.lines().filter_map(entry).collect())
    }

    fn to_text(&self) -> String {
        let line = |(hex, changes): (&String, &u64)| match changes {
            1 => format!("{hex}\n"),
            changes => format!("{hex} {changes}\n"),
        };
        self.0.iter().map(line).collect()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the entries of the record: ids or marks, and the numbers of their changes.
    pub fn iter(&self) -> impl Iterator<Item = (&str, u64)> {
        self.0.iter().map(|(hex, changes)| (hex.as_str(), *changes))
    }

    /// Sets an entry of the record. Returns `false` if `hex` is neither an id nor a mark.
    pub fn set(&mut self, hex: &str, changes: u64) -> bool {
        let is_valid = is_entry(hex);
        if is_valid {
            self.0.insert(hex.to_owned(), changes);
        }
        is_valid
    }

    pub fn commits(&self) -> impl Iterator<Item = ObjectId> {
        let removed = self.0.iter().filter(|(_, changes)| *changes % 2 == 1);
        removed.filter_map(|(hex, _)| ObjectId::from_hex(hex.as_bytes()).ok())
    }

    pub fn has(&self, hex: &str) -> bool {
        self.0.get(hex).is_some_and(|changes| changes % 2 == 1)
    }

    pub fn add(&mut self, hex: String) {
        let changes = self.0.entry(hex).or_default();
        *changes += 1 - *changes % 2;
    }

    pub fn withdraw(&mut self, hex: &str) {
        if let Some(changes) = self.0.get_mut(hex) {
            *changes = changes.saturating_add(*changes % 2);
        }
    }

    pub fn join(&mut self, other: &Self) {
        for (hex, changes) in &other.0 {
            let known = self.0.entry(hex.clone()).or_default();
            *known = (*known).max(*changes);
        }
    }
}

fn is_entry(hex: &str) -> bool {
    matches!(hex.len(), 40 | 64) && hex.bytes().all(|byte| byte.is_ascii_hexdigit())
}

impl Store {
    /// Records the commits `ids` and the timelines with `marks` as erased, before the commits are
    /// removed. If the removal is interrupted, the next call of `erase` continues it.
    pub fn begin_erasing(&self, lock: &Lock, ids: &[ObjectId], marks: Vec<String>) -> Result<()> {
        let mut erasures = self.erasures()?;
        for hex in ids.iter().map(ToString::to_string).chain(marks) {
            erasures.add(hex);
        }
        self.set_erasures(lock, &erasures)?;
        let text: String = ids.iter().map(|id| format!("{id}\n")).collect();
        files::replace(&self.private(ERASING), text.as_bytes())
    }

    pub fn erasing(&self) -> Result<Option<HashSet<ObjectId>>> {
        id_lists::read(&self.private(ERASING))
    }

    pub fn end_erasing(&self, _lock: &Lock) -> Result<()> {
        files::remove(&self.private(ERASING))
    }

    /// Returns the marks of the library's files that still contain erased text.
    pub fn left_copies(&self) -> Result<Vec<String>> {
        let text = files::read(&self.private(COPIES))?.unwrap_or_default();
        Ok(String::from_utf8_lossy(&text).lines().map(str::to_owned).collect())
    }

    pub fn set_left_copies(&self, _lock: &Lock, marks: &[String]) -> Result<()> {
        let path = self.private(COPIES);
        if marks.is_empty() {
            return files::remove(&path);
        }
        let text: String = marks.iter().map(|mark| format!("{mark}\n")).collect();
        files::replace(&path, text.as_bytes())
    }

    pub fn erasures(&self) -> Result<Erasures> {
        let text = files::read(&self.private(ERASED_FILE))?.unwrap_or_default();
        Ok(Erasures::parse(&text))
    }

    /// Returns the record of a remote: the file in its store, merged with the record that was
    /// fetched from a git server. A fetched record that is missing or damaged counts as empty.
    pub fn received_erasures(&self) -> Result<Erasures> {
        let mut erasures = self.erasures()?;
        if let Some(id) = self.ref_target(&RefName::erased())?
            && let Some(fetched) = unless_lost(self.read_erasures(id))?
        {
            erasures.join(&fetched);
        }
        Ok(erasures)
    }

    pub fn set_erasures(&self, _lock: &Lock, erasures: &Erasures) -> Result<()> {
        files::replace(&self.private(ERASED_FILE), erasures.to_text().as_bytes())
    }

    /// Stores the record as a commit, which can be pushed to a git server. Returns the id of the
    /// commit. Equal records have equal ids.
    pub fn commit_erasures(&self, erasures: &Erasures) -> Result<ObjectId> {
        let mut pack = self.pack_writer();
        let blob = pack.add(Kind::Blob, erasures.to_text().as_bytes())?;
        let tree = pack.add_tree(&[TreeEntry::blob(ERASED_FILE, blob)])?;
        let new = NewCommit {
            tree,
            parents: Vec::new(),
            time: Time::default(),
            subject: "Removed for good".into(),
            trailers: Vec::new(),
        };
        let id = pack.add(Kind::Commit, &commit::encode(&new))?;
        pack.finish()?;
        Ok(id)
    }

    fn read_erasures(&self, id: ObjectId) -> Result<Erasures> {
        let reader = self.reader();
        let tree = reader.raw_tree(reader.commit(id)?.tree)?;
        match tree.entries.iter().find(|entry| entry.name == ERASED_FILE.as_bytes()) {
            Some(entry) => Ok(Erasures::parse(&reader.blob(entry.id)?)),
            None => Ok(Erasures::default()),
        }
    }

    /// Points `HEAD` at an existing branch if `HEAD` names a missing branch. Otherwise it would
    /// still contain the name of an erased branch.
    pub fn repair_head(&self, _lock: &Lock) -> Result<()> {
        if self.has_head()? {
            return Ok(());
        }
        let branches = self.refs("refs/heads/")?.refs;
        let first = branches.into_iter().map(|(name, _)| name).next();
        self.point_head_at(&first.unwrap_or_else(|| RefName::branch(["main"])))
    }
}
