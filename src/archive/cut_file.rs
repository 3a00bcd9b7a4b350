//! Stores character cards, and rebuilds lorebooks and cards from cut files.
//!
//! A cut file is a file that is stored without its parts, which are separate blobs. The parts are
//! the entries of a lorebook, or the long strings in a text of a card.

use std::collections::HashSet;
use std::fmt::Display;

use super::Result;
use super::layout::{self, CutFile, Layout};
use super::part_names::{card_text_folder, entry_file};
use super::problem::Problem;
use crate::st::{self, CutCard, card_keywords, cut_card, cut_text, fill_card, fill_text};
use crate::store::{self, Kind, ObjectId, PackWriter, TreeEntry};

pub(super) enum Filled {
    Bytes(Vec<u8>),
    TooLong,
    Bad(String),
}

impl CutFile {
    /// Rebuilds a lorebook by inserting its entries. If the lorebook does not refer to an entry,
    /// the entry is noted.
    pub(super) fn fill_book<B: AsRef<[u8]>>(
        &self,
        layout: &mut Layout<'_>,
        longest: u64,
        read: impl FnMut(ObjectId) -> store::Result<B>,
    ) -> Result<Filled> {
        let fill = |book: &[u8], take: &mut dyn FnMut(String) -> Option<B>| {
            st::fill(book, |key| take(entry_file(key)))
        };
        Ok(match self.fill(layout, &mut { longest }, read, fill)? {
            Filled::Bytes(book) if book.len() as u64 > longest => Filled::TooLong,
            filled => filled,
        })
    }

    /// Rebuilds the file with `fill`, which requests each part by its file name. `room` limits the
    /// total length of the inserted parts and is reduced by each of them: a forged file that refers
    /// to one long part many times must not exhaust memory.
    pub(super) fn fill<B: AsRef<[u8]>, E: Display>(
        &self,
        layout: &mut Layout<'_>,
        room: &mut u64,
        mut read: impl FnMut(ObjectId) -> store::Result<B>,
        fill: impl FnOnce(&[u8], &mut dyn FnMut(String) -> Option<B>) -> std::result::Result<Vec<u8>, E>,
    ) -> Result<Filled> {
        let file = layout.reader.blob(self.file)?;
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
                    layout.notes.unused(format!("{}{name}", self.folder), *id);
                }
                Ok(Filled::Bytes(bytes))
            }
        }
    }
}

/// Adds the objects of a card to the pack, and returns the tree of `card/`.
pub(super) fn write_card(bytes: &[u8], pack: &mut PackWriter) -> Result<ObjectId> {
    let CutCard { picture, texts } = cut_card(bytes);
    let mut folder = vec![TreeEntry::blob("picture.png", pack.add(Kind::Blob, &picture)?)];
    for (n, text) in texts.iter().enumerate() {
        let cut = cut_text(&text.text);
        let mut parts = vec![TreeEntry::blob("text.json", pack.add(Kind::Blob, &cut.text)?)];
        if !cut.strings.is_empty() {
            let mut strings = Vec::with_capacity(cut.strings.len());
            for (place, value) in &cut.strings {
                let id = pack.add(Kind::Blob, value)?;
                strings.push(TreeEntry::blob(entry_file(place.as_bytes()), id));
            }
            parts.push(TreeEntry::tree("strings", pack.add_tree(&strings)?));
        }
        let parts = pack.add_tree(&parts)?;
        folder.push(TreeEntry::tree(card_text_folder(n, text.keyword), parts));
    }
    Ok(pack.add_tree(&folder)?)
}

pub(super) struct StoredCard {
    picture: ObjectId,
    texts: Vec<StoredText>,
}

struct StoredText {
    folder: String,
    text: CutFile,
}

impl StoredCard {
    /// Reads the trees of a card. If a required file is missing, returns `None` and adds a problem.
    pub(super) fn read(layout: &mut Layout<'_>, folder: ObjectId) -> Result<Option<Self>> {
        let (picture, folders) = layout.card(folder)?;
        let Some(picture) = picture else {
            layout.notes.missing("card/picture.png");
            return Ok(None);
        };
        let mut texts = Vec::with_capacity(folders.len());
        for (folder, id) in folders {
            match layout.cut_file(id, &format!("card/{folder}/"), layout::CARD_TEXT)? {
                Some(text) => texts.push(StoredText { folder, text }),
                None => return Ok(None),
            }
        }
        Ok(Some(Self { picture, texts }))
    }

    pub(super) fn fill(&self, layout: &mut Layout<'_>, longest: u64) -> Result<Filled> {
        let reader = layout.reader;
        let mut texts = Vec::with_capacity(self.texts.len());
        // The texts alone must not exceed the length of the card, where they are even longer in
        // Base64.
        let mut room = longest;
        for StoredText { text, .. } in &self.texts {
            let fill = |text: &[u8], take: &mut dyn FnMut(String) -> Option<Vec<u8>>| {
                fill_text(text, |place| take(entry_file(place.as_bytes())))
            };
            match text.fill(layout, &mut room, |id| reader.blob(id), fill)? {
                Filled::Bytes(text) => texts.push(text),
                other => return Ok(other),
            }
        }
        let texts: Vec<_> = texts.iter().map(Vec::as_slice).collect();
        let long: u64 = texts.iter().map(|text| text.len() as u64).sum();
        if long > longest {
            return Ok(Filled::TooLong);
        }
        let picture = reader.blob(self.picture)?;
        for (n, (stored, keyword)) in self.texts.iter().zip(card_keywords(&picture)).enumerate() {
            let belongs = card_text_folder(n, keyword);
            if stored.folder != belongs {
                let [path, belongs] = [&stored.folder, &belongs].map(|name| format!("card/{name}"));
                layout.notes.problems.push(Problem::Misplaced { path, belongs });
            }
        }
        Ok(match fill_card(&picture, &texts) {
            Ok(bytes) if bytes.len() as u64 > longest => Filled::TooLong,
            Ok(bytes) => Filled::Bytes(bytes),
            Err(error) => Filled::Bad(error.to_string()),
        })
    }
}
