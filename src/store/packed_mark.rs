//! The packed mark, `stvc/packed`: lists the packs whose objects folding does not compress again,
//! and the volumes in these packs (see `volume`). If the file is lost, objects are compressed once
//! more than necessary, and volumes are treated like unreachable objects.

use std::collections::{BTreeSet, HashSet};
use std::path::{Path, PathBuf};

use super::{ObjectId, Result, Store, files};

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct PackedMark {
    pub best: Option<String>,
    /// Names of the packs since the last `gc` that were folded, copied, or have volumes.
    joined: BTreeSet<String>,
    pub volumes: HashSet<ObjectId>,
}

const FILE: &str = "packed";
/// First line of the file if no pack of `gc` exists.
const NONE: &str = "-";

impl Store {
    pub(super) fn packed_mark(&self) -> PathBuf {
        self.private(FILE)
    }
}

impl PackedMark {
    /// Reads the mark. It is empty if the file is missing; damaged lines name packs that do not
    /// exist.
    pub(super) fn read(path: &Path) -> Result<Self> {
        let mark = files::read(path)?.unwrap_or_default();
        Ok(Self::decode(&String::from_utf8_lossy(&mark)))
    }

    pub(super) fn write(&self, path: &Path) -> Result<()> {
        files::replace(path, self.encode().as_bytes())
    }

    pub(super) fn after_gc(index: &Path, volumes: &[ObjectId]) -> Self {
        let volumes = volumes.iter().copied().collect();
        Self { best: Some(name_of(index)), joined: BTreeSet::new(), volumes }
    }

    pub(super) fn without(mut self, gone: &[PathBuf]) -> Self {
        for name in gone.iter().map(|index| name_of(index)) {
            self.joined.remove(&name);
            self.best.take_if(|best| *best == name);
        }
        self
    }

    pub(super) fn with_joined(mut self, new: &Path, volumes: &[ObjectId]) -> Self {
        self.joined.insert(name_of(new));
        self.volumes.extend(volumes);
        self
    }

    pub(super) fn with_copies(mut self, other: &Self, copied: &[&PathBuf]) -> Self {
        for name in copied.iter().map(|index| name_of(index)) {
            if self.best.is_none() && other.best.as_ref() == Some(&name) {
                self.best = Some(name);
            } else {
                self.joined.insert(name);
            }
        }
        self.volumes.extend(&other.volumes);
        self
    }

    pub(super) fn is_packed(&self, index: &Path) -> bool {
        let name = name_of(index);
        self.best.as_ref() == Some(&name) || self.joined.contains(&name)
    }

    fn encode(&self) -> String {
        let mut text = format!("{}\n", self.best.as_deref().unwrap_or(NONE));
        self.joined.iter().for_each(|name| text.push_str(&format!("{name}\n")));
        self.volumes.iter().for_each(|id| text.push_str(&format!("{id}\n")));
        text
    }

    fn decode(text: &str) -> Self {
        let mut lines = text.lines();
        let best = lines.next().filter(|best| *best != NONE).map(str::to_owned);
        let mut mark = Self { best, ..Self::default() };
        for line in lines {
            match ObjectId::from_hex(line.as_bytes()) {
                Ok(id) => drop(mark.volumes.insert(id)),
                Err(_) => drop(mark.joined.insert(line.to_owned())),
            }
        }
        mark
    }
}

fn name_of(index: &Path) -> String {
    index.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encoded_mark_decodes_to_the_same_mark() {
        let [one, two, three] = ["pack-1.idx", "pack-2.idx", "pack-3.idx"].map(PathBuf::from);
        let volume = |digit: &str| ObjectId::from_hex(digit.repeat(40).as_bytes()).unwrap();
        let after = PackedMark::after_gc(&one, &[volume("1")]);
        assert!(after.is_packed(&one) && !after.is_packed(&two));
        let beside = after.clone().with_joined(&two, &[]);
        assert_eq!(beside.best, after.best, "the pack of gc is there");
        let joined =
            beside.without(&[one.clone(), two.clone()]).with_joined(&three, &[volume("2")]);
        assert_eq!((joined.best.as_ref(), joined.volumes.len()), (None, 2));
        assert!(joined.is_packed(&three) && !joined.is_packed(&one) && !joined.is_packed(&two));
        for mark in [PackedMark::default(), after, joined] {
            assert_eq!(PackedMark::decode(&mark.encode()), mark);
        }
        assert_eq!(PackedMark::decode(""), PackedMark::default());
    }

    #[test]
    fn packed_mark_is_removed_only_for_removed_packs() {
        let [one, two, three] = ["pack-1.idx", "pack-2.idx", "pack-3.idx"].map(PathBuf::from);
        let mark = PackedMark::after_gc(&one, &[]).with_joined(&two, &[]).with_joined(&three, &[]);
        let mark = mark.without(&[one.clone(), two.clone()]);
        assert!(!mark.is_packed(&one) && !mark.is_packed(&two) && mark.is_packed(&three));
    }
}
