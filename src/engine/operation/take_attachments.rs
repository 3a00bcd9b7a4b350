//! Stores the attachments of a chat in its snapshots. Attachments of the previous snapshot are
//! reused. Other attachments are read from the library, up to a size limit.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::path::Path;

use super::missing_attachments::MissingAttachments;
use super::{AttachmentReader, Operation, attachment_limit};
use crate::archive::{Attachment, Blake3, State, Tree};
use crate::engine::Result;
use crate::rules::{Code, Finding};
use crate::st::{self, LibraryPath};
use crate::store::{Kind, ObjectId, Reader, unless_lost};

impl Operation<'_> {
    /// Returns the attachments of a state, and stores new ones. `previous` is the tree of a similar
    /// snapshot, whose attachments are reused.
    pub(crate) fn attachments_of(
        &mut self,
        state: &State<'_>,
        previous: Option<ObjectId>,
        reader: &Reader,
    ) -> Result<Vec<Attachment>> {
        let wanted = st::attachments(&state.chat, state.files.metadata(&state.chat));
        self.attached(wanted, previous, reader)
    }

    pub(super) fn attached(
        &mut self,
        wanted: BTreeSet<LibraryPath>,
        previous: Option<ObjectId>,
        reader: &Reader,
    ) -> Result<Vec<Attachment>> {
        if wanted.is_empty() {
            return Ok(Vec::new());
        }
        let before = previous.map(|tree| unless_lost(Tree::attachments_of(reader, tree)));
        let before = before.transpose()?.flatten().unwrap_or_default();
        let before: HashMap<_, _> =
            before.into_iter().map(|attachment| (attachment.path.clone(), attachment)).collect();
        let mut attached = Vec::new();
        for path in wanted {
            if !st::is_attachment(&path) {
                self.attachments.refused.insert(path);
                continue;
            }
            match before.get(&path).filter(|known| known.blob.is_some()) {
                // SillyTavern never reuses the name of an attachment, so the content is unchanged.
                Some(known) => {
                    self.note_own(known)?;
                    attached.push(self.repair_attachment(known, reader)?);
                }
                None => attached.extend(self.attachment(&path)?),
            }
        }
        Ok(attached)
    }

    /// Records that the library has an attachment of an uncommon file type, so that a later restore
    /// does not refuse the attachment.
    fn note_own(&mut self, attachment: &Attachment) -> Result<()> {
        let Some(blob) = attachment.blob.filter(|_| !st::is_common_kind(&attachment.path)) else {
            return Ok(());
        };
        let known = match &mut self.attachments.known_own {
            Some(known) => known,
            unread => unread.insert(self.store.own_attachments()?),
        };
        if !known.contains(&blob)
            && !self.attachments.own.contains(&blob)
            && self.unchanged_in_library(attachment).is_some()
        {
            self.attachments.own.insert(blob);
        }
        Ok(())
    }

    pub(crate) fn want_attachments(&mut self, missing: &MissingAttachments) {
        self.attachments.own.extend(&missing.uncommon);
    }

    /// Stores a lost attachment again if the file in the library is unchanged. Looks only for the
    /// blob's header to detect a loss, and reads the content only if the store is known to be
    /// damaged.
    fn repair_attachment(&mut self, known: &Attachment, reader: &Reader) -> Result<Attachment> {
        let is_lost = if self.pack.distrusts_store() {
            known.read(reader)?.is_err()
        } else {
            known.check_headers(reader)?.is_some()
        };
        let mut mended = known.clone();
        if is_lost && let Some(bytes) = self.unchanged_in_library(known) {
            mended.blob = Some(self.pack.add(Kind::Blob, &bytes)?);
        }
        Ok(mended)
    }

    fn library_root(&mut self) -> Option<&Path> {
        let library = || self.workspace.library().ok().map(|library| library.root().to_owned());
        self.attachments.root.get_or_insert_with(library).as_deref()
    }

    /// Returns the bytes of the attachment's file in the library, if the hash is unchanged.
    fn unchanged_in_library(&mut self, attachment: &Attachment) -> Option<Vec<u8>> {
        let bytes = st::read(self.library_root()?, &attachment.path).ok()?;
        (Blake3::of(&bytes) == attachment.blake3).then_some(bytes)
    }

    /// Reads and stores an attachment that the previous snapshot does not have. Returns `None` if
    /// the file is missing, unreadable or too large. Each file is read once per operation.
    fn attachment(&mut self, path: &LibraryPath) -> Result<Option<Attachment>> {
        if let Some(known) = self.attachments.read.get(path) {
            return Ok(known.clone());
        }
        let found = self.read_attachment(path)?;
        self.attachments.read.insert(path.clone(), found.clone());
        Ok(found)
    }

    fn read_attachment(&mut self, path: &LibraryPath) -> Result<Option<Attachment>> {
        let Some(root) = self.library_root().map(Path::to_owned) else { return Ok(None) };
        // `doctor` reports a missing file.
        let found = fs::metadata(path.under(&root));
        let Ok(length) = found.map(|found| found.len()) else { return Ok(None) };
        let room = match self.attachments.room {
            Some(room) => room,
            None => attachment_limit::room(self.store)?,
        };
        self.attachments.room = Some(room);
        if length > room {
            self.attachments.left_out.insert(path.clone(), length);
            return Ok(None);
        }
        let bytes = match st::read(&root, path) {
            Ok(bytes) => bytes,
            Err(error) => {
                self.attachments.unreadable.insert(path.clone(), error.to_string());
                return Ok(None);
            }
        };
        let length = bytes.len() as u64;
        self.attachments.room = Some(room.saturating_sub(length));
        let blob = self.pack.add(Kind::Blob, &bytes)?;
        if !st::is_common_kind(path) {
            self.attachments.own.insert(blob);
        }
        let (path, blake3, blob) = (path.clone(), Blake3::of(&bytes), Some(blob));
        Ok(Some(Attachment { path, bytes: length, blake3, blob, lost_folder: None }))
    }

    pub(crate) fn attachments_left_out(&self) -> Vec<Finding> {
        let AttachmentReader { refused, left_out, unreadable, .. } = &self.attachments;
        let refused = refused.iter().map(|path| {
            let what =
                "a message refers to this file, but its name is reserved for stvc; the chat was stored without it";
            Finding::new(Code::AttachmentRefused, path.as_str(), what)
                .remedy("rename the file and attach it again, if it is yours")
        });
        let unreadable = unreadable.iter().map(|(path, why)| {
            Finding::new(Code::AttachmentsLeftOut, path.as_str(), why)
                .remedy("make the file readable and create a snapshot again: the chat was stored without it")
        });
        refused.chain(attachment_limit::exceeded(left_out)).chain(unreadable).collect()
    }
}
