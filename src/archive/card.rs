//! A character's card in a tree: the picture, and beside it what it says.

use std::collections::{HashMap, HashSet};

use super::Result;
use super::layout::{self, Noticed};
use super::part_names::{card_text_folder, string_file};
use super::problem::Problem;
use crate::st::{CutCard, card_keywords, cut_card, cut_text, fill_card, fill_text};
use crate::store::{Kind, ObjectId, PackWriter, Reader, TreeEntry, tree};

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
                strings.push(TreeEntry::blob(string_file(place), pack.add(Kind::Blob, value)?));
            }
            let strings = pack.add(Kind::Tree, &tree::encode(&strings))?;
            parts.push(TreeEntry::tree("strings", strings));
        }
        let parts = pack.add(Kind::Tree, &tree::encode(&parts))?;
        folder.push(TreeEntry::tree(card_text_folder(n, text.keyword), parts));
    }
    Ok(pack.add(Kind::Tree, &tree::encode(&folder))?)
}

/// A card as it is stored.
pub(super) struct StoredCard {
    picture: ObjectId,
    texts: Vec<StoredText>,
}

struct StoredText {
    folder: String,
    text: ObjectId,
    /// By file name; empty for a text that was stored whole.
    strings: HashMap<String, ObjectId>,
}

/// What became of putting it together.
pub(super) enum Filled {
    Bytes(Vec<u8>),
    TooLong,
    Bad(Problem),
}

impl StoredCard {
    /// Read its trees. None if a part is not there, which is noticed.
    pub(super) fn read(
        reader: &Reader,
        folder: ObjectId,
        noticed: &mut Noticed,
    ) -> Result<Option<Self>> {
        let (picture, folders) = layout::card(reader, folder, noticed)?;
        let missing = |path: String| Problem::NoPart { path };
        let Some(picture) = picture else {
            noticed.problems.push(missing("card/picture.png".into()));
            return Ok(None);
        };
        let mut texts = Vec::with_capacity(folders.len());
        for (folder, id) in folders {
            let (text, strings) = layout::card_text(reader, &folder, id, noticed)?;
            let Some(text) = text else {
                noticed.problems.push(missing(format!("card/{folder}/text.json")));
                return Ok(None);
            };
            let strings = match strings {
                Some(strings) => layout::strings(reader, &folder, strings, noticed)?,
                None => HashMap::new(),
            };
            texts.push(StoredText { folder, text, strings });
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
        // A text that names one long string very often must not take all memory; and base64 makes it longer still.
        let mut room = longest;
        for stored in &self.texts {
            let text = reader.blob(stored.text)?;
            if stored.strings.is_empty() {
                texts.push(text);
                continue;
            }
            let mut used = HashSet::new();
            let mut failed = None;
            let mut too_long = false;
            let filled = fill_text(&text, |place| {
                let file = string_file(place);
                let id = stored.strings.get(&file)?;
                used.insert(file);
                let string = reader.blob(*id).map_err(|error| failed = Some(error)).ok()?;
                match room.checked_sub(string.len() as u64) {
                    Some(left) => room = left,
                    None => {
                        too_long = true;
                        return None;
                    }
                }
                Some(string)
            });
            match (filled, failed) {
                (_, Some(error)) => return Err(error.into()),
                _ if too_long => return Ok(Filled::TooLong),
                (Err(error), None) => {
                    return Ok(Filled::Bad(Problem::BadCard { why: error.to_string() }));
                }
                (Ok(text), None) => texts.push(text),
            }
            for (file, id) in stored.strings.iter().filter(|(file, _)| !used.contains(*file)) {
                noticed.unused_string(&stored.folder, file, *id);
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
            Err(error) => Filled::Bad(Problem::BadCard { why: error.to_string() }),
        })
    }
}
