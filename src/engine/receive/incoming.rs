//! Reads a backup of any kind. A backup file is unpacked, and a server is fetched, into a temporary
//! store. A folder is read in place. All objects are hashed and all snapshots are validated before
//! anything is used. Only valid snapshots are accepted.

use std::collections::{HashMap, HashSet};
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use chrono::DateTime;
use tempfile::TempDir;

use super::join_history::{JoinedHistory, LocalHistory, RewrittenCommit, join};
use super::plan::Policy;
use crate::archive::backup::{
    self, BackupError, CommitKind, Decoder, Header, JudgedBackup, JudgedCommit, KnownSnapshots,
    Lengths, ObjectScope, Passphrase, unseal,
};
use crate::archive::{Snapshot, SnapshotId};
use crate::engine::copies::chosen_refs::{HEADS, Refs, TAGS, in_words, ours, ours_of, spoken};
use crate::engine::copies::erased::{ErasedRef, erased_among};
use crate::engine::copies::{CopyError, CopyPlace, about};
use crate::engine::remotes::{OpenedRemote, Reading, read_everything};
use crate::engine::verdict_findings::LostAttachments;
use crate::engine::{Result, Workspace, verdict_findings};
use crate::history::History;
use crate::progress::Monitor;
use crate::regular;
use crate::rules::{Code, Finding};
use crate::store::{
    Effect, Erasures, Kind, ObjectId, PackWriter, Reader, RefChange, RefName, RemoteSession, Store,
    temporary_folder, unless_lost,
};

pub struct Received {
    pub header: Header,
    pub store: Store,
    pub judged: JudgedBackup,
    refs: Refs,
    path: PathBuf,
    // Declared last, so that the store's files are closed before a temporary folder is deleted.
    origin: Origin,
}

/// The place of the store that is read. A temporary folder is deleted when this value is dropped.
enum Origin {
    /// A temporary store with the content of a backup file in one pack.
    Unpacked {
        _folder: TempDir,
    },
    Fetched {
        _folder: TempDir,
    },
    /// A temporary store with objects of a remote on plain storage.
    Opened {
        _folder: Arc<TempDir>,
    },
    InPlace,
}

pub(crate) struct Incoming {
    pub header: Header,
    /// The store that is read, with all its objects and refs, including those that are not
    /// imported.
    pub store: Store,
    /// The history with the snapshots that may be imported. It may also contain local snapshots.
    pub history: History,
    pub heads: Vec<Snapshot>,
    pub objects: NewObjects,
    pub left_out: usize,
    pub withheld: WithheldRefs,
    pub findings: Vec<Finding>,
    /// The snapshots that the local store had when the backup was read. They were not validated
    /// again.
    known: HashSet<SnapshotId>,
    // Declared last, so that the store's files are closed before a temporary folder is deleted.
    origin: Origin,
}

#[derive(Default)]
pub(crate) struct NewObjects {
    copied: Vec<(ObjectId, Kind)>,
    /// Commits that were rewritten because one of their ancestors is not imported.
    pub rewritten: Vec<RewrittenCommit>,
}

/// Refs of the remote that a sync does not import.
#[derive(Default)]
pub(crate) struct WithheldRefs {
    /// Refs that reach an invalid or unsupported snapshot.
    pub invalid: Vec<RefName>,
    /// Refs that reach an erased snapshot.
    pub erased: Vec<ErasedRef>,
    /// Refs to erased snapshots that cannot be read any more.
    pub erased_and_lost: Vec<RefName>,
    /// The erasures that this device and the remote have recorded.
    pub erasures: Erasures,
}

/// The backup or remote that is read.
#[derive(Clone, Copy)]
pub(crate) enum SourcePlace<'s> {
    Place(&'s CopyPlace),
    /// One state of a remote on plain storage.
    Opened(&'s OpenedRemote),
}

pub(crate) struct Source<'s> {
    pub place: SourcePlace<'s>,
    pub passphrase: Option<&'s Passphrase>,
    /// The folder in which temporary folders are created.
    pub beside: PathBuf,
}

/// Reads a backup, hashes all objects and validates all snapshots. A backup that is not a folder is
/// first copied into a temporary folder.
pub fn look_at(
    workspace: &Workspace,
    place: &CopyPlace,
    passphrase: Option<&Passphrase>,
    monitor: &mut dyn Monitor,
) -> Result<Received> {
    let place = SourcePlace::Place(place);
    let source = Source { place, passphrase, beside: std::env::temp_dir() };
    read(workspace, &source, None, &KnownSnapshots::new(), monitor)
}

/// Reads a backup or remote, validates its new snapshots, and returns the snapshots that may be
/// imported.
pub(super) fn receive(
    workspace: &Workspace,
    source: &Source<'_>,
    store: Option<&Store>,
    policy: Policy,
    monitor: &mut dyn Monitor,
) -> Result<Incoming> {
    let ours = store.map(History::load).transpose()?;
    let snapshots = ours.iter().flat_map(History::iter);
    let known = snapshots.map(|snapshot| snapshot.id.0).collect();
    let received = read(workspace, source, store, &known, monitor)?;
    let ours = store.zip(ours.as_ref());
    match policy {
        Policy::KeepLocal => received.incoming(ours),
        Policy::Join | Policy::JoinByTime => received.shared(ours),
    }
}

fn read(
    workspace: &Workspace,
    source: &Source<'_>,
    store: Option<&Store>,
    known: &KnownSnapshots,
    monitor: &mut dyn Monitor,
) -> Result<Received> {
    let Source { place, passphrase, ref beside } = *source;
    let place = match place {
        SourcePlace::Place(place) => place,
        SourcePlace::Opened(opened) => return look_into(opened, known, monitor),
    };
    match place {
        CopyPlace::Storage(address) => {
            let found = workspace.find_store().ok().flatten();
            let local = store.or(found.as_ref());
            let read = Reading { local, passphrase, beside, objects: store };
            let opened = read_everything(workspace, address, &read, monitor)?;
            look_into(&opened, known, monitor)
        }
        CopyPlace::File(path) => unpack(workspace, path, passphrase, beside, known, monitor),
        CopyPlace::Folder(path) => {
            let store = Store::open(path)?;
            look_through(store, Origin::InPlace, path, known, monitor)
        }
        CopyPlace::Remote(url) => {
            monitor.begin("fetching", None);
            let session = RemoteSession::new(beside, store, url, workspace.login_prompt)?;
            let list = session.list()?;
            ours_of(&list, url)?;
            let mut refspecs: Vec<_> =
                [HEADS, TAGS].map(|prefix| format!("+{prefix}*:{prefix}*")).into();
            let record = RefName::erased();
            if list.contains_key(record.as_str()) {
                refspecs.push(format!("+{record}:{record}"));
            }
            let have: Vec<_> = match store {
                Some(store) => ours(store)?.into_values().collect(),
                None => Vec::new(),
            };
            session.fetch(&refspecs, &have)?;
            let (store, folder) = session.into_store()?;
            let origin = Origin::Fetched { _folder: folder };
            look_through(store, origin, Path::new(&url.to_string()), known, monitor)
        }
        CopyPlace::Output => Err(CopyError::UnknownDestination {
            destination: "-".into(),
            why: "a backup cannot be read from standard input",
        }
        .into()),
    }
}

fn look_into(
    opened: &OpenedRemote,
    known: &KnownSnapshots,
    monitor: &mut dyn Monitor,
) -> Result<Received> {
    let (store, folder) = opened.store()?;
    let origin = Origin::Opened { _folder: folder };
    look_through(store, origin, Path::new(&opened.address), known, monitor)
}

fn look_through(
    store: Store,
    origin: Origin,
    path: &Path,
    known: &KnownSnapshots,
    monitor: &mut dyn Monitor,
) -> Result<Received> {
    monitor.begin("looking for objects", None);
    let refs = ours(&store)?;
    let judged =
        backup::judge(&store, &refs, &ObjectScope::Beyond, known, monitor).map_err(about(path))?;
    let header = header_of(&store, &refs, &judged)?;
    Ok(Received { header, store, judged, refs, path: path.to_owned(), origin })
}

/// Returns the header that a backup file of this repository would have. The time in the header is
/// that of the latest snapshot.
fn header_of(store: &Store, refs: &Refs, judged: &JudgedBackup) -> Result<Header> {
    let heads = crate::history::heads(store)?;
    let all = heads.iter().chain(judged.snapshots().map(|(snapshot, _)| snapshot));
    let newest = all.map(|snapshot| snapshot.time.seconds).max();
    let newest = newest.and_then(|seconds| DateTime::from_timestamp(seconds, 0));
    let mut timelines: Vec<_> = heads.iter().map(|head| head.timeline.to_string()).collect();
    timelines.sort();
    Ok(Header {
        program: "stvc".into(),
        taken: newest.map_or_else(String::new, |time| time.to_rfc3339()),
        whole: true,
        timelines,
        snapshots: judged.snapshots().count() as u64,
        objects: judged.objects as u64,
        refs: in_words(refs),
    })
}

/// Unpacks and validates a backup file. Leaves no files behind if the backup is invalid.
fn unpack(
    workspace: &Workspace,
    source: &Path,
    passphrase: Option<&Passphrase>,
    beside: &Path,
    known: &KnownSnapshots,
    monitor: &mut dyn Monitor,
) -> Result<Received> {
    let file = regular::open(source).map_err(BackupError::Io).map_err(about(source))?;
    let input = unseal(BufReader::new(file), passphrase).map_err(about(source))?;
    let mut decoder = Decoder::new(input).map_err(about(source))?;
    let folder = temporary_folder(beside)?;
    let store = Store::create(&folder.path().join("store"))?;
    let mut pack = store.pack_writer();
    let mut lengths = Lengths::new();
    monitor.begin("unpacking the backup", Some(decoder.header().objects));
    while let Some((kind, bytes)) = decoder.next_object().map_err(about(source))? {
        let id = pack.add(kind, bytes)?;
        if lengths.insert(id, (kind, bytes.len() as u64)).is_some() {
            let why = format!("object {id} occurs twice");
            return Err(about(source)(BackupError::Hostile { why }));
        }
        monitor.advance(1);
    }
    pack.finish()?;
    let header = decoder.header().clone();
    let refs = header.refs().map_err(about(source))?;
    // Reopen the store, because an open store does not see packs that are added later.
    let store = Store::open(store.path())?;
    let judged = backup::judge(&store, &refs, &ObjectScope::All(&lengths), known, monitor)
        .map_err(about(source))?;
    let is_commit = |id: &ObjectId| matches!(lengths.get(id), Some((Kind::Commit, _)));
    let moves = refs
        .iter()
        .filter(|(_, id)| is_commit(id))
        .map(|(name, id)| RefChange { name: name.clone(), before: None, after: Some(*id) })
        .collect();
    // The lock is free, because only this process uses the new store.
    let (store, held) = workspace.hold(&store)?;
    store.transact(&held.lock, workspace.timestamp(), Effect::moves(moves))?;
    drop(held);
    let (path, origin) = (source.to_owned(), Origin::Unpacked { _folder: folder });
    Ok(Received { header, store, judged, refs, path, origin })
}

impl Received {
    pub fn findings(&self) -> Vec<Finding> {
        let mut lost = LostAttachments::default();
        let finding = |found: &backup::JudgedCommit| match &found.what {
            CommitKind::Snapshot(snapshot, verdict) => {
                lost.note(&snapshot.timeline, verdict.lost_attachments());
                verdict_findings::finding(snapshot, verdict)
            }
            CommitKind::Nothing(why) => {
                Some(Finding::new(Code::HistoryBroken, found.id.to_string(), why.as_str()))
            }
            CommitKind::Known => None,
        };
        let mut findings: Vec<_> = self.judged.commits.iter().filter_map(finding).collect();
        findings.extend(lost.findings());
        findings
    }

    /// Removes the refs that reach an unwanted snapshot, and the commits that only these refs
    /// reach. Returns the removed refs.
    fn leave_out(&mut self, unwanted: impl Fn(&JudgedCommit) -> bool) -> Vec<(RefName, ObjectId)> {
        let found: HashMap<_, _> =
            self.judged.commits.iter().map(|found| (found.id, found)).collect();
        let past = |tip: ObjectId| {
            let (mut seen, mut open) = (HashSet::new(), vec![tip]);
            while let Some(id) = open.pop() {
                if seen.insert(id) {
                    open.extend(found.get(&id).into_iter().flat_map(|found| &found.parents));
                }
            }
            seen
        };
        let is_fit = |id: &ObjectId| found.get(id).is_none_or(|found| !unwanted(found));
        let (mut left, mut led_to) = (Vec::new(), HashSet::new());
        for (name, id) in &self.refs {
            let past = past(*id);
            if past.iter().all(is_fit) {
                led_to.extend(past)
            } else {
                left.push((name.clone(), *id))
            }
        }
        self.refs.retain(|name, _| !left.iter().any(|(left, _)| left == name));
        self.judged.commits.retain(|found| led_to.contains(&found.id));
        left
    }

    /// Returns the part that a sync imports: the branches and tags that do not reach an invalid,
    /// unsupported or erased snapshot. Does not rewrite commits, because other devices would not
    /// know the new ids.
    fn shared(mut self, ours: LocalHistory<'_>) -> Result<Incoming> {
        let mut erasures = ours.map(|(store, _)| store.erasures()).transpose()?.unwrap_or_default();
        erasures.join(&self.store.received_erasures()?);
        // Another device may already have deleted the objects of an erased snapshot, so it need not
        // be valid.
        let new = self.judged.snapshots().map(|(snapshot, _)| snapshot);
        let mut erased = erased_among(&erasures, &self.store.reader(), new)?;
        let recorded = self.judged.commits.iter().map(|found| found.id);
        erased.extend(recorded.filter(|id| erasures.has(&id.to_string())));
        let left = self.leave_out(|found| erased.contains(&found.id));
        let mut findings = self.findings();
        let invalid = self.leave_out(|found| !found.can_be_shared());
        let mut incoming = self.incoming(ours)?;
        findings.extend(invalid.iter().map(|(name, _)| withheld_ref(name)));
        incoming.findings = findings;
        let invalid = invalid.into_iter().map(|(name, _)| name).collect();
        incoming.withheld = WithheldRefs { invalid, erasures, ..WithheldRefs::default() };
        let reader = incoming.store.reader();
        for (name, id) in left {
            let Some(commit) = unless_lost(reader.commit(id))? else {
                incoming.withheld.erased_and_lost.push(name);
                continue;
            };
            let head = Snapshot::read(&commit)?;
            let is_fork = !is_its_own(&reader, head.clone(), &erased)?;
            incoming.withheld.erased.push(ErasedRef { name, head, is_fork });
        }
        Ok(incoming)
    }

    /// Returns the valid part of the backup. Fails if no branch or tag has a valid snapshot.
    fn incoming(self, ours: LocalHistory<'_>) -> Result<Incoming> {
        let findings = self.findings();
        let left_out = self.judged.commits.iter().filter(|found| !found.is_fit()).count();
        let known = ours.into_iter().flat_map(|(_, history)| history.iter());
        let mut incoming = Incoming {
            header: self.header,
            history: History::default(),
            heads: Vec::new(),
            objects: NewObjects::default(),
            left_out,
            withheld: WithheldRefs::default(),
            findings,
            known: known.map(|known| known.id).collect(),
            store: self.store,
            origin: self.origin,
        };
        if left_out == 0 {
            let refs = self.refs.into_iter();
            let (heads, tags): (Vec<_>, Vec<_>) =
                refs.partition(|(name, _)| name.as_str().starts_with(HEADS));
            incoming.history = History::from(&incoming.store, &heads, tags)?;
            let heads =
                heads.iter().filter_map(|(_, id)| incoming.history.get(SnapshotId(*id)).cloned());
            incoming.heads = heads.collect();
            let new: Vec<_> = self.judged.snapshots().map(|(snapshot, _)| snapshot).collect();
            incoming.take_over(new.iter().copied(), self.judged.lost_objects())?;
            return Ok(incoming);
        }
        let joined = join(&incoming.store, &self.judged.commits, &self.refs, ours)?;
        let (branches, tags) = (joined.heads.len(), joined.history.tags().count());
        if branches + tags == 0 {
            let why = self.judged.first_problem().unwrap_or_default();
            return Err(about(&self.path)(BackupError::Hostile { why }));
        }
        incoming.take_over(joined.taken.iter(), self.judged.lost_objects())?;
        let JoinedHistory { history, heads, rewritten, findings, .. } = joined;
        incoming.findings.extend(findings);
        // Do not copy commits that were rewritten.
        let former: HashSet<_> = rewritten.iter().map(|rewritten| rewritten.former).collect();
        incoming.objects.copied.retain(|(id, _)| !former.contains(id));
        (incoming.history, incoming.heads, incoming.objects.rewritten) =
            (history, heads, rewritten);
        Ok(incoming)
    }
}

impl Incoming {
    pub(super) fn adopt_into(&self, pack: &mut PackWriter) -> Result<()> {
        match &self.origin {
            // An unpacked backup is one pack, which can be copied without changes.
            Origin::Unpacked { .. } if self.left_out == 0 => pack.adopt(&self.store)?,
            _ => pack.adopt_some(&self.store, &self.objects.copied)?,
        }
        for commit in &self.objects.rewritten {
            pack.add(Kind::Commit, &commit.bytes)?;
        }
        Ok(())
    }

    /// Returns whether the local store still has all snapshots that it had when the backup was
    /// read. If a concurrent `forget` or `gc` removed some of them, the backup must be read again.
    /// `ours` must be loaded while the lock is held.
    pub(super) fn fits(&self, ours: &History) -> bool {
        self.known.iter().all(|id| ours.get(*id).is_some())
    }

    fn take_over<'s>(
        &mut self,
        snapshots: impl Iterator<Item = &'s Snapshot> + Clone,
        lost: HashSet<ObjectId>,
    ) -> Result<()> {
        let commits = snapshots.clone().map(|snapshot| (snapshot.id.0, Kind::Commit));
        self.objects.copied = commits.collect();
        let trees = snapshots.map(|snapshot| snapshot.tree);
        let objects = backup::objects_of(&self.store, trees, lost);
        self.objects.copied.extend(objects.map_err(about(self.store.path()))?);
        Ok(())
    }
}

/// Returns whether a timeline itself has one of the snapshots `ids`, and not only its parent.
fn is_its_own(reader: &Reader, head: Snapshot, ids: &HashSet<ObjectId>) -> Result<bool> {
    let mut snapshot = head;
    loop {
        if ids.contains(&snapshot.id.0) {
            return Ok(true);
        }
        let parent = snapshot.parents.first().filter(|_| snapshot.fork_at.is_none());
        let Some(parent) = parent else { return Ok(false) };
        if ids.contains(&parent.0) {
            return Ok(true);
        }
        snapshot = Snapshot::read(&reader.commit(parent.0)?)?;
    }
}

fn withheld_ref(name: &RefName) -> Finding {
    let message = "one of its snapshots is invalid or unsupported, so it was not synced";
    Finding::new(Code::RefLeftOut, spoken(name), message)
        .remedy("run `stvc check` on the remote to see the problem; the rest was synced")
}
