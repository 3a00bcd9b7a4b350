//! A backup of any kind: what a file holds is unpacked into a store of its own, which is gone when
//! dropped; a folder is read where it is. Nothing of it is believed before all of it was hashed and
//! every snapshot judged; and then only what nothing is wrong with is let in.

use std::collections::{HashMap, HashSet};
use std::io::BufReader;
use std::path::{Path, PathBuf};

use chrono::DateTime;
use tempfile::TempDir;

use super::join_history::{Anew, Joined, Ours, join};
use super::plan::Policy;
use crate::archive::backup::{
    self, BackupError, Decoder, Found, Given, Header, Judged, KnownSnapshots, Lengths, Passphrase,
    What, unseal,
};
use crate::archive::{Snapshot, SnapshotId};
use crate::engine::copies::chosen_refs::{HEADS, Refs, TAGS, in_words, ours, ours_of, spoken};
use crate::engine::copies::erased::{ErasedRef, erased_among};
use crate::engine::copies::{CopyError, CopyPlace, about};
use crate::engine::verdict_findings::LostAttachments;
use crate::engine::{Result, Workspace, verdict_findings};
use crate::history::History;
use crate::progress::Monitor;
use crate::regular;
use crate::rules::{Code, Finding};
use crate::store::{
    Effect, Erasures, Kind, ObjectId, PackWriter, RefChange, RefName, Store, Transit,
    folder_for_now,
};

pub struct Received {
    pub header: Header,
    pub store: Store,
    pub judged: Judged,
    refs: Refs,
    path: PathBuf,
    // Last, so that no file in it is open any more when it goes.
    origin: Origin,
}

/// The place of the store that is read. A temporary folder is deleted when dropped.
enum Origin {
    /// A backup file was unpacked there, into one pack.
    Unpacked {
        _folder: TempDir,
    },
    Fetched {
        _folder: TempDir,
    },
    InPlace,
}

pub(crate) struct Incoming {
    pub header: Header,
    /// Its objects and refs, including those that are left out.
    pub store: Store,
    /// The snapshots that may be taken in, and the local ones.
    pub history: History,
    pub heads: Vec<Snapshot>,
    pub objects: NewObjects,
    pub left_out: usize,
    pub withheld: Withheld,
    pub findings: Vec<Finding>,
    /// Snapshots that were not judged because the store has them.
    known: HashSet<SnapshotId>,
    // Last, so that no file in it is open any more when it goes.
    origin: Origin,
}

#[derive(Default)]
pub(crate) struct NewObjects {
    copied: Vec<(ObjectId, Kind)>,
    /// Commits that were rewritten because an ancestor is left out.
    pub anew: Vec<Anew>,
}

/// Refs that devices do not exchange.
#[derive(Default)]
pub(crate) struct Withheld {
    /// Refs with an invalid snapshot in their past.
    pub odd: Vec<RefName>,
    /// Refs that lead to erased snapshots.
    pub erased: Vec<ErasedRef>,
    /// The erasures of this device and of the remote.
    pub erasures: Erasures,
}

pub(crate) struct Source<'s> {
    pub place: &'s CopyPlace,
    pub passphrase: Option<&'s Passphrase>,
    /// Git may ask on the terminal.
    pub asks: bool,
    /// The folder for temporary files.
    pub beside: PathBuf,
}

/// Reads a backup, hashes every object and judges every snapshot. Unpacks it into a temporary
/// folder unless it is a folder.
pub fn look_at(
    workspace: &Workspace,
    place: &CopyPlace,
    passphrase: Option<&Passphrase>,
    asks: bool,
    monitor: &mut dyn Monitor,
) -> Result<Received> {
    let source = Source { place, passphrase, asks, beside: std::env::temp_dir() };
    read(workspace, &source, None, &KnownSnapshots::new(), monitor)
}

/// Reads a backup or remote, judges what the store does not have, and returns what may be taken in.
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
        Policy::Join => received.shared(ours),
    }
}

fn read(
    workspace: &Workspace,
    source: &Source<'_>,
    store: Option<&Store>,
    known: &KnownSnapshots,
    monitor: &mut dyn Monitor,
) -> Result<Received> {
    let Source { place, passphrase, asks, ref beside } = *source;
    match place {
        CopyPlace::File(path) => unpack(workspace, path, passphrase, beside, known, monitor),
        CopyPlace::Folder(path) => {
            let store = Store::open(path)?;
            look_through(store, Origin::InPlace, path, known, monitor)
        }
        CopyPlace::Remote(url) => {
            monitor.begin("fetching", None);
            let transit = Transit::new(beside, store, url, asks)?;
            let list = transit.list()?;
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
            transit.fetch(&refspecs, &have)?;
            let (store, folder) = transit.into_store()?;
            let origin = Origin::Fetched { _folder: folder };
            look_through(store, origin, Path::new(&url.to_string()), known, monitor)
        }
        CopyPlace::Output => Err(CopyError::UnknownDestination {
            destination: "-".into(),
            why: "a backup is not read from standard input",
        }
        .into()),
    }
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
        backup::judge(&store, &refs, &Given::Beyond, known, monitor).map_err(about(path))?;
    let header = header_of(&store, &refs, &judged)?;
    Ok(Received { header, store, judged, refs, path: path.to_owned(), origin })
}

/// Returns the header that a backup file of this repository would have. Its day is that of the
/// latest snapshot.
fn header_of(store: &Store, refs: &Refs, judged: &Judged) -> Result<Header> {
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

/// Unpacks a backup file and judges all of it. Leaves nothing behind if it is invalid.
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
    let folder = folder_for_now(beside)?;
    let store = Store::create(&folder.path().join("store"))?;
    let mut pack = store.pack_writer();
    let mut lengths = Lengths::new();
    monitor.begin("unpacking the backup", Some(decoder.header().objects));
    while let Some((kind, bytes)) = decoder.next_object().map_err(about(source))? {
        let id = pack.add(kind, bytes)?;
        if lengths.insert(id, (kind, bytes.len() as u64)).is_some() {
            let why = format!("object {id} twice");
            return Err(about(source)(BackupError::Hostile { why }));
        }
        monitor.advance(1);
    }
    pack.finish()?;
    let header = decoder.header().clone();
    let refs = header.refs().map_err(about(source))?;
    // Opened anew: a handle does not see a pack that came after it.
    let store = Store::open(store.path())?;
    let judged = backup::judge(&store, &refs, &Given::All(&lengths), known, monitor)
        .map_err(about(source))?;
    let is_commit = |id: &ObjectId| matches!(lengths.get(id), Some((Kind::Commit, _)));
    let moves = refs
        .iter()
        .filter(|(_, id)| is_commit(id))
        .map(|(name, id)| RefChange { name: name.clone(), before: None, after: Some(*id) })
        .collect();
    // Made just now, for this process alone.
    let (store, held) = workspace.hold(&store)?;
    store.transact(&held.lock, workspace.timestamp(), Effect::moves(moves))?;
    drop(held);
    let (path, origin) = (source.to_owned(), Origin::Unpacked { _folder: folder });
    Ok(Received { header, store, judged, refs, path, origin })
}

impl Received {
    pub fn findings(&self) -> Vec<Finding> {
        let mut lost = LostAttachments::default();
        let finding = |found: &backup::Found| match &found.what {
            What::Snapshot(snapshot, verdict) => {
                lost.note(&snapshot.timeline, verdict.lost_attachments());
                verdict_findings::finding(snapshot, verdict)
            }
            What::Nothing(why) => {
                Some(Finding::new(Code::HistoryBroken, found.id.to_string(), why.as_str()))
            }
            What::Known => None,
        };
        let mut findings: Vec<_> = self.judged.commits.iter().filter_map(finding).collect();
        findings.extend(lost.findings());
        findings
    }

    /// Removes the refs that lead to unwanted snapshots, and what only they lead to. Returns these
    /// refs.
    fn leave_out(&mut self, unwanted: impl Fn(&Found) -> bool) -> Vec<(RefName, ObjectId)> {
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

    /// Returns what devices share of it: the branches and tags with nothing in their past that is
    /// odd, of a newer format, or removed for good. Nothing is written anew: the other devices
    /// would not know it.
    fn shared(mut self, ours: Ours<'_>) -> Result<Incoming> {
        let mut findings = self.findings();
        let odd = self.leave_out(|found| !found.can_be_shared());
        let mut erasures = ours.map(|(store, _)| store.erasures()).transpose()?.unwrap_or_default();
        erasures.join(&self.store.received_erasures()?);
        let new = self.judged.snapshots().map(|(snapshot, _)| snapshot);
        let erased = erased_among(&erasures, &self.store.reader(), new)?;
        let left = self.leave_out(|found| erased.contains(&found.id));
        let mut incoming = self.incoming(ours)?;
        findings.extend(odd.iter().map(|(name, _)| left_there(name)));
        incoming.findings = findings;
        let odd = odd.into_iter().map(|(name, _)| name).collect();
        incoming.withheld = Withheld { odd, erased: Vec::new(), erasures };
        for (name, id) in left {
            let head = Snapshot::read(&incoming.store.reader().commit(id)?)?;
            let is_fork = !is_its_own(&incoming.store, head.clone(), &erased)?;
            incoming.withheld.erased.push(ErasedRef { name, head, is_fork });
        }
        Ok(incoming)
    }

    /// Returns the valid part of it. Fails if there is none.
    fn incoming(self, ours: Ours<'_>) -> Result<Incoming> {
        let findings = self.findings();
        let left_out = self.judged.commits.iter().filter(|found| !found.is_fit()).count();
        let known = ours.into_iter().flat_map(|(_, history)| history.iter());
        let mut incoming = Incoming {
            header: self.header,
            history: History::default(),
            heads: Vec::new(),
            objects: NewObjects::default(),
            left_out,
            withheld: Withheld::default(),
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
        let Joined { history, heads, anew, findings, .. } = joined;
        incoming.findings.extend(findings);
        // Others take the place of these.
        let former: HashSet<_> = anew.iter().map(|anew| anew.former).collect();
        incoming.objects.copied.retain(|(id, _)| !former.contains(id));
        (incoming.history, incoming.heads, incoming.objects.anew) = (history, heads, anew);
        Ok(incoming)
    }
}

impl Incoming {
    pub(super) fn adopt_into(&self, pack: &mut PackWriter) -> Result<()> {
        match &self.origin {
            // What was unpacked here stands in one pack, and can be copied as it is.
            Origin::Unpacked { .. } if self.left_out == 0 => pack.adopt(&self.store)?,
            _ => pack.adopt_some(&self.store, &self.objects.copied)?,
        }
        for commit in &self.objects.anew {
            pack.add(Kind::Commit, &commit.bytes)?;
        }
        Ok(())
    }

    /// Returns whether the store still has what it had when the backup was read. If not, because of
    /// a concurrent `forget` and `gc`, it must be read again. Ask under the lock.
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

fn is_its_own(store: &Store, head: Snapshot, ids: &HashSet<ObjectId>) -> Result<bool> {
    let mut snapshot = head;
    loop {
        if ids.contains(&snapshot.id.0) {
            return Ok(true);
        }
        let parent = snapshot.parents.first().filter(|_| snapshot.fork_at.is_none());
        let Some(parent) = parent else { return Ok(false) };
        snapshot = Snapshot::read(&store.reader().commit(parent.0)?)?;
    }
}

fn left_there(name: &RefName) -> Finding {
    let message =
        "a snapshot that it leads to cannot be taken in, so it was neither taken nor sent";
    Finding::new(Code::RefLeftOut, spoken(name), message)
        .remedy("`stvc check` on that place says what is wrong; all else was synced")
}
