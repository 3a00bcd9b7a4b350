//! The files that a chat names go into its snapshots: those that a snapshot before it has as they are there, others from the library, up to a limit.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use super::Operation;
use super::files::FilePlan;
use crate::archive::{Attachment, AttachmentLoss, Blake3, LossCause, State, Tree};
use crate::engine::Result;
use crate::engine::configuration::Configuration;
use crate::engine::verdict_findings::LostAttachments;
use crate::history;
use crate::rules::{Code, Finding};
use crate::st::{self, LibraryPath, TimelineName};
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
    /// Those of uncommon kinds that the library has, or that the user wants there.
    own: HashSet<ObjectId>,
    /// Those that the store knows to be the library's own, once somebody asked.
    known_own: Option<HashSet<ObjectId>>,
    /// Those whose names belong to stvc.
    refused: BTreeSet<LibraryPath>,
    /// What is too much, and how long it is.
    left_out: BTreeMap<LibraryPath, u64>,
    unreadable: BTreeMap<LibraryPath, String>,
}

impl Attaching {
    pub(super) fn own(&self) -> &HashSet<ObjectId> {
        &self.own
    }
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
            if !st::is_attachment(&path) {
                self.attachments.refused.insert(path);
                continue;
            }
            match before.get(&path).filter(|known| known.blob.is_some()) {
                // SillyTavern never writes another file under the name of one.
                Some(known) => {
                    self.note_own(known)?;
                    attached.push(self.mend_attachment(known, reader)?);
                }
                None => attached.extend(self.attachment(&path)?),
            }
        }
        Ok(attached)
    }

    /// Notes that the library has an attachment of an uncommon kind, so that it can be restored without asking.
    fn note_own(&mut self, attachment: &Attachment) -> Result<()> {
        let Some(blob) = attachment.blob.filter(|_| !st::is_common_kind(&attachment.path)) else {
            return Ok(());
        };
        if self.attachments.known_own.is_none() {
            self.attachments.known_own = Some(self.store.own_attachments()?);
        }
        let is_known = self.attachments.known_own.as_ref().is_some_and(|own| own.contains(&blob));
        if is_known || self.attachments.own.contains(&blob) {
            return Ok(());
        }
        let library = self.workspace.library().ok();
        let bytes = library.and_then(|library| st::read(library.root(), &attachment.path).ok());
        if bytes.is_some_and(|bytes| Blake3::of(&bytes) == attachment.blake3) {
            self.attachments.own.insert(blob);
        }
        Ok(())
    }

    /// Notes that the user wants attachments of uncommon kinds in the library.
    pub(crate) fn want_attachments(&mut self, missing: &MissingAttachments) {
        self.attachments.own.extend(&missing.uncommon);
    }

    /// Stores an attachment again that is lost in the store, if the library's file still is what it was. Only a store that is
    /// known to be damaged is read for that.
    fn mend_attachment(&mut self, known: &Attachment, reader: &Reader) -> Result<Attachment> {
        let is_lost = if self.pack.distrusts_store() {
            known.read(reader)?.is_err()
        } else {
            known.glance(reader)?.is_some()
        };
        if !is_lost {
            return Ok(known.clone());
        }
        let library = self.workspace.library().ok();
        let bytes = library.and_then(|library| st::read(library.root(), &known.path).ok());
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
        let Some(root) = root.clone() else { return Ok(None) };
        // Gone: `doctor` tells of it.
        let found = fs::metadata(path.under(&root));
        let Ok(length) = found.map(|found| found.len()) else { return Ok(None) };
        let room = self.room()?;
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
        self.attachments.room = Some(room.saturating_sub(bytes.len() as u64));
        let blob = self.pack.add(Kind::Blob, &bytes)?;
        if !st::is_common_kind(path) {
            self.attachments.own.insert(blob);
        }
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
        let Attaching { refused, left_out, unreadable, .. } = &self.attachments;
        let mut findings = Vec::new();
        for path in refused {
            let what =
                "a message names it, and its name belongs to stvc; the chat was stored without it";
            let finding = Finding::new(Code::AttachmentRefused, path.as_str(), what);
            findings.push(
                finding.remedy("if it is yours, give the file another name and attach it again"),
            );
        }
        if let Some((first, _)) = left_out.first_key_value() {
            let (many, bytes) = (left_out.len(), left_out.values().sum::<u64>());
            let message = format!(
                "{many} of the files that messages name are not kept, {:.1} MB: they are more than the limit",
                bytes as f64 / 1e6
            );
            let finding = Finding::new(Code::AttachmentsLeftOut, first.as_str(), message);
            findings.push(finding.remedy("`stvc config attachments 2000000000` sets the limit, in bytes; the next snapshot of the chat has them then"));
        }
        for (path, why) in unreadable {
            let finding = Finding::new(Code::AttachmentsLeftOut, path.as_str(), why);
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

/// Which attachments a command may write.
pub(crate) enum Admission {
    /// Those of common kinds, and those that the library itself had.
    Own(HashSet<ObjectId>),
    /// All: the user said so.
    Any,
}

impl Admission {
    /// The store is the library's own, wherever the attachments are read from.
    pub(crate) fn of(store: &Store, any: bool) -> Result<Self> {
        Ok(if any { Self::Any } else { Self::Own(store.own_attachments()?) })
    }

    fn refuses(&self, attachment: &Attachment) -> bool {
        match self {
            Self::Any => false,
            Self::Own(own) => {
                let is_own = attachment.blob.is_some_and(|blob| own.contains(&blob));
                !is_own && !st::is_common_kind(&attachment.path)
            }
        }
    }
}

/// Reads an attachment, verified, if it may be written and this system can have a file of its name.
pub(crate) fn read_to_write(
    attachment: &Attachment,
    reader: &Reader,
    admission: &Admission,
) -> Result<std::result::Result<Vec<u8>, AttachmentLoss>> {
    let loss = |cause, why| {
        Ok(Err(AttachmentLoss { path: Some(attachment.path.clone()), cause, why, object: None }))
    };
    if admission.refuses(attachment) {
        let why = "it came from a backup or another device, and files of its kind may run code";
        return loss(LossCause::Kind, why.to_owned());
    }
    if let Err(error) = st::must_be_a_name_here(&attachment.path) {
        return loss(LossCause::Lost, error.to_string());
    }
    Ok(attachment.read(reader)?)
}

/// The attachments of a snapshot that are not in the library.
#[derive(Default)]
pub(crate) struct MissingAttachments {
    /// Those that can be written, each verified.
    pub plan: Vec<FilePlan<'static>>,
    /// The blobs of those among them that are of uncommon kinds.
    uncommon: Vec<ObjectId>,
    /// Those that are lost in the store, and files of other content that are there under their names and stay.
    pub findings: Vec<Finding>,
}

/// Looks for the attachments of a snapshot in the library at `root`. A lost one is a finding and prevents nothing else. `planned` returns the length of a file that is about to
/// be written there.
pub(crate) fn missing(
    root: &Path,
    reader: &Reader,
    timeline: &TimelineName,
    attachments: &[Attachment],
    admission: &Admission,
    planned: &dyn Fn(&LibraryPath) -> Option<u64>,
) -> Result<MissingAttachments> {
    let mut missing = MissingAttachments::default();
    let mut lost = LostAttachments::default();
    for attachment in attachments {
        if planned(&attachment.path) == Some(attachment.bytes) {
            continue;
        }
        match fs::symlink_metadata(attachment.path.under(root)) {
            Err(error)
                if planned(&attachment.path).is_none()
                    && error.kind() == std::io::ErrorKind::NotFound =>
            {
                match read_to_write(attachment, reader, admission)? {
                    Ok(_) => {
                        if !st::is_common_kind(&attachment.path) {
                            missing.uncommon.extend(attachment.blob);
                        }
                        missing.plan.extend(FilePlan::attachment(attachment));
                    }
                    Err(loss) => lost.note(timeline, &[loss]),
                }
            }
            Ok(found) if found.is_file() && found.len() == attachment.bytes => {}
            _ => {
                let what = "another file is there than the chat had; it stays as it is";
                let subject = attachment.path.as_str();
                let finding = Finding::new(Code::AttachmentDiffers, subject, what);
                missing.findings.push(finding.remedy(
                    "move it away and give the command again to get the one that the chat had",
                ));
            }
        }
    }
    missing.findings.extend(lost.findings());
    Ok(missing)
}
