//! `backup URL`: what is new, pushed to a git server by the user's own git. The server gets the same branches and tags as any other backup, and keeps what it has unless it is told not to.
//!
//! A server takes a pack only if every object in it hashes to its id and nothing it leads to is missing; afterwards its list of branches is read again. `stvc check URL` fetches and reads all of it.

use std::collections::HashSet;

use super::chosen::Chosen;
use super::judged::{self, Judged};
use super::last;
use super::mirror::{Options, Report, note};
use super::update::{self, Update, is_past};
use crate::archive::SnapshotId;
use crate::ops::{Result, Workspace, resolve};
use crate::progress::Monitor;
use crate::store::{ObjectId, RemoteError, Store, Transit, Url, ours_of};

/// Bring a server up to date. `asks`: git may ask for a password on the terminal.
pub fn to_server(
    workspace: &Workspace,
    url: &Url,
    options: &Options,
    asks: bool,
    monitor: &mut dyn Monitor,
) -> Result<Report> {
    let store = workspace.open_store()?;
    monitor.begin("looking for what is new", None);
    let mut chosen = Chosen::of(workspace, &store, &options.timelines)?.without(&options.except);
    if options.may.prune {
        judged::must_be_whole(&chosen)?;
    }
    let transit = Transit::new(store.path(), Some(&store), url, asks)?;
    let list = transit.list()?;
    let there = ours_of(&list, url)?;
    let had = snapshots_there(&chosen, there.values().copied().collect());
    let mut judged = Judged::of(&store, &chosen, |id| had.contains(&id), monitor)?;
    judged.leave_out_incomplete(&mut chosen);
    // As far as the store knows: what is there may be on no branch here.
    let parents = |id| {
        let found = resolve::find(&store, id)?;
        Ok(found.map(|found| found.parents).unwrap_or_default())
    };
    let past = |id: ObjectId, of: ObjectId| is_past(id, of, parents);
    let update = update::plan(&chosen, &there, &store, &past, options.may, &url.to_string())?;
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
    let taken = workspace.timestamp();
    let destination = url.to_string();
    let finding = last::note(workspace, &store, note("git", &destination, &taken, &chosen));
    let all = chosen.snapshots();
    let Judged { mut findings, odd, .. } = judged;
    findings.extend(finding);
    Ok(Report {
        kind: "git",
        destination,
        taken,
        created: list.is_empty(),
        whole: chosen.whole,
        timelines: chosen.timelines.len(),
        new_snapshots: all.iter().filter(|id| !had.contains(id)).count(),
        snapshots: all.len(),
        moved: changes.len(),
        ahead: update.ahead,
        copied: None,
        odd,
        findings,
    })
}

/// What the server is to keep and is not here any more must be at hand for git to name it there.
fn fetch_kept(
    transit: &Transit,
    update: &Update,
    store: &Store,
    there: &super::chosen::Refs,
) -> Result<()> {
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

/// Of the snapshots here, those that the server had.
fn snapshots_there(chosen: &Chosen, tips: Vec<ObjectId>) -> HashSet<SnapshotId> {
    let mut seen = HashSet::new();
    let mut open: Vec<_> = tips.into_iter().map(SnapshotId).collect();
    while let Some(id) = open.pop() {
        if let Some(snapshot) = chosen.history.get(id)
            && seen.insert(id)
        {
            open.extend(&snapshot.parents);
        }
    }
    seen
}
