//! Take snapshots: of every timeline that changed, or of the named ones.
//!
//! Order: lock, read, write all objects into one pack, sync it, log the operation, move the refs. A timeline that cannot be read
//! does not stop the others; a store that cannot be written stops everything, and then nothing has changed.

use std::collections::{BTreeSet, HashSet};

use super::cache::Cache;
use super::lineage::{Lineage, Newcomer, Origin, order};
use super::session::{Follows, Session};
use super::{Error, Result, Workspace, resolve, survey};
use crate::archive::{self, Folders, Kind, Snapshot, SnapshotId, State, Verifier, branch, history};
use crate::progress::Monitor;
use crate::rules::{self, Finding, Level};
use crate::st::{self, Captured, Chat, Disk, Library, Scan, TimelineName};
use crate::store::{Lock, RefName, Store};

/// What to take.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Timelines by name; none: every one that changed.
    pub timelines: Vec<String>,
    /// Cut after this message.
    pub at: Option<usize>,
    /// The user's words for it.
    pub message: Option<String>,
    /// A tag for it.
    pub tag: Option<String>,
    /// Only say what would be done.
    pub dry_run: bool,
}

/// What was taken.
#[derive(Default)]
pub struct Report {
    /// The timelines that were looked at, in order.
    pub timelines: Vec<Outcome>,
    /// What was noticed about them.
    pub findings: Vec<Finding>,
    /// How many timelines have snapshots but no file any more; counted when no chat was named.
    pub deleted: usize,
    /// Whether the store was made for it.
    pub created_store: bool,
    /// How many objects were written.
    pub objects: usize,
    /// How many bytes they take.
    pub bytes: u64,
}

impl Report {
    /// How many timelines could not be taken.
    pub fn failed(&self) -> usize {
        self.timelines.iter().filter(|outcome| matches!(outcome.result, Taken::Failed(_))).count()
    }
}

/// What became of one timeline.
pub struct Outcome {
    /// Which.
    pub timeline: String,
    /// What.
    pub result: Taken,
}

/// What became of a timeline.
pub enum Taken {
    /// A new snapshot, and its tags.
    New(Box<Snapshot>, Vec<String>),
    /// A new snapshot that a dry run did not write: its message count, and how many the newest one has.
    WouldBeNew(u64, Option<u64>),
    /// The newest snapshot already is this state.
    Unchanged(Box<Snapshot>, Vec<String>),
    /// It could not be read.
    Failed(String),
}

/// Take snapshots.
pub fn snapshot(
    workspace: &Workspace,
    options: &Options,
    monitor: &mut dyn Monitor,
) -> Result<Report> {
    let library = workspace.library()?;
    let scan = library.scan()?;
    let existing = workspace.find_store()?;
    let names = select(options, &library, &scan, existing.as_ref())?;
    if options.at.is_some() && names.len() != 1 {
        return Err(Error::NeedsOneTimeline { option: "--at" });
    }
    if options.tag.is_some() && names.len() != 1 {
        return Err(Error::NeedsOneTimeline { option: "--tag" });
    }
    // Whoever asks for one chat is not told of another.
    let findings = if options.timelines.is_empty() { unreadable(&scan) } else { Vec::new() };
    let mut report = Report { findings, ..Report::default() };
    for finding in &report.findings {
        let failed = Taken::Failed(finding.message.clone());
        report.timelines.push(Outcome { timeline: finding.subject.clone(), result: failed });
    }
    if options.dry_run {
        return plan(existing.as_ref(), &library, &scan, &names, options, report, monitor);
    }
    report.created_store = existing.is_none();
    let store = match existing {
        Some(store) => store,
        None => Store::create(&workspace.store_path()?)?,
    };
    let lock = workspace.lock(&store)?;
    let tag = match &options.tag {
        Some(name) => Some(super::tag::free(&store, name)?),
        None => None,
    };
    let mut run = Run {
        store: &store,
        library: &library,
        scan: &scan,
        options,
        session: Session::new(workspace, &store, options.message.as_deref()),
        cache: Some(Cache::load(&store)),
        lineage: None,
        report,
        mend: store.is_marked_damaged(),
    };
    run.take(&names, monitor)?;
    if let Some(tag) = &tag {
        run.tag(|_| Ok(tag.clone()))?;
    } else if options.at.is_some() {
        run.tag(|snapshot| super::tag::free_for(&store, snapshot, options.at))?;
    }
    run.finish(&lock)
}

fn select(
    options: &Options,
    library: &Library,
    scan: &Scan,
    store: Option<&Store>,
) -> Result<Vec<TimelineName>> {
    if options.timelines.is_empty() {
        return Ok(scan.timelines.clone());
    }
    let here: BTreeSet<_> = scan.timelines.iter().cloned().collect();
    let mut names = Vec::new();
    for text in &options.timelines {
        let name = match resolve::timeline(text, Some(library), &here) {
            // Perhaps it is stored but its file is gone: then say that.
            Err(Error::NoSuchTimeline { name }) => match store {
                Some(store) => {
                    let stored =
                        history::heads(store)?.into_iter().map(|head| head.timeline).collect();
                    resolve::timeline(&name, Some(library), &stored)?
                }
                None => return Err(Error::NoSuchTimeline { name }),
            },
            other => other?,
        };
        if !names.contains(&name) {
            names.push(name);
        }
    }
    Ok(names)
}

fn unreadable(scan: &Scan) -> Vec<Finding> {
    let finding = |(subject, why): &(String, String)| {
        Finding::new("unreadable", Level::Error, subject, why)
            .remedy("check its name and permissions; it was not stored")
    };
    scan.unreadable.iter().map(finding).collect()
}

fn plan(
    store: Option<&Store>,
    library: &Library,
    scan: &Scan,
    names: &[TimelineName],
    options: &Options,
    mut report: Report,
    monitor: &mut dyn Monitor,
) -> Result<Report> {
    // A checkpoint at a message needs the files, changed or not.
    let mut cache = store.filter(|_| options.at.is_none()).map(Cache::load);
    monitor.begin("looking at timelines", Some(names.len() as u64));
    for name in names {
        let result = match survey::look(store, library, &scan.groups, name, &mut cache) {
            Err(error) => Taken::Failed(error.to_string()),
            Ok(look) => match (look.unchanged && options.at.is_none(), look.head, look.captured) {
                (true, Some(head), _) => Taken::Unchanged(Box::new(head), Vec::new()),
                (_, head, Some(captured)) => {
                    let chat = Chat::split(&captured.chat.bytes, captured.name.is_group());
                    report.findings.extend(rules::captured(&captured, &chat, rules::ALL));
                    let messages = match options.at {
                        Some(at) => cut(&captured, at)?.1,
                        None => chat.message_count() as u64,
                    };
                    Taken::WouldBeNew(messages, head.map(|head| head.messages))
                }
                (_, _, None) => Taken::Failed("its files were not read".into()),
            },
        };
        report.timelines.push(Outcome { timeline: name.to_string(), result });
        monitor.advance(1);
    }
    Ok(report)
}

/// New chats are read twice, to know them all before the first is taken; up to this much is kept in memory instead.
const KEPT_BYTES: usize = 16 << 20;

/// One command in the making.
struct Run<'a> {
    store: &'a Store,
    library: &'a Library,
    scan: &'a Scan,
    options: &'a Options,
    session: Session<'a>,
    cache: Option<Cache>,
    lineage: Option<Lineage>,
    report: Report,
    /// The last check found damage: write again what cannot be read.
    mend: bool,
}

impl Run<'_> {
    fn take(&mut self, names: &[TimelineName], monitor: &mut dyn Monitor) -> Result<()> {
        monitor.begin("taking snapshots", Some(names.len() as u64));
        let mut new = Vec::new();
        for name in names {
            if self.options.at.is_none() && survey::head(self.store, name)?.0.is_none() {
                new.push(name);
                continue;
            }
            let result = self.take_known(name);
            self.record(name, result)?;
            monitor.advance(1);
        }
        self.take_new(&new, monitor)?;
        self.report.timelines.sort_by(|a, b| a.timeline.cmp(&b.timeline));
        Ok(())
    }

    /// A timeline that has a branch, or one of which a checkpoint is taken.
    fn take_known(&mut self, name: &TimelineName) -> Result<Taken> {
        // A checkpoint at a message needs the files, changed or not; and so does a store that has to be mended.
        let cache =
            if self.options.at.is_some() || self.mend { &mut None } else { &mut self.cache };
        let look = survey::look(Some(self.store), self.library, &self.scan.groups, name, cache)?;
        let Some(captured) = look.captured else {
            let head = look.head.ok_or_else(|| Error::NoSuchTimeline { name: name.to_string() })?;
            return Ok(Taken::Unchanged(Box::new(head), Vec::new()));
        };
        if let Some(at) = self.options.at {
            return self.checkpoint(&captured, at, look.head.as_ref());
        }
        match look.head {
            Some(head) if look.unchanged => {
                if look.astray {
                    self.session.move_ref(branch(name), head.id)?;
                }
                let state = State::of(&captured);
                if self.mend && !self.mends(&state, &head)? {
                    return self.store_state(&captured, &state, Follows::previous(head));
                }
                Ok(Taken::Unchanged(Box::new(head), Vec::new()))
            }
            head => {
                let state = State::of(&captured);
                let alarm = head.as_ref().and_then(|head| self.session.alarm(&state, head));
                self.report.findings.extend(alarm);
                let follows = head.map(Follows::previous).unwrap_or_default();
                self.store_state(&captured, &state, follows)
            }
        }
    }

    /// Whether a snapshot that may be damaged is whole again once its objects are written anew. Only what cannot be read is
    /// written.
    fn mends(&mut self, state: &State<'_>, head: &Snapshot) -> Result<bool> {
        let reader = self.store.reader();
        if Verifier::new(self.store.reader()).verify(head.tree).is_ok() {
            return Ok(true);
        }
        let written =
            archive::write(state, &mut self.session.pack, &reader, None, &Folders::default())?;
        Ok(written.tree == head.tree)
    }

    /// Chats that were never seen. All are read before the first is taken, because any may come from any other.
    fn take_new(&mut self, names: &[&TimelineName], monitor: &mut dyn Monitor) -> Result<()> {
        if names.is_empty() {
            return Ok(());
        }
        let mut lineage = Lineage::load(self.store, &self.scan.timelines)?;
        let mut newcomers = Vec::new();
        let mut stamps = Vec::new();
        let mut kept = Vec::new();
        let mut room = KEPT_BYTES;
        for name in names {
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
        let follows = Follows::origin(lineage.origin(&newcomer));
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
        let (snapshot, fresh) = self.session.take(state, Kind::SNAPSHOT, follows)?;
        self.report.findings.extend(rules::captured(captured, &state.chat, &fresh));
        if let Some(cache) = &mut self.cache {
            cache.remember(captured, snapshot.id);
        }
        Ok(Taken::New(Box::new(snapshot), Vec::new()))
    }

    /// The state up to a message. Its branch stays where it is; the caller gives it a tag.
    fn checkpoint(
        &mut self,
        captured: &Captured,
        at: usize,
        head: Option<&Snapshot>,
    ) -> Result<Taken> {
        let (joined, _) = cut(captured, at)?;
        let state = State::cut(captured, at, &joined);
        let follows = match head {
            Some(head) => self.session.closest(&state, head)?,
            None => {
                let newcomer = Newcomer::of_state(&state);
                // A checkpoint is never another timeline under a new name.
                match Lineage::load(self.store, &self.scan.timelines)?.fork(&newcomer) {
                    origin @ Origin::Fork { .. } => Follows::origin(origin),
                    _ => Follows::default(),
                }
            }
        };
        if let Some(same) = self.same_checkpoint(&state, &follows)? {
            return Ok(Taken::Unchanged(Box::new(same), Vec::new()));
        }
        let (taken, _) =
            self.session.commit(&state, Kind::CHECKPOINT, follows, &Folders::default())?;
        Ok(Taken::New(Box::new(taken), Vec::new()))
    }

    /// The same checkpoint again is no new one: neither if a tag has it, nor if the timeline itself was once just that.
    fn same_checkpoint(&self, state: &State<'_>, follows: &Follows) -> Result<Option<Snapshot>> {
        let tagged = self.store.refs("refs/tags/")?.refs;
        let tagged =
            tagged.into_iter().filter_map(|(_, id)| resolve::read(self.store, SnapshotId(id)).ok());
        let same = |known: &Snapshot| {
            known.timeline == *state.timeline && known.content == state.manifest.content
        };
        Ok(tagged.into_iter().find(same).or_else(|| follows.same_as(state, self.store)))
    }

    fn capture(&self, name: &TimelineName) -> Result<Captured> {
        Ok(st::capture(self.library, &self.scan.groups, name, &Disk)?)
    }

    /// Note what became of a timeline. A timeline that cannot be read is one that failed; a store that cannot be written and a rule
    /// that refuses stop the command.
    fn record(&mut self, name: &TimelineName, result: Result<Taken>) -> Result<()> {
        let result = match result {
            Ok(taken) => taken,
            Err(Error::St(error)) => Taken::Failed(error.to_string()),
            Err(error) => return Err(error),
        };
        self.report.timelines.push(Outcome { timeline: name.to_string(), result });
        Ok(())
    }

    /// Tag every snapshot of this command.
    fn tag(&mut self, name: impl Fn(&Snapshot) -> Result<RefName>) -> Result<()> {
        for outcome in &mut self.report.timelines {
            if let Taken::New(snapshot, tags) | Taken::Unchanged(snapshot, tags) =
                &mut outcome.result
            {
                let tag = name(snapshot)?;
                tags.extend(tag.tag_name());
                self.session.move_ref(tag, snapshot.id)?;
            }
        }
        Ok(())
    }

    /// Make it durable, then tidy up.
    fn finish(self, lock: &Lock<'_>) -> Result<Report> {
        let mut report = self.report;
        (report.objects, report.bytes) = self.session.finish(lock, Vec::new())?;
        if self.options.timelines.is_empty() {
            let here: HashSet<_> = self.scan.timelines.iter().map(branch).collect();
            let stored = self.store.refs("refs/heads/")?.refs;
            report.deleted = stored.iter().filter(|(name, _)| !here.contains(name)).count();
        }
        if report.objects > 0
            && let Err(error) = self.store.fold_packs(lock)
        {
            let message = format!("small packs could not be joined: {error}");
            let subject = self.store.path().display().to_string();
            report.findings.push(Finding::new("packs-not-joined", Level::Info, subject, message));
        }
        if let Some(cache) = self.cache {
            cache.save();
        }
        if let Some(lineage) = self.lineage {
            lineage.save();
        }
        Ok(report)
    }
}

/// The chat cut after message `at`, joined, and how many messages that is.
fn cut(captured: &Captured, at: usize) -> Result<(Vec<u8>, u64)> {
    let chat = Chat::split(&captured.chat.bytes, captured.name.is_group());
    if at >= chat.messages.len() {
        let last = chat.messages.len().checked_sub(1);
        let last =
            last.map_or("it has no messages".into(), |last| format!("its last one is {last}"));
        let finding = Finding::new(
            "message-not-found",
            Level::Error,
            captured.name.as_str(),
            format!("Message not found: {} has no message {at}; {last}", captured.name),
        );
        return Err(Error::Refused { finding });
    }
    let cut = chat.upto(at);
    Ok((cut.join(), cut.message_count() as u64))
}
