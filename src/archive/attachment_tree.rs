//! Attachments of a chat in the tree of its snapshot: `attachments/list.json`, and one blob for
//! each attachment.

use std::collections::HashSet;
use std::collections::hash_map::{Entry, HashMap};

use serde::{Deserialize, Serialize};

use super::layout::{ATTACHED, Layout};
use super::part_names::attachment_file;
use super::problem::{AttachmentLoss, LossCause, Problem};
use super::{Blake3, Result};
use crate::st::LibraryPath;
use crate::store::{Kind, Loss, Mode, ObjectId, PackWriter, Reader, TreeEntry, unless_lost};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attachment {
    pub path: LibraryPath,
    pub bytes: u64,
    pub blake3: Blake3,
    /// `None` if `list.json` names the attachment but the tree does not contain its blob.
    pub blob: Option<ObjectId>,
    pub lost_folder: Option<ObjectId>,
}

impl Attachment {
    pub fn read(&self, reader: &Reader) -> Result<std::result::Result<Vec<u8>, AttachmentLoss>> {
        let Some(blob) = self.blob else { return Ok(Err(self.not_stored())) };
        match reader.blob(blob) {
            Ok(bytes) if self.is_of((bytes.len() as u64, Blake3::of(&bytes))) => Ok(Ok(bytes)),
            Ok(_) => Ok(Err(self.differs())),
            Err(error) if error.is_loss() => Ok(Err(self.unreadable(blob, error.to_string()))),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns why the attachment cannot be restored, or `None` if it can. Reads only kind and
    /// length of the blob, not its content.
    pub fn check_headers(&self, reader: &Reader) -> Result<Option<AttachmentLoss>> {
        let Some(blob) = self.blob else { return Ok(Some(self.not_stored())) };
        Ok(match reader.look(blob)? {
            Some((Kind::Blob, length)) if length == self.bytes => None,
            Some((Kind::Blob, _)) => Some(self.differs()),
            _ => Some(self.unreadable(blob, format!("object {blob} is missing or damaged"))),
        })
    }

    fn is_of(&self, found: (u64, Blake3)) -> bool {
        found == (self.bytes, self.blake3)
    }

    fn loss(&self, why: impl Into<String>, object: Option<(ObjectId, Kind)>) -> AttachmentLoss {
        let path = Some(self.path.clone());
        AttachmentLoss { path, cause: LossCause::Lost, why: why.into(), object }
    }

    fn not_stored(&self) -> AttachmentLoss {
        match self.lost_folder {
            Some(id) => self.loss(
                format!(
                    "object {id}, the folder of the snapshot's attachments, is missing or damaged"
                ),
                Some((id, Kind::Tree)),
            ),
            None => self.loss("the snapshot lists it but does not contain it", None),
        }
    }

    fn differs(&self) -> AttachmentLoss {
        self.loss("the stored file differs in length or BLAKE3 from the snapshot's list", None)
    }

    fn unreadable(&self, blob: ObjectId, why: String) -> AttachmentLoss {
        self.loss(why, Some((blob, Kind::Blob)))
    }
}

/// The attachments of a snapshot, as its manifest describes them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttachmentsRecord {
    /// Number of attachments.
    pub files: u64,
    /// Their total length.
    pub bytes: u64,
    /// Hash of their list.
    pub blake3: Blake3,
}

#[derive(Serialize, Deserialize)]
struct ListedAttachment {
    path: LibraryPath,
    bytes: u64,
    blake3: Blake3,
}

fn list(attachments: &[Attachment]) -> Vec<u8> {
    let line = |attachment: &Attachment| {
        let Attachment { path, bytes, blake3, .. } = attachment.clone();
        serde_json::to_string(&ListedAttachment { path, bytes, blake3 }).unwrap_or_default()
    };
    let lines: Vec<_> = attachments.iter().map(line).collect();
    format!("[\n{}\n]\n", lines.join(",\n")).into_bytes()
}

pub(super) fn record(attachments: &[Attachment]) -> AttachmentsRecord {
    AttachmentsRecord {
        files: attachments.len() as u64,
        bytes: total(attachments.iter().map(|attachment| attachment.bytes)),
        blake3: Blake3::of(&list(attachments)),
    }
}

/// Adds lengths. The sum saturates, because the lengths in a forged list could overflow it.
fn total(bytes: impl Iterator<Item = u64>) -> u64 {
    bytes.fold(0, u64::saturating_add)
}

/// Adds `list.json` to the pack, and returns the tree of `attachments/`. The blobs of the
/// attachments must already be in the store or in the pack.
pub(super) fn write(attachments: &[Attachment], pack: &mut PackWriter) -> Result<ObjectId> {
    let list = TreeEntry::blob("list.json", pack.add(Kind::Blob, &list(attachments))?);
    let files: Vec<_> = attachments
        .iter()
        .filter_map(|attachment| {
            Some(TreeEntry::blob(attachment_file(&attachment.path), attachment.blob?))
        })
        .collect();
    let files = pack.add_tree(&files)?;
    let folder = [list, TreeEntry::tree("files", files)];
    Ok(pack.add_tree(&folder)?)
}

/// Reads the list of attachments without reading their blobs. `folder` is the tree of
/// `attachments/`, and `record` the manifest's record of it.
pub(super) fn read(
    layout: &mut Layout<'_>,
    folder: Option<ObjectId>,
    record: Option<&AttachmentsRecord>,
) -> Result<Vec<Attachment>> {
    let (folder, record) = match (folder, record) {
        (Some(folder), Some(record)) => (folder, record),
        (None, Some(_)) => return lose_all(layout, "it has no attachments", None),
        (Some(folder), None) => {
            layout.notes.extra("attachments", folder, Mode::Folder);
            return Ok(Vec::new());
        }
        (None, None) => return Ok(Vec::new()),
    };
    let found = match layout.attachments(folder) {
        Err(error) if error.is_loss() => {
            return lose_all(layout, error.to_string(), Some((folder, Kind::Tree)));
        }
        found => found?,
    };
    let Some(list) = found.file else {
        return lose_all(layout, "it has no attachments/list.json", None);
    };
    let bytes = match layout.reader.blob(list) {
        Err(error) if error.is_loss() => {
            return lose_all(layout, error.to_string(), Some((list, Kind::Blob)));
        }
        bytes => bytes?,
    };
    if Blake3::of(&bytes) != record.blake3 {
        let why = "attachments/list.json differs in BLAKE3 from the manifest";
        return lose_all(layout, why, None);
    }
    let Ok(listed) = serde_json::from_slice::<Vec<ListedAttachment>>(&bytes) else {
        return lose_all(layout, "attachments/list.json is not a list of attachments", None);
    };
    let stated = (listed.len() as u64, total(listed.iter().map(|listed| listed.bytes)));
    if stated != (record.files, record.bytes) {
        layout.notes.problems.push(Problem::AttachmentTotals);
    }
    let (mut stored, mut lost_folder) = (HashMap::new(), None);
    if let Some(files) = found.folder {
        match unless_lost(layout.named_files(files, ATTACHED))? {
            Some(found) => stored = found,
            None => lost_folder = Some(files),
        }
    }
    let mut attachments: Vec<Attachment> = Vec::with_capacity(listed.len());
    let (mut paths, mut used) = (HashSet::new(), HashSet::new());
    for ListedAttachment { path, bytes, blake3 } in listed {
        if crate::st::belongs_to_stvc(&path) {
            used.insert(attachment_file(&path));
            layout.notes.problems.lose_attachment(AttachmentLoss {
                path: Some(path),
                cause: LossCause::Name,
                why: "its name is reserved for stvc, so no command writes it".into(),
                object: None,
            });
            continue;
        }
        // A forged list must not make stvc write outside the attachment folders, or write a file
        // twice.
        if !crate::st::is_attachment(&path) || !paths.insert(path.clone()) {
            layout.notes.problems.push(Problem::BadAttachment { path: path.to_string() });
            continue;
        }
        let file = attachment_file(&path);
        let blob = stored.get(&file).copied();
        used.insert(file);
        attachments.push(Attachment { path, bytes, blake3, blob, lost_folder });
    }
    for (file, id) in stored.into_iter().filter(|(file, _)| !used.contains(file)) {
        layout.notes.unused(format!("{ATTACHED}{file}"), id);
    }
    Ok(attachments)
}

/// Adds the problem that the list of attachments is lost, and with it all attachments.
fn lose_all(
    layout: &mut Layout<'_>,
    why: impl Into<String>,
    object: Option<(ObjectId, Kind)>,
) -> Result<Vec<Attachment>> {
    let loss = AttachmentLoss { path: None, cause: LossCause::Lost, why: why.into(), object };
    layout.notes.problems.lose_attachment(loss);
    Ok(Vec::new())
}

/// Verifies the content of attachments. Each blob is read once, even if many snapshots contain it.
#[derive(Default)]
pub(super) struct Verified(HashMap<ObjectId, std::result::Result<(u64, Blake3), String>>);

impl Verified {
    /// Returns why an attachment cannot be restored, or `None` if it can.
    pub(super) fn loss(
        &mut self,
        reader: &Reader,
        attachment: &Attachment,
    ) -> Result<Option<AttachmentLoss>> {
        let Some(blob) = attachment.blob else { return Ok(Some(attachment.not_stored())) };
        let found = match self.0.entry(blob) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(unknown) => unknown.insert(match reader.blob(blob) {
                Ok(bytes) => Ok((bytes.len() as u64, Blake3::of(&bytes))),
                Err(error) if error.is_loss() => Err(error.to_string()),
                Err(error) => return Err(error.into()),
            }),
        };
        Ok(match found {
            Ok(found) if attachment.is_of(*found) => None,
            Ok(_) => Some(attachment.differs()),
            Err(why) => Some(attachment.unreadable(blob, why.clone())),
        })
    }
}
