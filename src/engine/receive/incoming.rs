//! A backup of any kind: what a file holds is unpacked into a store of its own, which is gone when dropped; a folder is read where it is. Nothing of it is believed
//! before all of it was hashed and every snapshot judged; and then only what nothing is wrong with is let in.

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
use crate::rules::{Code, Finding, Level};
use crate::store::{
    Effect, Erasures, Kind, ObjectId, PackWriter, RefChange, RefName, Store, Transit,
    folder_for_now,
};

/// A backup that was read and judged, with all that is in it.
pub struct Received {
    /// What it says of itself.
    pub header: Header,
    /// Its objects, branches and tags.
    pub store: Store,
    /// What is said of its snapshots.
    pub judged: Judged,
    refs: Refs,
    /// What it is called.
    path: PathBuf,
    // Last, so that no file in it is open any more when it goes.
    origin: Origin,
}

/// Where the store of a backup is. A temporary folder is removed when it is dropped.
enum Origin {
    /// A backup file was unpacked there, into one pack.
    Unpacked {
        _folder: TempDir,
    },
    Fetched {
        _folder: TempDir,
    },
    /// The folder itself is the backup.
    InPlace,
}

/// What of a backup may be taken in.
pub(crate) struct Incoming {
    pub header: Header,
    /// Its objects, branches and tags; also of what is left out.
    pub store: Store,
    /// The snapshots that may be taken in, and those that are here.
    pub history: History,
    /// The latest ones of its branches.
    pub heads: Vec<Snapshot>,
    pub objects: NewObjects,
    /// How many snapshots were left out.
    pub left_out: usize,
    pub withheld: Withheld,
    pub findings: Vec<Finding>,
    /// Snapshots that were not looked at because the store had them.
    known: HashSet<SnapshotId>,
    // Last, so that no file in it is open any more when it goes.
    origin: Origin,
}

/// The objects to take over.
#[derive(Default)]
pub(crate) struct NewObjects {
    /// Those that are copied: all of them, or those that are not here.
    copied: Vec<(ObjectId, Kind)>,
    /// Commits that were written anew, because what they followed is left out.
    pub anew: Vec<Anew>,
}

/// What devices that share a remote do not exchange.
#[derive(Default)]
pub(crate) struct Withheld {
    /// Branches and tags that something is wrong with.
    pub odd: Vec<RefName>,
    /// Branches and tags that lead to what was removed for good.
    pub erased: Vec<ErasedRef>,
    /// The record of what was removed for good, on this device and on those that use the remote.
    pub erasures: Erasures,
}

/// Where a backup is read from, and what is known of it before.
pub(crate) struct Source<'s> {
    pub place: &'s CopyPlace,
    /// What opens it, if it is encrypted.
    pub passphrase: Option<&'s Passphrase>,
    /// Whether git may ask on the terminal.
    pub asks: bool,
    /// If it has to be unpacked, into a folder in this one.
    pub beside: &'s Path,
}

/// Reads a backup to its end, hashes every object and judges every snapshot. Unless it is a folder, it is unpacked into a temporary one, which is there until the result is dropped.
pub fn look_at(
    workspace: &Workspace,
    place: &CopyPlace,
    passphrase: Option<&Passphrase>,
    asks: bool,
    monitor: &mut dyn Monitor,
) -> Result<Received> {
    let source = Source { place, passphrase, asks, beside: &std::env::temp_dir() };
    read(workspace, &source, None, &KnownSnapshots::new(), monitor)
}

/// Reads a backup or a remote, judges all of it that the store does not have, and returns what may be taken in.
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

/// Reads a backup and judges all of it that is not known.
fn read(
    workspace: &Workspace,
    source: &Source<'_>,
    store: Option<&Store>,
    known: &KnownSnapshots,
    monitor: &mut dyn Monitor,
) -> Result<Received> {
    let Source { place, passphrase, asks, beside } = *source;
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

/// Judge what a repository has.
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

/// What a backup file would say of itself. Its day is that of its newest snapshot.
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

/// Unpack the backup at `source` into a folder in `beside` and judge all of it. Whatever is wrong with it, nothing of it is left.
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
    /// What is told of its snapshots.
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

    /// Leave out the branches and tags that lead to what is not wanted, with what only they lead to; these.
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

    /// Returns what devices share of it: the branches and tags with nothing in their past that is odd, of a newer format, or removed for good. Nothing is written anew: the other devices
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

    /// Returns what of it nothing is wrong with. It is refused if there is nothing.
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
        incoming.findings.extend(refs_told(&joined));
        incoming.take_over(joined.taken.iter(), self.judged.lost_objects())?;
        let Joined { history, heads, anew, .. } = joined;
        // Others take the place of these.
        let former: HashSet<_> = anew.iter().map(|anew| anew.former).collect();
        incoming.objects.copied.retain(|(id, _)| !former.contains(id));
        (incoming.history, incoming.heads, incoming.objects.anew) = (history, heads, anew);
        Ok(incoming)
    }
}

impl Incoming {
    /// Writes what is not here into a pack of the store.
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

    /// Whether the store still has what it had when the backup was looked at. Meanwhile somebody may have forgotten and collected it: ask under
    /// the store's lock, and receive anew if not.
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

/// Whether the timeline's own snapshots are among these, and not only those that it was forked from.
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

/// A branch or tag of a place that devices share, with something wrong before it.
fn left_there(name: &RefName) -> Finding {
    let message =
        "a snapshot that it leads to cannot be taken in, so it was neither taken nor sent";
    Finding::new(Code::RefLeftOut, spoken(name), message)
        .remedy("`stvc check` on that place says what is wrong; all else was synced")
}

/// What became of branches and tags that lead to what was left out.
fn refs_told(joined: &Joined) -> Vec<Finding> {
    let shortened = joined.shortened.iter().map(|(branch, head)| {
        let message = format!("its newest snapshot was left out; it ends with {head} here");
        Finding::new(Code::RefLeftOut, spoken(branch), message)
            .at(Level::Warning)
            .remedy("take a new snapshot while the files are there")
    });
    let left_out = joined.left_out.iter().map(|left_out| {
        let message = "what it names was left out, and so was the name";
        Finding::new(Code::RefLeftOut, spoken(left_out), message)
            .remedy("`stvc check` on the backup says what is wrong")
    });
    shortened.chain(left_out).collect()
}
