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
mod mode;
mod options;
mod readiness;

use std::borrow::Cow;
use std::path::PathBuf;

use crate::archive::{Role, State};
use crate::auto_recap::{self, CheckpointState, Wish, uses_auto_recap};
use crate::engine::{self, Workspace, tags, verdict_findings};
use crate::history::moment::{Moment, Named};
use crate::history::state_then::{NeedBook, StateThen};
use crate::history::{History, latest_valid};
use crate::parallel::both;
use crate::progress::Monitor;
use crate::rules::{self, Code, Finding};
use crate::st::{self, Library, LibraryPath, TimelineFiles};
use crate::store::Store;
use crate::verbs::{Error, Result};
use material::Material;
use mode::Mode;
pub use options::{Options, QueueChange, Report};

/// Bring a snapshot back.
pub fn restore(
    workspace: &Workspace,
    options: &Options,
    monitor: &mut dyn Monitor,
) -> Result<Report> {
    let mut workspace = workspace.clone();
    readiness::wait(&mut workspace, options, monitor)?;
    let workspace = &workspace;
    // No other stvc may work on it meanwhile: neither on the files, nor drop what is restored. SillyTavern may; see `operation`.
    let (store, held) = workspace.open(options.dry_run || options.to.is_some())?;
    let library = workspace.library().ok();
    let names = workspace.names(&store, library.as_ref());
    let moment = names.moment_at(&options.snapshot, options.at)?;
    let options = &Options { at: moment.upto.message(), ..options.clone() };
    monitor.begin("rebuilding files", None);
    // Only a timeline of its own needs to know of other snapshots.
    let history = if options.name.is_some() { History::load(&store)? } else { History::default() };
    let mode = held.as_ref().map_or(Mode::Plan, Mode::Now);
    bring_back(workspace, &store, mode, &history, &moment, options)
}

/// Bring back a state that was found.
fn bring_back(
    workspace: &Workspace,
    store: &Store,
    mode: Mode<'_, '_>,
    history: &History,
    moment: &Moment,
    options: &Options,
) -> Result<Report> {
    let not_ready = readiness::ask(workspace, store, moment, options)?;
    let need = if options.only == Some(Role::Chat) { NeedBook::No } else { NeedBook::Yes };
    let mut then = StateThen::rebuild(store, moment, need)?;
    let mut passed_over = Vec::new();
    let mut older_book = None;
    let mut moment = Cow::Borrowed(moment);
    // A name alone does not mean a snapshot of damage.
    if (moment.named == Named::Timeline || options.is_latest)
        && let Some((valid, findings)) = latest_valid::instead_of(store, &moment, &then, need)?
    {
        then = StateThen::rebuild(store, &valid, need)?;
        let book = |moment: &Moment| moment.book_snapshot().map(|book| book.id);
        older_book = valid.book_snapshot().filter(|it| book(&moment) != Some(it.id)).cloned();
        (moment, passed_over) = (Cow::Owned(valid), findings);
    }
    // A fork of a timeline that was named is not bound to a copy of damage. An id means exactly that snapshot.
    if options.is_latest
        && options.name.is_some()
        && let Some(book) = then.contents.files.book()
        && let Some(damage) = st::book_damage(book.bytes)
    {
        let path = book.path.to_string();
        return Err(Error::DamagedLorebook { path, why: damage.words() });
    }
    // Elsewhere it is written as it was taken, byte for byte.
    if options.to.is_none() {
        then.rename(&moment.timeline);
    }
    if let Some(at) = options.cut {
        from_message::within(&then.contents.files, at)?;
        then.contents.files = then.contents.files.cut_after(at);
    }
    let mut findings = match options.only {
        Some(Role::Lorebook) => {
            Vec::from_iter(verdict_findings::unsound(&then.snapshot, &then.problems))
        }
        _ => verdict_findings::all(&then.snapshot, &moment.timeline, &then.problems),
    };
    findings.append(&mut passed_over);
    findings.append(&mut then.findings);
    findings.extend(not_ready);
    let (snapshot, origin) = (then.snapshot.clone(), then.origin.clone());
    let mut material = Material::of(then, options.cut.is_some());
    let state = match (&origin, options.cut) {
        (None, None) => material.contents.manifest.checkpoint.clone(),
        (Some(_), _) => State::made(material.files(), None).manifest.checkpoint,
        (None, Some(_)) => state_in_use(material.files()),
    };
    if origin.is_none() {
        findings.extend(auto_recap::restored(&material.contents));
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
    let active = auto_recap::queue_active(moment.timeline.as_str(), queue, Wish::BringBack);
    let is_told = |active: &Finding| findings.contains(active);
    findings.extend(active.filter(|active| !is_told(active)).into_iter().collect::<Vec<_>>());
    let has_book = material.files().timeline.is_chat() && options.only != Some(Role::Chat);
    let book = material.files().book_bytes().filter(|_| has_book);
    let mut report = Report {
        timeline: moment.timeline.clone(),
        moment: moment.id(),
        tags: tags::tags_of(store, snapshot.id)?,
        state,
        messages: material.files().split().message_count() as u64,
        entries: book.map(|book| st::entries(book).len() as u64),
        root: PathBuf::new(),
        files: Vec::new(),
        safety: None,
        restored: None,
        fork: None,
        older_book,
        origin,
        dropped_operations,
        kept: false,
        findings,
        dry_run: options.dry_run,
        snapshot,
    };
    let told = report.findings.len();
    let library = workspace.library().ok();
    let template = library.as_ref().map(Library::book_template).cloned().unwrap_or_default();
    // A timeline of its own is looked at under its new name.
    let is_looked_at = options.name.is_none() || options.to.is_some();
    let is_there = |path: &_| library.as_ref().is_some_and(|library| library.has(path));
    let look = |has: &dyn Fn(&LibraryPath) -> bool| {
        if is_looked_at {
            let chat = material.files().split();
            rules::of_stored(material.files(), &chat, &template, has)
        } else {
            Vec::new()
        }
    };
    // What is said of the files changes nothing about them.
    let (written, mut found) = match mode {
        Mode::Part(operation) => {
            let found = look(&|path| operation.planned_length(path).is_some() || is_there(path));
            let mode = Mode::Part(operation);
            (in_place::restore(workspace, store, mode, &material, options, &mut report), found)
        }
        mode => both(
            || match (&options.to, &options.name) {
                (Some(dir), _) => elsewhere::restore(store, dir, &material, options, &mut report),
                (None, Some(_)) => {
                    let held = if let Mode::Now(held) = mode { Some(held) } else { None };
                    fork::restore(workspace, store, held, history, &material, options, &mut report)
                }
                (None, None) => {
                    in_place::restore(workspace, store, mode, &material, options, &mut report)
                }
            },
            || look(&is_there),
        ),
    };
    written?;
    // Without its lorebook the chat is not looked at as if it had none.
    found.retain(|finding| {
        options.only != Some(Role::Chat) || finding.code != Code::LorebookMissing
    });
    report.findings.splice(told..told, found);
    latest_valid::advise(&mut report.findings, Some(store))?;
    Ok(report)
}

/// Returns the state of ST-Auto-Recap in files that were cut, if it is in use there.
fn state_in_use(files: &TimelineFiles) -> Option<CheckpointState> {
    let chat = files.split();
    let in_use = uses_auto_recap(&chat, files.metadata(&chat), files.book_bytes());
    in_use.then(|| State::made(files, None).manifest.checkpoint).flatten()
}
