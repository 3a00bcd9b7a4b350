//! Restores files in the library under their own names.

use std::borrow::Cow;

use super::job::{Mode, RestoreJob, SnapshotContents};
use super::new_timeline;
use super::options::{Overwrite, QueueChange, RestoreResult};
use crate::archive::{Blake3, FileRecord, Manifest, Role, SnapshotId, read_manifest};
use crate::engine::files::{self, ChatOpenState, FilePlan, Planned, WritePermissions};
use crate::engine::operation::integrity::{self, IntegrityScope};
use crate::engine::operation::missing_attachments::MissingAttachments;
use crate::engine::operation::{FinalSnapshot, Operation, missing_attachments};
use crate::engine::sillytavern_runs::{RestoreCommand, SillyTavernRuns};
use crate::engine::{self, group_list};
use crate::rules::{Code, Finding};
use crate::st::{self, LibraryPath, TimelineName};
use crate::store::unless_lost;
use crate::verbs::{RestoreError, Result};
use crate::words::listed;

pub(super) fn restore(
    job: &RestoreJob<'_>,
    mode: Mode<'_, '_>,
    overwrite: &Overwrite,
    permissions: WritePermissions,
) -> Result<RestoreResult> {
    let RestoreJob { workspace, store, material, options, source, .. } = *job;
    let only = options.target.only();
    let mut written = RestoreResult::default();
    let library = workspace.library()?;
    let root = library.root().to_owned();
    let mut plan = Vec::new();
    for (role, path, bytes) in material.contents.parts() {
        if !options.target.includes(role) {
            continue;
        }
        let now = match &mode {
            Mode::Part(operation) => operation.read(&root, path)?,
            _ => files::read(&root, path)?,
        };
        plan.push(match (role, now) {
            (Role::Group, Some(now)) => plan_group(material, path, now, &mut written.findings),
            (_, now) => {
                let hash = material.hash(role, bytes);
                let plan = FilePlan::new(path.clone(), now, Some(Cow::Borrowed(bytes)));
                plan.hashed(hash).stored_in(material.stored_in(role, path, hash))
            }
        });
    }
    let mut missing = MissingAttachments::default();
    if only != Some(Role::Lorebook) {
        let attached = &material.contents.attachments;
        let admission = options.admission(store)?;
        let reader = store.reader();
        let planned = |path: &LibraryPath| match &mode {
            Mode::Part(operation) => operation.planned_length(path),
            _ => None,
        };
        let timeline = &source.timeline;
        missing =
            missing_attachments::missing(&root, &reader, timeline, attached, &admission, &planned)?;
        plan.extend(std::mem::take(&mut missing.plan));
        written.findings.append(&mut missing.findings);
    }
    let timeline = &material.files().timeline;
    if material.files().group.is_none() && timeline.is_group() && only != Some(Role::Lorebook) {
        // A snapshot that was imported from a SillyTavern backup contains only the chat. A group in
        // the library may still list this chat.
        let groups = match &mode {
            Mode::Part(operation) => operation.groups(&library)?,
            _ => library.scan()?.groups,
        };
        let listed = groups.group_of(timeline.chat()).is_some();
        if !listed {
            written.findings.push(group_list::not_listed(timeline));
        }
    }
    let integrity = integrity::fresh(&format!("{timeline}\0{}", material.id), workspace);
    integrity::give(&mut plan, permissions.closed, &integrity, IntegrityScope::All, || {
        st::running_on(&root)
    });
    let in_the_way: Vec<_> = plan.iter().filter(|file| file.replaces() && !file.harmless).collect();
    let mut refused = match overwrite {
        Overwrite::None | Overwrite::Unedited => in_the_way.clone(),
        Overwrite::All | Overwrite::Only(_) => Vec::new(),
    };
    if *overwrite == Overwrite::Unedited {
        let mut edited = Vec::new();
        for file in refused {
            if !is_unedited(job, &library, file)? {
                edited.push(file);
            }
        }
        refused = edited;
    }
    if !refused.is_empty() {
        let chat = timeline.file();
        return Err(RestoreError::InTheWay {
            paths: refused.iter().map(|file| file.path.to_string()).collect(),
            restore: RestoreCommand { snapshot: material.id, only, at: job.at },
            chat_is_free: refused.iter().all(|file| file.path != chat),
            can_be_copied: new_timeline::can_be_copied(timeline),
        }
        .into());
    }
    if let Overwrite::Only(expected) = overwrite {
        let is_other = |file: &&&FilePlan<'_>| {
            file.now.as_deref().is_some_and(|now| !expected.contains(&Blake3::of(now)))
        };
        if let Some(file) = in_the_way.iter().find(is_other) {
            return Err(RestoreError::NotExpected { path: file.path.to_string() }.into());
        }
    }
    let book = material.files().book().map(|book| book.path);
    if let Some(book) = in_the_way.iter().find(|file| Some(&file.path) == book) {
        written.findings.extend(shared_book(&library, material, &book.path)?);
    }
    let anything_in_the_way = !in_the_way.is_empty();
    // A user who asks for a change of the queue knows that the queue is active.
    let active_queue = permissions.active_queue || options.queue != QueueChange::Keep;
    let permissions = WritePermissions { active_queue, ..permissions };
    files::ask_queues(&plan, permissions)?;
    let write = InPlaceRestore { job, library: &library, keep_first: anything_in_the_way };
    match mode {
        Mode::Plan => written.files = plan.iter().map(FilePlan::planned_action).collect(),
        Mode::Now(held) => {
            let mut operation = Operation::new(workspace, store, Some("before a restore"));
            operation.want_attachments(&missing);
            let why = format!("Files as they were before {} was restored", material.id);
            write.plan(&mut operation, &mut written, |operation, had| {
                operation.write_files(&root, plan, had, permissions, &why)
            })?;
            operation.finish(held)?;
        }
        Mode::Part(operation) => {
            operation.want_attachments(&missing);
            let why = "Files as they were before all timelines were restored";
            write.plan(operation, &mut written, |operation, had| {
                operation.write_stored_files(&root, plan, had, permissions, why)
            })?;
        }
    }
    written.root = root;
    if permissions.closed != ChatOpenState::PageReloads {
        written.advise_reload(&source.timeline, options);
    }
    Ok(written)
}

struct InPlaceRestore<'w> {
    job: &'w RestoreJob<'w>,
    library: &'w st::Library,
    /// Whether files will be replaced. In this case, a snapshot of these files is created first.
    keep_first: bool,
}

impl InPlaceRestore<'_> {
    /// Creates a snapshot of the files that will be replaced, plans the writes, and plans the
    /// snapshot of the timeline after the restore.
    fn plan<'a>(
        &self,
        operation: &mut Operation<'a>,
        written: &mut RestoreResult,
        write: impl FnOnce(&mut Operation<'a>, &[(SnapshotId, &Manifest)]) -> engine::Result<Planned>,
    ) -> Result<()> {
        let RestoreJob { material, options, source, at, .. } = *self.job;
        let timeline = &material.files().timeline;
        let (since, library) = (operation.point(), self.library);
        let mut taken = None;
        if self.keep_first {
            taken = operation.take_safety(library, timeline)?;
        }
        let had: Vec<_> = taken.iter().map(|(taken, manifest)| (taken.id, manifest)).collect();
        let planned = write(operation, &had).map_err(|error| match error {
            engine::Error::SillyTavernRuns(refusal) => {
                let (snapshot, only) = (material.id, options.target.only());
                let restore = Some(RestoreCommand { snapshot, only, at });
                engine::Error::from(SillyTavernRuns { restore, ..refusal })
            }
            error => error,
        })?;
        let words = format!("restored from {}", &material.id.to_string()[..10]);
        let (from, source) = (Some(&source.snapshot), Some(source.snapshot.id));
        let ending = FinalSnapshot { from, source, message: &words };
        let restored = operation.end_with(library, timeline, &ending)?;
        operation.end_others_since(&since, library, &ending)?;
        (written.files, written.kept) = (planned.actions, planned.kept);
        written.safety = taken.map(|(snapshot, _)| snapshot);
        written.restored = restored.map(|(snapshot, _)| snapshot);
        Ok(())
    }
}

/// Returns whether nobody worked on a file since SillyTavern created it or a snapshot stored it.
fn is_unedited(job: &RestoreJob<'_>, library: &st::Library, file: &FilePlan<'_>) -> Result<bool> {
    let Some(now) = &file.now else { return Ok(true) };
    if library.is_initial_content(&file.path, now)? {
        return Ok(true);
    }
    let (hash, reader) = (Blake3::of(now), job.store.reader());
    let own = TimelineName::of_file(&file.path);
    for snapshot in job.history.iter().filter(|it| Some(&it.timeline) == own.as_ref()) {
        let manifest = unless_lost(read_manifest(&reader, snapshot.tree))?;
        let is_same =
            |record: &FileRecord| record.path == file.path.as_str() && record.blake3 == hash;
        if manifest.is_some_and(|manifest| manifest.files.iter().any(is_same)) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Plans the group's file. The group itself is not restored: only the chat is added to the group's
/// list. If the chat has no header, its metadata is also written into the group's file.
fn plan_group<'c>(
    material: &SnapshotContents,
    path: &LibraryPath,
    now: Vec<u8>,
    findings: &mut Vec<Finding>,
) -> FilePlan<'c> {
    let name = &material.files().timeline;
    let chat = material.files().split();
    let mut new = st::list_in_group(&now, name);
    let mut harmless = true;
    if chat.header.is_none()
        && let Some(stored) = material.files().metadata(&chat)
    {
        let current = st::metadata(&chat, name, Some(&now)).map(|raw| raw.as_bytes().to_vec());
        if current.as_deref() != Some(stored.as_bytes()) {
            harmless = current.is_none();
            new = new.and_then(|group| st::set_group_metadata(&group, name, stored.as_bytes()));
        }
    }
    if new.is_none() {
        findings.push(group_list::not_edited(path));
    }
    let new = new.unwrap_or_else(|| now.clone());
    FilePlan { harmless, ..FilePlan::new(path.clone(), Some(now), Some(Cow::Owned(new))) }
}

/// Returns a warning if other chats use the lorebook that is replaced.
fn shared_book(
    library: &st::Library,
    material: &SnapshotContents,
    book: &LibraryPath,
) -> Result<Option<Finding>> {
    let mut users = st::users_of_lorebook(library, book)?;
    users.retain(|user| *user != material.files().timeline);
    if users.is_empty() {
        return Ok(None);
    }
    let list = listed(&users);
    let message =
        format!("this lorebook is also used by {list}, so the restore changes it for them, too");
    let remedy = "run `stvc undo` to undo the restore; run `stvc restore … --as NAME` to restore the chat with its own lorebook";
    Ok(Some(Finding::new(Code::LorebookShared, book.as_str(), message).remedy(remedy)))
}
