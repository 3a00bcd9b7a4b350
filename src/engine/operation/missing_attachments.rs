//! Attachments of a snapshot that the library does not have: which of them may be written, and
//! which are lost.

use std::collections::HashSet;
use std::fs;
use std::path::Path;

use super::files::FilePlan;
use crate::archive::{Attachment, AttachmentLoss, LossCause};
use crate::engine::Result;
use crate::engine::verdict_findings::LostAttachments;
use crate::rules::{Code, Finding};
use crate::st::{self, LibraryPath, TimelineName};
use crate::store::{ObjectId, Reader, Store};

pub(crate) enum Admission {
    /// Those of common kinds, and those that the library had.
    Own(HashSet<ObjectId>),
    Any,
}

impl Admission {
    pub(crate) fn own(store: &Store) -> Result<Self> {
        Ok(Self::Own(store.own_attachments()?))
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

#[derive(Default)]
pub(crate) struct MissingAttachments {
    /// Attachments that can be written, each verified.
    pub plan: Vec<FilePlan<'static>>,
    /// The blobs of those of uncommon kinds.
    pub(super) uncommon: Vec<ObjectId>,
    /// Attachments lost in the store, and different files under their names, which stay.
    pub findings: Vec<Finding>,
}

/// Looks for the attachments of a snapshot in the library at `root`. A lost one is a finding and
/// prevents nothing else. `planned` returns the length of a file that is about to be written there.
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
