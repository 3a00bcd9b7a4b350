//! Bring a snapshot's files back.
//!
//! Order: rebuild and check against the manifest; look at what is in the way; with `overwrite`, store what is there first; log the
//! operation; write each file, read it back and compare. Nothing is written before all of it has been rebuilt.

use std::borrow::Cow;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::session::{Follows, Session};
use super::{Error, Result, Workspace, resolve, survey};
use crate::archive::{
    self, Blake3, Contents, Kind, Manifest, Role, Snapshot, SnapshotId, State, Tree, branch,
};
use crate::progress::Monitor;
use crate::rules::{Finding, Level};
use crate::st::{self, LibraryPath};
use crate::store::names::tree_segment;
use crate::store::{
    FileChange, Kept, Kind as ObjectKind, NewCommit, RefName, Store, TreeEntry, commit, tree,
};

/// What to bring back, and where.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The snapshot.
    pub snapshot: String,
    /// Into this empty folder instead of the library.
    pub to: Option<PathBuf>,
    /// Only this file.
    pub only: Option<Role>,
    /// Also where something else is; that is stored first.
    pub overwrite: bool,
    /// Only say what would be done.
    pub dry_run: bool,
}

/// What was done with one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Written.
    Write,
    /// It was there already, byte for byte.
    Keep,
    /// Removed.
    Delete,
}

/// One file of the plan.
pub struct FileAction {
    /// Its path in the library, or in the folder it went to.
    pub path: LibraryPath,
    /// What was done.
    pub action: Action,
    /// Its length.
    pub bytes: u64,
    /// Its hash.
    pub blake3: Blake3,
    /// Whether something else was there.
    pub replaces: bool,
}

/// What was done.
pub struct Report {
    /// The snapshot.
    pub snapshot: Snapshot,
    /// Where the files are.
    pub root: PathBuf,
    /// The files.
    pub files: Vec<FileAction>,
    /// The snapshot that was taken of what was there.
    pub safety: Option<Snapshot>,
    /// Whether former bytes are kept outside any snapshot.
    pub kept: bool,
    /// What was noticed.
    pub findings: Vec<Finding>,
    /// Whether it was only a plan.
    pub dry_run: bool,
}

/// Bring a snapshot back.
pub fn restore(
    workspace: &Workspace,
    options: &Options,
    monitor: &mut dyn Monitor,
) -> Result<Report> {
    let store = workspace.open_store()?;
    let snapshot = resolve::snapshot(&options.snapshot, &store, workspace.library().ok().as_ref())?;
    monitor.begin("rebuilding files", None);
    let contents = Tree::open(&store.reader(), snapshot.tree)?.materialise(&store.reader())?;
    if let Some(part) = options.only
        && contents.bytes(part).is_none()
    {
        return Err(Error::NoSuchPart { snapshot: snapshot.id.to_string(), part: part.as_str() });
    }
    match &options.to {
        Some(dir) => restore_to(dir, snapshot, &contents, options),
        None => restore_in_place(workspace, &store, snapshot, &contents, options),
    }
}

/// The exact files into an empty folder.
fn restore_to(
    dir: &Path,
    snapshot: Snapshot,
    contents: &Contents,
    options: &Options,
) -> Result<Report> {
    let root = std::path::absolute(dir).map_err(io_error(dir))?;
    match fs::read_dir(&root).map(|mut entries| entries.next().is_some()) {
        Ok(true) => return Err(Error::NotEmpty { path: root }),
        Ok(false) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(io_error(&root)(error)),
    }
    if !options.dry_run {
        crate::durable::create_dir_all(&root).map_err(io_error(&root))?;
    }
    let mut files = Vec::new();
    for file in contents.files.iter().filter(|file| wanted(options, file.role)) {
        if !options.dry_run {
            st::write(&root, &file.path, &file.bytes, None)?;
        }
        files.push(FileAction {
            path: file.path.clone(),
            action: Action::Write,
            bytes: file.bytes.len() as u64,
            blake3: file.blake3,
            replaces: false,
        });
    }
    Ok(Report {
        snapshot,
        root,
        files,
        safety: None,
        kept: false,
        findings: Vec::new(),
        dry_run: options.dry_run,
    })
}

/// One file that goes into the library: what is there now, and what shall be.
struct Planned<'c> {
    path: LibraryPath,
    now: Option<Vec<u8>>,
    new: Cow<'c, [u8]>,
    blake3: Blake3,
    /// Whether `new` is what the snapshot has.
    stored: bool,
    /// Whether what is there may be changed without `overwrite`: a chat listed in its group's file takes nothing away.
    harmless: bool,
}

impl Planned<'_> {
    fn replaces(&self) -> bool {
        self.now.is_some() && !self.is_there()
    }

    fn is_there(&self) -> bool {
        self.now.as_deref() == Some(&*self.new)
    }
}

fn restore_in_place(
    workspace: &Workspace,
    store: &Store,
    snapshot: Snapshot,
    contents: &Contents,
    options: &Options,
) -> Result<Report> {
    let library = workspace.library()?;
    let root = library.root().to_owned();
    // No other stvc may work on it meanwhile. SillyTavern may: a file that it saves in between is not overwritten, see `st::write`.
    let lock = if options.dry_run { None } else { Some(workspace.lock(store)?) };
    let mut findings = Vec::new();
    let mut plan = Vec::new();
    for file in contents.files.iter().filter(|file| wanted(options, file.role)) {
        let now = read(&root, &file.path)?;
        match (file.role, now) {
            (Role::Group, Some(now)) => {
                plan.push(plan_group(&snapshot, contents, &file.path, now, &mut findings))
            }
            (_, now) => {
                plan.push(Planned {
                    path: file.path.clone(),
                    now,
                    new: Cow::Borrowed(&file.bytes),
                    blake3: file.blake3,
                    stored: true,
                    harmless: false,
                });
            }
        }
    }
    let in_the_way: Vec<_> = plan.iter().filter(|file| file.replaces() && !file.harmless).collect();
    if !in_the_way.is_empty() && !options.overwrite {
        let paths = in_the_way.iter().map(|file| file.path.to_string()).collect();
        let chat_is_free = in_the_way.iter().all(|file| file.path != snapshot.timeline.file());
        let only = options.only;
        return Err(Error::InTheWay {
            paths,
            snapshot: snapshot.id.to_string(),
            only,
            chat_is_free,
        });
    }
    let mut safety = None;
    let mut kept = false;
    if let Some(lock) = &lock {
        let mut session = Session::new(workspace, store, Some("before a restore"));
        if !in_the_way.is_empty() {
            safety = take_safety(store, &library, &snapshot, &mut session)?;
        }
        let changes =
            keep_former_bytes(workspace, &snapshot, &plan, safety.as_ref(), &mut session)?;
        kept = changes.iter().any(|change| matches!(change.before, Some(Kept::Blob(_))));
        session.finish(lock, changes)?;
        for file in plan.iter().filter(|file| !file.is_there()) {
            st::write(&root, &file.path, &file.new, file.now.as_deref())?;
        }
    }
    if plan.iter().any(|file| !file.is_there()) && !options.dry_run {
        findings.push(
            Finding::new(
                "reload-sillytavern",
                Level::Info,
                snapshot.timeline.as_str(),
                "SillyTavern writes back what it has in memory",
            )
            .remedy("if it is running, reload its page before you go on"),
        );
    }
    let files = plan.iter().map(|file| FileAction {
        path: file.path.clone(),
        action: if file.is_there() { Action::Keep } else { Action::Write },
        bytes: file.new.len() as u64,
        blake3: file.blake3,
        replaces: file.replaces(),
    });
    let files = files.collect();
    let safety = safety.map(|(snapshot, _)| snapshot);
    Ok(Report { snapshot, root, files, safety, kept, findings, dry_run: options.dry_run })
}

/// A group is not turned back: the chat is listed in it, and a chat without a header gets its metadata back there.
fn plan_group(
    snapshot: &Snapshot,
    contents: &Contents,
    path: &LibraryPath,
    now: Vec<u8>,
    findings: &mut Vec<Finding>,
) -> Planned<'static> {
    let name = &snapshot.timeline;
    let chat = contents.chat();
    let mut new = st::list_in_group(&now, name);
    let mut harmless = true;
    if chat.header.is_none()
        && let Some(stored) = st::metadata(&chat, name, contents.bytes(Role::Group))
    {
        let current = st::metadata(&chat, name, Some(&now)).map(|raw| raw.as_bytes().to_vec());
        if current.as_deref() != Some(stored.as_bytes()) {
            harmless = current.is_none();
            new = new.and_then(|group| st::set_group_metadata(&group, name, stored.as_bytes()));
        }
    }
    if new.is_none() {
        findings.push(
            Finding::new(
                "group-not-edited",
                Level::Warning,
                path.as_str(),
                "the group's file cannot be read, so the chat could not be listed in it; SillyTavern will not show it",
            )
            .remedy("mend the group's file, then restore again"),
        );
    }
    let new = new.unwrap_or_else(|| now.clone());
    let blake3 = Blake3::of(&new);
    Planned {
        path: path.clone(),
        now: Some(now),
        new: Cow::Owned(new),
        blake3,
        stored: false,
        harmless,
    }
}

/// Snapshot what is on disk for this timeline, unless its newest snapshot has it already.
fn take_safety(
    store: &Store,
    library: &st::Library,
    snapshot: &Snapshot,
    session: &mut Session<'_>,
) -> Result<Option<(Snapshot, Manifest)>> {
    if !snapshot.timeline.file().under(library.root()).exists() {
        return Ok(None);
    }
    let groups = library.scan()?.groups;
    let look = survey::look(Some(store), library, &groups, &snapshot.timeline, &mut None)?;
    let Some(captured) = look.captured else { return Ok(None) };
    match (look.head, look.unchanged) {
        (Some(head), true) => {
            if look.astray {
                session.move_ref(branch(&snapshot.timeline), head.id)?;
            }
            let manifest = archive::read_manifest(&store.reader(), head.tree)?;
            Ok(Some((head, manifest)))
        }
        (head, _) => {
            let state = State::of(&captured);
            let follows = head.map(Follows::previous).unwrap_or_default();
            let (taken, _) = session.take(&state, Kind::SAFETY, follows)?;
            Ok(Some((taken, state.manifest)))
        }
    }
}

/// Say for every file that changes where its former bytes are; those that the safety snapshot does not hold are kept as they are.
fn keep_former_bytes(
    workspace: &Workspace,
    snapshot: &Snapshot,
    plan: &[Planned<'_>],
    safety: Option<&(Snapshot, Manifest)>,
    session: &mut Session<'_>,
) -> Result<Vec<FileChange>> {
    let mut kept = Vec::new();
    let mut changes = Vec::new();
    for file in plan.iter().filter(|file| !file.is_there()) {
        let before = match &file.now {
            None => None,
            Some(now) => {
                Some(match safety.filter(|(_, manifest)| holds(manifest, &file.path, now)) {
                    Some((safety, _)) => Kept::Snapshot(safety.id.to_string()),
                    None => {
                        let blob = session.pack.add(ObjectKind::Blob, now)?;
                        kept.push(TreeEntry::blob(
                            tree_segment(file.path.as_str().as_bytes()),
                            blob,
                        ));
                        Kept::Blob(blob.to_string())
                    }
                })
            }
        };
        // A group's file is edited, not turned back: its new bytes are in no snapshot.
        let after = if file.stored {
            Kept::Snapshot(snapshot.id.to_string())
        } else {
            let blob = session.pack.add(ObjectKind::Blob, &file.new)?;
            kept.push(TreeEntry::blob(
                tree_segment(format!("{} after", file.path).as_bytes()),
                blob,
            ));
            Kept::Blob(blob.to_string())
        };
        changes.push(FileChange { path: file.path.to_string(), before, after: Some(after) });
    }
    if !kept.is_empty() {
        let tree = session.pack.add(ObjectKind::Tree, &tree::encode(&kept))?;
        let commit = NewCommit {
            tree,
            parents: Vec::new(),
            time: workspace.time(),
            subject: format!("Files as they were before {} was restored", snapshot.id),
            trailers: vec![("Stvc-Kind".into(), "kept".into())],
        };
        let commit = session.pack.add(ObjectKind::Commit, &commit::encode(&commit))?;
        session.move_ref(RefName::kept(commit), SnapshotId(commit))?;
    }
    Ok(changes)
}

/// Whether a snapshot has just these bytes under that path. (A group's file is in it as it was then, and may have changed since.)
fn holds(manifest: &Manifest, path: &LibraryPath, bytes: &[u8]) -> bool {
    let file = manifest.files.iter().find(|file| file.path == path.as_str());
    file.is_some_and(|file| file.bytes == bytes.len() as u64 && file.blake3 == Blake3::of(bytes))
}

fn wanted(options: &Options, role: Role) -> bool {
    match options.only {
        None => true,
        // A chat that its group does not list would not open.
        Some(Role::Chat) => role != Role::Lorebook,
        Some(only) => role == only,
    }
}

fn read(root: &Path, path: &LibraryPath) -> Result<Option<Vec<u8>>> {
    let path = path.under(root);
    match fs::read(&path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(io_error(&path)(error)),
    }
}

fn io_error(path: &Path) -> impl FnOnce(io::Error) -> Error {
    let path = path.to_owned();
    move |source| Error::St(st::Error::Io { path, source })
}
