//! Finds the attachments of a snapshot that the library does not have, and decides which of them
//! may be written.

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

pub(crate) enum AttachmentFilter {
    /// Admits attachments of common file types, and attachments that the library had before, whose
    /// blobs are given here.
    Own(HashSet<ObjectId>),
    Any,
}

impl AttachmentFilter {
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

/// Reads and verifies an attachment. Returns the reason for the loss if `admission` refuses the
/// attachment, if this system does not allow the file name, or if the store has lost the content.
pub(crate) fn read_to_write(
    attachment: &Attachment,
    reader: &Reader,
    admission: &AttachmentFilter,
) -> Result<std::result::Result<Vec<u8>, AttachmentLoss>> {
    let loss = |cause, why| {
        Ok(Err(AttachmentLoss { path: Some(attachment.path.clone()), cause, why, object: None }))
    };
    if admission.refuses(attachment) {
        let why =
            "it came from a backup or another device, and a file of this type may contain code";
        return loss(LossCause::Kind, why.to_owned());
    }
    if let Err(error) = st::must_be_a_name_here(&attachment.path) {
        return loss(LossCause::Lost, error.to_string());
    }
    Ok(attachment.read(reader)?)
}

#[derive(Default)]
pub(crate) struct MissingAttachments {
    /// The attachments to write. Their content was verified.
    pub plan: Vec<FilePlan<'static>>,
    /// The blobs of attachments in `plan` that have an uncommon file type.
    pub(super) uncommon: Vec<ObjectId>,
    /// Findings about lost or refused attachments, and about different files that exist under the
    /// name of an attachment and are not replaced.
    pub findings: Vec<Finding>,
}

/// Finds the attachments of a snapshot that the library at `root` does not have. A lost attachment
/// becomes a finding and does not stop the command. `planned` returns the length of a file that the
/// command already plans to write.
pub(crate) fn missing(
    root: &Path,
    reader: &Reader,
    timeline: &TimelineName,
    attachments: &[Attachment],
    admission: &AttachmentFilter,
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
                let what = "a different file exists under this name; it was not replaced";
                let subject = attachment.path.as_str();
                let finding = Finding::new(Code::AttachmentDiffers, subject, what);
                missing.findings.push(finding.remedy(
                    "move it elsewhere and run the command again to restore the attachment of the chat",
                ));
            }
        }
    }
    missing.findings.extend(lost.findings());
    Ok(missing)
}
