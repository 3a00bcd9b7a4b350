//! Restores a chat as a new chat file with its own copy of the lorebook, for `--as`. Later changes
//! of these files do not affect any other timeline.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::path::Path;

use super::job::{Mode, RestoreJob, SnapshotContents};
use super::options::{RestoreResult, Source};
use crate::archive::{Kind, Role, Snapshot, State, Tree};
use crate::auto_recap::uses_auto_recap;
use crate::engine::files::{self, FilePlan, WritePermissions};
use crate::engine::free_names::free_lorebook;
use crate::engine::group_list;
use crate::engine::operation::{
    self, FinalSnapshot, Operation, SnapshotParents, integrity, missing_attachments,
};
use crate::history::History;
use crate::history::at_message::Origin;
use crate::rules::{self, Code, Finding};
use crate::st::{
    self, BookRename, BoundBook, Category, Chat, FileAt, Groups, Library, LibraryPath, Rename,
    TimelineFiles, TimelineName,
};
use crate::store::{Store, unless_lost};
use crate::verbs::{Error, RestoreError, Result};

struct BookCopy<'m> {
    old: String,
    new: String,
    path: LibraryPath,
    bytes: Cow<'m, [u8]>,
}

pub(super) fn restore(
    job: &RestoreJob<'_>,
    mode: &Mode<'_, '_>,
    wanted: &str,
) -> Result<RestoreResult> {
    let RestoreJob { workspace, store, history, material, options, source, .. } = *job;
    let held = if let Mode::Now(held) = mode { Some(*held) } else { None };
    let library = workspace.library()?;
    let root = library.root().to_owned();
    let parent = &source.timeline;
    let name = new_name(parent, wanted)?;
    let mut written = RestoreResult { root: root.clone(), ..RestoreResult::default() };
    if let Some(held) = held
        && let Some(done) = held.done_before(workspace, store)?
        // `fork` creates a snapshot first. If `fork` was interrupted after this snapshot, no files
        // were written.
        && !done.effect.files.is_empty()
    {
        // An earlier run of this command was interrupted, and its restore has been completed since.
        written.files = operation::actions_of(store, &done)?;
        written.fork = history.head(&name).cloned();
        written.advise_reload(parent, options);
        return Ok(written);
    }
    if is_taken(&root, &name)? {
        return Err(RestoreError::NameTaken { path: name.file().to_string() }.into());
    }
    // A deleted chat with this name may still have snapshots.
    let same = |other: &TimelineName| other.as_str().to_lowercase() == name.as_str().to_lowercase();
    if let Some((other, _)) = history.heads().find(|(other, _)| same(other)) {
        return Err(RestoreError::NameStored { timeline: other.to_string() }.into());
    }
    let NewFiles { files, group } = if name.is_chat() {
        copy_of_chat(job, &library, &name, &mut written.findings)?
    } else {
        // The timeline consists of one file, and nothing refers to the new file yet.
        NewFiles { files: material.files().clone().called(name.clone()), group: None }
    };
    let state = State::assembled(&files, None);
    let template = library.book_template();
    if name.is_chat() {
        written.findings.extend(rules::of_files(&files, &state.chat, rules::ALL, template));
    }
    // The lorebook is written first, so that the chat never refers to a missing lorebook.
    let book = files.book().filter(|_| name.is_chat()).map(|book| (book.path, book.bytes));
    let main = (&files.main.path, files.main.bytes.as_slice());
    let plan = book.into_iter().chain([main]);
    let plan =
        plan.map(|(path, bytes)| FilePlan::new(path.clone(), None, Some(Cow::Borrowed(bytes))));
    let mut plan: Vec<FilePlan<'_>> = plan.collect();
    // Attachments are not copied: the new chat refers to the same files as its parent.
    let attached = &material.contents.attachments;
    let admission = options.admission(store)?;
    let reader = store.reader();
    let unplanned = &|_: &LibraryPath| None;
    let mut missing =
        missing_attachments::missing(&root, &reader, parent, attached, &admission, unplanned)?;
    written.findings.append(&mut missing.findings);
    let Some(held) = held else {
        plan.extend(group.into_iter().chain(missing.plan));
        written.files = plan.iter().map(FilePlan::planned_action).collect();
        written.advise_reload(parent, options);
        return Ok(written);
    };
    let mut operation = Operation::new(workspace, store, None);
    operation.want_attachments(&missing);
    let follows = SnapshotParents::copy(in_history(history, &source.snapshot), &state);
    let fork = operation.take(&state, Kind::SNAPSHOT, follows)?;
    plan = plan.into_iter().map(|file| file.stored_in(Some(fork.id))).collect();
    plan.extend(group.into_iter().chain(missing.plan));
    let why = format!("Files as they were before {} was restored as {name}", material.id);
    let planned = operation.write_files(&root, plan, &[], WritePermissions::default(), &why)?;
    let words = format!("the lorebook of {name}");
    operation
        .end_others(&library, &FinalSnapshot { message: &words, ..FinalSnapshot::default() })?;
    operation.finish(held)?;
    (written.files, written.fork) = (planned.actions, Some(fork));
    written.advise_reload(parent, options);
    Ok(written)
}

struct NewFiles {
    files: TimelineFiles,
    /// The new content of the group's file, if a group has to list the new chat.
    group: Option<FilePlan<'static>>,
}

/// Makes the files of the new chat `name`: a copy of the chat that is bound to its own copy of the
/// lorebook.
fn copy_of_chat(
    job: &RestoreJob<'_>,
    library: &Library,
    name: &TimelineName,
    findings: &mut Vec<Finding>,
) -> Result<NewFiles> {
    let RestoreJob { workspace, material, source, .. } = *job;
    let (root, parent) = (library.root(), &source.timeline);
    let chat = material.files().split();
    let metadata = material.files().metadata(&chat);
    let (clone, found) = clone_book(job, library, metadata, name)?;
    findings.extend(found);
    let integrity = integrity::fresh(&format!("{name}\0{}", source.snapshot.id), workspace);
    let state = State::assembled(material.files(), None).manifest.checkpoint;
    let in_use = uses_auto_recap(&chat, metadata, material.files().book_bytes());
    let state = state.filter(|_| in_use).map(|state| {
        let book = clone.as_ref().map(|clone| (clone.old.as_str(), clone.new.as_str()));
        let now = workspace.now.timestamp_millis();
        state.of_fork(name.chat(), book, now, source.origin.as_ref().map(source_of_book))
    });
    let rename = Rename {
        state: state.as_deref(),
        chat: Some(name.chat()),
        // If the header named a parent that does not exist, SillyTavern would create an empty chat.
        main_chat: parent.file().under(root).exists().then(|| parent.chat()),
        integrity: Some(&integrity),
        book: clone.as_ref().map(|clone| BookRename {
            old: &clone.old,
            new: &clone.new,
            bytes: &clone.bytes,
        }),
    };
    let header = match (chat.header, metadata) {
        (Some(header), Some(metadata)) => Some(st::rename_in_metadata(header, metadata, &rename)),
        (header, _) => header.map(<[u8]>::to_vec),
    };
    let readable = chat
        .header
        .is_none_or(|header| st::Raw::parse(header).is_some_and(|header| header.is_object()));
    if metadata.is_none() && !readable {
        findings.push(not_isolated(name));
    }
    let new_chat = Chat { header: header.as_deref(), messages: chat.messages.clone() }.join();
    // A snapshot that was imported from a SillyTavern backup contains no group. In this case, the
    // new chat is listed in the group of its parent.
    let groups = if name.is_group() { library.scan()?.groups } else { Groups::default() };
    let stored = material.files().group.as_ref().map(|group| &group.path);
    let group = match stored.or_else(|| groups.group_of(parent.chat())) {
        Some(path) => {
            let planned = plan_group(root, path, material, name, &chat, &rename)?;
            findings.extend(planned.is_none().then(|| group_list::not_edited(path)));
            planned
        }
        None => {
            findings.extend(name.is_group().then(|| group_list::not_listed(name)));
            None
        }
    };
    let files = TimelineFiles {
        timeline: name.clone(),
        main: FileAt { path: name.file(), bytes: new_chat.into() },
        lorebook: clone
            .map(|clone| BoundBook::new(clone.new, clone.path, clone.bytes.into_owned())),
        group: group.as_ref().map(|group| FileAt {
            path: group.path.clone(),
            bytes: group.new_bytes().unwrap_or_default().to_vec().into(),
        }),
    };
    Ok(NewFiles { files, group })
}

fn source_of_book(origin: &Origin) -> String {
    match (&origin.scene, origin.book_of) {
        (Some((message, Some(scene))), _) => format!("as noted at message {message} ({scene})"),
        (Some((message, None)), _) => format!("as noted at message {message}"),
        (None, Some(id)) => format!("snapshot {id}"),
        (None, None) => "there was none".to_owned(),
    }
}

/// Returns the snapshot with its current id. The id of a snapshot changes if earlier snapshots are
/// inserted into the history.
fn in_history<'s>(history: &'s History, snapshot: &'s Snapshot) -> &'s Snapshot {
    let same = |other: &&Snapshot| {
        (other.content, other.time.seconds, &other.timeline)
            == (snapshot.content, snapshot.time.seconds, &snapshot.timeline)
    };
    history.get(snapshot.id).or_else(|| history.iter().find(same)).unwrap_or(snapshot)
}

/// Returns whether a timeline can be restored under another name.
pub(super) fn can_be_copied(source: &TimelineName) -> bool {
    !matches!(source.category(), Category::Group | Category::Settings)
}

/// Returns the name of the new timeline, in the same folder as `source`. The name is converted into
/// a file name in the same way as in SillyTavern.
pub(super) fn new_name(source: &TimelineName, wanted: &str) -> Result<TimelineName> {
    let bad = |why| Error::BadName { name: wanted.to_owned(), why };
    if wanted.trim().is_empty() {
        return Err(bad("it is empty"));
    }
    if !can_be_copied(source) {
        return Err(bad("groups and settings cannot be copied"));
    }
    let file = source.file();
    let ending = file.as_str().strip_prefix(source.as_str()).unwrap_or_default();
    let chat = wanted.trim().strip_suffix(ending).unwrap_or(wanted.trim());
    let chat =
        st::chat_name(chat).ok_or_else(|| bad("SillyTavern cannot turn it into a file name"))?;
    Ok(source.sibling(&chat)?)
}

/// Returns whether a file with this name exists. Case is ignored, because some file systems do not
/// distinguish names that differ only in case.
fn is_taken(root: &Path, name: &TimelineName) -> Result<bool> {
    let file = name.file().under(root);
    let folder = file.parent().unwrap_or(root);
    let listed = st::list_folder(folder).complete();
    let listed = listed.map_err(|source| st::Error::Io { path: folder.to_owned(), source })?;
    let wanted = name.file().file_name().to_lowercase();
    let is_wanted = |name: &str| name.to_lowercase() == wanted;
    Ok(file.exists()
        || listed.iter().any(|entry| entry.file_name().to_str().is_some_and(is_wanted)))
}

type WithFinding<T> = (Option<T>, Option<Finding>);

/// Returns a copy of the snapshot's lorebook for the new timeline. A snapshot that was imported
/// from a SillyTavern backup contains no lorebook. If its chat is bound to a lorebook, the lorebook
/// of the nearest snapshot is copied, and a finding is returned.
fn clone_book<'m>(
    job: &RestoreJob<'m>,
    library: &Library,
    metadata: Option<st::Raw<'_>>,
    name: &TimelineName,
) -> Result<WithFinding<BookCopy<'m>>> {
    let RestoreJob { material, source, .. } = *job;
    let of_snapshot = || material.files().book().map(|book| book.name.to_owned());
    let Some(old) = metadata.and_then(st::lorebook_name).or_else(of_snapshot) else {
        return Ok((None, None));
    };
    let (bytes, found) = match material.files().book_bytes() {
        Some(bytes) => (Some(Cow::Borrowed(bytes)), None),
        None => nearest_book(job.store, library, source, &old)?,
    };
    let Some(bytes) = bytes else { return Ok((None, found)) };
    let forked_from = metadata.and_then(st::main_chat).and_then(|chat| st::chat_name(&chat));
    // The lorebook may be named after a former name of the chat.
    let mut known = vec![material.files().timeline.chat(), source.snapshot.timeline.chat()];
    known.extend(forked_from.as_deref());
    let new = free_lorebook(library, &old, &known, name.chat(), &BTreeSet::new())?;
    let path = st::lorebook_path(&new)
        .ok_or(Error::BadName { name: new.clone(), why: "it is not a valid lorebook name" })?;
    Ok((Some(BookCopy { old, new, path, bytes }), found))
}

fn nearest_book<'m>(
    store: &Store,
    library: &Library,
    source: &Source,
    name: &str,
) -> Result<WithFinding<Cow<'m, [u8]>>> {
    let reader = store.reader();
    let Some(path) = st::lorebook_path(name) else { return Ok((None, None)) };
    let history = History::load(store)?;
    let owners = history.owners();
    let is_own = |found: &&Snapshot| {
        found.lorebook.as_deref() == Some(name) && *owners.by_descent(found) == source.timeline
    };
    let mut snapshots: Vec<_> = history.iter().filter(is_own).collect();
    let then = source.snapshot.time.seconds;
    snapshots.sort_by_key(|found| found.time.seconds.abs_diff(then));
    let mut stored = None;
    for found in snapshots {
        let Some(tree) = unless_lost(Tree::open(&reader, found.tree))? else { continue };
        let Some(record) = tree.manifest.file(Role::Lorebook) else { continue };
        if let Some(file) = unless_lost(tree.rebuild(&reader, record))? {
            stored = Some((found.id, file));
            break;
        }
    }
    let (bytes, from) = match stored {
        Some((id, bytes)) => {
            (Some(bytes), format!("the lorebook of snapshot {}", &id.to_string()[..10]))
        }
        // An unreadable lorebook counts as missing, because the new chat can be created without a
        // lorebook.
        None => {
            (files::read(library.root(), &path).unwrap_or(None), "the current lorebook".to_owned())
        }
    };
    let subject = source.timeline.as_str();
    let finding = match &bytes {
        Some(_) => Finding::new(
            Code::LorebookFromElsewhere,
            subject,
            format!("the snapshot has no lorebook, so the new chat uses a copy of {from}"),
        )
        .remedy("review the lorebook: it may describe later events"),
        None => Finding::new(
            Code::LorebookMissing,
            subject,
            format!("the snapshot has no lorebook, and {name:?} was not found"),
        )
        .remedy("choose a lorebook for the chat in SillyTavern"),
    };
    Ok((bytes.map(Cow::Owned), Some(finding)))
}

/// Plans the group's file: adds the new chat to the group's list and, if the chat has no header,
/// its metadata. Returns `None` if the file cannot be edited.
fn plan_group(
    root: &Path,
    path: &LibraryPath,
    material: &SnapshotContents,
    name: &TimelineName,
    chat: &Chat<'_>,
    rename: &Rename<'_>,
) -> Result<Option<FilePlan<'static>>> {
    let stored = material.files().group_bytes().unwrap_or_default();
    let now = files::read(root, path)?;
    let live = now.as_deref().unwrap_or(stored);
    let mut new = st::list_in_group(live, name);
    if chat.header.is_none()
        && let Some(metadata) = st::metadata(chat, &material.files().timeline, Some(stored))
    {
        // The metadata is edited first, and then stored in the `past_metadata` of the group's file.
        let own = metadata.as_bytes();
        let edited = st::Raw::parse(own).map(|raw| st::rename_in_metadata(own, raw, rename));
        new = new
            .zip(edited)
            .and_then(|(group, edited)| st::set_group_metadata(&group, name, &edited));
    }
    // The change is harmless: adding a chat to the list replaces nothing.
    Ok(new.map(|new| FilePlan {
        harmless: true,
        ..FilePlan::new(path.clone(), now, Some(Cow::Owned(new)))
    }))
}

fn not_isolated(name: &TimelineName) -> Finding {
    let what = "its header cannot be read, so it still names the lorebook of its parent";
    Finding::new(Code::NotIsolated, name.as_str(), what)
        .remedy("repair line 1 of the new file, then choose a lorebook for it in SillyTavern")
}
