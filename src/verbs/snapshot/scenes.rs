//! Creates a checkpoint at the end of every scene, for `--scenes`.

use super::checkpoint::Checkpoints;
use super::template::fill;
use crate::archive::message_identity::Identity;
use crate::archive::{Kind, Snapshot, Tree};
use crate::auto_recap::scene_breaks;
use crate::engine::take_snapshots::{SnapshotResult, TimelineResult};
use crate::engine::{Result, changed_timelines, tags};
use crate::history::History;
use crate::history::origin::Identities;
use crate::history::owner_of_snapshot::Owners;
use crate::progress::Monitor;
use crate::rules::{Code, Finding};
use crate::st::TimelineName;
use crate::store::unless_lost;

struct End {
    message: usize,
    /// Number of the scene, counted from 1.
    number: usize,
    name: Option<String>,
}

impl Checkpoints<'_> {
    /// Creates a checkpoint at the end of every scene that has no checkpoint yet.
    pub(super) fn take_scenes(
        &mut self,
        names: &[TimelineName],
        template: &str,
        monitor: &mut dyn Monitor,
    ) -> Result<()> {
        monitor.begin("creating checkpoints", Some(names.len() as u64));
        for name in names {
            match self.scenes_of(name, template) {
                Ok(()) => {}
                Err(error) => self.taking.record(name, Err(error))?,
            }
            monitor.advance(1);
        }
        Ok(())
    }

    fn scenes_of(&mut self, name: &TimelineName, template: &str) -> Result<()> {
        let captured = self.taking.capture(name)?;
        let chat = captured.files.split();
        let ends: Vec<_> = scene_breaks(&chat)
            .into_iter()
            .enumerate()
            .map(|(n, (message, scene))| End { message, number: n + 1, name: scene.name() })
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
            let head = changed_timelines::head(self.taking.store, name)?.0;
            let mut result = self.checkpoint(&captured, end.message, head.as_ref());
            if let Ok(
                SnapshotResult::New(snapshot, tags) | SnapshotResult::Unchanged(snapshot, tags),
            ) = &mut result
            {
                let wanted = called(template, name, &end);
                let taken = |tag: &_| self.taking.operation.moves_to(tag);
                let tag = tags::free_like(self.taking.store, taken, &wanted, snapshot.id)?;
                tags.extend(tag.tag_name());
                let id = snapshot.id;
                self.taking.operation.move_ref(tag, id)?;
            }
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
        let owners = Owners::of(&history);
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

    pub(super) fn name_by_template(
        &mut self,
        names: &[TimelineName],
        at: usize,
        template: &str,
    ) -> Result<()> {
        let Some(name) = names.first() else { return Ok(()) };
        let captured = self.taking.capture(name)?;
        let breaks = scene_breaks(&captured.files.split());
        let before = breaks.iter().filter(|(message, _)| *message < at).count();
        let scene = breaks.iter().find(|(message, _)| *message >= at);
        let scene = scene.and_then(|(_, scene)| scene.name());
        let wanted = called(template, name, &End { message: at, number: before + 1, name: scene });
        let store = self.taking.store;
        self.tag(names, |snapshot| tags::free_like(store, |_| None, &wanted, snapshot.id))
    }
}

fn called(template: &str, timeline: &TimelineName, end: &End) -> String {
    let scene = end.name.as_deref().unwrap_or("Unnamed Scene");
    fill(
        template,
        &[
            ("scene_number", &end.number.to_string()),
            ("scene_name", scene.trim()),
            ("chat", timeline.chat()),
            ("character", timeline.folder().unwrap_or("group")),
            ("message", &end.message.to_string()),
        ],
    )
}
