//! Creates a checkpoint at the end of every scene, for `--scenes`.

use super::checkpoint::{Checkpoints, TagRule};
use super::scene_end::End;
use crate::archive::message_identity::Identity;
use crate::archive::{Kind, Snapshot, Tree};
use crate::auto_recap::scene_breaks;
use crate::engine::Result;
use crate::engine::take_snapshots::{SnapshotResult, TimelineResult};
use crate::history::History;
use crate::history::origin::Identities;
use crate::progress::Monitor;
use crate::rules::{Code, Finding};
use crate::st::TimelineName;
use crate::store::unless_lost;

impl Checkpoints<'_> {
    /// Creates a checkpoint at the end of every scene that has no checkpoint yet.
    pub(super) fn take_scenes(
        &mut self,
        names: &[TimelineName],
        tag: &TagRule<'_>,
        monitor: &mut dyn Monitor,
    ) -> Result<()> {
        monitor.begin("creating checkpoints", Some(names.len() as u64));
        for name in names {
            match self.scenes_of(name, tag) {
                Ok(()) => {}
                Err(error) => self.taking.record(name, Err(error))?,
            }
            monitor.advance(1);
        }
        Ok(())
    }

    fn scenes_of(&mut self, name: &TimelineName, tag: &TagRule<'_>) -> Result<()> {
        let captured = self.taking.capture(name)?;
        let chat = captured.files.split();
        let ends: Vec<_> = scene_breaks(&chat)
            .into_iter()
            .enumerate()
            .map(|(n, (message, scene))| End { message, scene: n + 1, scene_name: scene.name() })
            .collect();
        if ends.is_empty() && self.options.subject.is_named() {
            let message = "no message ends a scene, so no checkpoint was created";
            self.taking.done.findings.push(Finding::new(Code::ScenesNone, name.as_str(), message));
        }
        let known = self.checkpoints_of(name)?;
        for end in ends {
            let upto = &chat.messages[..=end.message];
            if let Some((snapshot, tags)) = self.known_checkpoint(&known, upto)? {
                let result = SnapshotResult::Unchanged(Box::new(snapshot), tags);
                self.taking.done.outcomes.push(TimelineResult { timeline: name.clone(), result });
                continue;
            }
            let result = self.checkpoint(&captured, &end, tag);
            // All scenes of a chat share one queue, so a refusal because of the queue is reported
            // only once.
            let stop = matches!(&result, Ok(SnapshotResult::Refused(why)) if why.iter().any(|why| why.code == Code::QueueActive));
            self.taking.record(name, result)?;
            if stop {
                break;
            }
        }
        Ok(())
    }

    fn checkpoints_of(&self, name: &TimelineName) -> Result<Vec<(Snapshot, String)>> {
        let history = History::load(self.taking.store)?;
        let owners = history.owners();
        let read = |(tag, id): (&str, _)| {
            let snapshot = history.get(id)?;
            // Includes checkpoints that were created before the timeline was renamed.
            let is_one = owners.of_snapshot(snapshot) == name && snapshot.kind == Kind::CHECKPOINT;
            is_one.then(|| (snapshot.clone(), tag.to_owned()))
        };
        Ok(history.tags().filter_map(read).collect())
    }

    /// Finds an existing checkpoint of these messages. Lorebooks are not compared, because the
    /// lorebook may have changed since the checkpoint was created.
    fn known_checkpoint(
        &self,
        known: &[(Snapshot, String)],
        upto: &[&[u8]],
    ) -> Result<Option<(Snapshot, Vec<String>)>> {
        let wanted: Vec<_> = upto.iter().map(|line| Identity::of(line)).collect();
        let reader = self.taking.store.reader();
        let mut identities = Identities::new(self.taking.store.reader());
        for (snapshot, tag) in known {
            let Some(tree) = unless_lost(Tree::open(&reader, snapshot.tree))? else { continue };
            let messages = tree.messages();
            if messages.len() == wanted.len() && identities.begin_with(messages, &wanted)? {
                return Ok(Some((snapshot.clone(), vec![tag.clone()])));
            }
        }
        Ok(None)
    }
}
