//! Take an operation back: refs go where they were, files that it wrote get their former bytes.
//!
//! Nothing is guessed: a ref or file that changed since stops it before anything moves. What the operation made stays in the store,
//! kept by a ref, so that the undoing can itself be undone.

mod carry_out;
mod choose;
mod put_back;
mod since;
mod used_lorebooks;

use std::path::PathBuf;

use serde::Deserialize;

use crate::engine::Workspace;
use crate::engine::files::{Closed, FileAction};
use crate::engine::operation::{self, log, marks};
use crate::engine::reload_page::{Written, reload};
use crate::rules::Finding;
use crate::store::{LoggedOperation, RefChange};
use crate::verbs::{Result, UndoError};
use carry_out::Undoing;
use choose::{Choice, Chosen, choose, undone_below};
use put_back::PutBack;

/// What to take back.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Options {
    /// The operation's number; none: the last one that stands, is no undoing itself and was asked for by somebody.
    pub operation: Option<u64>,
    /// Whether SillyTavern has the chats closed.
    #[serde(flatten)]
    pub closed: Closed,
    /// Only say what would be done.
    pub dry_run: bool,
}

/// What was taken back.
#[derive(Default)]
pub struct Report {
    /// The operation, with all parts of its command. `None`: nothing was left to undo.
    pub operation: Option<LoggedOperation>,
    /// The operation was undone before, so there was nothing to do.
    pub already: bool,
    /// The undoing: the number of the operation that has to be undone to do it again. `None` if it was only planned.
    pub redo: Option<u64>,
    /// Later ones that nobody asked for; they stay.
    pub passed_by: Vec<u64>,
    /// The refs that moved.
    pub refs: Vec<RefChange>,
    /// The files that were written or removed.
    pub files: Vec<FileAction>,
    /// What was noticed.
    pub findings: Vec<Finding>,
    /// Whether it was only a plan.
    pub dry_run: bool,
}

/// Take an operation back.
pub fn undo(workspace: &Workspace, options: &Options) -> Result<Report> {
    let (store, held) = workspace.open(options.dry_run)?;
    if let Some(held) = &held
        && let Some(done) = held.done_before(workspace, &store)?
        && let Some(number) = done.effect.undoes
    {
        // It was interrupted, and is done by now: another one is not what was asked for.
        let operation = Some(log::find(&store, number)?);
        let (refs, files) = (done.effect.refs.clone(), operation::actions_of(&store, &done)?);
        let redo = Some(done.number);
        return Ok(Report { operation, redo, refs, files, ..Report::default() });
    }
    let dry_run = options.dry_run;
    let (entries, _) = log::load(&store)?;
    let chosen = match choose(&entries, options.operation)? {
        Choice::Undo(chosen) => chosen,
        Choice::Nothing => return Ok(Report { dry_run, ..Report::default() }),
        Choice::Already { operation, by } => {
            let (operation, redo) = (Some(operation), Some(by));
            return Ok(Report { operation, already: true, redo, dry_run, ..Report::default() });
        }
    };
    if let Some((first, undone)) = undone_below(&entries, &chosen) {
        let number = chosen.operation.number;
        return Err(UndoError::UndoneBelow { number, first, undone }.into());
    }
    let library =
        if chosen.operation.effect.files.is_empty() { None } else { Some(workspace.library()?) };
    let root = library.as_ref().map_or_else(PathBuf::new, |library| library.root().to_owned());
    let mut back = PutBack::plan(&store, &root, &entries, &chosen)?;
    if !back.moved.is_empty() || !back.saved.is_empty() {
        let since = since::Since { workspace, store: &store, entries: &entries, root: &root };
        return Err(since.refuse(&chosen, &back)?.into());
    }
    if let Some(library) = &library {
        let number = chosen.operation.number;
        used_lorebooks::keep(&store, library, &entries, number, &mut back)?;
    }
    let undoing = Undoing {
        workspace,
        store: &store,
        library: library.as_ref(),
        root: &root,
        closed: options.closed,
        // A page that has another mark in memory is asked anyhow, and what was there comes back to the byte.
        mark: marks::fresh(&format!("undo {}", chosen.operation.number), workspace),
    };
    let (done, redo) = match &held {
        Some(held) => undoing.carry_out(held, &chosen, &back)?,
        None => (undoing.plan(&back.files)?, None),
    };
    let PutBack { refs, mut findings, .. } = back;
    if !done.actions.is_empty() && !dry_run && options.closed != Closed::Rereads {
        let written = Written { asked: done.asked, ..Written::REPLACED };
        findings.push(reload(&root, "files", written));
    }
    let Chosen { operation, passed_by, .. } = chosen;
    let (operation, files) = (Some(operation), done.actions);
    Ok(Report { operation, already: false, redo, passed_by, refs, files, findings, dry_run })
}
