//! Plans an undo: refs and files as they were before the operation, unless something else changed
//! them since.

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
    /// Last written first.
    pub files: Vec<FileChange>,
    /// Refs that moved since.
    pub moved: Vec<RefChange>,
    /// Files that were saved since.
    pub saved: Vec<FileChange>,
    /// About attachments that the store has lost, and that are left as they are.
    pub findings: Vec<Finding>,
}

impl Undo<'_> {
    pub(super) fn put_back(&self) -> Result<PutBack> {
        let Undo { store, chosen, .. } = self;
        let mut back = PutBack::default();
        for change in &chosen.operation.effect.refs {
            // They keep snapshots for later.
            if change.name.is_kept() {
                continue;
            }
            let now = store.ref_target(&change.name)?;
            let since = moved_since(self.entries, chosen.operation.number, &change.name);
            if now == change.before && !since.by_standing {
                // Recovery moved it back already.
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
                // Without its bytes it can neither be restored nor removed.
                Err(error) if operation::is_lost(&error) && st::is_attachment(&path) => {
                    back.findings.push(left_attachment(&path, &error.to_string()));
                    continue;
                }
                Err(error) => return Err(error.into()),
            };
            let now = Fingerprint::of_file(&self.root, &path)?;
            // An operation interrupted before it wrote may have left the former bytes.
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
    let message = format!("the store has lost this attachment, so it was left as it is: {why}");
    Finding::new(Code::AttachmentLost, path.as_str(), message)
        .remedy("everything else was undone; remove the file yourself if you do not want it")
}
