//! What undo puts back: the refs and files of an operation as they were before it, as far as nothing else changed them since.

use std::path::Path;

use super::choose::{Chosen, moved_since};
use crate::engine::operation::log::Logged;
use crate::engine::operation::{self, FileStep};
use crate::rules::{Code, Finding};
use crate::st::{self, Fingerprint, LibraryPath};
use crate::store::{self, FileChange, RefChange, Store};
use crate::verbs::Result;

/// What an undo changes, and what stops it.
#[derive(Default)]
pub(super) struct PutBack {
    /// The way back of every ref.
    pub refs: Vec<RefChange>,
    /// The way back of every file, last written first.
    pub files: Vec<FileChange>,
    /// The refs that moved since.
    pub moved: Vec<RefChange>,
    /// The files that somebody saved since.
    pub saved: Vec<FileChange>,
    /// Attachments that the store has lost: they are left as they are.
    pub findings: Vec<Finding>,
}

impl PutBack {
    /// Looks at the refs of the store and the files of the library at `root`.
    pub(super) fn plan(
        store: &Store,
        root: &Path,
        entries: &[Logged],
        chosen: &Chosen,
    ) -> Result<Self> {
        let mut back = Self::default();
        back.plan_refs(store, entries, chosen)?;
        back.plan_files(store, root, chosen)?;
        Ok(back)
    }

    fn plan_refs(&mut self, store: &Store, entries: &[Logged], chosen: &Chosen) -> Result<()> {
        for change in &chosen.operation.effect.refs {
            // The refs that keep things stay: that is what they are for.
            if change.name.is_kept() {
                continue;
            }
            let now = store.ref_target(&change.name)?;
            let since = moved_since(entries, chosen.operation.number, &change.name);
            if now == change.before && !since.by_standing {
                // Led back already, when it was found interrupted.
                continue;
            }
            let is_led_back = !since.by_standing && since.left_at == Some(now);
            if now != change.after && !is_led_back {
                if !chosen.optional.contains(&change.name) {
                    self.moved.push(change.clone());
                }
                continue;
            }
            if let Some(id) = change.before
                && !store.reader().has(id)?
            {
                return Err(store::Error::Missing { id }.into());
            }
            let (name, after) = (change.name.clone(), change.before);
            self.refs.push(RefChange { name, before: now, after });
        }
        Ok(())
    }

    fn plan_files(&mut self, store: &Store, root: &Path, chosen: &Chosen) -> Result<()> {
        for change in chosen.operation.effect.files.iter().rev() {
            let path = LibraryPath::parse(&change.path)?;
            let step = match FileStep::of(store, change) {
                Ok(step) => step,
                // Without its bytes it can neither be brought back nor removed: it would be gone.
                Err(error) if operation::is_lost(&error) && st::is_attachment(&path) => {
                    self.findings.push(left_attachment(&path, &error.to_string()));
                    continue;
                }
                Err(error) => return Err(error.into()),
            };
            let now = Fingerprint::of_file(root, &path)?;
            // Interrupted between its log entry and its writing, an operation may have left the former bytes.
            if now == step.after || now == step.before {
                self.files.push(change.reversed());
            } else {
                self.saved.push(change.clone());
            }
        }
        Ok(())
    }
}

fn left_attachment(path: &LibraryPath, why: &str) -> Finding {
    let message = format!("the store has lost this attachment, so it was left as it is: {why}");
    Finding::new(Code::AttachmentLost, path.as_str(), message)
        .remedy("everything else was undone; remove the file yourself if you do not want it")
}
