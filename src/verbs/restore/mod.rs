//! Bring a snapshot's files back: under their own names, into another folder, or as a timeline of its own.
//!
//! Order: rebuild and check against the manifest; make what was asked for of it; hold it against the rules; look at what is in the way; with `overwrite`,
//! store what is there first; all of it is one operation. Nothing is written before all of it has been rebuilt.

pub mod all;
mod elsewhere;
mod fork;
pub mod from_message;
mod in_place;
mod material;
mod options;

use std::path::PathBuf;

use crate::archive::{self, Rebuilt, Role, Snapshot, State};
use crate::engine::operation::Held;
use crate::engine::{self, Workspace, tags, verdict_findings};
use crate::history::at_message::{Past, Then};
use crate::history::{History, name_lookup};
use crate::progress::Monitor;
use crate::rules::{self, Code, Wish};
use crate::st::Library;
use crate::store::Store;
use crate::verbs::Result;
use material::Material;
pub use options::{Options, QueueChange, Report};

/// Bring a snapshot back.
pub fn restore(
    workspace: &Workspace,
    options: &Options,
    monitor: &mut dyn Monitor,
) -> Result<Report> {
    // No other stvc may work on it meanwhile: neither on the files, nor drop what is restored. SillyTavern may; see `operation`.
    let (store, held) = workspace.open(options.dry_run || options.to.is_some())?;
    let snapshot = workspace.snapshot(&options.snapshot, &store)?;
    let newest_book = name_lookup::is_newest(&options.snapshot, &snapshot, &store)?;
    let options = &Options { newest_book, ..options.clone() };
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
    let mut later_book = None;
    if let Some(at) = options.at {
        let past = Past::of(store, history, &snapshot.timeline, Some(&snapshot));
        match past.at(&contents.files, at, options.only != Some(Role::Chat))? {
            Then::Snapshot(found, book) => {
                Rebuilt { contents, problems } = rebuild(&found)?;
                (snapshot, later_book) = (*found, book);
            }
            Then::Made(state) => made = Some(state),
        }
    }
    if let Some(at) = options.cut {
        from_message::within(&contents.files, at)?;
        contents.files = contents.files.cut_after(at);
    }
    findings.extend(verdict_findings::unsound(&snapshot, &problems));
    let mut state = contents.manifest.checkpoint.clone();
    let mut material = Material::of(&snapshot, contents);
    match made {
        Some(made) => {
            origin = Some(made.origin.clone());
            findings.extend(made.findings.clone());
            material.become_made(*made);
            state = State::made(material.files(), None).manifest.checkpoint;
        }
        None => findings.extend(rules::restored(&material.contents)),
    }
    if let Some(book) = later_book {
        material.take_book(store, &book);
    }
    if options.newest_book && options.at.is_none() {
        material.take_newest_book(store)?;
    }
    if let Some(part) = options.only
        && material.contents.bytes(part).is_none()
    {
        return Err(engine::Error::NoSuchPart {
            snapshot: snapshot.id.to_string(),
            part: part.as_str(),
        }
        .into());
    }
    let dropped_operations = material.change_queue(options.queue);
    let queue = material.files().book_bytes().filter(|_| options.only != Some(Role::Chat));
    findings.extend(rules::queue_active(snapshot.timeline.as_str(), queue, Wish::BringBack));
    // A timeline of its own is looked at under its new name.
    if options.name.is_none() || options.to.is_some() {
        let chat = material.files().split();
        let library = workspace.library().ok();
        let template = library.as_ref().map(Library::book_template).cloned().unwrap_or_default();
        let mut found = rules::of_files(material.files(), &chat, rules::ALL, &template);
        // Without its lorebook the chat is not looked at as if it had none.
        found.retain(|finding| {
            options.only != Some(Role::Chat) || finding.code != Code::LorebookMissing
        });
        findings.extend(found);
    }
    let mut report = Report {
        tags: tags::tags_of(store, snapshot.id)?,
        state,
        root: PathBuf::new(),
        files: Vec::new(),
        safety: None,
        restored: None,
        fork: None,
        origin,
        dropped_operations,
        kept: false,
        findings,
        dry_run: options.dry_run,
        snapshot,
    };
    match (&options.to, &options.name) {
        (Some(dir), _) => elsewhere::restore(store, dir, &material, options, &mut report)?,
        (None, Some(name)) => {
            fork::restore(workspace, store, held, history, &material, name, &mut report)?
        }
        (None, None) => in_place::restore(workspace, store, held, &material, options, &mut report)?,
    }
    Ok(report)
}
