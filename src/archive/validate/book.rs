//! A lorebook, put together only to be hashed. What was read of the last one is kept: the next differs in an entry or two.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use super::needed::needed;
use crate::archive::layout::{self, Noticed};
use crate::archive::part_names::entry_file;
use crate::archive::problem::Problem;
use crate::archive::{Blake3, Error, Result};
use crate::st;
use crate::store::{ObjectId, Reader};

#[derive(Default)]
pub(super) struct BookFacts {
    /// Its length and hash; none if it could not be put together, or is longer than it may be.
    pub whole: Option<(u64, Blake3)>,
    pub noticed: Noticed,
}

/// Knows what the lorebooks that it saw hold, and the entries of the last one.
#[derive(Default)]
pub(super) struct Books {
    known: HashMap<ObjectId, Rc<BookFacts>>,
    entries: HashMap<ObjectId, Rc<Vec<u8>>>,
}

impl Books {
    /// What the lorebook in this folder, called `name` there, holds. It may be no longer than `longest`.
    pub(super) fn read(
        &mut self,
        reader: &Reader,
        name: &str,
        folder: ObjectId,
        longest: u64,
    ) -> Result<Rc<BookFacts>> {
        if let Some(known) = self.known.get(&folder) {
            return Ok(Rc::clone(known));
        }
        let mut facts = BookFacts::default();
        let whole = self.put_together(reader, name, folder, longest, &mut facts.noticed);
        let whole = needed(whole, &mut facts.noticed.problems)?;
        let was_too_long = matches!(whole, Some(Whole::TooLong));
        if let Some(Whole::Bytes(bytes)) = whole {
            facts.whole = Some((bytes.len() as u64, Blake3::of(&bytes)));
        }
        let facts = Rc::new(facts);
        // Another manifest may allow more.
        if !was_too_long {
            self.known.insert(folder, Rc::clone(&facts));
        }
        Ok(facts)
    }

    fn put_together(
        &mut self,
        reader: &Reader,
        name: &str,
        folder: ObjectId,
        longest: u64,
        noticed: &mut Noticed,
    ) -> Result<Whole> {
        let (book, entries) = layout::book(reader, name, folder, noticed)?;
        let Some(book) = book else {
            let path = format!("lorebooks/{name}/book.json");
            noticed.problems.push(Problem::NoPart { path });
            return Ok(Whole::Nothing);
        };
        let book = reader.blob(book)?;
        let entries = match entries {
            Some(entries) => layout::entries(reader, name, entries, noticed)?,
            None => HashMap::new(),
        };
        if entries.is_empty() {
            return Ok(if book.len() as u64 > longest {
                Whole::TooLong
            } else {
                Whole::Bytes(book)
            });
        }
        let mut before = std::mem::take(&mut self.entries);
        let mut used = HashSet::new();
        let mut failed: Option<Error> = None;
        // A book that names one large entry very often must not take all memory.
        let (mut room, mut too_long) = (longest, false);
        let filled = st::fill(&book, |key| {
            let file = entry_file(key);
            let id = entries.get(&file)?;
            used.insert(file);
            let known = self.entries.get(id).cloned().or_else(|| before.remove(id));
            let entry = match known {
                Some(known) => known,
                None => {
                    let read = reader.blob(*id).map_err(|error| failed = Some(error.into()));
                    Rc::new(read.ok()?)
                }
            };
            self.entries.insert(*id, Rc::clone(&entry));
            match room.checked_sub(entry.len() as u64) {
                Some(left) => room = left,
                None => {
                    too_long = true;
                    return None;
                }
            }
            Some(Shared(entry))
        });
        for (file, id) in entries.iter().filter(|(file, _)| !used.contains(*file)) {
            // Those that come after what is wrong were not asked for.
            if filled.is_ok() {
                noticed.unused_entry(name, file, *id);
            }
        }
        match (filled, failed) {
            (_, Some(error)) => Err(error),
            _ if too_long => Ok(Whole::TooLong),
            (Err(error), None) => {
                noticed.problems.push(Problem::BadBook { why: error.to_string() });
                Ok(Whole::Nothing)
            }
            (Ok(bytes), None) => Ok(Whole::Bytes(bytes)),
        }
    }
}

enum Whole {
    Bytes(Vec<u8>),
    TooLong,
    Nothing,
}

/// An entry that is kept for the next book, too.
struct Shared(Rc<Vec<u8>>);

impl AsRef<[u8]> for Shared {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}
