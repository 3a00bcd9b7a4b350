//! `backup URL`: pushes new snapshots to a git server with the user's git. The server gets the same
//! branches and tags as any other backup, and keeps its other snapshots unless `--prune` is given.
//!
//! A server accepts a pack only if every object in it matches its id and no reachable object is
//! missing. After the push, the server's list of refs is read again and compared. `stvc check URL`
//! fetches and checks the entire backup.

use std::collections::{BTreeMap, HashSet};

use super::chosen_refs::{Refs, ours_of};
use super::judge_outgoing::JudgedOutgoing;
use super::last_backups::{self, LastBackup};
use super::mirror::Report;
use super::update_refs::{self, Options, Update};
use crate::archive::SnapshotId;
use crate::engine::{Result, Workspace};
use crate::history::History;
use crate::progress::Monitor;
use crate::store::{ObjectId, Reader, RefChange, RefName, RemoteError, RemoteSession, Store, Url};

/// Updates the backup on a git server.
pub fn to_server(
    workspace: &Workspace,
    url: &Url,
    options: &Options,
    monitor: &mut dyn Monitor,
) -> Result<Report> {
    let store = workspace.open_store()?;
    monitor.begin("looking for new snapshots", None);
    let mut chosen = options.choose(workspace, &store)?;
    let session = RemoteSession::new(store.path(), Some(&store), url, workspace.login_prompt)?;
    let list = session.list()?;
    let there = ours_of(&list, url)?;
    let had = chosen.history.past(there.values().copied().map(SnapshotId));
    let mut judged = JudgedOutgoing::of(&store, &chosen, |id| had.contains(&id), monitor)?;
    judged.leave_out_incomplete(&mut chosen);
    // The server's history, as far as this store has it. Local branches may not reach these
    // snapshots.
    let mut history = History::default();
    history.add(&store, there.values().copied().map(SnapshotId))?;
    let record = new_record(&session, &list, &store)?;
    let mut reader = store.reader();
    if record.is_some() {
        reader = fetch_unknown_kept(&session, &there, &mut history)?;
    }
    let destination = url.to_string();
    let known = (&history, &reader);
    let mut update = update_refs::plan(&chosen, &there, &store, known, options, &destination)?;
    update.forced.extend(record);
    let changes = update.changes();
    if !changes.is_empty() {
        monitor.begin("pushing", None);
        fetch_kept(&session, &update, &store, &there)?;
        session.push(&update.forward, &update.forced)?;
        let now = session.list()?;
        let done =
            changes.iter().all(|change| now.get(change.name.as_str()).copied() == change.after);
        if !done {
            return Err(RemoteError::ChangedConcurrently { url: url.to_string() }.into());
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

/// Returns the ref change that sends the record of erasures; `None` if there are no erasures or the
/// server already has the record.
fn new_record(
    session: &RemoteSession,
    list: &BTreeMap<String, ObjectId>,
    store: &Store,
) -> Result<Option<RefChange>> {
    let name = RefName::erased();
    let before = list.get(name.as_str()).copied();
    let mut erasures = store.erasures()?;
    if erasures.is_empty() {
        return Ok(None);
    }
    let mut after = session.fetched()?.commit_erasures(&erasures)?;
    if before.is_some() && before != Some(after) {
        session.fetch(&[format!("+{name}:{name}")], &[])?;
        erasures.join(&session.fetched()?.received_erasures()?);
        after = session.fetched()?.commit_erasures(&erasures)?;
    }
    Ok((before != Some(after)).then_some(RefChange { name, before, after: Some(after) }))
}

/// Fetches the server's hidden snapshots that are missing in `history`, because they may have
/// erased ancestors. This is needed only when new erasures are sent. Returns a reader for all known
/// snapshots of the server.
fn fetch_unknown_kept(
    session: &RemoteSession,
    there: &Refs,
    history: &mut History,
) -> Result<Reader> {
    let is_unknown = |(name, id): &(&RefName, &ObjectId)| {
        name.is_kept() && history.get(SnapshotId(**id)).is_none()
    };
    let unknown: Vec<_> = there.iter().filter(is_unknown).collect();
    if !unknown.is_empty() {
        let refspec = |(name, id): &(&RefName, &ObjectId)| format!("+{name}:refs/former/{id}");
        session.fetch(&unknown.iter().map(refspec).collect::<Vec<_>>(), &[])?;
    }
    let fetched = session.fetched()?;
    history.add(&fetched, unknown.into_iter().map(|(_, id)| SnapshotId(*id)))?;
    Ok(fetched.reader())
}

/// Fetches snapshots that the server will keep under a hidden ref and that this store does not
/// have. Git can push a ref only if it has the objects.
fn fetch_kept(session: &RemoteSession, update: &Update, store: &Store, there: &Refs) -> Result<()> {
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
    Ok(session.fetch(&refspecs, &have)?)
}
