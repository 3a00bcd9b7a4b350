//! The files that a chat names, in its snapshot's tree: each a blob, stored once however many snapshots have it, and a list of them that changes only when they do.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use super::layout::{self, Noticed};
use super::part_names::attachment_file;
use super::problem::Problem;
use super::{Blake3, Result};
use crate::st::LibraryPath;
use crate::store::{Kind, ObjectId, PackWriter, Reader, TreeEntry, tree, unless_lost};

/// One of them, and where it is in the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attachment {
    pub path: LibraryPath,
    pub bytes: u64,
    pub blake3: Blake3,
    pub blob: ObjectId,
}

/// What the manifest says of all of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttachmentsRecord {
    /// How many.
    pub files: u64,
    /// How long they are together.
    pub bytes: u64,
    /// The hash of the list.
    pub blake3: Blake3,
}

/// One in the list.
#[derive(Serialize, Deserialize)]
struct Listed {
    path: LibraryPath,
    bytes: u64,
    blake3: Blake3,
}

/// The list, by path, one a line.
fn list(attachments: &[Attachment]) -> Vec<u8> {
    let line = |attachment: &Attachment| {
        let Attachment { path, bytes, blake3, .. } = attachment.clone();
        serde_json::to_string(&Listed { path, bytes, blake3 }).unwrap_or_default()
    };
    let lines: Vec<_> = attachments.iter().map(line).collect();
    format!("[\n{}\n]\n", lines.join(",\n")).into_bytes()
}

pub(super) fn record(attachments: &[Attachment]) -> AttachmentsRecord {
    AttachmentsRecord {
        files: attachments.len() as u64,
        bytes: attachments.iter().map(|attachment| attachment.bytes).sum(),
        blake3: Blake3::of(&list(attachments)),
    }
}

/// Add the list; the folder with it and the files, which are in the store or in the pack.
pub(super) fn write(attachments: &[Attachment], pack: &mut PackWriter) -> Result<ObjectId> {
    let list = TreeEntry::blob("list.json", pack.add(Kind::Blob, &list(attachments))?);
    let files: Vec<_> = attachments
        .iter()
        .map(|attachment| TreeEntry::blob(attachment_file(&attachment.path), attachment.blob))
        .collect();
    let files = pack.add(Kind::Tree, &tree::encode(&files))?;
    let folder = [list, TreeEntry::tree("files", files)];
    Ok(pack.add(Kind::Tree, &tree::encode(&folder))?)
}

/// Read them from a snapshot's folder. What is wrong is noticed: a list that is not the one of the manifest, files that it does not name, one that is not there.
pub(super) fn read(
    reader: &Reader,
    folder: ObjectId,
    record: &AttachmentsRecord,
    noticed: &mut Noticed,
) -> Result<Vec<Attachment>> {
    let bad = |why: &str| Problem::BadAttachments { why: why.to_owned() };
    // That one is lost must not keep the chat from coming back.
    let found = unless_lost(layout::attachments(reader, folder, noticed))?;
    let (listed, files) = found.unwrap_or_default();
    let listed = listed.map(|listed| unless_lost(reader.blob(listed))).transpose()?.flatten();
    let Some(bytes) = listed else {
        noticed.problems.push(bad("the list of attachments is not there"));
        return Ok(Vec::new());
    };
    if Blake3::of(&bytes) != record.blake3 {
        noticed.problems.push(bad("the list of attachments is not the one that was stored"));
        return Ok(Vec::new());
    }
    let Ok(listed) = serde_json::from_slice::<Vec<Listed>>(&bytes) else {
        noticed.problems.push(bad("the list of attachments cannot be read"));
        return Ok(Vec::new());
    };
    let mut files: HashMap<String, ObjectId> = match files {
        Some(files) => {
            unless_lost(layout::attachment_files(reader, files, noticed))?.unwrap_or_default()
        }
        None => HashMap::new(),
    };
    let mut attachments = Vec::with_capacity(listed.len());
    for Listed { path, bytes, blake3 } in listed {
        if !crate::st::is_attachment(&path) {
            noticed.problems.push(bad(&format!("{path} is no place for an attachment")));
            continue;
        }
        match files.remove(&attachment_file(&path)) {
            Some(blob) => attachments.push(Attachment { path, bytes, blake3, blob }),
            None => noticed.problems.push(bad(&format!("the attachment {path} is not there"))),
        }
    }
    for (file, id) in files {
        noticed.unused_attachment(&file, id);
    }
    let all = self::record(&attachments);
    if noticed.problems.list().is_empty() && (all.files, all.bytes) != (record.files, record.bytes)
    {
        noticed.problems.push(bad("their number or length is not what the manifest says"));
    }
    Ok(attachments)
}

/// Whether the bytes of an attachment are there and what they were; why not, if not. Each is looked at once.
#[derive(Default)]
pub(super) struct Looked(HashMap<ObjectId, Option<(u64, Blake3)>>);

impl Looked {
    pub(super) fn problem(
        &mut self,
        reader: &Reader,
        attachment: &Attachment,
    ) -> Result<Option<Problem>> {
        let found = match self.0.get(&attachment.blob) {
            Some(found) => *found,
            None => {
                let bytes = unless_lost(reader.blob(attachment.blob))?;
                let found = bytes.map(|bytes| (bytes.len() as u64, Blake3::of(&bytes)));
                self.0.insert(attachment.blob, found);
                found
            }
        };
        let is_sound = found == Some((attachment.bytes, attachment.blake3));
        let why = format!("the attachment {} is lost or damaged", attachment.path);
        Ok((!is_sound).then_some(Problem::BadAttachments { why }))
    }
}
