//! Lists all timelines with their changes since the latest snapshot, for `timelines` and `status`.

pub mod graph;
pub mod parent;
pub mod tree;

use std::collections::BTreeSet;

use serde::Serialize;

use crate::archive::{Snapshot, SnapshotId};
use crate::auto_recap::{self, QueueIntent};
use crate::engine::cache::Cache;
use crate::engine::changed_timelines::{Branches, ChangedParts, look_from};
use crate::engine::copies::last_backups::{self, BackupAge};
use crate::engine::unused_lorebooks::unused_lorebooks;
use crate::engine::{Include, Workspace};
use crate::history::owner_of_snapshot::Owners;
use crate::history::pairs::Pairs;
use crate::history::{History, latest_valid};
use crate::progress::Monitor;
use crate::rules::{self, Code, Finding};
use crate::st::{self, Category, Groups, Library, Presence, Scan, TimelineName};
use crate::store::Store;
use crate::verbs::Result;

/// The state of a timeline compared with its latest snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum TimelineChange {
    /// The timeline has no snapshot.
    New,
    /// The files differ from the latest snapshot.
    Changed,
    /// The files equal the latest snapshot.
    Unchanged,
    /// There is no file any more.
    Deleted,
    /// The files cannot be read.
    Unreadable,
    /// There is no file to compare with: the store is a backup, or only another device stores
    /// timelines of this category.
    Stored,
}

impl TimelineChange {
    /// Returns the word for this state in output.
    pub fn as_str(self) -> &'static str {
        match self {
            TimelineChange::New => "new",
            TimelineChange::Changed => "changed",
            TimelineChange::Unchanged => "unchanged",
            TimelineChange::Deleted => "deleted",
            TimelineChange::Unreadable => "unreadable",
            TimelineChange::Stored => "stored",
        }
    }
}

/// A chat, a lorebook or another file, with its snapshots.
#[derive(Serialize)]
pub struct Timeline {
    /// Current name. `--json` prints it as `timeline`.
    #[serde(rename = "timeline")]
    pub name: TimelineName,
    /// The latest snapshot and the current files.
    #[serde(flatten)]
    pub latest: Latest,
    /// Number of messages. For a deleted chat, the number in its latest snapshot.
    pub messages: u64,
    /// Number of entries, if the timeline is a lorebook.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entries: Option<u64>,
    /// Number of snapshots since its fork point.
    pub snapshots: usize,
    /// The fork point, if the timeline is a fork.
    #[serde(flatten)]
    pub fork: Fork,
    /// Name of the lorebook that the chat uses.
    pub lorebook: Option<String>,
    /// Name of the group, if the timeline is a group or a chat of a group whose file exists.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Name of the timeline when its latest snapshot was created, if it was another.
    pub renamed_from: Option<TimelineName>,
    /// Tags of the timeline's snapshots and checkpoints.
    pub tags: Vec<String>,
}

/// The latest snapshot of a timeline, compared with the current files.
#[derive(Serialize)]
pub struct Latest {
    /// The latest snapshot. `None` if there is none.
    #[serde(skip)]
    pub snapshot: Option<Snapshot>,
    /// Permanent name of the latest moment of a deleted chat, with the latest state of its
    /// lorebook. `None` for all other timelines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub moment: Option<String>,
    /// Result of the comparison.
    #[serde(rename = "state")]
    pub change: TimelineChange,
    /// Time of the last unstored save, or else of the latest snapshot, in seconds since 1970.
    #[serde(skip)]
    pub saved: i64,
    /// The files that differ. Empty unless `change` is `Changed`.
    #[serde(skip)]
    pub changed: ChangedParts,
    /// `None` if the latest snapshot is not damaged. Otherwise the latest valid snapshot, or
    /// `Some(None)` if no snapshot of the timeline is valid.
    #[serde(skip)]
    pub damaged: Option<Option<SnapshotId>>,
}

/// The parent of a timeline, and the number of messages that both share.
#[derive(Clone, Default, Serialize)]
pub struct Fork {
    /// The timeline from which this one was forked.
    pub parent: Option<TimelineName>,
    /// Number of messages that both share.
    pub fork_at: Option<u64>,
}

impl Timeline {
    /// Returns the changed parts of a chat. The list is empty for a new chat.
    pub fn changed_parts(&self) -> Vec<&'static str> {
        if !self.name.is_chat() {
            return Vec::new();
        }
        let Latest { change, changed, .. } = &self.latest;
        let parts =
            [(changed.main, "chat"), (changed.lorebook && !changed.apart, "lorebook")].into_iter();
        let is_changed = *change == TimelineChange::Changed;
        parts.filter(|(changed, _)| is_changed && *changed).map(|(_, part)| part).collect()
    }
}

/// All timelines, sorted by name.
pub struct Report {
    /// Every timeline of the library and of the store.
    pub timelines: Vec<Timeline>,
    /// Files that cannot be read, and advice about the whole library.
    pub findings: Vec<Finding>,
    /// Whether snapshots exist at all.
    pub has_store: bool,
    /// The latest backup. `None` if no backup is recorded.
    pub last_backup: Option<BackupAge>,
}

/// Compares every timeline of the library with the store.
pub fn timelines(workspace: &Workspace, monitor: &mut dyn Monitor) -> Result<Report> {
    let store = workspace.find_store()?;
    let library = match (workspace.library(), &store) {
        (Ok(library), _) => library,
        // A store that was chosen explicitly, such as a backup, is listed without a library.
        (Err(_), Some(store)) if workspace.store.is_some() => return stored(workspace, store),
        (Err(error), _) => return Err(error.into()),
    };
    let scan = library.scan()?;
    let history = match &store {
        Some(store) => workspace.history(store)?,
        None => Default::default(),
    };
    let include = Include::of(store.as_ref());
    let mut cache = store.as_ref().map(Cache::load);
    let branches = store.as_ref().map(Branches::read).transpose()?;
    let here: BTreeSet<_> = include.timelines(&scan).into_iter().collect();
    let stored = history.heads().map(|(name, _)| name.clone());
    let all: BTreeSet<_> = here.iter().cloned().chain(stored).collect();

    let unreadable =
        |(subject, why): &(String, String)| Finding::new(Code::Unreadable, subject, why);
    let mut findings: Vec<_> = scan.unreadable.iter().map(unreadable).collect();
    let owners = history.owners();
    let mut list = Vec::new();
    monitor.begin("comparing timelines", Some(all.len() as u64));
    for name in all {
        let mut timeline = of_store(&name, &history, owners);
        if !include.has(name.category()) {
            // Only another device stores timelines of this category.
            timeline.latest.change = TimelineChange::Stored;
        }
        timeline.group = group_name(&name, &scan.groups);
        if here.contains(&name) {
            let head = match (&store, &branches) {
                (Some(store), Some(branches)) => branches.head_in(&history, store, &name)?,
                _ => (None, false),
            };
            match look_from(store.as_ref(), &library, &scan.groups, &name, head, cache.as_mut()) {
                Ok(look) => {
                    timeline.latest.change = match (&look.head, look.is_new()) {
                        (None, _) => TimelineChange::New,
                        (Some(_), false) => TimelineChange::Unchanged,
                        (Some(_), true) => TimelineChange::Changed,
                    };
                    timeline.latest.changed = look.changed;
                    if let Some(captured) = &look.captured {
                        let book = captured.files.book_bytes().filter(|_| !look.is_unchanged());
                        findings.extend(auto_recap::queue_active(
                            name.as_str(),
                            book,
                            QueueIntent::SnapshotLater,
                        ));
                        let saved = captured.stamps.main.mtime_ns / 1_000_000_000;
                        if look.is_new() {
                            timeline.latest.saved = timeline.latest.saved.max(saved);
                        }
                        let chat = captured.files.split();
                        timeline.messages = chat.message_count() as u64;
                        if name.category() == Category::Lorebook {
                            let entries = st::entries(&captured.files.main.bytes).len();
                            timeline.entries = Some(entries as u64);
                        }
                        timeline.lorebook =
                            captured.files.lorebook.as_ref().map(|book| book.name.clone());
                        let template = library.book_template();
                        let found = rules::of_files(&captured.files, &chat, rules::ALL, template);
                        findings.extend(found);
                    }
                }
                Err(error) => {
                    timeline.latest.change = TimelineChange::Unreadable;
                    findings.push(Finding::new(Code::Unreadable, name.as_str(), error.to_string()));
                }
            }
        } else if let Presence::Unreadable(_) = library.presence(&scan, &name) {
            timeline.latest.change = TimelineChange::Unreadable;
        }
        list.push(timeline);
        monitor.advance(1);
    }
    // The cache is saved without a lock. If several processes save a cache, the last one remains,
    // and each of these caches is correct.
    if let (Some(store), Some(cache)) = (&store, cache) {
        cache.save(store);
    }
    findings.extend(orphans(&library, &scan, &history, owners));
    let mut last_backup = None;
    if let Some(store) = &store {
        last_backup = last_backups::newest(store, &history);
        findings
            .extend(last_backup.as_ref().and_then(|last| last_backups::overdue(workspace, last)));
        findings.extend(interrupted(store)?);
        findings.extend(mark_damaged(&mut list, store, &history));
        name_deleted(&mut list, store, &history)?;
    }
    latest_valid::advise(&mut findings, store.as_ref())?;
    let findings = rules::without_repeats(findings);
    Ok(Report { timelines: list, findings, has_store: store.is_some(), last_backup })
}

/// Returns findings about lorebooks that deleted chats left behind. `doctor` reports all other
/// unused lorebooks.
fn orphans(library: &Library, scan: &Scan, history: &History, owners: Owners<'_>) -> Vec<Finding> {
    let references = library.references(scan);
    let here = scan.chats.iter().cloned().collect();
    let books = library.lorebooks().unwrap_or_default();
    let unused = unused_lorebooks(&references, &books, &here, history, owners);
    let left = unused.iter().filter(|book| book.leftover);
    left.map(|book| rules::orphan(book, &references.unreadable)).collect()
}

/// Sets the permanent names of the moments that a restore of deleted chats would use.
fn name_deleted(timelines: &mut [Timeline], store: &Store, history: &History) -> Result<()> {
    let pairs = Pairs::new(store, history);
    let is_deleted = |timeline: &&mut Timeline| timeline.latest.change == TimelineChange::Deleted;
    for timeline in timelines.iter_mut().filter(is_deleted) {
        let head = history.head(&timeline.name).filter(|_| timeline.name.is_chat());
        timeline.latest.moment =
            head.map(|head| pairs.latest(head)).transpose()?.map(|pair| pair.id());
    }
    Ok(())
}

/// Lists the timelines of a store without comparing them with a library.
fn stored(workspace: &Workspace, store: &Store) -> Result<Report> {
    let history = workspace.history(store)?;
    let owners = history.owners();
    let mut timelines: Vec<_> =
        history.heads().map(|(name, _)| of_store(name, &history, owners)).collect();
    timelines.iter_mut().for_each(|it| it.latest.change = TimelineChange::Stored);
    let findings = mark_damaged(&mut timelines, store, &history);
    Ok(Report { timelines, findings, has_store: true, last_backup: None })
}

/// Sets `damaged` for each timeline whose latest snapshot is damaged. Returns a finding for each of
/// these timelines.
fn mark_damaged(timelines: &mut [Timeline], store: &Store, history: &History) -> Vec<Finding> {
    let mut findings = Vec::new();
    let damaged = store.known_damaged();
    for timeline in timelines {
        let Some(head) =
            timeline.latest.snapshot.as_ref().filter(|head| damaged.contains(&head.id.0))
        else {
            continue;
        };
        let mut past = history.ancestry(head);
        let sound = past.find(|snapshot| !damaged.contains(&snapshot.id.0)).map(|found| found.id);
        timeline.latest.damaged = Some(sound);
        let message = match sound {
            Some(sound) => {
                format!("its latest snapshot is damaged; the latest valid one is {sound}")
            }
            None => "its latest snapshot is damaged, and no earlier one is valid".into(),
        };
        let remedy = match timeline.latest.change {
            TimelineChange::Deleted => {
                "run `stvc check` to see the damage; run `stvc import` to restore it from a backup"
            }
            _ => {
                "run `stvc snapshot` to store the current files again; run `stvc check` to see the damage"
            }
        };
        let finding = Finding::new(Code::SnapshotDamaged, timeline.name.as_str(), message);
        findings.push(finding.remedy(remedy));
    }
    findings
}

/// Returns a finding about an unfinished operation. Until the operation is finished, files may be
/// older than the snapshots in the store.
fn interrupted(store: &Store) -> Result<Option<Finding>> {
    let unfinished = store.unfinished()?;
    let Some(operation) = unfinished.iter().find(|operation| !operation.effect.files.is_empty())
    else {
        return Ok(None);
    };
    let what = "it was interrupted before all its files were written, or is still running";
    let subject = format!("operation {}", operation.number);
    let finding = Finding::new(Code::OperationUnfinished, subject, what);
    Ok(Some(finding.remedy("run a command that writes, such as `stvc snapshot`, to finish it")))
}

fn group_name(name: &TimelineName, groups: &Groups) -> Option<String> {
    let file = match name.category() {
        Category::GroupChat => groups.group_of(name.chat())?.clone(),
        Category::Group => name.file(),
        _ => return None,
    };
    groups.name_of(&file).map(str::to_owned)
}

fn of_store(name: &TimelineName, history: &History, owners: Owners<'_>) -> Timeline {
    let head = history.head(name);
    let (own, origin) = head.map(|head| history.own(head)).unwrap_or_default();
    let is_own = |id| history.get(id).is_some_and(|found| owners.of_snapshot(found) == name);
    let tags = history.tags().filter(|(_, id)| is_own(*id));
    Timeline {
        name: name.clone(),
        latest: Latest {
            snapshot: head.cloned(),
            moment: None,
            change: TimelineChange::Deleted,
            saved: head.map_or(0, |head| head.time.seconds),
            changed: ChangedParts::default(),
            damaged: None,
        },
        messages: head.map_or(0, |head| head.messages),
        entries: head.and_then(|head| head.entries),
        snapshots: own.len(),
        fork: Fork {
            parent: origin.map(|origin| owners.of_snapshot(origin).clone()),
            fork_at: own.last().and_then(|first| first.fork_at),
        },
        lorebook: head.and_then(|head| head.lorebook.clone()),
        group: None,
        renamed_from: own.iter().find_map(|snapshot| snapshot.renamed_from.clone()),
        tags: tags.map(|(tag, _)| tag.to_owned()).collect(),
    }
}
