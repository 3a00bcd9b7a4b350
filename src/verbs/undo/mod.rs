//! Undoes an operation: refs move back, and files get their former bytes.
//!
//! A ref or file that changed since stops it before anything moves. The operation's snapshots stay
//! in the store, kept by a ref, so that the undo can itself be undone.

mod carry_out;
mod choose;
mod put_back;
mod since;
mod used_lorebooks;

use std::path::PathBuf;

use serde::Deserialize;

use crate::engine::Workspace;
use crate::engine::files::{Closed, FileAction};
use crate::engine::operation::log::Logged;
use crate::engine::operation::{self, log, marks};
use crate::engine::reload_page::{Written, reload};
use crate::rules::Finding;
use crate::st::Library;
use crate::store::{LoggedOperation, RefChange, Store};
use crate::verbs::{Result, UndoError};
use choose::{Choice, Chosen, choose};

/// An operation to undo.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Options {
    /// `None`: the last one that a user asked for and that was not undone.
    pub operation: Option<u64>,
    #[serde(flatten)]
    pub closed: Closed,
    pub dry_run: bool,
}

/// An undone operation.
#[derive(Default)]
pub struct Report {
    /// With all parts of its command. `None`: nothing was left to undo.
    pub operation: Option<LoggedOperation>,
    /// It was undone before, so there was nothing to do.
    pub already: bool,
    /// The number of the undo, which has to be undone to redo the operation. `None` in a plan.
    pub redo: Option<u64>,
    /// Later operations that no user asked for; they stay.
    pub passed_by: Vec<u64>,
    pub refs: Vec<RefChange>,
    pub files: Vec<FileAction>,
    pub findings: Vec<Finding>,
    pub dry_run: bool,
}

/// Undoes an operation.
pub fn undo(workspace: &Workspace, options: &Options) -> Result<Report> {
    let (store, held) = workspace.open(options.dry_run)?;
    if let Some(held) = &held
        && let Some(done) = held.done_before(workspace, &store)?
        && let Some(number) = done.effect.undoes
    {
        // This undo was interrupted, and is done by now; another one was not asked for.
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
    let number = chosen.operation.number;
    if let Some((first, undone)) = chosen.undone_below(&entries) {
        return Err(UndoError::UndoneBelow { number, first, undone }.into());
    }
    let library =
        if chosen.operation.effect.files.is_empty() { None } else { Some(workspace.library()?) };
    let undo = Undo {
        workspace,
        store: &store,
        library: library.as_ref(),
        root: library.as_ref().map_or_else(PathBuf::new, |library| library.root().to_owned()),
        entries: &entries,
        chosen: &chosen,
        closed: options.closed,
        // A page with another integrity in memory asks anyhow, and the former bytes come back
        // exactly.
        mark: marks::fresh(&format!("undo {number}"), workspace),
    };
    let mut back = undo.put_back()?;
    if !back.moved.is_empty() || !back.saved.is_empty() {
        return Err(undo.refuse(&back)?.into());
    }
    undo.keep_used_lorebooks(&mut back)?;
    let (done, redo) = match &held {
        Some(held) => undo.carry_out(held, &back)?,
        None => (undo.plan_files(&back.files)?, None),
    };
    let (refs, files, mut findings) = (back.refs, done.actions, back.findings);
    if !files.is_empty() && !dry_run && options.closed != Closed::Rereads {
        let written = Written { asked: done.asked, ..Written::REPLACED };
        findings.push(reload(&undo.root, "files", written));
    }
    let Chosen { operation, passed_by, .. } = chosen;
    let operation = Some(operation);
    Ok(Report { operation, already: false, redo, passed_by, refs, files, findings, dry_run })
}

/// A chosen operation, and everything that its undo reads.
struct Undo<'u> {
    workspace: &'u Workspace,
    store: &'u Store,
    /// `None` if the operation wrote no files.
    library: Option<&'u Library>,
    root: PathBuf,
    /// Newest first.
    entries: &'u [Logged],
    chosen: &'u Chosen,
    closed: Closed,
    /// The integrity for chats that would get the one that is there.
    mark: String,
}
