//! What is known of packs that were made here (`stvc/packed`): which need not be packed again, and the volumes in them. Only a help: without it something is packed once more, or a volume is kept
//! as long as any object that nothing refers to.

use std::collections::{BTreeSet, HashSet};
use std::path::{Path, PathBuf};

use super::find_files::unless_absent;
use super::{Error, ObjectId, Result, Store};
use crate::durable::{self, Existing};
use crate::regular;

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct PackedMark {
    /// The pack that `gc` made, by its index's name, if all is as it left it.
    pub best: Option<String>,
    /// Those that were joined in between.
    joined: BTreeSet<String>,
    /// Objects that nothing refers to, and that others are made of.
    pub volumes: HashSet<ObjectId>,
}

/// In the place of the pack that `gc` made.
const NONE: &str = "-";

impl PackedMark {
    fn path(store: &Store) -> PathBuf {
        store.private_dir().join("packed")
    }

    /// What is marked; nothing if there is no such file, or it is damaged.
    pub(super) fn read(store: &Store) -> Result<Self> {
        let path = Self::path(store);
        let mark = unless_absent(regular::read(&path), &path)?.unwrap_or_default();
        Ok(Self::decode(&String::from_utf8_lossy(&mark)))
    }

    pub(super) fn write(&self, store: &Store) -> Result<()> {
        let path = Self::path(store);
        durable::write(&path, self.encode().as_bytes(), Existing::Replace).map_err(Error::io(&path))
    }

    /// After `gc`.
    pub(super) fn after_gc(index: &Path, volumes: &[ObjectId]) -> Self {
        let volumes = volumes.iter().copied().collect();
        Self { best: Some(name_of(index)), joined: BTreeSet::new(), volumes }
    }

    /// After some packs were joined to another.
    pub(super) fn after_joining(
        mut self,
        gone: &[PathBuf],
        new: &Path,
        volumes: &[ObjectId],
    ) -> Self {
        for name in gone.iter().map(|index| name_of(index)) {
            self.joined.remove(&name);
            self.best.take_if(|best| *best == name);
        }
        self.joined.insert(name_of(new));
        self.volumes.extend(volumes);
        self
    }

    /// After some packs were written again without some of their objects, and without these volumes.
    pub(super) fn after_stripping(mut self, gone: &[PathBuf], lost: &HashSet<ObjectId>) -> Self {
        for name in gone.iter().map(|index| name_of(index)) {
            self.joined.remove(&name);
            self.best.take_if(|best| *best == name);
        }
        self.volumes.retain(|id| !lost.contains(id));
        self
    }

    /// With what another store says of packs that were copied from it.
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

    /// Whether a pack need not be packed again between two saves.
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
    fn what_is_written_is_read() {
        let [one, two, three] = ["pack-1.idx", "pack-2.idx", "pack-3.idx"].map(PathBuf::from);
        let volume = |digit: &str| ObjectId::from_hex(digit.repeat(40).as_bytes()).unwrap();
        let after = PackedMark::after_gc(&one, &[volume("1")]);
        assert!(after.is_packed(&one) && !after.is_packed(&two));
        let beside = after.clone().after_joining(&[], &two, &[]);
        assert_eq!(beside.best, after.best, "the pack of gc is there");
        let joined = beside.after_joining(&[one.clone(), two.clone()], &three, &[volume("2")]);
        assert_eq!((joined.best.as_ref(), joined.volumes.len()), (None, 2));
        assert!(joined.is_packed(&three) && !joined.is_packed(&one) && !joined.is_packed(&two));
        for mark in [PackedMark::default(), after, joined] {
            assert_eq!(PackedMark::decode(&mark.encode()), mark);
        }
        assert_eq!(PackedMark::decode(""), PackedMark::default());
    }

    #[test]
    fn stripping_forgets_only_the_packs_and_volumes_that_are_gone() {
        let [one, two, three] = ["pack-1.idx", "pack-2.idx", "pack-3.idx"].map(PathBuf::from);
        let [stays, goes] =
            ["1", "2"].map(|d| ObjectId::from_hex(d.repeat(40).as_bytes()).unwrap());
        let mark = PackedMark::after_gc(&one, &[stays]).after_joining(&[], &two, &[goes]);
        let mark = mark.after_joining(&[], &three, &[]);
        let mark = mark.after_stripping(&[one.clone(), two.clone()], &HashSet::from([goes]));
        assert!(!mark.is_packed(&one) && !mark.is_packed(&two) && mark.is_packed(&three));
        assert_eq!(mark.volumes.into_iter().collect::<Vec<_>>(), [stays]);
    }
}
