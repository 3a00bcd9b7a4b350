//! `backup URL`: what is new, pushed to a git server by the user's own git. The server gets the
//! same branches and tags as any other backup, and keeps what it has unless it is told not to.
//!
//! A server takes a pack only if every object in it hashes to its id and nothing it leads to is
//! missing; afterwards its list of branches is read again. `stvc check URL` fetches and reads all
//! of it.

use std::collections::{BTreeMap, HashSet};

use super::chosen_refs::{Refs, ours_of};
use super::judge_outgoing::Judged;
use super::last_backups::{self, LastBackup};
use super::mirror::Report;
use super::update_refs::{self, Options, Update};
use crate::archive::SnapshotId;
use crate::engine::{Result, Workspace};
use crate::history::History;
use crate::progress::Monitor;
use crate::store::{ObjectId, Reader, RefChange, RefName, RemoteError, Store, Transit, Url};

/// Updates a server.
pub fn to_server(
    workspace: &Workspace,
    url: &Url,
    options: &Options,
    asks: bool,
    monitor: &mut dyn Monitor,
) -> Result<Report> {
    let store = workspace.open_store()?;
    monitor.begin("looking for what is new", None);
    let mut chosen = options.choose(workspace, &store)?;
    let transit = Transit::new(store.path(), Some(&store), url, asks)?;
    let list = transit.list()?;
    let there = ours_of(&list, url)?;
    let had = chosen.history.past(there.values().copied().map(SnapshotId));
    let mut judged = Judged::of(&store, &chosen, |id| had.contains(&id), monitor)?;
    judged.leave_out_incomplete(&mut chosen);
    // As far as the store knows: what is there may be on no branch here.
    let mut history = History::default();
    history.add(&store, there.values().copied().map(SnapshotId))?;
    let record = new_record(&transit, &list, &store)?;
    let mut reader = store.reader();
    if record.is_some() {
        reader = fetch_unknown_kept(&transit, &there, &mut history)?;
    }
    let destination = url.to_string();
    let known = (&history, &reader);
    let mut update = update_refs::plan(&chosen, &there, &store, known, options, &destination)?;
    update.forced.extend(record);
    let changes = update.changes();
    if !changes.is_empty() {
        monitor.begin("pushing", None);
        fetch_kept(&transit, &update, &store, &there)?;
        transit.push(&update.forward, &update.forced)?;
        let now = transit.list()?;
        let done =
            changes.iter().all(|change| now.get(change.name.as_str()).copied() == change.after);
        if !done {
            return Err(RemoteError::Raced { url: url.to_string() }.into());
        }
    }
    let backup = LastBackup::of("git", destination, workspace.timestamp(), &chosen);
    let mut report = Report::of(backup, &chosen, judged, &update, |id| had.contains(&id));
    report.created = list.is_empty();
    report.findings.extend(last_backups::note(workspace, &store, &report.backup));
    let destination = &report.backup.destination;
    report.findings.extend(update.removed_finding(destination, options.may));
    Ok(report)
}

/// Returns the change that sends the record of erasures, unless the server has it.
fn new_record(
    transit: &Transit,
    list: &BTreeMap<String, ObjectId>,
    store: &Store,
) -> Result<Option<RefChange>> {
    let name = RefName::erased();
    let before = list.get(name.as_str()).copied();
    let mut erasures = store.erasures()?;
    if erasures.is_empty() {
        return Ok(None);
    }
    let mut after = transit.fetched()?.commit_erasures(&erasures)?;
    if before.is_some() && before != Some(after) {
        transit.fetch(&[format!("+{name}:{name}")], &[])?;
        erasures.join(&transit.fetched()?.received_erasures()?);
        after = transit.fetched()?.commit_erasures(&erasures)?;
    }
    Ok((before != Some(after)).then_some(RefChange { name, before, after: Some(after) }))
}

/// Fetches the snapshots that the server keeps out of sight and that are not here: they may lead to
/// what was erased. Once for each erasure, when the server is told of it. Returns a reader of all
/// that is known of the server then.
fn fetch_unknown_kept(transit: &Transit, there: &Refs, history: &mut History) -> Result<Reader> {
    let is_unknown = |(name, id): &(&RefName, &ObjectId)| {
        name.is_kept() && history.get(SnapshotId(**id)).is_none()
    };
    let unknown: Vec<_> = there.iter().filter(is_unknown).collect();
    if !unknown.is_empty() {
        let refspec = |(name, id): &(&RefName, &ObjectId)| format!("+{name}:refs/former/{id}");
        transit.fetch(&unknown.iter().map(refspec).collect::<Vec<_>>(), &[])?;
    }
    let fetched = transit.fetched()?;
    history.add(&fetched, unknown.into_iter().map(|(_, id)| SnapshotId(*id)))?;
    Ok(fetched.reader())
}

/// Fetches the snapshots that the server is to keep and that are not here, since git must have what
/// it names.
fn fetch_kept(transit: &Transit, update: &Update, store: &Store, there: &Refs) -> Result<()> {
    let reader = store.reader();
    let mut missing = HashSet::new();
    let kept = update.forward.iter().filter(|change| change.name.is_kept());
    for id in kept.filter_map(|change| change.after) {
        if !reader.has(id)? {
            missing.insert(id);
        }
    }
    if missing.is_empty() {
        return Ok(());
    }
    let names = there.iter().filter(|(_, id)| missing.contains(*id));
    let refspecs: Vec<_> = names.map(|(name, id)| format!("{name}:refs/former/{id}")).collect();
    let mut have = Vec::new();
    for id in there.values().copied() {
        if reader.has(id)? {
            have.push(id);
        }
    }
    Ok(transit.fetch(&refspecs, &have)?)
}
