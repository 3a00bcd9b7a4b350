//! Creates a checkpoint for `--at`: a snapshot of a chat's messages up to a given message. A
//! checkpoint moves no branch.

use super::options::Options;
use super::scene_end::End;
use super::template;
use crate::archive::{Kind, Snapshot, SnapshotId, State};
use crate::engine::Result;
use crate::engine::gate;
use crate::engine::operation::SnapshotParents;
use crate::engine::tags;
use crate::engine::take_snapshots::{SnapshotResult, SnapshotSession, TimelineResult};
use crate::history::name_lookup;
use crate::history::origin::{Lineage, NewTimeline, Origin, closest};
use crate::rules::Level;
use crate::st::{Captured, TimelineName};
use crate::store::RefName;

pub(super) struct Checkpoints<'a> {
    pub taking: SnapshotSession<'a>,
    pub options: &'a Options,
}

/// How the tag of a checkpoint is chosen.
pub(super) enum TagRule<'a> {
    Exactly(RefName),
    /// `<chat> @<message>`, with a number if another snapshot has that tag.
    AtMessage,
    /// A template, with a number if another snapshot has that tag.
    Template(&'a str),
}

impl Checkpoints<'_> {
    pub(super) fn take_at(
        &mut self,
        names: &[TimelineName],
        at: usize,
        tag: &TagRule<'_>,
    ) -> Result<()> {
        for name in names {
            let result = self.taking.capture(name).and_then(|captured| {
                let end = End::at(&captured.files.split(), at);
                self.checkpoint(&captured, &end, tag)
            });
            self.taking.record(name, result)?;
        }
        Ok(())
    }

    /// Creates a checkpoint with a tag, without moving the branch.
    pub(super) fn checkpoint(
        &mut self,
        captured: &Captured,
        end: &End,
        tag: &TagRule<'_>,
    ) -> Result<SnapshotResult> {
        let mut result = self.untagged(captured, end.message)?;
        if let SnapshotResult::New(snapshot, tags) | SnapshotResult::Unchanged(snapshot, tags) =
            &mut result
        {
            let chat = &captured.files.timeline;
            let free = |name: &str| {
                let moving = |tag: &_| self.taking.operation.moves_to(tag);
                tags::free_like(self.taking.store, moving, name, snapshot.id)
            };
            let tag = match tag {
                TagRule::Exactly(tag) => tag.clone(),
                TagRule::AtMessage => free(&tags::at_message(chat, end.message))?,
                TagRule::Template(template) => free(&template::of_scene(template, chat, end))?,
            };
            tags.extend(tag.tag_name());
            self.taking.operation.move_ref(tag, snapshot.id)?;
        }
        Ok(result)
    }

    fn untagged(&mut self, captured: &Captured, at: usize) -> Result<SnapshotResult> {
        gate::must_have(&captured.files, at)?;
        let files = captured.files.cut_after(at);
        let said = self.taking.done.findings.len();
        let judgement = gate::judge(self.options.gate, &captured.files, Some(at));
        if !judgement.refused.is_empty() {
            return Ok(SnapshotResult::Refused(judgement.refused));
        }
        self.taking.done.findings.extend(judgement.warnings);
        self.taking.done.findings.extend(gate::findings_about_later_messages(&captured.files, at));
        let mut state = State::cut(&files, at, &captured.files.main.bytes);
        if let Some(noted) = &mut state.manifest.checkpoint {
            let warned = self.taking.done.findings[said..].iter();
            let warned = warned.filter(|finding| finding.level > Level::Info);
            noted.warnings = warned.map(|finding| finding.code.to_string()).collect();
        }
        let follows = match self.taking.head(&captured.files.timeline)? {
            Some(head) => closest(self.taking.store, &head, &state.chat.messages)?
                .map(SnapshotParents::previous)
                .unwrap_or_default(),
            None => {
                let newcomer = NewTimeline::of_state(&state);
                // Only a fork is accepted as the origin, because a checkpoint is never a renamed
                // timeline.
                match Lineage::load(self.taking.store, self.taking.scan)?.fork(&newcomer)? {
                    origin @ Origin::Fork { .. } => SnapshotParents::origin(origin),
                    _ => SnapshotParents::default(),
                }
            }
        };
        if let Some(same) = self.same_checkpoint(&state, &follows)? {
            return Ok(SnapshotResult::Unchanged(Box::new(same), Vec::new()));
        }
        let taken = self.taking.operation.commit(&state, Kind::CHECKPOINT, follows)?;
        self.taking.record_state(state.manifest.checkpoint.as_ref(), &taken);
        Ok(SnapshotResult::New(Box::new(taken), Vec::new()))
    }

    /// Finds an equal checkpoint that has a tag or is in the history of the timeline.
    fn same_checkpoint(
        &self,
        state: &State<'_>,
        follows: &SnapshotParents,
    ) -> Result<Option<Snapshot>> {
        let tagged = self.taking.store.refs("refs/tags/")?.refs;
        let same = |known: &Snapshot| {
            known.timeline == *state.timeline() && known.content == state.manifest.content
        };
        let reader = self.taking.store.reader();
        for (_, id) in tagged {
            if let Some(known) = name_lookup::find_with(&reader, SnapshotId(id))?.filter(same) {
                return Ok(Some(known));
            }
        }
        follows.same_as(state, self.taking.store)
    }

    /// Tags the snapshot of a timeline that [`SnapshotSession::take`] stored.
    pub(super) fn tag(&mut self, name: &TimelineName, tag: &RefName) -> Result<()> {
        // The outcomes may include the chat's lorebook, which gets no tag.
        let is_named = |outcome: &&mut TimelineResult| outcome.timeline == *name;
        for outcome in self.taking.done.outcomes.iter_mut().filter(is_named) {
            if let SnapshotResult::New(snapshot, tags) | SnapshotResult::Unchanged(snapshot, tags) =
                &mut outcome.result
            {
                tags.extend(tag.tag_name());
                self.taking.operation.move_ref(tag.clone(), snapshot.id)?;
            }
        }
        Ok(())
    }
}
