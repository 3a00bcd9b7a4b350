//! A character's card in a tree: the picture, and beside it what it says.

use super::Result;
use super::cut_file::Filled;
use super::layout::{self, CutFile, Noticed};
use super::part_names::{card_text_folder, entry_file};
use super::problem::Problem;
use crate::st::{CutCard, card_keywords, cut_card, cut_text, fill_card, fill_text};
use crate::store::{Kind, ObjectId, PackWriter, Reader, TreeEntry};

/// Add the objects of a card; its folder.
pub(super) fn write(bytes: &[u8], pack: &mut PackWriter) -> Result<ObjectId> {
    let CutCard { picture, texts } = cut_card(bytes);
    let mut folder = vec![TreeEntry::blob("picture.png", pack.add(Kind::Blob, &picture)?)];
    for (n, text) in texts.iter().enumerate() {
        let cut = cut_text(&text.text);
        let mut parts = vec![TreeEntry::blob("text.json", pack.add(Kind::Blob, &cut.text)?)];
        if !cut.strings.is_empty() {
            let mut strings = Vec::with_capacity(cut.strings.len());
            for (place, value) in &cut.strings {
                strings.push(TreeEntry::blob(
                    entry_file(place.as_bytes()),
                    pack.add(Kind::Blob, value)?,
                ));
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
    /// Read its trees. None if a part is not there, which is noticed.
    pub(super) fn read(
        reader: &Reader,
        folder: ObjectId,
        noticed: &mut Noticed,
    ) -> Result<Option<Self>> {
        let (picture, folders) = layout::card(reader, folder, noticed)?;
        let Some(picture) = picture else {
            noticed.missing("card/picture.png");
            return Ok(None);
        };
        let mut texts = Vec::with_capacity(folders.len());
        for (folder, id) in folders {
            let Some(text) = layout::card_text(reader, &folder, id, noticed)? else {
                return Ok(None);
            };
            texts.push(StoredText { folder, text });
        }
        Ok(Some(Self { picture, texts }))
    }

    /// The file, which may be no longer than `longest`. Strings that no text names are noticed.
    pub(super) fn fill(
        &self,
        reader: &Reader,
        longest: u64,
        noticed: &mut Noticed,
    ) -> Result<Filled> {
        let mut texts = Vec::with_capacity(self.texts.len());
        // Base64 makes the texts longer still.
        let mut room = longest;
        for StoredText { text, .. } in &self.texts {
            let fill = |text: &[u8], take: &mut dyn FnMut(String) -> Option<Vec<u8>>| {
                fill_text(text, |place| take(entry_file(place.as_bytes())))
            };
            match text.fill(reader, &mut room, |id| reader.blob(id), fill, noticed)? {
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
                noticed.problems.push(Problem::Misplaced { path, belongs });
            }
        }
        Ok(match fill_card(&picture, &texts) {
            Ok(bytes) if bytes.len() as u64 > longest => Filled::TooLong,
            Ok(bytes) => Filled::Bytes(bytes),
            Err(error) => Filled::Bad(error.to_string()),
        })
    }
}
