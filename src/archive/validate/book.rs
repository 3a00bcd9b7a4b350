//! Rebuilds and hashes lorebooks. The entries of the last lorebook are cached, because the next
//! lorebook usually differs in one or two entries.

use std::collections::HashMap;
use std::rc::Rc;

use super::needed::needed;
use crate::archive::cut_file::Filled;
use crate::archive::layout::{self, Layout, LayoutNotes};
use crate::archive::problem::Problem;
use crate::archive::{Blake3, Result};
use crate::store::ObjectId;

#[derive(Default)]
pub(super) struct BookFacts {
    /// Length and hash of the lorebook; `None` if the lorebook is too long or could not be rebuilt.
    pub whole: Option<(u64, Blake3)>,
    pub noticed: LayoutNotes,
}

#[derive(Default)]
pub(super) struct Books {
    known: HashMap<ObjectId, Rc<BookFacts>>,
    entries: HashMap<ObjectId, Rc<[u8]>>,
}

impl Books {
    /// Rebuilds the lorebook in this folder, up to `longest` bytes.
    pub(super) fn read(
        &mut self,
        layout: &Layout<'_>,
        name: &str,
        folder: ObjectId,
        longest: u64,
    ) -> Result<Rc<BookFacts>> {
        if let Some(known) = self.known.get(&folder) {
            return Ok(Rc::clone(known));
        }
        let mut layout = Layout::new(layout.reader);
        let filled = self.put_together(&mut layout, name, folder, longest);
        let mut facts = BookFacts { whole: None, noticed: layout.notes };
        let problems = &mut facts.noticed.problems;
        let filled = needed(filled, problems)?.flatten();
        let was_too_long = matches!(filled, Some(Filled::TooLong));
        match filled {
            Some(Filled::Bytes(bytes)) => {
                facts.whole = Some((bytes.len() as u64, Blake3::of(&bytes)));
            }
            Some(Filled::Bad(why)) => problems.push(Problem::Broken { why }),
            Some(Filled::TooLong) | None => {}
        }
        let facts = Rc::new(facts);
        // A lorebook that was too long is not cached, because another manifest may state a greater
        // length.
        if !was_too_long {
            self.known.insert(folder, Rc::clone(&facts));
        }
        Ok(facts)
    }

    fn put_together(
        &mut self,
        layout: &mut Layout<'_>,
        name: &str,
        folder: ObjectId,
        longest: u64,
    ) -> Result<Option<Filled>> {
        let path = format!("lorebooks/{name}/");
        let Some(book) = layout.cut_file(folder, &path, layout::BOOK)? else { return Ok(None) };
        let reader = layout.reader;
        let mut before = std::mem::take(&mut self.entries);
        let read = |id| {
            let known = self.entries.get(&id).cloned().or_else(|| before.remove(&id));
            let entry = match known {
                Some(known) => known,
                None => reader.blob(id)?.into(),
            };
            self.entries.insert(id, Rc::clone(&entry));
            Ok(entry)
        };
        book.fill_book(layout, longest, read).map(Some)
    }
}
