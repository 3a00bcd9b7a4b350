//! One command's snapshots in the making.

use std::collections::HashSet;

use super::{Options, Outcome, Report, Taken, cut, gate};
use crate::archive::{self, Folders, Kind, Snapshot, SnapshotId, State, Validator, branch};
use crate::ops::cache::Cache;
use crate::ops::lineage::{Lineage, Newcomer, Origin, order};
use crate::ops::operation::{Follows, Held, Operation};
use crate::ops::survey::{self, Head};
use crate::ops::{Error, Result, Workspace, resolve};
use crate::progress::Monitor;
use crate::rules::{self, Finding, Level};
use crate::st::{self, Captured, Disk, Library, Scan, TimelineName};
use crate::store::{RefName, Store};

/// New chats are read twice, to know them all before the first is taken; up to this much is kept in memory instead.
const KEPT_BYTES: usize = 16 << 20;

/// One command in the making.
pub(super) struct Run<'a> {
    pub(super) store: &'a Store,
    library: &'a Library,
    scan: &'a Scan,
    pub(super) options: &'a Options,
    pub(super) operation: Operation<'a>,
    cache: Option<Cache>,
    lineage: Option<Lineage>,
    pub(super) report: Report,
    /// Known chats that were taken, if there are new ones that may come from them.
    grown: Option<Vec<(Newcomer, Snapshot)>>,
    /// The last check found damage: write again what cannot be read.
    mend: bool,
}

impl<'a> Run<'a> {
    pub(super) fn new(
        workspace: &'a Workspace,
        store: &'a Store,
        library: &'a Library,
        scan: &'a Scan,
        options: &'a Options,
        report: Report,
    ) -> Self {
        Self {
            store,
            library,
            scan,
            options,
            operation: Operation::new(workspace, store, options.message.as_deref()),
            cache: Some(Cache::load(store)),
            lineage: None,
            report,
            grown: None,
            mend: store.is_marked_damaged(),
        }
    }

    pub(super) fn take(&mut self, names: &[TimelineName], monitor: &mut dyn Monitor) -> Result<()> {
        monitor.begin("taking snapshots", Some(names.len() as u64));
        let mut new = Vec::new();
        let mut known = Vec::new();
        for name in names {
            let head = survey::head(self.store, name)?;
            let is_new = self.options.at.is_none() && head.0.is_none();
            if is_new { new.push(name) } else { known.push((name, head)) }
        }
        // A new chat may come from what a known one is only now.
        self.grown = (!new.is_empty()).then(Vec::new);
        for (name, head) in known {
            let result = self.take_known(name, head);
            self.record(name, result)?;
            monitor.advance(1);
        }
        self.take_new(&new, monitor)?;
        self.report.timelines.sort_by(|a, b| a.timeline.cmp(&b.timeline));
        Ok(())
    }

    /// A timeline that has a branch, or one of which a checkpoint is taken.
    fn take_known(&mut self, name: &TimelineName, head: Head) -> Result<Taken> {
        // A checkpoint at a message needs the files, changed or not; and so does a store that has to be mended.
        let on_purpose = self.options.is_on_purpose();
        let cache = if on_purpose || self.mend { &mut None } else { &mut self.cache };
        let groups = &self.scan.groups;
        let look = survey::look_from(Some(self.store), self.library, groups, name, head, cache)?;
        let Some(captured) = look.captured else {
            let head = look.head.ok_or_else(|| Error::NoSuchTimeline { name: name.to_string() })?;
            return Ok(Taken::Unchanged(Box::new(head), Vec::new()));
        };
        if let Some(at) = self.options.at {
            return self.checkpoint(&captured, at, look.head.as_ref());
        }
        match look.head {
            Some(head) if look.unchanged => {
                if on_purpose && let Some(refused) = self.refused(&captured, None) {
                    return Ok(refused);
                }
                if look.astray {
                    self.operation.lead(name, head.id, &[])?;
                }
                let state = State::of(&captured);
                if self.mend && !self.mends(&state, &head)? {
                    return self.store_state(&captured, &state, Follows::previous(head));
                }
                Ok(Taken::Unchanged(Box::new(head), Vec::new()))
            }
            head => {
                if let Some(refused) = self.refused(&captured, None) {
                    return Ok(refused);
                }
                let state = State::of(&captured);
                if let Some(head) = &head {
                    self.report.findings.extend(self.operation.alarm(&state, head)?);
                }
                let follows = head.map(Follows::previous).unwrap_or_default();
                let taken = self.store_state(&captured, &state, follows)?;
                if let (Some(grown), Taken::New(snapshot, _)) = (&mut self.grown, &taken) {
                    grown.push((Newcomer::of_state(&state), (**snapshot).clone()));
                }
                Ok(taken)
            }
        }
    }

    /// Whether a snapshot that may be damaged is whole again once its objects are written anew. Only what cannot be read is
    /// written.
    fn mends(&mut self, state: &State<'_>, head: &Snapshot) -> Result<bool> {
        let reader = self.store.reader();
        if !Validator::new(self.store.reader()).judge(head)?.is_damaged() {
            return Ok(true);
        }
        let written =
            archive::write(state, &mut self.operation.pack, &reader, None, &Folders::default())?;
        Ok(written.tree == head.tree)
    }

    /// Chats that were never seen. All are read before the first is taken, because any may come from any other.
    fn take_new(&mut self, names: &[&TimelineName], monitor: &mut dyn Monitor) -> Result<()> {
        if names.is_empty() {
            return Ok(());
        }
        let mut lineage = Lineage::load(self.store, &self.scan.timelines)?;
        for (grown, snapshot) in self.grown.take().into_iter().flatten() {
            lineage.add(grown, &snapshot);
        }
        // A branch under another name may be theirs: what its commit says counts.
        let mut unknown = Vec::new();
        for name in names {
            match lineage.history().head(name).cloned() {
                Some(head) => {
                    let result = self.take_known(name, (Some(head), true));
                    self.record(name, result)?;
                    monitor.advance(1);
                }
                None => unknown.push(*name),
            }
        }
        let names = unknown;
        let mut newcomers = Vec::new();
        let mut stamps = Vec::new();
        let mut kept = Vec::new();
        let mut room = KEPT_BYTES;
        for name in &names {
            match self.capture(name) {
                Ok(captured) => {
                    newcomers.push(Newcomer::of(&captured));
                    stamps.push(captured.chat.stamp);
                    let bytes = captured.chat.bytes.len();
                    let fits = names.len() == 1 || bytes <= room;
                    room = room.saturating_sub(bytes);
                    kept.push(fits.then_some(captured));
                }
                Err(error) => self.record(name, Err(error))?,
            }
        }
        let order = order(&newcomers);
        let mut newcomers: Vec<_> = newcomers.into_iter().map(Some).collect();
        for position in order {
            let Some(newcomer) = newcomers[position].take() else { continue };
            let name = newcomer.name.clone();
            let result = match kept[position].take() {
                Some(captured) => self.take_newcomer(newcomer, &captured, &mut lineage),
                None => match self.capture(&name) {
                    Ok(captured) => {
                        // It may have changed since it was read first.
                        let same = captured.chat.stamp == stamps[position];
                        let newcomer = if same { newcomer } else { Newcomer::of(&captured) };
                        self.take_newcomer(newcomer, &captured, &mut lineage)
                    }
                    Err(error) => Err(error),
                },
            };
            self.record(&name, result)?;
            monitor.advance(1);
        }
        self.lineage = Some(lineage);
        Ok(())
    }

    fn take_newcomer(
        &mut self,
        newcomer: Newcomer,
        captured: &Captured,
        lineage: &mut Lineage,
    ) -> Result<Taken> {
        if let Some(refused) = self.refused(captured, None) {
            return Ok(refused);
        }
        let follows = Follows::origin(lineage.origin(&newcomer)?);
        let taken = self.store_state(captured, &State::of(captured), follows)?;
        if let Taken::New(snapshot, _) = &taken {
            lineage.add(newcomer, snapshot);
        }
        Ok(taken)
    }

    /// Take the snapshot, say what is odd about what is new in it, and know the files next time.
    fn store_state(
        &mut self,
        captured: &Captured,
        state: &State<'_>,
        follows: Follows,
    ) -> Result<Taken> {
        let kind = if self.options.autosave { Kind::AUTOSAVE } else { Kind::SNAPSHOT };
        let (snapshot, fresh) = self.operation.take(state, kind, follows)?;
        self.tell_state(state, &snapshot);
        self.report.findings.extend(rules::captured(captured, &state.chat, &fresh));
        if let Some(cache) = &mut self.cache {
            cache.remember(captured, snapshot.id);
        }
        Ok(Taken::New(Box::new(snapshot), Vec::new()))
    }

    fn tell_state(&mut self, state: &State<'_>, snapshot: &Snapshot) {
        if let Some(noted) = &state.manifest.checkpoint {
            self.report.states.insert(snapshot.id, noted.clone());
        }
    }

    /// Whether a rule forbids it. What the rules only warn of is said.
    fn refused(&mut self, captured: &Captured, at: Option<usize>) -> Option<Taken> {
        let verdict = gate::judge(self.options, captured, at);
        if !verdict.refused.is_empty() {
            return Some(Taken::Refused(verdict.refused));
        }
        self.report.findings.extend(verdict.warnings);
        None
    }

    /// The state up to a message. Its branch stays where it is; the caller gives it a tag.
    pub(super) fn checkpoint(
        &mut self,
        captured: &Captured,
        at: usize,
        head: Option<&Snapshot>,
    ) -> Result<Taken> {
        let (joined, _) = cut(captured, at)?;
        let said = self.report.findings.len();
        if let Some(refused) = self.refused(captured, Some(at)) {
            return Ok(refused);
        }
        let mut state = State::cut(captured, at, &joined);
        if let Some(noted) = &mut state.manifest.checkpoint {
            let warned = self.report.findings[said..].iter();
            let warned = warned.filter(|finding| finding.level > Level::Info);
            noted.warnings = warned.map(|finding| finding.code.to_owned()).collect();
        }
        let follows = match head {
            Some(head) => self.operation.closest(&state, head)?,
            None => {
                let newcomer = Newcomer::of_state(&state);
                // A checkpoint is never another timeline under a new name.
                match Lineage::load(self.store, &self.scan.timelines)?.fork(&newcomer)? {
                    origin @ Origin::Fork { .. } => Follows::origin(origin),
                    _ => Follows::default(),
                }
            }
        };
        if let Some(same) = self.same_checkpoint(&state, &follows)? {
            return Ok(Taken::Unchanged(Box::new(same), Vec::new()));
        }
        let (taken, _) =
            self.operation.commit(&state, Kind::CHECKPOINT, follows, &Folders::default())?;
        self.tell_state(&state, &taken);
        Ok(Taken::New(Box::new(taken), Vec::new()))
    }

    /// The same checkpoint again is no new one: neither if a tag has it, nor if the timeline itself was once just that.
    fn same_checkpoint(&self, state: &State<'_>, follows: &Follows) -> Result<Option<Snapshot>> {
        let tagged = self.store.refs("refs/tags/")?.refs;
        let same = |known: &Snapshot| {
            known.timeline == *state.timeline && known.content == state.manifest.content
        };
        for (_, id) in tagged {
            if let Some(known) = resolve::find(self.store, SnapshotId(id))?.filter(same) {
                return Ok(Some(known));
            }
        }
        follows.same_as(state, self.store)
    }

    pub(super) fn capture(&self, name: &TimelineName) -> Result<Captured> {
        Ok(st::capture(self.library, &self.scan.groups, name, &Disk)?)
    }

    /// Note what became of a timeline. A timeline that cannot be read is one that failed; a store that cannot be written and a rule
    /// that refuses stop the command.
    pub(super) fn record(&mut self, name: &TimelineName, result: Result<Taken>) -> Result<()> {
        let result = match result {
            Ok(taken) => taken,
            Err(Error::St(error)) => Taken::Failed(error.to_string()),
            // It has something about it that cannot be told in a commit. No ref leads to what was made of it, and the others need not wait.
            Err(Error::Archive(error @ archive::Error::NotASnapshot { .. })) => {
                Taken::Failed(error.to_string())
            }
            Err(error) => return Err(error),
        };
        self.report.timelines.push(Outcome { timeline: name.to_string(), result });
        Ok(())
    }

    /// Tag every snapshot of this command.
    pub(super) fn tag(&mut self, name: impl Fn(&Snapshot) -> Result<RefName>) -> Result<()> {
        for outcome in &mut self.report.timelines {
            if let Taken::New(snapshot, tags) | Taken::Unchanged(snapshot, tags) =
                &mut outcome.result
            {
                let tag = name(snapshot)?;
                tags.extend(tag.tag_name());
                self.operation.move_ref(tag, snapshot.id)?;
            }
        }
        Ok(())
    }

    /// Make it durable, then tidy up.
    pub(super) fn finish(self, held: &Held) -> Result<Report> {
        let mut report = self.report;
        let taken = |outcome: &Outcome| matches!(outcome.result, Taken::New(..));
        if self.options.message.is_some() && !report.timelines.iter().any(taken) {
            let what = "nothing changed, so no snapshot was taken and your words are not kept";
            let finding = Finding::new("words-not-kept", Level::Info, "-m", what);
            report
                .findings
                .push(finding.remedy("`--tag NAME` names a state that is there already"));
        }
        (report.objects, report.bytes) = self.operation.finish(held)?;
        if self.options.timelines.is_empty() {
            // By their names: to read every head would cost more than the save.
            let here: HashSet<_> = self.scan.timelines.iter().map(branch).collect();
            let stored = self.store.refs("refs/heads/")?.refs;
            report.deleted = stored.iter().filter(|(name, _)| !here.contains(name)).count();
        }
        if report.objects > 0
            && let Err(error) = self.store.fold_packs(&held.lock)
        {
            let message = format!("small packs could not be joined: {error}");
            let subject = self.store.path().display().to_string();
            report.findings.push(Finding::new("packs-not-joined", Level::Info, subject, message));
        }
        if let Some(cache) = self.cache {
            cache.save(self.store);
        }
        if let Some(lineage) = self.lineage {
            lineage.save();
        }
        Ok(report)
    }
}
