//! A file that parts were cut out of, a lorebook or a text of a card: how its parts are put back.

use std::collections::HashSet;
use std::fmt::Display;

use super::Result;
use super::layout::{CutFile, Noticed};
use super::part_names::entry_file;
use crate::st;
use crate::store::{self, ObjectId, Reader};

/// What became of putting a file together.
pub(super) enum Filled {
    Bytes(Vec<u8>),
    TooLong,
    /// It is not the file of these parts, and why.
    Bad(String),
}

impl CutFile {
    /// Puts the entries back into a lorebook, which may be no longer than `longest`. Entries that it does not name are noted.
    pub(super) fn fill_book<B: AsRef<[u8]>>(
        &self,
        reader: &Reader,
        longest: u64,
        read: impl FnMut(ObjectId) -> store::Result<B>,
        noticed: &mut Noticed,
    ) -> Result<Filled> {
        let fill = |book: &[u8], take: &mut dyn FnMut(String) -> Option<B>| {
            st::fill(book, |key| take(entry_file(key)))
        };
        Ok(match self.fill(reader, &mut { longest }, read, fill, noticed)? {
            Filled::Bytes(book) if book.len() as u64 > longest => Filled::TooLong,
            filled => filled,
        })
    }

    /// Puts the parts back with `fill`, which takes each by the name of its file. All of them may be no longer than `room`: a file that names one long part very often must
    /// not take all memory.
    pub(super) fn fill<B: AsRef<[u8]>, E: Display>(
        &self,
        reader: &Reader,
        room: &mut u64,
        mut read: impl FnMut(ObjectId) -> store::Result<B>,
        fill: impl FnOnce(&[u8], &mut dyn FnMut(String) -> Option<B>) -> std::result::Result<Vec<u8>, E>,
        noticed: &mut Noticed,
    ) -> Result<Filled> {
        let file = reader.blob(self.file)?;
        if self.parts.is_empty() {
            return Ok(Filled::Bytes(file));
        }
        let (mut used, mut failed, mut is_too_long) = (HashSet::new(), None, false);
        let filled = fill(&file, &mut |name| {
            let id = *self.parts.get(&name)?;
            used.insert(name);
            let part = read(id).map_err(|error| failed = Some(error)).ok()?;
            let left = room.checked_sub(part.as_ref().len() as u64);
            is_too_long |= left.is_none();
            *room = left?;
            Some(part)
        });
        match (filled, failed) {
            (_, Some(error)) => Err(error.into()),
            _ if is_too_long => Ok(Filled::TooLong),
            (Err(error), None) => Ok(Filled::Bad(error.to_string())),
            (Ok(bytes), None) => {
                for (name, id) in self.parts.iter().filter(|(name, _)| !used.contains(*name)) {
                    noticed.unused(format!("{}{name}", self.folder), *id);
                }
                Ok(Filled::Bytes(bytes))
            }
        }
    }
}
