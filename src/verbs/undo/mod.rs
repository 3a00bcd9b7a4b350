//! Undoes an operation: resets refs, and restores the former content of files.
//!
//! If a ref or file was changed after the operation, nothing is undone. A ref keeps the operation's
//! snapshots reachable, so that the undo can itself be undone.

mod carry_out;
mod choose;
mod put_back;
mod since;
mod used_lorebooks;

use std::path::PathBuf;

use serde::Deserialize;

use crate::engine::Workspace;
use crate::engine::files::{ChatOpenState, FileAction};
use crate::engine::operation::log::LogEntry;
use crate::engine::operation::{self, RunMode, integrity, log};
use crate::engine::reload_page::{WriteEffects, reload};
use crate::rules::Finding;
use crate::st::Library;
use crate::store::{LoggedOperation, RefChange, Store};
use crate::verbs::{Result, UndoError};
use choose::{UndoChoice, UndoTarget, choose};

/// The operation to undo.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Options {
    /// Number of the operation. `None` selects the latest operation that a user requested and that
    /// is not undone.
    pub operation: Option<u64>,
    /// Whether SillyTavern may overwrite the files that are written.
    #[serde(flatten)]
    pub closed: ChatOpenState,
    /// Only plan the undo.
    pub dry_run: bool,
}

/// The result of an undo.
#[derive(Default)]
#[non_exhaustive]
pub struct Report {
    /// The undone operation, with the combined effects of all parts of its command. `None` if there
    /// was nothing to undo.
    pub operation: Option<LoggedOperation>,
    /// Whether the operation had already been undone. Nothing was changed in this case.
    pub already: bool,
    /// Number of the undo. To redo the operation, undo this number. `None` in a dry run.
    pub redo: Option<u64>,
    /// Numbers of later automatic operations, which are not undone.
    pub passed_by: Vec<u64>,
    /// Branches and tags that were moved back.
    pub refs: Vec<RefChange>,
    /// Files that were written or deleted.
    pub files: Vec<FileAction>,
    /// Problems of the restored files, and advice for SillyTavern's page.
    pub findings: Vec<Finding>,
    /// Whether nothing was changed.
    pub dry_run: bool,
}

/// Undoes an operation. In a dry run, only plans the undo.
pub fn undo(workspace: &Workspace, options: &Options) -> Result<Report> {
    let (store, held) = workspace.open(RunMode::of_dry_run(options.dry_run))?;
    if let Some(held) = &held
        && let Some(done) = held.done_before(workspace, &store)?
        && let Some(number) = done.effect.undoes
    {
        // An earlier run of this command line was interrupted, and its undo has been completed
        // since. Do not undo another operation.
        let operation = Some(log::find(&store, number)?);
        let (refs, files) = (done.effect.refs.clone(), operation::actions_of(&store, &done)?);
        let redo = Some(done.number);
        return Ok(Report { operation, redo, refs, files, ..Report::default() });
    }
    let dry_run = options.dry_run;
    let (entries, _) = log::load(&store)?;
    let chosen = match choose(&entries, options.operation)? {
        UndoChoice::Undo(chosen) => chosen,
        UndoChoice::Nothing => return Ok(Report { dry_run, ..Report::default() }),
        UndoChoice::Already { operation, by } => {
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
        // Only used for chats whose integrity value would not change. If the value changes,
        // SillyTavern asks before its page overwrites the chat, and the former content can be
        // restored byte for byte.
        integrity: integrity::fresh(&format!("undo {number}"), workspace),
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
    if !files.is_empty() && !dry_run && options.closed != ChatOpenState::PageReloads {
        let written = WriteEffects { asked: done.asked, ..WriteEffects::REPLACED };
        findings.push(reload(&undo.root, None, written));
    }
    let UndoTarget { operation, passed_by, .. } = chosen;
    let operation = Some(operation);
    Ok(Report { operation, already: false, redo, passed_by, refs, files, findings, dry_run })
}

/// A chosen operation, and the data that is needed to undo it.
struct Undo<'u> {
    workspace: &'u Workspace,
    store: &'u Store,
    /// `None` if the operation wrote no files.
    library: Option<&'u Library>,
    root: PathBuf,
    /// The operation log, newest first.
    entries: &'u [LogEntry],
    chosen: &'u UndoTarget,
    closed: ChatOpenState,
    /// New integrity value for chats whose former content has the same integrity value as the
    /// current file.
    integrity: String,
}
