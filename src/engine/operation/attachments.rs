//! The files that a chat names go into its snapshots: those that a snapshot before it has as they are there, others from the library, up to a limit.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use super::Operation;
use super::files::FilePlan;
use crate::archive::{Attachment, AttachmentLoss, Blake3, Snapshot, State, Tree};
use crate::engine::Result;
use crate::engine::configuration::Configuration;
use crate::engine::verdict_findings::LostAttachments;
use crate::history;
use crate::regular;
use crate::rules::{Code, Finding, Level};
use crate::st::{self, LibraryPath};
use crate::store::{Kind, ObjectId, Reader, Store, unless_lost};

/// So much of them is kept, if the configuration says nothing else.
const LIMIT: u64 = 500_000_000;

/// What one command knows of them.
#[derive(Default)]
pub(super) struct Attaching {
    root: Option<Option<PathBuf>>,
    /// How much may still be added.
    room: Option<u64>,
    /// Read in this command.
    read: HashMap<LibraryPath, Option<Attachment>>,
    /// What is too much, and how long it is.
    left_out: BTreeMap<LibraryPath, u64>,
    unreadable: BTreeMap<LibraryPath, String>,
}

impl Operation<'_> {
    /// The attachments of a state. `previous` is a snapshot that shares much with it.
    pub(crate) fn attachments_of(
        &mut self,
        state: &State<'_>,
        previous: Option<ObjectId>,
        reader: &Reader,
    ) -> Result<Vec<Attachment>> {
        let wanted = st::attachments(&state.chat, state.files.metadata(&state.chat));
        self.attached(wanted, previous, reader)
    }

    /// The same, for a state that names these files.
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
            match before.get(&path).filter(|known| known.blob.is_some()) {
                // SillyTavern never writes another file under the name of one.
                Some(known) => attached.push(self.mend_attachment(known, reader)?),
                None => attached.extend(self.attachment(&path)?),
            }
        }
        Ok(attached)
    }

    /// Stores an attachment again that is lost in the store, if the library's file still is what it was. Only a store that is
    /// known to be damaged is read for that.
    fn mend_attachment(&mut self, known: &Attachment, reader: &Reader) -> Result<Attachment> {
        let is_lost = match self.pack.distrusts_store() {
            true => known.read(reader)?.is_err(),
            false => known.glance(reader)?.is_some(),
        };
        if !is_lost {
            return Ok(known.clone());
        }
        let library = self.workspace.library().ok();
        let file = library.map(|library| known.path.under(library.root()));
        let bytes = file.and_then(|file| regular::read(&file).ok());
        let mut mended = known.clone();
        if let Some(bytes) = bytes.filter(|bytes| Blake3::of(bytes) == known.blake3) {
            mended.blob = Some(self.pack.add(Kind::Blob, &bytes)?);
        }
        Ok(mended)
    }

    /// One that no snapshot before has.
    fn attachment(&mut self, path: &LibraryPath) -> Result<Option<Attachment>> {
        if let Some(known) = self.attachments.read.get(path) {
            return Ok(known.clone());
        }
        let found = self.read_attachment(path)?;
        self.attachments.read.insert(path.clone(), found.clone());
        Ok(found)
    }

    fn read_attachment(&mut self, path: &LibraryPath) -> Result<Option<Attachment>> {
        let workspace = self.workspace;
        let library = || workspace.library().ok().map(|library| library.root().to_owned());
        let root = self.attachments.root.get_or_insert_with(library);
        let Some(file) = root.as_ref().map(|root| path.under(root)) else { return Ok(None) };
        // Gone: `doctor` tells of it.
        let Ok(length) = fs::metadata(&file).map(|found| found.len()) else { return Ok(None) };
        let room = self.room()?;
        if length > room {
            self.attachments.left_out.insert(path.clone(), length);
            return Ok(None);
        }
        let bytes = match regular::read(&file) {
            Ok(bytes) => bytes,
            Err(error) => {
                self.attachments.unreadable.insert(path.clone(), error.to_string());
                return Ok(None);
            }
        };
        self.attachments.room = Some(room.saturating_sub(bytes.len() as u64));
        let blob = self.pack.add(Kind::Blob, &bytes)?;
        let (path, blake3) = (path.clone(), Blake3::of(&bytes));
        let (length, blob) = (bytes.len() as u64, Some(blob));
        Ok(Some(Attachment { path, bytes: length, blake3, blob, lost_folder: None }))
    }

    /// How much may still be added to what the newest snapshots have.
    fn room(&mut self) -> Result<u64> {
        if let Some(room) = self.attachments.room {
            return Ok(room);
        }
        let limit = Configuration::or_defaults(self.store).attachments.unwrap_or(LIMIT);
        let room = limit.saturating_sub(stored_bytes(self.store)?);
        self.attachments.room = Some(room);
        Ok(room)
    }

    /// What was left out.
    pub(crate) fn attachments_left_out(&self) -> Vec<Finding> {
        let Attaching { left_out, unreadable, .. } = &self.attachments;
        let mut findings = Vec::new();
        if let Some((first, _)) = left_out.first_key_value() {
            let (many, bytes) = (left_out.len(), left_out.values().sum::<u64>());
            let message = format!(
                "{many} of the files that messages name are not kept, {:.1} MB: they are more than the limit",
                bytes as f64 / 1e6
            );
            let finding =
                Finding::new(Code::AttachmentsLeftOut, Level::Warning, first.as_str(), message);
            findings.push(finding.remedy("`stvc config attachments 2000000000` sets the limit, in bytes; the next snapshot of the chat has them then"));
        }
        for (path, why) in unreadable {
            let finding =
                Finding::new(Code::AttachmentsLeftOut, Level::Warning, path.as_str(), why);
            findings.push(finding.remedy("the chat was stored without it"));
        }
        findings
    }
}

/// How long all are together that the newest snapshots have, each counted once.
pub(crate) fn stored_bytes(store: &Store) -> Result<u64> {
    let reader = store.reader();
    let mut known = HashSet::new();
    let mut bytes = 0;
    for head in history::heads(store)?.iter().filter(|head| head.timeline.is_chat()) {
        let attached = unless_lost(Tree::attachments_of(&reader, head.tree))?.unwrap_or_default();
        let new = attached.iter().filter(|attachment| known.insert(attachment.blob));
        bytes = new.map(|attachment| attachment.bytes).fold(bytes, u64::saturating_add);
    }
    Ok(bytes)
}

/// Reads an attachment, verified, if this system can have a file of its name.
pub(crate) fn read_to_write(
    attachment: &Attachment,
    reader: &Reader,
) -> Result<std::result::Result<Vec<u8>, AttachmentLoss>> {
    if let Err(error) = st::must_be_a_name_here(&attachment.path) {
        let path = Some(attachment.path.clone());
        return Ok(Err(AttachmentLoss { path, why: error.to_string(), object: None }));
    }
    Ok(attachment.read(reader)?)
}

/// The attachments of a snapshot that are not in the library.
#[derive(Default)]
pub(crate) struct MissingAttachments {
    /// Those that can be written, each verified.
    pub plan: Vec<FilePlan<'static>>,
    /// Those that are lost in the store, and files of other content that are there under their names and stay.
    pub findings: Vec<Finding>,
}

/// Looks for the attachments of a snapshot in the library at `root`. A lost one is a finding and prevents nothing else.
pub(crate) fn missing(
    root: &Path,
    reader: &Reader,
    snapshot: &Snapshot,
    attachments: &[Attachment],
) -> Result<MissingAttachments> {
    let mut missing = MissingAttachments::default();
    let mut lost = LostAttachments::default();
    for attachment in attachments {
        match fs::symlink_metadata(attachment.path.under(root)) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                match read_to_write(attachment, reader)? {
                    Ok(_) => missing.plan.extend(FilePlan::attachment(attachment)),
                    Err(loss) => lost.note(snapshot, &[loss]),
                }
            }
            Ok(found) if found.is_file() && found.len() == attachment.bytes => {}
            _ => {
                let what = "another file is there than the chat had; it stays as it is";
                let subject = attachment.path.as_str();
                let finding = Finding::new(Code::AttachmentDiffers, Level::Warning, subject, what);
                missing.findings.push(finding.remedy(
                    "move it away and give the command again to get the one that the chat had",
                ));
            }
        }
    }
    missing.findings.extend(lost.findings());
    Ok(missing)
}
