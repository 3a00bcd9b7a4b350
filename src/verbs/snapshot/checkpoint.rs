//! `--at`: a checkpoint, the state up to a message, which moves no branch.

use super::options::Options;
use crate::archive::{Kind, Snapshot, SnapshotId, State};
use crate::engine::Result;
use crate::engine::changed_timelines;
use crate::engine::gate;
use crate::engine::operation::Follows;
use crate::engine::take_snapshots::{SnapshotSession, Taken, TakenTimeline};
use crate::history::name_lookup;
use crate::history::origin::{Lineage, Newcomer, Origin, closest};
use crate::rules::Level;
use crate::st::{Captured, TimelineName};
use crate::store::RefName;

pub(super) struct Checkpoints<'a> {
    pub taking: SnapshotSession<'a>,
    pub options: &'a Options,
}

impl Checkpoints<'_> {
    pub(super) fn take_at(&mut self, names: &[TimelineName], at: usize) -> Result<()> {
        for name in names {
            let result = self.try_at(name, at);
            self.taking.record(name, result)?;
        }
        Ok(())
    }

    fn try_at(&mut self, name: &TimelineName, at: usize) -> Result<Taken> {
        let (head, _) = changed_timelines::head(self.taking.store, name)?;
        let captured = self.taking.capture(name)?;
        self.checkpoint(&captured, at, head.as_ref())
    }

    /// Creates a checkpoint. Its branch stays; the caller tags it.
    pub(super) fn checkpoint(
        &mut self,
        captured: &Captured,
        at: usize,
        head: Option<&Snapshot>,
    ) -> Result<Taken> {
        gate::must_have(&captured.files, at)?;
        let files = captured.files.cut_after(at);
        let said = self.taking.done.findings.len();
        let judgement = gate::judge(self.options.gate, &captured.files, Some(at));
        if !judgement.refused.is_empty() {
            return Ok(Taken::Refused(judgement.refused));
        }
        self.taking.done.findings.extend(judgement.warnings);
        self.taking.done.findings.extend(gate::of_later(&captured.files, at));
        let mut state = State::cut(&files, at, &captured.files.main.bytes);
        if let Some(noted) = &mut state.manifest.checkpoint {
            let warned = self.taking.done.findings[said..].iter();
            let warned = warned.filter(|finding| finding.level > Level::Info);
            noted.warnings = warned.map(|finding| finding.code.to_string()).collect();
        }
        let follows = match head {
            Some(head) => closest(self.taking.store, head, &state.chat.messages)?
                .map(Follows::previous)
                .unwrap_or_default(),
            None => {
                let newcomer = Newcomer::of_state(&state);
                // A checkpoint is never a renamed timeline.
                match Lineage::load(self.taking.store, self.taking.scan)?.fork(&newcomer)? {
                    origin @ Origin::Fork { .. } => Follows::origin(origin),
                    _ => Follows::default(),
                }
            }
        };
        if let Some(same) = self.same_checkpoint(&state, &follows)? {
            return Ok(Taken::Unchanged(Box::new(same), Vec::new()));
        }
        let taken = self.taking.operation.commit(&state, Kind::CHECKPOINT, follows)?;
        self.taking.tell_state(state.manifest.checkpoint.as_ref(), &taken);
        Ok(Taken::New(Box::new(taken), Vec::new()))
    }

    /// Finds an equal checkpoint: tagged, or in the past of the timeline.
    fn same_checkpoint(&self, state: &State<'_>, follows: &Follows) -> Result<Option<Snapshot>> {
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

    pub(super) fn tag(
        &mut self,
        wanted: &[TimelineName],
        name: impl Fn(&Snapshot) -> Result<RefName>,
    ) -> Result<()> {
        // A lorebook that was stored with its chat was not named.
        let is_wanted = |outcome: &&mut TakenTimeline| wanted.contains(&outcome.timeline);
        for outcome in self.taking.done.outcomes.iter_mut().filter(is_wanted) {
            if let Taken::New(snapshot, tags) | Taken::Unchanged(snapshot, tags) =
                &mut outcome.result
            {
                let tag = name(snapshot)?;
                tags.extend(tag.tag_name());
                self.taking.operation.move_ref(tag, snapshot.id)?;
            }
        }
        Ok(())
    }
}
