//! Finds files outside the store that still contain text of erased timelines: SillyTavern's own
//! backups, the lorebooks of chats, attachments, and the mailbox.
//!
//! A mark ([`CopyMark`]) consists of a hash of a file's path and a hash of its content. A file that
//! is not removed at once can be found again by its mark.

use std::collections::{BTreeSet, HashSet};
use std::io;
use std::path::Path;

use serde::Serialize;

use crate::archive::{CopyMark, Snapshot, Tree};
use crate::history::History;
use crate::regular;
use crate::rules::without_repeats;
use crate::st::mailbox::{MAILBOX, is_from_stvc};
use crate::st::{
    self, Chat, Library, LibraryPath, TimelineName, list_backups, lorebook_path, remove_file,
    text_of,
};
use crate::store::{Reader, Store, unless_lost};
use crate::verbs::Result;

/// A file of the library that may contain text of an erased timeline.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Trace {
    /// Path of the file, relative to the library if it is inside.
    pub path: String,
    /// The reason why the file has text of the timeline.
    pub kind: TraceKind,
}

/// The kind of a file that may contain text of an erased chat.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum TraceKind {
    /// A backup that SillyTavern wrote.
    ChatBackup,
    /// A lorebook that the chat used.
    Lorebook,
    /// A lorebook that something else uses or may use. It is not removed.
    SharedLorebook,
    /// An attachment to which only messages of the erased chat refer.
    Attachment,
    /// An attachment that something else uses or may use. It is not removed.
    SharedAttachment,
    /// A file that stvc wrote into the mailbox. It is removed together with the timeline.
    Mailbox,
    /// An unreadable file. It may contain text of the chat, or use the chat's lorebook or
    /// attachments.
    Unreadable,
}

impl TraceKind {
    /// Returns whether files of this kind are removed if the user requests it.
    pub fn can_be_removed(self) -> bool {
        matches!(self, TraceKind::ChatBackup | TraceKind::Lorebook | TraceKind::Attachment)
    }
}

impl Trace {
    fn unreadable(path: impl Into<String>) -> Self {
        Self { path: path.into(), kind: TraceKind::Unreadable }
    }
}

/// Removes the files that stvc wrote into the mailbox. SillyTavern's page repeats its requests, and
/// `watch` writes its status again.
pub(super) fn clear_mailbox(library: &Library) {
    for path in mail(library.root()) {
        let _ = remove_file(library.root(), &path);
    }
}

/// Returns the paths of the files in the mailbox that stvc wrote.
fn mail(root: &Path) -> Vec<String> {
    let entries = st::list_folder(&root.join(MAILBOX)).entries.into_iter();
    let files = entries.filter(|entry| entry.file_type().is_ok_and(|kind| !kind.is_dir()));
    let names = files.filter_map(|entry| entry.file_name().into_string().ok());
    let names = names.filter(|name| is_from_stvc(name));
    let mut paths: Vec<_> = names.map(|name| format!("{MAILBOX}/{name}")).collect();
    paths.sort_unstable();
    paths
}

/// Returns the marks of the files that can be removed.
pub(super) fn marks(library: &Library, traces: &[Trace]) -> Result<Vec<CopyMark>> {
    let mut marks = Vec::new();
    for trace in traces.iter().filter(|trace| trace.kind.can_be_removed()) {
        marks.extend(mark_now(library, &trace.path)?);
    }
    Ok(marks)
}

/// Returns the mark of a file with its current content, or `None` if the file does not exist.
fn mark_now(library: &Library, path: &str) -> Result<Option<CopyMark>> {
    let full = library.root().join(path);
    match regular::read(&full) {
        Ok(bytes) => Ok(Some(CopyMark::of(path, &bytes))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(st::Error::Io { path: full, source }.into()),
    }
}

/// Returns the backups that SillyTavern created. The list is empty if there is no folder `backups`.
fn backups_of(library: &Library) -> Result<Vec<st::Backup>> {
    let folder = library.root().join("backups");
    match st::is_absent(&folder) {
        Ok(true) => Ok(Vec::new()),
        _ => Ok(list_backups(&folder)?),
    }
}

/// Lists the files in a folder and in its subfolders. The paths are relative to the library.
fn files_below(root: &Path, folder: &str, depth: usize, found: &mut Vec<String>) -> Result<()> {
    const MAX_DEPTH: usize = 4;
    let path = root.join(folder);
    let entries = st::list_folder(&path).complete();
    for entry in entries.map_err(|source| st::Error::Io { path, source })? {
        let Ok(name) = entry.file_name().into_string() else { continue };
        let path = format!("{folder}/{name}");
        match entry.file_type() {
            Ok(kind) if kind.is_dir() && depth < MAX_DEPTH => {
                files_below(root, &path, depth + 1, found)?;
            }
            Ok(kind) if kind.is_file() => found.push(path),
            _ => {}
        }
    }
    Ok(())
}

/// Searches the library for text of erased timelines. `staying` contains the latest snapshots of
/// the timelines that are not erased.
pub(super) struct TraceSearch<'a> {
    library: &'a Library,
    reader: Reader,
    staying: Vec<&'a Snapshot>,
}

impl<'a> TraceSearch<'a> {
    pub(super) fn new(
        library: &'a Library,
        store: &Store,
        history: &'a History,
        goes: impl Fn(&Snapshot) -> bool,
    ) -> Self {
        let staying = history.heads().map(|(_, head)| head).filter(|head| !goes(head)).collect();
        Self { library, reader: store.reader(), staying }
    }

    /// Finds the files of the library that still contain text of the snapshots in `going`.
    pub(super) fn find(&self, going: &[&Snapshot]) -> Result<Vec<Trace>> {
        let chats: Vec<_> =
            going.iter().copied().filter(|snapshot| snapshot.timeline.is_chat()).collect();
        let mut traces = self.chat_backups(&chats)?;
        let books = chats.iter().filter_map(|chat| lorebook_path(chat.lorebook.as_deref()?));
        traces.extend(self.lorebooks(books.collect())?);
        traces.extend(self.attachments(self.attachments_of(&chats)?)?);
        let mail = mail(self.library.root()).into_iter();
        traces.extend(mail.map(|path| Trace { path, kind: TraceKind::Mailbox }));
        Ok(without_repeats(traces))
    }

    /// Finds the files that match one of these marks, and determines whether anything uses them.
    pub(super) fn find_marked(&self, marks: &[CopyMark]) -> Result<Vec<Trace>> {
        let marked = |paths: Vec<String>| -> Result<Vec<String>> {
            let mut found = Vec::new();
            for path in paths {
                if marks.iter().any(|mark| mark.has_path(&path))
                    && mark_now(self.library, &path)?.is_some_and(|now| marks.contains(&now))
                {
                    found.push(path);
                }
            }
            Ok(found)
        };
        let parse = |path: String| LibraryPath::parse(&path).ok();
        let backups = backups_of(self.library)?.into_iter();
        let backups = marked(backups.map(|backup| format!("backups/{}", backup.file)).collect())?;
        let kind = TraceKind::ChatBackup;
        let mut traces: Vec<_> = backups.into_iter().map(|path| Trace { path, kind }).collect();
        let books = self.library.lorebooks()?.into_iter();
        let books = marked(books.map(|name| format!("worlds/{name}.json")).collect())?;
        traces.extend(self.lorebooks(books.into_iter().filter_map(parse).collect())?);
        let mut files = Vec::new();
        for folder in ["user/images", "user/files"] {
            files_below(self.library.root(), folder, 0, &mut files)?;
        }
        let files = marked(files)?.into_iter().filter_map(parse).collect();
        traces.extend(self.attachments(files)?);
        Ok(without_repeats(traces))
    }

    /// Returns the paths of the attachments of these snapshots.
    fn attachments_of(&self, snapshots: &[&Snapshot]) -> Result<BTreeSet<LibraryPath>> {
        let mut named = BTreeSet::new();
        for snapshot in snapshots.iter().filter(|snapshot| snapshot.timeline.is_chat()) {
            let attachments = unless_lost(Tree::attachments_of(&self.reader, snapshot.tree))?;
            named.extend(attachments.into_iter().flatten().map(|attachment| attachment.path));
        }
        Ok(named)
    }

    /// Returns the files in `named` that exist. A file is shared if a chat of the library, a
    /// remaining timeline or the settings use it. If a file that may use attachments is unreadable,
    /// all attachments count as shared.
    fn attachments(&self, mut named: BTreeSet<LibraryPath>) -> Result<Vec<Trace>> {
        let library = self.library;
        named.retain(|path| st::is_attachment(path) && library.has(path));
        if named.is_empty() {
            return Ok(Vec::new());
        }
        let mut used = self.attachments_of(&self.staying)?;
        let scan = library.scan()?;
        let mut unread: Vec<_> =
            scan.unreadable.iter().map(|(subject, _)| Trace::unreadable(subject)).collect();
        let mut read = |path: &LibraryPath| {
            let bytes = st::read(library.root(), path).ok();
            unread.extend(bytes.is_none().then(|| Trace::unreadable(path.as_str())));
            bytes
        };
        for name in &scan.chats {
            let Some(bytes) = read(&name.file()) else { continue };
            let chat = Chat::split(&bytes, name.category());
            let group = name.is_group().then(|| scan.groups.group_of(name.chat())).flatten();
            let group = group.and_then(&mut read);
            used.extend(st::attachments(&chat, st::metadata(&chat, name, group.as_deref())));
            // A message can also show a file by a link in its text.
            used.extend(named.iter().filter(|path| mentions(&bytes, path)).cloned());
        }
        // The settings contain the lists of files in the data banks of all chats and characters.
        const SETTINGS: &str = "settings.json";
        let settings = match regular::read(&library.root().join(SETTINGS)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                unread.push(Trace::unreadable(SETTINGS));
                Vec::new()
            }
            settings => settings.unwrap_or_default(),
        };
        let settings = String::from_utf8_lossy(&settings);
        let is_certain = unread.is_empty();
        let trace = |path: &LibraryPath| {
            let is_used = used.contains(path) || settings.contains(path.file_name());
            let is_free = is_certain && !is_used;
            let kind = if is_free { TraceKind::Attachment } else { TraceKind::SharedAttachment };
            Trace { path: path.to_string(), kind }
        };
        Ok(unread.into_iter().chain(named.iter().map(trace)).collect())
    }

    /// Returns the files in `books` that exist. A lorebook is shared if anything uses it. If a file
    /// that may use lorebooks is unreadable, all lorebooks count as shared.
    fn lorebooks(&self, mut books: BTreeSet<LibraryPath>) -> Result<Vec<Trace>> {
        let library = self.library;
        books.retain(|path| library.has(path));
        if books.is_empty() {
            return Ok(Vec::new());
        }
        let name = |path: &LibraryPath| Some(path.file_name().strip_suffix(".json")?.to_owned());
        let names: Vec<_> = books.iter().filter_map(name).collect();
        let references = library.references(&library.scan()?);
        let unused = references.unused(&names);
        let is_certain = references.unreadable.is_empty();
        let trace = |path: &LibraryPath| {
            let is_unused = unused.iter().any(|name| path.file_name() == format!("{name}.json"));
            let is_free = is_certain && is_unused;
            let kind = if is_free { TraceKind::Lorebook } else { TraceKind::SharedLorebook };
            Trace { path: path.to_string(), kind }
        };
        let unread = references.unread.iter().map(|(subject, _)| Trace::unreadable(subject));
        Ok(books.iter().map(trace).chain(unread).collect())
    }

    /// Returns SillyTavern's backups that contain a message of `chats` which no remaining chat of
    /// the same character or group contains.
    fn chat_backups(&self, chats: &[&Snapshot]) -> Result<Vec<Trace>> {
        let Ok(mut found) = backups_of(self.library) else {
            return Ok(vec![Trace::unreadable("backups")]);
        };
        // The file name of a backup is derived from the character, or from the name of the group
        // chat.
        let keys: BTreeSet<_> = chats.iter().map(|chat| key_of(&chat.timeline)).collect();
        found.retain(|backup| keys.iter().any(|key| backup.may_be_of(key)));
        if found.is_empty() {
            return Ok(Vec::new());
        }
        let mut texts = self.texts(chats.iter().copied())?;
        let staying = self.staying.iter().copied();
        let staying = staying.filter(|head| keys.contains(key_of(&head.timeline)));
        for text in self.texts(staying)? {
            texts.remove(&text);
        }
        let has_it = |bytes: &[u8]| {
            let mut lines = bytes.split(|byte| *byte == b'\n');
            lines.any(|line| text_of(line).is_some_and(|found| texts.contains(&found.text)))
        };
        let trace = |backup: &st::Backup| {
            let path = format!("backups/{}", backup.file);
            match regular::read(&backup.path) {
                Ok(bytes) => has_it(&bytes).then_some(Trace { path, kind: TraceKind::ChatBackup }),
                Err(error) if error.kind() == io::ErrorKind::NotFound => None,
                Err(_) => Some(Trace::unreadable(path)),
            }
        };
        Ok(found.iter().filter_map(trace).collect())
    }

    /// Returns the texts of all messages of these snapshots.
    fn texts<'s>(&self, snapshots: impl Iterator<Item = &'s Snapshot>) -> Result<HashSet<String>> {
        let (mut seen, mut texts) = (HashSet::new(), HashSet::new());
        for snapshot in snapshots.filter(|snapshot| snapshot.timeline.is_chat()) {
            let tree = unless_lost(Tree::open(&self.reader, snapshot.tree))?;
            for id in tree.iter().flat_map(|tree| tree.messages()) {
                if seen.insert(*id)
                    && let Some(line) = unless_lost(self.reader.blob(*id))?
                    && let Some(found) = text_of(&line)
                {
                    texts.insert(found.text);
                }
            }
        }
        texts.retain(|text| !text.trim().is_empty());
        Ok(texts)
    }
}

fn key_of(name: &TimelineName) -> &str {
    name.folder().unwrap_or(name.chat())
}

/// Returns whether a text contains the name of a file, unchanged or percent-encoded.
fn mentions(text: &[u8], path: &LibraryPath) -> bool {
    let name = path.file_name();
    let encoded: String = name
        .bytes()
        .map(|byte| match byte {
            b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' | b'-' | b'.' | b'_' | b'~' => {
                char::from(byte).to_string()
            }
            byte => format!("%{byte:02X}"),
        })
        .collect();
    [name, &*encoded].iter().any(|name| memchr::memmem::find(text, name.as_bytes()).is_some())
}
