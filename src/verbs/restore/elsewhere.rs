//! Restores files into an empty folder. The library is not changed.

use std::path::Path;
use std::{fs, io};

use super::job::RestoreJob;
use super::options::RestoreResult;
use crate::archive::{Attachment, Blake3, Role};
use crate::durable::{self, TEMP_PREFIX};
use crate::engine::files::{Action, FileAction};
use crate::engine::operation::missing_attachments::read_to_write;
use crate::engine::verdict_findings::LostAttachments;
use crate::st;
use crate::st::LibraryPath;
use crate::verbs::{RestoreError, Result};

pub(super) fn restore(job: &RestoreJob<'_>, dir: &Path) -> Result<RestoreResult> {
    let RestoreJob { store, material, options, .. } = *job;
    let root = std::path::absolute(dir).map_err(at(dir))?;
    if !options.dry_run {
        durable::clear_left_behind(durable::parent(&root));
    }
    if !st::list_folder(&root).complete().map_err(at(&root))?.is_empty() {
        return Err(RestoreError::NotEmpty { path: root }.into());
    }
    let files = material.contents.parts().filter(|(role, ..)| options.target.includes(*role));
    let files: Vec<_> = files.map(|(_, path, bytes)| (path, bytes)).collect();
    let attached = match options.target.only() {
        Some(Role::Lorebook) => &[][..],
        _ => &material.contents.attachments,
    };
    let reader = store.reader();
    let admission = options.admission(store)?;
    let mut lost = LostAttachments::default();
    let mut written = Vec::new();
    // Attachments are written one at a time, because they may be large.
    let mut write_attached = |folder: Option<&Path>| -> Result<()> {
        for attachment in attached {
            match (read_to_write(attachment, &reader, &admission)?, folder) {
                (Ok(bytes), Some(folder)) => st::write(folder, &attachment.path, &bytes, None)?,
                (Ok(_), None) => {}
                (Err(loss), _) => {
                    lost.note(&job.source.timeline, &[loss]);
                    continue;
                }
            }
            written.push(attachment.clone());
        }
        Ok(())
    };
    if options.dry_run {
        write_attached(None)?
    } else {
        write_folder(&root, &files, write_attached)?
    }
    let new = |path: LibraryPath, bytes: u64, blake3: Blake3| FileAction {
        path,
        action: Action::Write,
        bytes,
        blake3,
        replaces: false,
        blake3_before: None,
        integrity: None,
        preview: None,
    };
    let attached =
        written.into_iter().map(|Attachment { path, bytes, blake3, .. }| new(path, bytes, blake3));
    let own = files
        .iter()
        .map(|(path, bytes)| new((*path).clone(), bytes.len() as u64, Blake3::of(bytes)));
    let files = attached.chain(own).collect();
    Ok(RestoreResult {
        root,
        files,
        findings: lost.findings().collect(),
        ..RestoreResult::default()
    })
}

/// Writes the files into a temporary folder, and renames this folder when it is complete, so that
/// an interrupted restore can be repeated.
fn write_folder(
    root: &Path,
    files: &[(&LibraryPath, &[u8])],
    mut write_attached: impl FnMut(Option<&Path>) -> Result<()>,
) -> Result<()> {
    let parent = durable::parent(root);
    durable::create_dir_all(parent).map_err(at(parent))?;
    let temp = durable::create_temp_dir(parent, TEMP_PREFIX).map_err(at(parent))?;
    let mut write = || -> Result<()> {
        for (path, bytes) in files {
            st::write(&temp, path, bytes, None)?;
        }
        write_attached(Some(&temp))?;
        durable::sync_dir(&temp).map_err(at(&temp))?;
        // On some systems, a rename does not replace an empty folder.
        let _ = fs::remove_dir(root);
        Ok(durable::rename(&temp, root).map_err(at(root))?)
    };
    let written = write();
    if written.is_err() && fs::remove_dir_all(&temp).is_err() {
        let _ = fs::remove_dir_all(&temp);
    }
    written?;
    Ok(durable::sync_dir(parent).map_err(at(parent))?)
}

fn at(path: &Path) -> impl FnOnce(io::Error) -> st::Error {
    let path = path.to_owned();
    move |source| st::Error::Io { path, source }
}
