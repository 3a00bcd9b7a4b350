//! Take snapshots: of every timeline that changed, or of the named ones.
//!
//! Order: lock, read, write all objects into one pack, sync it, log the operation, move the refs. A timeline that cannot be read
//! does not stop the others; a store that cannot be written stops everything, and then nothing has changed.

use std::collections::{BTreeSet, HashMap};

use super::cache::Cache;
use super::{Error, Result, Workspace, resolve, survey};
use crate::archive::{self, Kind, NewSnapshot, Snapshot, SnapshotId, State, Tree, branch, history};
use crate::progress::Monitor;
use crate::rules::{self, Finding, Level};
use crate::st::{Captured, Chat, Library, Scan, TimelineName};
use crate::store::{Kind as ObjectKind, PackWriter, RefChange, RefName, Store, commit};

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
        self.timelines
            .iter()
            .filter(|outcome| matches!(outcome.result, Taken::Failed(_)))
            .count()
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
    let mut report = Report {
        findings: unreadable(&scan),
        ..Report::default()
    };
    for finding in &report.findings {
        let failed = Taken::Failed(finding.message.clone());
        report.timelines.push(Outcome {
            timeline: finding.subject.clone(),
            result: failed,
        });
    }
    if options.dry_run {
        return plan(
            existing.as_ref(),
            &library,
            &scan,
            &names,
            options,
            report,
            monitor,
        );
    }
    report.created_store = existing.is_none();
    let store = match existing {
        Some(store) => store,
        None => Store::create(&workspace.store_path()?)?,
    };
    take(
        workspace, &store, &library, &scan, &names, options, report, monitor,
    )
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
                    let stored = history::heads(store)?
                        .into_iter()
                        .map(|head| head.timeline)
                        .collect();
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
    let mut cache = store.map(Cache::load);
    monitor.begin("looking at timelines", Some(names.len() as u64));
    for name in names {
        let result = match survey::look(store, library, &scan.groups, name, &mut cache) {
            Err(error) => Taken::Failed(error.to_string()),
            Ok(look) => match (
                look.unchanged && options.at.is_none(),
                look.head,
                look.captured,
            ) {
                (true, Some(head), _) => Taken::Unchanged(Box::new(head), Vec::new()),
                (_, head, Some(captured)) => {
                    report.findings.extend(rules::captured(&captured));
                    let messages = match options.at {
                        Some(at) => cut(&captured, at)?.1,
                        None => State::of(&captured).manifest.messages,
                    };
                    Taken::WouldBeNew(messages, head.map(|head| head.messages))
                }
                (_, head, None) => Taken::WouldBeNew(
                    options.at.map_or(0, |at| at as u64 + 1),
                    head.map(|h| h.messages),
                ),
            },
        };
        report.timelines.push(Outcome {
            timeline: name.to_string(),
            result,
        });
        monitor.advance(1);
    }
    Ok(report)
}

#[expect(
    clippy::too_many_arguments,
    reason = "the parts of one command, named once"
)]
fn take(
    workspace: &Workspace,
    store: &Store,
    library: &Library,
    scan: &Scan,
    names: &[TimelineName],
    options: &Options,
    mut report: Report,
    monitor: &mut dyn Monitor,
) -> Result<Report> {
    let lock = workspace.lock(store)?;
    let tag = match &options.tag {
        Some(name) => Some(super::tag::free(store, name)?),
        None => None,
    };
    let mut cache = Some(Cache::load(store));
    let mut session = Session::new(workspace, store, options.message.as_deref());
    monitor.begin("taking snapshots", Some(names.len() as u64));
    for name in names {
        let look = if options.at.is_some() {
            // A checkpoint at a message needs the files, changed or not.
            survey::look(Some(store), library, &scan.groups, name, &mut None)
        } else {
            survey::look(Some(store), library, &scan.groups, name, &mut cache)
        };
        let result = match look {
            Err(error @ Error::Store(_)) => return Err(error),
            Err(error) => Taken::Failed(error.to_string()),
            Ok(look) => {
                report
                    .findings
                    .extend(look.captured.iter().flat_map(rules::captured));
                match (options.at, look.captured, look.head) {
                    (Some(at), Some(captured), head) => {
                        session.checkpoint(&captured, at, head.as_ref())?
                    }
                    (None, _, Some(head)) if look.unchanged => {
                        Taken::Unchanged(Box::new(head), Vec::new())
                    }
                    (None, Some(captured), head) => {
                        let taken = session.take(&captured, Kind::SNAPSHOT, head.as_ref())?;
                        if let Some(cache) = &mut cache {
                            cache.remember(&captured, taken.id);
                        }
                        Taken::New(Box::new(taken), Vec::new())
                    }
                    (_, None, _) => Taken::Failed("its files were not read".into()),
                }
            }
        };
        report.timelines.push(Outcome {
            timeline: name.to_string(),
            result,
        });
        monitor.advance(1);
    }
    let tagged = report
        .timelines
        .iter_mut()
        .filter_map(|outcome| match &mut outcome.result {
            Taken::New(snapshot, tags) | Taken::Unchanged(snapshot, tags) => Some((snapshot, tags)),
            _ => None,
        });
    for (snapshot, tags) in tagged {
        let new_tag = match &tag {
            Some(tag) => Some(tag.clone()),
            None if options.at.is_some() => {
                Some(super::tag::free_for(store, snapshot, options.at)?)
            }
            None => None,
        };
        if let Some(tag) = new_tag {
            session.tag(&tag, snapshot.id)?;
            tags.extend(tag.tag_name());
        }
    }
    (report.objects, report.bytes) = session.finish(&lock, Vec::new())?;
    if report.objects > 0
        && let Err(error) = store.fold_packs(&lock)
    {
        let message = format!("small packs could not be joined: {error}");
        report.findings.push(Finding::new(
            "packs-not-joined",
            Level::Info,
            store.path().display().to_string(),
            message,
        ));
    }
    if let Some(cache) = cache {
        cache.save();
    }
    Ok(report)
}

/// The chat cut after message `at`, joined, and how many messages that is.
fn cut(captured: &Captured, at: usize) -> Result<(Vec<u8>, u64)> {
    let chat = Chat::split(&captured.chat.bytes, captured.name.is_group());
    if at >= chat.messages.len() {
        let last = chat.messages.len().checked_sub(1);
        let last = last.map_or("it has no messages".into(), |last| {
            format!("its last one is {last}")
        });
        let finding = Finding::new(
            "message-not-found",
            Level::Error,
            captured.name.as_str(),
            format!(
                "Message not found: {} has no message {at}; {last}",
                captured.name
            ),
        );
        return Err(Error::Refused { finding });
    }
    let cut = chat.upto(at);
    Ok((cut.join(), cut.message_count() as u64))
}

/// The new objects and ref moves of one command.
pub(super) struct Session<'a> {
    workspace: &'a Workspace,
    store: &'a Store,
    pub(super) pack: PackWriter,
    moves: HashMap<RefName, RefChange>,
    message: Option<&'a str>,
}

impl<'a> Session<'a> {
    pub(super) fn new(
        workspace: &'a Workspace,
        store: &'a Store,
        message: Option<&'a str>,
    ) -> Self {
        Self {
            workspace,
            store,
            pack: store.pack_writer(),
            moves: HashMap::new(),
            message,
        }
    }

    /// Store a timeline's state and move its branch there.
    pub(super) fn take(
        &mut self,
        captured: &Captured,
        kind: Kind,
        head: Option<&Snapshot>,
    ) -> Result<Snapshot> {
        let state = State::of(captured);
        let snapshot = self.commit(&state, kind, head)?;
        self.move_ref(branch(&captured.name), snapshot.id)?;
        Ok(snapshot)
    }

    /// Store a timeline's state up to a message. Its branch stays; the caller gives it a tag.
    fn checkpoint(
        &mut self,
        captured: &Captured,
        at: usize,
        head: Option<&Snapshot>,
    ) -> Result<Taken> {
        let (joined, _) = cut(captured, at)?;
        let state = State::cut(captured, at, &joined);
        let parent = match head {
            Some(head) => self.closest(&state, head)?,
            None => None,
        };
        // The same checkpoint again is no new one.
        if let Some(parent) = &parent
            && parent.content == state.manifest.content
        {
            return Ok(Taken::Unchanged(Box::new(parent.clone()), Vec::new()));
        }
        Ok(Taken::New(
            Box::new(self.commit(&state, Kind::CHECKPOINT, parent.as_ref())?),
            Vec::new(),
        ))
    }

    /// Among the snapshots of a timeline: the longest that is a beginning of `state`, else the newest that shares the most.
    fn closest(&self, state: &State<'_>, head: &Snapshot) -> Result<Option<Snapshot>> {
        let reader = self.store.reader();
        let ids = crate::store::blob_ids(&state.chat.messages)?;
        let mut best: Option<((bool, usize), Snapshot)> = None;
        let mut next = Some(head.clone());
        while let Some(snapshot) = next {
            if let Ok(tree) = Tree::open(&reader, snapshot.tree) {
                let shared = tree
                    .messages()
                    .iter()
                    .zip(&ids)
                    .take_while(|(a, b)| a == b)
                    .count();
                let rank = (shared == tree.messages().len(), shared);
                if best.as_ref().is_none_or(|(best, _)| rank > *best) {
                    best = Some((rank, snapshot.clone()));
                }
            }
            next = snapshot
                .parents
                .first()
                .and_then(|parent| resolve::read(self.store, *parent).ok());
        }
        Ok(best.map(|(_, snapshot)| snapshot))
    }

    fn commit(
        &mut self,
        state: &State<'_>,
        kind: Kind,
        parent: Option<&Snapshot>,
    ) -> Result<Snapshot> {
        let reader = self.store.reader();
        let written = archive::write(
            state,
            &mut self.pack,
            &reader,
            parent.map(|parent| parent.tree),
        )?;
        let new = NewSnapshot {
            manifest: &state.manifest,
            chat: &state.chat,
            tree: written.tree,
            parent: parent.map(|parent| parent.id),
            fork_at: None,
            kind,
            time: self.workspace.time(),
            message: self.message,
        };
        let bytes = commit::encode(&new.commit());
        let id = self.pack.add(ObjectKind::Commit, &bytes)?;
        Ok(Snapshot::read(&commit::decode(id, &bytes)?)?)
    }

    /// Let `tag` name a snapshot.
    pub(super) fn tag(&mut self, tag: &RefName, id: SnapshotId) -> Result<()> {
        self.move_ref(tag.clone(), id)
    }

    pub(super) fn move_ref(&mut self, name: RefName, to: SnapshotId) -> Result<()> {
        let before = self.store.ref_target(&name)?;
        self.moves.insert(
            name.clone(),
            RefChange {
                name,
                before,
                after: Some(to.0),
            },
        );
        Ok(())
    }

    /// Make it all durable: the pack, the log, the refs, in this order. How many objects and bytes were written.
    pub(super) fn finish(
        self,
        lock: &crate::store::Lock<'_>,
        files: Vec<crate::store::FileChange>,
    ) -> Result<(usize, u64)> {
        let (objects, bytes) = (self.pack.len(), self.pack.bytes());
        self.pack.finish()?;
        let mut moves: Vec<_> = self.moves.into_values().collect();
        moves.sort_by(|a, b| a.name.cmp(&b.name));
        self.store
            .transact(lock, self.workspace.timestamp(), moves, files)?;
        Ok((objects, bytes))
    }
}
