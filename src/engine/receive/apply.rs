//! Applies a plan in one operation: objects, log, refs, files. A dry run writes none of them.

use std::collections::{BTreeMap, BTreeSet};

use super::incoming::Incoming;
use super::plan::{BranchMove, Outcome, Plan, Policy, TimelinePlan};
use super::sides::{Sides, read};
use crate::archive::{Kind, Manifest, Snapshot, SnapshotId, State, Tree, branch, read_manifest};
use crate::engine::files::{ChatOpenState, FileAction, FilePlan, WritePermissions};
use crate::engine::operation::missing_attachments::{self, AttachmentFilter};
use crate::engine::operation::{FinalSnapshot, HeldLock, Operation, SnapshotParents};
use crate::engine::{Result, Workspace};
use crate::history::name_lookup;
use crate::rules::{Code, Finding};
use crate::st::{LibraryPath, TimelineName};
use crate::store::{RefName, unless_lost};

pub(super) struct Receiving<'r> {
    pub workspace: &'r Workspace,
    pub sides: &'r Sides<'r>,
    pub incoming: &'r Incoming,
    pub policy: Policy,
    pub closed: ChatOpenState,
}

#[derive(Default)]
pub(super) struct Applied {
    pub files: Vec<FileAction>,
    pub objects: usize,
    pub bytes: u64,
}

/// Snapshots that contain the current or the planned files, with their manifests.
type StoredStates = Vec<(SnapshotId, Manifest)>;

impl Receiving<'_> {
    pub(super) fn preview(&self, plan: &mut Plan<'_>) -> Result<Applied> {
        let files = self.file_plans(plan, &StoredStates::new())?;
        let files = files.iter().map(FilePlan::action).collect();
        Ok(Applied { files, ..Applied::default() })
    }

    pub(super) fn apply(&self, held: &HeldLock, plan: &mut Plan<'_>) -> Result<Applied> {
        let Self { workspace, incoming, policy, closed, .. } = *self;
        let Sides { store, library, include, .. } = self.sides;
        let mut pack = store.pack_writer();
        incoming.adopt_into(&mut pack)?;
        let (objects, bytes) = (pack.objects(), pack.bytes());
        pack.finish()?;
        let day = incoming.header.day();
        let (message, why) = match policy {
            Policy::KeepLocal => (
                Some(format!("From a backup of {day}")),
                format!("Files as they were before a backup of {day}"),
            ),
            Policy::Join | Policy::JoinByTime => {
                (None, "Files as they were before a sync".to_owned())
            }
        };
        let mut operation = Operation::new(workspace, store, message.as_deref());
        let rewritten =
            incoming.objects.rewritten.iter().map(|rewritten| (rewritten.former, rewritten.id));
        operation.rename(&rewritten.collect::<Vec<_>>());
        let will_have = self.move_refs(plan, &mut operation)?;
        let files = self.file_plans(plan, &will_have)?;
        let mut actions = Vec::new();
        // If an import writes no files, no final snapshots are needed: the next `stvc snapshot`
        // stores the current files.
        if let Some(library) = library
            && (policy.is_sync() || !files.is_empty())
        {
            let had = self.had(&plan.timelines, &files)?;
            let had: Vec<_> = had.iter().map(|(id, manifest)| (*id, manifest)).collect();
            let permissions = WritePermissions { closed, active_queue: false };
            actions =
                operation.write_files(library.root(), files, &had, permissions, &why)?.actions;
            let message = message.as_deref().unwrap_or("after a sync");
            let ending = FinalSnapshot { message, ..FinalSnapshot::default() };
            // Never read a file that this device does not store, such as `settings.json`, which may
            // contain passwords.
            for timeline in moved(&plan.timelines).map(|step| &step.entry.timeline) {
                if include.has(timeline.category()) {
                    operation.end_with(library, timeline, &ending)?;
                }
            }
            operation.end_others(library, &ending)?;
        }
        if store.erasures()? != plan.erasures {
            store.set_erasures(&held.lock, &plan.erasures)?;
        }
        let done = operation.finish(held)?;
        let (objects, bytes) = (objects + done.objects, bytes + done.bytes);
        Ok(Applied { files: actions, objects, bytes })
    }

    /// Moves branches and tags. Returns the snapshots that contain the future files.
    fn move_refs(&self, plan: &Plan<'_>, operation: &mut Operation<'_>) -> Result<StoredStates> {
        let reader = self.sides.store.reader();
        let mut will_have = StoredStates::new();
        for step in &plan.timelines {
            let (timeline, head) = (&step.entry.timeline, &step.entry.head);
            will_have.extend(match &step.branch {
                BranchMove::Stay => None,
                BranchMove::There => {
                    operation.move_ref(branch(timeline), head.id)?;
                    Some((head.id, read_manifest(&reader, head.tree)?))
                }
                BranchMove::Renamed(files) => {
                    let follows =
                        step.local.cloned().map(SnapshotParents::renamed).unwrap_or_default();
                    Some(take(operation, State::assembled(files, None), Kind::SNAPSHOT, follows)?)
                }
                BranchMove::Made(files, joined) => {
                    // A chat that both sides deleted stays deleted.
                    let is_deleted = |side: &Snapshot| side.kind == Kind::DELETED;
                    let is_deleted = is_deleted(head) && step.local.is_some_and(is_deleted);
                    let kind = if is_deleted { Kind::DELETED } else { Kind::SNAPSHOT };
                    let follows = SnapshotParents::joined(head.clone(), *joined);
                    Some(take(operation, State::assembled(files, None), kind, follows)?)
                }
            });
            if let Some(aside) = &step.aside {
                let state = State::assembled(&aside.files, None);
                let follows =
                    SnapshotParents::copy(&aside.from, &state).taken_from(aside.source.clone());
                will_have.push(take(operation, state, Kind::SNAPSHOT, follows)?);
            }
            match &step.entry.outcome {
                // The imported state becomes a fork without new messages. Its bytes and its history
                // stay unchanged.
                Outcome::Beside(name) if step.aside.is_none() => {
                    let mut files = read(&reader, head)?;
                    files.main.path = name.file();
                    files.timeline = name.clone();
                    let state = State::assembled(&files, None);
                    let follows = SnapshotParents::copy(head, &state);
                    will_have.push(take(operation, state, Kind::SNAPSHOT, follows)?);
                }
                Outcome::Tagged(tag) => move_tag(operation, tag, head.id)?,
                _ => {}
            }
        }
        let names: BTreeSet<_> =
            moved(&plan.timelines).map(|step| branch(&step.entry.timeline)).collect();
        let former = moved(&plan.timelines).filter_map(|step| step.entry.former.as_ref());
        // Do not delete a branch whose name another timeline has now.
        for former in former.map(branch).filter(|former| !names.contains(former)) {
            operation.drop_ref(former)?;
        }
        for tag in &plan.tags {
            move_tag(operation, &tag.here, tag.snapshot)?;
        }
        Ok(will_have)
    }

    /// Returns the plans of all files. Adds findings to `plan` about attachments that are refused
    /// because of their file type.
    fn file_plans(
        &self,
        plan: &mut Plan<'_>,
        will_have: &StoredStates,
    ) -> Result<Vec<FilePlan<'static>>> {
        let mut files = plan.files.take_plan(will_have);
        if self.policy.is_sync() {
            // Changing the list of chats in a group's file loses nothing.
            for file in files.iter_mut().filter(|file| file.path.is_group()) {
                file.harmless = true;
            }
            let attached = self.attachments(&plan.timelines, &mut plan.findings)?;
            files.extend(attached.into_values());
        }
        Ok(files)
    }

    fn attachments(
        &self,
        steps: &[TimelinePlan<'_>],
        findings: &mut Vec<Finding>,
    ) -> Result<BTreeMap<LibraryPath, FilePlan<'static>>> {
        let mut plan = BTreeMap::new();
        let Some(library) = self.sides.library else { return Ok(plan) };
        let admission = AttachmentFilter::own(self.sides.store)?;
        let reader = self.incoming.store.reader();
        for head in moved(steps).map(|step| &step.entry.head) {
            // Skip local chats that the remote does not have. The plan contains them only because
            // their lorebook was renamed.
            if !head.timeline.is_chat() || self.incoming.history.get(head.id).is_none() {
                continue;
            }
            let tree = Tree::open(&reader, head.tree)?;
            let (found, unplanned) = (&*tree.attachments, &|_: &LibraryPath| None);
            let (root, name) = (library.root(), &head.timeline);
            let missing =
                missing_attachments::missing(root, &reader, name, found, &admission, unplanned)?;
            // Lost attachments were reported when the snapshots were validated.
            let is_refused = |finding: &Finding| finding.code == Code::AttachmentRefused;
            findings.extend(missing.findings.into_iter().filter(is_refused));
            plan.extend(missing.plan.into_iter().map(|file| (file.path.clone(), file)));
        }
        Ok(plan)
    }

    /// Returns the latest local snapshots of all planned timelines and files. They contain the
    /// current files.
    fn had(&self, steps: &[TimelinePlan<'_>], files: &[FilePlan<'_>]) -> Result<StoredStates> {
        let entries = steps.iter().map(|step| &step.entry);
        let names = entries.flat_map(|entry| [Some(&entry.timeline), entry.former.as_ref()]);
        let mut names: BTreeSet<_> = names.flatten().cloned().collect();
        names.extend(files.iter().filter_map(|file| TimelineName::of_file(&file.path)));
        let store = self.sides.store;
        let mut had = StoredStates::new();
        for name in names {
            if let Some(id) = store.ref_target(&branch(&name))?
                && let Ok(head) = name_lookup::read(store, SnapshotId(id))
                && let Some(manifest) = unless_lost(read_manifest(&store.reader(), head.tree))?
            {
                had.push((head.id, manifest));
            }
        }
        Ok(had)
    }
}

fn take(
    operation: &mut Operation<'_>,
    state: State<'_>,
    kind: Kind,
    follows: SnapshotParents,
) -> Result<(SnapshotId, Manifest)> {
    Ok((operation.take(&state, kind, follows)?.id, state.manifest))
}

fn moved<'p>(steps: &'p [TimelinePlan<'p>]) -> impl Iterator<Item = &'p TimelinePlan<'p>> {
    steps.iter().filter(|step| step.is_moved())
}

fn move_tag(operation: &mut Operation<'_>, tag: &str, to: SnapshotId) -> Result<()> {
    RefName::tag(tag).map_or(Ok(()), |tag| operation.move_ref(tag, to))
}
