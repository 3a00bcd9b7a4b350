//! Writes a backup of all timelines or of some timelines into one file or to standard output.
//!
//! The backup is first written to a temporary file in the same folder. The temporary file is synced
//! and read back, and every object is hashed. Only then is it renamed, so that a complete backup
//! always exists under the final name. An existing backup that has the same content is verified in
//! the same way, and then left alone.

use std::collections::HashSet;
use std::io::{self, BufWriter, Seek, Write};
use std::path::Path;

use crate::archive::backup::{
    self, BackupError, BackupOutput, Decoder, Header, Passphrase, unseal,
};
use crate::archive::readable_beyond;
use crate::durable::{self, Existing, Temp};
use crate::engine::Workspace;
use crate::engine::copies::chosen_refs::{ChosenRefs, in_words};
use crate::engine::copies::judge_outgoing::JudgedOutgoing;
use crate::engine::copies::last_backups::{self, LastBackup};
use crate::engine::copies::removed_here::{self, RemovedHere};
use crate::engine::copies::{CopyError, InTheWay, about, is_encrypted};
use crate::history::History;
use crate::progress::Monitor;
use crate::regular;
use crate::rules::Finding;
use crate::store::{self, PackSlot, RefName, Store};
use crate::verbs::{Error, Result};

/// The timelines to back up, and options for the file.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Names of the timelines. An empty list selects all timelines.
    pub timelines: Vec<String>,
    /// Encrypts the backup; `None` leaves it readable for everyone.
    pub passphrase: Option<Passphrase>,
    /// Replace an existing backup even if it contains snapshots that the new backup does not
    /// contain.
    pub overwrite: bool,
}

/// The outcome of a backup into a file.
#[non_exhaustive]
pub struct Report {
    /// The record that the store keeps of this backup.
    pub backup: LastBackup,
    /// Contents of the backup, as its header lists them.
    pub header: Header,
    /// Whether the file already had this content, so that it was verified and not written.
    pub up_to_date: bool,
    /// Number of snapshots in the backup that `import` will skip because of problems.
    pub invalid: usize,
    /// Problems of the backed-up snapshots.
    pub findings: Vec<Finding>,
}

struct Plan {
    header: Header,
    objects: Vec<PackSlot>,
    judged: JudgedOutgoing,
    history: History,
}

/// The decision about the file of a backup.
enum Decision {
    /// The file already is this backup, and has this many bytes.
    Keep { bytes: u64 },
    /// The backup is written. A backup that it replaces has these branches and tags, whose
    /// snapshots were deliberately removed from the store.
    Write { removed: Vec<RefName> },
}

/// Writes a backup to a file, unless the file already has the same content. Without
/// `Options::overwrite`, an existing backup is replaced only if the new backup contains all of its
/// snapshots, except for those that were deliberately removed from the store.
pub fn to_file(
    workspace: &Workspace,
    path: &Path,
    options: &Options,
    monitor: &mut dyn Monitor,
) -> Result<Report> {
    let store = workspace.open_store()?;
    monitor.begin("looking for objects", None);
    let plan = plan(workspace, &store, options, monitor)?;
    let path = std::path::absolute(path).map_err(BackupError::Io).map_err(about(path))?;
    let removed = match decide(&path, &store, &plan, options, monitor)? {
        Decision::Keep { bytes } => {
            let destination = path.display().to_string();
            let report = finish(workspace, &store, plan, destination, bytes, options);
            return Ok(Report { up_to_date: true, ..report });
        }
        Decision::Write { removed } => removed,
    };
    let failed = |error: io::Error| about(&path)(BackupError::Io(error));
    durable::clear_left_behind(durable::parent(&path));
    let mut temp = Temp::beside(&path).map_err(failed)?;
    make_private(temp.file());
    write(temp.file(), &plan, &store, options, monitor).map_err(about(&path))?;
    temp.file().sync_all().map_err(failed)?;
    let bytes = temp.file().stream_position().map_err(failed)?;
    temp.file().rewind().map_err(failed)?;
    read_back(temp.file(), &plan, options, monitor).map_err(about(&path))?;
    temp.finish(&path, Existing::Replace).map_err(failed)?;
    durable::sync_dir(durable::parent(&path)).map_err(failed)?;
    let mut report = finish(workspace, &store, plan, path.display().to_string(), bytes, options);
    let then = "the new backup does not contain them";
    let removed = removed_here::finding(&report.backup.destination, &removed, then);
    report.findings.extend(removed);
    Ok(report)
}

/// Writes a backup to `out`. The output cannot be read back, so each object is hashed while it is
/// written.
pub fn to_writer(
    workspace: &Workspace,
    out: &mut dyn Write,
    options: &Options,
    monitor: &mut dyn Monitor,
) -> Result<Report> {
    let store = workspace.open_store()?;
    monitor.begin("looking for objects", None);
    let plan = plan(workspace, &store, options, monitor)?;
    let mut counted = CountingWriter { out, bytes: 0 };
    write(&mut counted, &plan, &store, options, monitor)
        .map_err(about(Path::new("standard output")))?;
    Ok(finish(workspace, &store, plan, "-".into(), counted.bytes, options))
}

fn plan(
    workspace: &Workspace,
    store: &Store,
    options: &Options,
    monitor: &mut dyn Monitor,
) -> Result<Plan> {
    let chosen = ChosenRefs::of(workspace, store, &options.timelines)?;
    let judged = JudgedOutgoing::of(store, &chosen, |_| false, monitor)?;
    let ChosenRefs { history, refs, timelines, whole } = chosen;
    let tips = refs.values().copied().collect();
    let mut objects = readable_beyond(store, tips, &HashSet::new())?;
    objects.retain(|object| !judged.unreadable.contains(&object.id));
    let snapshots = objects.iter().filter(|object| object.kind == store::Kind::Commit).count();
    let header = Header {
        program: concat!("stvc ", env!("CARGO_PKG_VERSION")).into(),
        taken: workspace.timestamp(),
        whole,
        timelines,
        snapshots: snapshots as u64,
        objects: objects.len() as u64,
        refs: in_words(&refs),
    };
    Ok(Plan { header, objects, judged, history })
}

/// Refuses to replace a backup unless the new backup contains all its branches and tags without
/// damage. Otherwise a store that was lost and created again, or a damaged store, could destroy an
/// older backup.
fn decide(
    path: &Path,
    store: &Store,
    plan: &Plan,
    options: &Options,
    monitor: &mut dyn Monitor,
) -> Result<Decision> {
    let mut gone = Vec::new();
    if path.symlink_metadata().is_err() {
        return Ok(Decision::Write { removed: gone });
    }
    let refused = |what| Error::from(CopyError::InTheWay { path: path.to_owned(), what });
    let Some(encrypted) = is_encrypted(path) else {
        return Err(refused(InTheWay::OtherFile));
    };
    if options.overwrite {
        return Ok(Decision::Write { removed: gone });
    }
    if plan.judged.lacks_something() {
        return Err(refused(InTheWay::PerhapsWhole));
    }
    if encrypted && options.passphrase.is_none() {
        return Err(refused(InTheWay::Encrypted));
    }
    let unreadable = |_| refused(InTheWay::Unreadable);
    let file = regular::open(path).map_err(BackupError::Io).map_err(unreadable)?;
    let bytes = file.metadata().map(|metadata| metadata.len());
    let input = unseal(file, options.passphrase.as_ref()).map_err(unreadable)?;
    let mut decoder = Decoder::new(input).map_err(unreadable)?;
    let header = decoder.header().clone();
    let Header { program, taken, .. } = header.clone();
    let is_same = header == Header { program, taken, ..plan.header.clone() };
    // A file that turns out to be damaged is replaced.
    if is_same
        && encrypted == options.passphrase.is_some()
        && let Ok(bytes) = bytes
        && verify(&mut decoder, plan, monitor).is_ok()
    {
        return Ok(Decision::Keep { bytes });
    }
    let have: HashSet<_> = plan.objects.iter().map(|object| object.id).collect();
    let removed = RemovedHere::of(store)?;
    for (name, id) in header.refs {
        let id = store::ObjectId::from_hex(id.as_bytes());
        let (Ok(name), Ok(id)) = (RefName::try_from(name), id) else {
            return Err(refused(InTheWay::HasOtherSnapshots));
        };
        if have.contains(&id) {
            continue;
        }
        if !removed.is_removed(&name, id, &have, &plan.history)? {
            return Err(refused(InTheWay::HasOtherSnapshots));
        }
        gone.push(name);
    }
    Ok(Decision::Write { removed: gone })
}

fn write(
    out: impl Write,
    plan: &Plan,
    store: &Store,
    options: &Options,
    monitor: &mut dyn Monitor,
) -> backup::Result<()> {
    let out = BufWriter::with_capacity(1 << 17, out);
    let out = BackupOutput::new(out, options.passphrase.as_ref()).map_err(BackupError::Io)?;
    let reader = store.reader();
    let (out, _) = backup::encode(out, &plan.header, &plan.objects, &reader, monitor)?;
    let mut out = out.finish().map_err(BackupError::Io)?;
    out.flush().map_err(BackupError::Io)
}

/// Reads the file again, and checks its header and the hash of all objects.
fn read_back(
    input: impl io::Read,
    plan: &Plan,
    options: &Options,
    monitor: &mut dyn Monitor,
) -> backup::Result<()> {
    let mut decoder = Decoder::new(unseal(input, options.passphrase.as_ref())?)?;
    if *decoder.header() != plan.header {
        return Err(differs());
    }
    verify(&mut decoder, plan, monitor)
}

/// Reads a backup to its end. Fails unless it has every planned object once and no other object,
/// and its checksum is correct.
fn verify(
    decoder: &mut Decoder<impl io::Read>,
    plan: &Plan,
    monitor: &mut dyn Monitor,
) -> backup::Result<()> {
    monitor.begin("verifying the backup", Some(plan.header.objects));
    let mut expected: HashSet<_> = plan.objects.iter().map(|object| object.id).collect();
    while let Some(id) = decoder.next_id()? {
        if !expected.remove(&id) {
            return Err(differs());
        }
        monitor.advance(1);
    }
    if expected.is_empty() { Ok(()) } else { Err(differs()) }
}

fn differs() -> BackupError {
    BackupError::Damaged { why: "the content read back differs from the content written".into() }
}

fn finish(
    workspace: &Workspace,
    store: &Store,
    plan: Plan,
    destination: String,
    bytes: u64,
    options: &Options,
) -> Report {
    let Plan { header, judged: JudgedOutgoing { mut findings, invalid, .. }, .. } = plan;
    let backup = LastBackup {
        kind: "file".into(),
        destination,
        taken: header.taken.clone(),
        whole: header.whole,
        encrypted: options.passphrase.is_some(),
        bytes: Some(bytes),
        refs: header.refs.clone(),
        former: Default::default(),
    };
    findings.extend(last_backups::note(workspace, store, &backup));
    Report { backup, header, up_to_date: false, invalid, findings }
}

/// Makes the file readable by its owner only, because it contains private conversations. A file
/// system without permissions is not an error.
#[cfg(unix)]
fn make_private(file: &std::fs::File) {
    use std::os::unix::fs::PermissionsExt;
    let _ = file.set_permissions(std::fs::Permissions::from_mode(0o600));
}

/// Does nothing: on Windows, a file has the permissions of its folder.
#[cfg(not(unix))]
fn make_private(_file: &std::fs::File) {}

struct CountingWriter<'w> {
    out: &'w mut dyn Write,
    bytes: u64,
}

impl Write for CountingWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
