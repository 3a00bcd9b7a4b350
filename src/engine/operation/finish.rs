//! Carrying out what an operation planned.

use super::apply::{self, Finisher};
use super::{Held, Operation, recover};
use crate::engine::cache::Cache;
use crate::engine::{Error, Result, known_folders};
use crate::st::{self, Fingerprint, TimelineName};
use crate::store::{Effect, Transacted};

/// What an operation wrote.
pub(crate) struct Done {
    /// How many objects the store got.
    pub objects: usize,
    /// How long they are.
    pub bytes: u64,
    /// The number of the operation; `None` if there was nothing to do.
    pub number: Option<u64>,
}

impl Operation<'_> {
    /// Make it so: the pack, the log, the refs, the files, in this order. Nothing is done if a file was saved since it was looked at.
    ///
    /// A file that somebody saved in the last moment is left as it is, and named in the error when all else is done.
    pub(crate) fn finish(self, held: &Held) -> Result<Done> {
        if let Some(root) = &self.files.root {
            for step in self.files.steps.since(0) {
                let now = Fingerprint::of_file(root, &step.path)?;
                if now != step.before && now != step.after {
                    return Err(st::Error::SavedMeanwhile { path: step.path.under(root) }.into());
                }
            }
        }
        self.finish_leaving_saved(held)
    }

    /// Does what [`finish`](Self::finish) does, and also leaves files as they are that were saved since they were looked at: for commands that
    /// plan so many files that one of them may well be.
    pub(crate) fn finish_leaving_saved(mut self, held: &Held) -> Result<Done> {
        self.keep_the_rest()?;
        let (objects, bytes) = (self.pack.objects(), self.pack.bytes());
        let (store, lock) = (self.store, &held.lock);
        self.pack.finish()?;
        store.remember_ids(lock, &self.snapshots.renamed)?;
        store.remember_own_attachments(lock, &self.attachments.own)?;
        let (mut refs, steps) = (self.refs.into_list(), self.files.steps.into_list());
        refs.sort_by(|a, b| a.name.cmp(&b.name));
        let mut undoes = self.undoes.into_iter();
        let root = self.files.root;
        let effect = Effect {
            sequence: self.snapshots.last_sequence(store, &refs)?,
            refs,
            files: steps.iter().map(|step| step.change.clone()).collect(),
            library: root.as_ref().and_then(|root| recover::name_of_library(store, root)),
            undoes: undoes.next(),
            undoes_also: undoes.collect(),
            finishes: None,
            continues: self.workspace.command.last_in(store),
            automatic: self.workspace.automatic,
        };
        let (number, operation) = match store.transact(lock, self.workspace.timestamp(), effect)? {
            Transacted::Nothing => (None, None),
            Transacted::Done(number) => (Some(number), None),
            Transacted::FilesToWrite(operation) => (Some(operation.number), Some(operation)),
        };
        let folders = self.snapshots.made.into_iter().filter(|made| !made.folders.is_empty());
        let folders = folders.map(|made| (made.snapshot.timeline, made.folders));
        known_folders::save(store, &folders.collect::<Vec<_>>());
        let mut left = Vec::new();
        if let (Some(operation), Some(root)) = (operation, &root) {
            left = apply::apply(store, root, &steps).map_err(|error| {
                match apply::take_back(store, root, &operation, &steps) {
                    Ok(()) => Error::TakenBack { source: Box::new(error) },
                    Err(_) => Error::Unfinished { source: Box::new(error) },
                }
            })?;
            apply::settle(self.workspace, store, lock, &operation, &left, Finisher::Command)?;
            let written =
                steps.iter().filter(|step| step.after.is_some() && !left.contains(&step.path));
            let written = written.filter_map(|step| TimelineName::of_file(&step.path));
            Cache::load(store).note_written(store, root, written);
        }
        number.into_iter().for_each(|number| self.workspace.command.logged(store, number));
        if left.is_empty() {
            return Ok(Done { objects, bytes, number });
        }
        let others = steps.len() - left.len();
        Err(Error::LeftAlone { paths: left.iter().map(ToString::to_string).collect(), others })
    }
}
