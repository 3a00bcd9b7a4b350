//! Plans an undo: determines which refs and files to reset, and which refs and files were changed
//! after the operation.

use super::Undo;
use super::choose::moved_since;
use crate::engine::operation::{self, FileStep};
use crate::rules::{Code, Finding};
use crate::st::{self, Fingerprint, LibraryPath};
use crate::store::{self, FileChange, RefChange};
use crate::verbs::Result;

#[derive(Default)]
pub(super) struct PutBack {
    pub refs: Vec<RefChange>,
    /// Files to reset, in the reverse order of writing.
    pub files: Vec<FileChange>,
    /// Refs that were moved after the operation. If there are any, the undo is refused.
    pub moved: Vec<RefChange>,
    /// Files that were saved after the operation. If there are any, the undo is refused.
    pub saved: Vec<FileChange>,
    /// Findings about attachments that the store has lost. The undo does not change these
    /// attachments.
    pub findings: Vec<Finding>,
}

impl Undo<'_> {
    pub(super) fn put_back(&self) -> Result<PutBack> {
        let Undo { store, chosen, .. } = self;
        let mut back = PutBack::default();
        for change in &chosen.operation.effect.refs {
            // Refs of this kind only keep snapshots reachable for a later undo.
            if change.name.is_kept() {
                continue;
            }
            let now = store.ref_target(&change.name)?;
            let since = moved_since(self.entries, chosen.operation.number, &change.name);
            if now == change.before && !since.by_standing {
                // The ref already has its former target, because recovery reset the ref.
                continue;
            }
            let is_led_back = !since.by_standing && since.left_at == Some(now);
            if now != change.after && !is_led_back {
                if !chosen.optional.contains(&change.name) {
                    back.moved.push(change.clone());
                }
                continue;
            }
            if let Some(id) = change.before
                && !store.reader().has(id)?
            {
                return Err(store::Error::Missing { id }.into());
            }
            let (name, after) = (change.name.clone(), change.before);
            back.refs.push(RefChange { name, before: now, after });
        }
        for change in chosen.operation.effect.files.iter().rev() {
            let path = LibraryPath::parse(&change.path)?;
            let step = match FileStep::of(store, change) {
                Ok(step) => step,
                // If the store has lost the content of an attachment, the attachment can be neither
                // restored nor removed.
                Err(error) if operation::is_lost(&error) && st::is_attachment(&path) => {
                    back.findings.push(left_attachment(&path, &error.to_string()));
                    continue;
                }
                Err(error) => return Err(error.into()),
            };
            let now = Fingerprint::of_file(&self.root, &path)?;
            // If the operation was interrupted, the file may still have its former content.
            if now == step.after || now == step.before {
                back.files.push(change.reversed());
            } else {
                back.saved.push(change.clone());
            }
        }
        Ok(back)
    }
}

fn left_attachment(path: &LibraryPath, why: &str) -> Finding {
    let message =
        format!("the store no longer has this attachment, so the file was not changed: {why}");
    Finding::new(Code::AttachmentLost, path.as_str(), message)
        .remedy("delete the file if you do not want it; everything else was undone")
}
