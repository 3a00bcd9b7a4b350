//! Bring a snapshot's files back: under their own names, into another folder, or as a timeline of its own.
//!
//! Order: rebuild and check against the manifest; make what was asked for of it; hold it against the rules; look at what is in the way; with `overwrite`,
//! store what is there first; all of it is one operation. Nothing is written before all of it has been rebuilt.

pub mod all;
mod elsewhere;
mod fork;
mod in_place;
mod material;

use std::path::PathBuf;

pub(super) use in_place::not_edited;

use super::files::{Action, FileAction};
use super::open_page::{self, Written};
use super::operation::Held;
use super::time_true::{Base, Origin, Past, Then};
use super::{Error, Result, Workspace, resolve, verdict};
use crate::archive::{self, CheckpointState, History, Rebuilt, Role, Snapshot};
use crate::progress::Monitor;
use crate::rules::{self, Finding};
use crate::st;
use crate::store::Store;
use material::Material;

/// What to bring back, and where.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The snapshot.
    pub snapshot: String,
    /// As a timeline of its own under this name.
    pub name: Option<String>,
    /// As it was at this message.
    pub at: Option<usize>,
    /// Into this empty folder instead of the library.
    pub to: Option<PathBuf>,
    /// Only this file.
    pub only: Option<Role>,
    /// Also where something else is; that is stored first.
    pub overwrite: bool,
    /// SillyTavern may be running: the chat is closed there, so that it has nothing to write back.
    pub chat_closed: bool,
    /// What to do with the queue in the lorebook.
    pub queue: QueueChange,
    /// Only say what would be done.
    pub dry_run: bool,
}

/// What to do with the work that waits in the lorebook's queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum QueueChange {
    /// It stays as it is.
    #[default]
    Keep,
    /// All of it is dropped.
    Clear,
    /// What is about later messages is dropped.
    Trim,
}

/// What was done.
pub struct Report {
    /// The snapshot.
    pub snapshot: Snapshot,
    /// Its tags.
    pub tags: Vec<String>,
    /// What it says of the state of ST-Auto-Recap.
    pub state: Option<CheckpointState>,
    /// Where the files are.
    pub root: PathBuf,
    /// The files.
    pub files: Vec<FileAction>,
    /// The snapshot that was taken of what was there.
    pub safety: Option<Snapshot>,
    /// The first snapshot of the new timeline.
    pub fork: Option<Snapshot>,
    /// Where the parts come from, if they were put together.
    pub origin: Option<Origin>,
    /// How many operations were dropped from the queue.
    pub dropped_operations: usize,
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
    // No other stvc may work on it meanwhile: neither on the files, nor drop what is restored. SillyTavern may; see `operation`.
    let (store, held) = workspace.open(options.dry_run || options.to.is_some())?;
    let library = workspace.library().ok();
    let snapshot = resolve::snapshot(&options.snapshot, &store, library.as_ref())?;
    monitor.begin("rebuilding files", None);
    // Only who asks for another time or another name needs to know of other snapshots.
    let history = match options.at.is_some() || options.name.is_some() {
        true => History::load(&store)?,
        false => History::default(),
    };
    bring_back(workspace, &store, held.as_ref(), &history, snapshot, options)
}

/// Bring back a snapshot that was found.
fn bring_back(
    workspace: &Workspace,
    store: &Store,
    held: Option<&Held>,
    history: &History,
    mut snapshot: Snapshot,
    options: &Options,
) -> Result<Report> {
    let reader = store.reader();
    let rebuild = |snapshot: &Snapshot| archive::rebuild(&reader, snapshot);
    let Rebuilt { mut contents, mut problems } = rebuild(&snapshot)?;
    let mut origin = None;
    let mut findings = Vec::new();
    let mut made = None;
    if let Some(at) = options.at {
        let past = Past::of(store, history, &snapshot.timeline, Some(&snapshot));
        let base = Base {
            timeline: &snapshot.timeline,
            chat: contents.bytes(Role::Chat).unwrap_or_default(),
            book: contents.bytes(Role::Lorebook),
            group: contents.bytes(Role::Group),
        };
        match past.at(base, at, options.only != Some(Role::Chat))? {
            Then::Snapshot(found) => {
                Rebuilt { contents, problems } = rebuild(&found)?;
                snapshot = *found;
            }
            Then::Made(state) => made = Some(state),
        }
    }
    findings.extend(verdict::unsound(&snapshot, &problems));
    let state = contents.manifest.checkpoint.clone();
    let mut material = Material::of(&snapshot, contents)?;
    match made {
        Some(made) => {
            origin = Some(made.origin.clone());
            findings.extend(made.findings.clone());
            material.become_made(*made);
        }
        None => findings.extend(rules::restored(&material.contents)),
    }
    if let Some(part) = options.only
        && material.contents.bytes(part).is_none()
    {
        return Err(Error::NoSuchPart { snapshot: snapshot.id.to_string(), part: part.as_str() });
    }
    let dropped_operations = material.change_queue(options.queue);
    // A timeline of its own is looked at under its new name.
    if options.name.is_none() || options.to.is_some() {
        let mut found = rules::stored(&snapshot.timeline, &material.contents, rules::ALL);
        // Without its lorebook the chat is not looked at as if it had none.
        found.retain(|finding| {
            options.only != Some(Role::Chat) || finding.code != "lorebook-missing"
        });
        findings.extend(found);
    }
    let mut report = Report {
        tags: super::tag::tags_of(store, snapshot.id)?,
        state,
        root: PathBuf::new(),
        files: Vec::new(),
        safety: None,
        fork: None,
        origin,
        dropped_operations,
        kept: false,
        findings,
        dry_run: options.dry_run,
        snapshot,
    };
    match (&options.to, &options.name) {
        (Some(dir), _) => elsewhere::restore(dir, &material, options, &mut report)?,
        (None, Some(name)) => {
            fork::restore(workspace, store, held, history, &material, name, &mut report)?
        }
        (None, None) => in_place::restore(workspace, store, held, &material, options, &mut report)?,
    }
    Ok(report)
}

/// Whether a file of this role is to be written.
fn wanted(options: &Options, role: Role) -> bool {
    match options.only {
        None => true,
        // A chat that its group does not list would not open.
        Some(Role::Chat) => role != Role::Lorebook,
        Some(only) => role == only,
    }
}

/// Say what to do in SillyTavern. What would be replaced is warned of beforehand, too.
fn reload(report: &mut Report) {
    let replaced = report.files.iter().any(|file| file.replaces);
    let written = report.files.iter().any(|file| file.action != Action::Keep);
    let runs = || st::running_on(&report.root).is_some();
    if !written || report.dry_run && !(replaced && runs()) {
        return;
    }
    let fork = report.fork.as_ref().map(|fork| &fork.timeline);
    let subject = fork.unwrap_or(&report.snapshot.timeline);
    let written = Written { new_chat: fork.is_some(), replaced };
    let finding = open_page::reload(&report.root, subject.as_str(), written);
    report.findings.push(finding);
}
