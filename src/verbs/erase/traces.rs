//! What still has the text of timelines that are erased, beside the store: SillyTavern's own backups, the chat's lorebook, files that its messages name, and what `watch` put into the page's mailbox.

use std::collections::{BTreeSet, HashSet};
use std::io;
use std::path::Path;

use serde::Serialize;

use crate::archive::{CopyMark, Snapshot, SnapshotId, Tree};
use crate::history::History;
use crate::rules::without_repeats;
use crate::st::mailbox::{MAILBOX, is_from_stvc};
use crate::st::{
    self, Chat, Library, LibraryPath, TimelineName, list_backups, lorebook_path, remove_file,
    text_of,
};
use crate::store::{ObjectId, Reader, Store, unless_lost};
use crate::verbs::Result;

/// A file of the library that still has the text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Trace {
    /// Its path in the library.
    pub path: String,
    pub kind: TraceKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum TraceKind {
    /// A backup that SillyTavern made of the chat.
    ChatBackup,
    /// The chat's lorebook, which nothing else uses.
    Lorebook,
    /// The chat's lorebook, which others use: it stays.
    SharedLorebook,
    /// A picture or file that messages of the chat name, and no other chat.
    Attachment,
    /// A picture or file that messages of the chat name, and that others use, too: it stays.
    SharedAttachment,
    /// A file of the mailbox: it is removed with the timeline.
    Mailbox,
    /// A file that could not be read: it may have text of the chat, or use its files.
    Unreadable,
}

impl TraceKind {
    /// Whether it is removed if somebody asks for it.
    pub fn can_be_removed(self) -> bool {
        matches!(self, TraceKind::ChatBackup | TraceKind::Lorebook | TraceKind::Attachment)
    }
}

/// Finds the files of the library that still have text of the snapshots in `gone`.
pub(super) fn find(
    library: &Library,
    store: &Store,
    history: &History,
    gone: &HashSet<SnapshotId>,
) -> Result<Vec<Trace>> {
    let going: Vec<_> = gone.iter().filter_map(|id| history.get(*id)).collect();
    let mut traces = chat_backups(library, store, history, gone, &going)?;
    traces.extend(lorebooks(library, books_of(&going))?);
    let reader = store.reader();
    let named = attachments_of(&reader, going.iter().copied())?;
    let staying = history.heads().map(|(_, head)| head).filter(|head| !gone.contains(&head.id));
    traces.extend(attachments(library, &reader, staying, named)?);
    let kind = TraceKind::Mailbox;
    traces.extend(mail(library.root()).into_iter().map(|path| Trace { path, kind }));
    Ok(without_repeats(traces))
}

/// Removes the files of the mailbox. Whoever asked asks again, and the watch writes its status anew.
pub(super) fn clear_mailbox(library: &Library) {
    for path in mail(library.root()) {
        let _ = remove_file(library.root(), &path);
    }
}

/// Returns the paths of the files in the mailbox that stvc wrote.
fn mail(root: &Path) -> Vec<String> {
    let entries = st::list_folder(&root.join(MAILBOX)).entries;
    let files =
        entries.into_iter().filter(|entry| entry.file_type().is_ok_and(|kind| !kind.is_dir()));
    let names = files.filter_map(|entry| entry.file_name().into_string().ok());
    let names = names.filter(|name| is_from_stvc(name));
    let mut paths: Vec<_> = names.map(|name| format!("{MAILBOX}/{name}")).collect();
    paths.sort_unstable();
    paths
}

/// Returns the marks of the files that can be removed, for whoever removes them later.
pub(super) fn marks(library: &Library, traces: &[Trace]) -> Result<Vec<CopyMark>> {
    let mut marks = Vec::new();
    for trace in traces.iter().filter(|trace| trace.kind.can_be_removed()) {
        marks.extend(mark_now(library, &trace.path)?);
    }
    Ok(marks)
}

/// Returns the mark of a file as it is; `None` if it is not there.
fn mark_now(library: &Library, path: &str) -> Result<Option<CopyMark>> {
    let full = library.root().join(path);
    match crate::regular::read(&full) {
        Ok(bytes) => Ok(Some(CopyMark::of(path, &bytes))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(st::Error::Io { path: full, source }.into()),
    }
}

fn unreadable(path: impl Into<String>) -> Trace {
    Trace { path: path.into(), kind: TraceKind::Unreadable }
}

/// Finds the files that have one of these marks, as they are, and whether something but `going` uses them by now.
pub(super) fn find_marked(
    library: &Library,
    store: &Store,
    history: &History,
    going: &HashSet<ObjectId>,
    marks: &[CopyMark],
) -> Result<Vec<Trace>> {
    let marked = |mut paths: Vec<String>| -> Result<Vec<String>> {
        paths.retain(|path| marks.iter().any(|mark| mark.has_path(path)));
        let now = paths.iter().map(|path| mark_now(library, path)).collect::<Result<Vec<_>>>()?;
        let is_marked =
            |(_, now): &(_, Option<CopyMark>)| now.as_ref().is_some_and(|now| marks.contains(now));
        Ok(paths.into_iter().zip(now).filter(is_marked).map(|(path, _)| path).collect())
    };
    let backups = backups_of(library)?;
    let backups = backups.into_iter().map(|backup| format!("backups/{}", backup.file));
    let kind = TraceKind::ChatBackup;
    let backups = marked(backups.collect())?.into_iter();
    let mut traces: Vec<_> = backups.map(|path| Trace { path, kind }).collect();
    let parse = |path: String| LibraryPath::parse(&path).ok();
    let books = library.lorebooks()?.into_iter().map(|name| format!("worlds/{name}.json"));
    let books = marked(books.collect())?.into_iter().filter_map(parse).collect();
    traces.extend(lorebooks(library, books)?);
    let mut files = Vec::new();
    for folder in ["user/images", "user/files"] {
        files_below(library.root(), folder, 0, &mut files)?;
    }
    let files = marked(files)?.into_iter().filter_map(parse).collect();
    let staying = history.heads().map(|(_, head)| head).filter(|head| !going.contains(&head.id.0));
    traces.extend(attachments(library, &store.reader(), staying, files)?);
    Ok(without_repeats(traces))
}

/// Returns the backups that SillyTavern made; none if it has no folder for them.
fn backups_of(library: &Library) -> Result<Vec<st::Backup>> {
    let folder = library.root().join("backups");
    match st::is_absent(&folder) {
        Ok(true) => Ok(Vec::new()),
        _ => Ok(list_backups(&folder)?),
    }
}

/// Lists the files in a folder and in those below it, by their paths in the library.
fn files_below(root: &Path, folder: &str, depth: usize, found: &mut Vec<String>) -> Result<()> {
    const DEEPEST: usize = 4;
    let path = root.join(folder);
    for entry in
        st::list_folder(&path).complete().map_err(|source| st::Error::Io { path, source })?
    {
        let Ok(name) = entry.file_name().into_string() else { continue };
        let path = format!("{folder}/{name}");
        match entry.file_type() {
            Ok(kind) if kind.is_dir() && depth < DEEPEST => {
                files_below(root, &path, depth + 1, found)?;
            }
            Ok(kind) if kind.is_file() => found.push(path),
            _ => {}
        }
    }
    Ok(())
}

/// Returns the files that messages of these snapshots name.
fn attachments_of<'s>(
    reader: &Reader,
    snapshots: impl Iterator<Item = &'s Snapshot>,
) -> Result<BTreeSet<LibraryPath>> {
    let mut named = BTreeSet::new();
    for snapshot in snapshots.filter(|snapshot| snapshot.timeline.is_chat()) {
        let attachments = unless_lost(Tree::attachments_of(reader, snapshot.tree))?;
        named.extend(attachments.into_iter().flatten().map(|attachment| attachment.path));
    }
    Ok(named)
}

/// Tells the files that exist among `named` apart: those that nothing else uses, and those that a chat in the library, a timeline that stays, or the settings name. If a chat cannot be read,
/// all of them may be used.
fn attachments<'s>(
    library: &Library,
    reader: &Reader,
    staying: impl Iterator<Item = &'s Snapshot>,
    mut named: BTreeSet<LibraryPath>,
) -> Result<Vec<Trace>> {
    named.retain(|path| st::is_attachment(path) && library.has(path));
    if named.is_empty() {
        return Ok(Vec::new());
    }
    let mut used = attachments_of(reader, staying)?;
    let scan = library.scan()?;
    let mut traces: Vec<_> =
        scan.unreadable.iter().map(|(subject, _)| unreadable(subject.clone())).collect();
    let read = |path: &LibraryPath| st::read(library.root(), path);
    for name in &scan.chats {
        let Ok(bytes) = read(&name.file()) else {
            traces.push(unreadable(name.file().to_string()));
            continue;
        };
        let chat = Chat::split(&bytes, name.is_group());
        let group = name.is_group().then(|| scan.groups.group_of(name.chat())).flatten();
        let group = match group.map(|path| (path, read(path))) {
            Some((path, Err(_))) => {
                traces.push(unreadable(path.to_string()));
                None
            }
            Some((_, Ok(bytes))) => Some(bytes),
            None => None,
        };
        used.extend(st::attachments(&chat, st::metadata(&chat, name, group.as_deref())));
        // A message can show a file by a link in its text.
        used.extend(named.iter().filter(|path| mentions(&bytes, path)).cloned());
    }
    // The data bank of all chats and of characters.
    const SETTINGS: &str = "settings.json";
    let settings = match crate::regular::read(&library.root().join(SETTINGS)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            traces.push(unreadable(SETTINGS));
            Vec::new()
        }
        settings => settings.unwrap_or_default(),
    };
    let settings = String::from_utf8_lossy(&settings);
    let is_certain = traces.is_empty();
    let is_used = |path: &LibraryPath| {
        !is_certain || used.contains(path) || settings.contains(path.file_name())
    };
    let trace = |path: &LibraryPath| {
        let kind = if is_used(path) { TraceKind::SharedAttachment } else { TraceKind::Attachment };
        Trace { path: path.to_string(), kind }
    };
    traces.extend(named.iter().map(trace));
    Ok(traces)
}

/// Returns whether a text has the name of a file, as it is or as in an address.
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

/// Returns the lorebooks of the chats among these snapshots.
fn books_of(going: &[&Snapshot]) -> BTreeSet<LibraryPath> {
    let chats = going.iter().filter(|snapshot| snapshot.timeline.is_chat());
    chats.filter_map(|snapshot| snapshot.lorebook.as_deref().and_then(lorebook_path)).collect()
}

/// Tells the lorebooks that exist among `books` apart: those that nothing uses, and others.
fn lorebooks(library: &Library, mut books: BTreeSet<LibraryPath>) -> Result<Vec<Trace>> {
    books.retain(|path| library.has(path));
    if books.is_empty() {
        return Ok(Vec::new());
    }
    let names = books.iter().filter_map(|path| path.file_name().strip_suffix(".json"));
    let names: Vec<_> = names.map(str::to_owned).collect();
    let references = library.references(&library.scan()?);
    let unused = references.unused(&names);
    let is_certain = references.unreadable.is_empty();
    let trace = |path: &LibraryPath| {
        let is_unused = unused.iter().any(|name| path.file_name() == format!("{name}.json"));
        let kind =
            if is_certain && is_unused { TraceKind::Lorebook } else { TraceKind::SharedLorebook };
        Trace { path: path.to_string(), kind }
    };
    let unread = references.unread.iter().map(|(subject, _)| unreadable(subject.clone()));
    Ok(books.iter().map(trace).chain(unread).collect())
}

/// SillyTavern's backups that have a message which none of the chats that stay has.
fn chat_backups(
    library: &Library,
    store: &Store,
    history: &History,
    gone: &HashSet<SnapshotId>,
    going: &[&Snapshot],
) -> Result<Vec<Trace>> {
    let Ok(mut found) = backups_of(library) else {
        return Ok(vec![unreadable("backups")]);
    };
    // A backup is called after the character, or after the chat of a group.
    let keys: BTreeSet<_> = going
        .iter()
        .filter(|snapshot| snapshot.timeline.is_chat())
        .map(|snapshot| key_of(&snapshot.timeline))
        .collect();
    found.retain(|backup| keys.iter().any(|key| backup.may_be_of(key)));
    if found.is_empty() {
        return Ok(Vec::new());
    }
    let reader = store.reader();
    let mut texts = texts(&reader, going)?;
    let staying = history.heads().map(|(_, head)| head).filter(|head| {
        head.timeline.is_chat() && !gone.contains(&head.id) && keys.contains(key_of(&head.timeline))
    });
    for text in self::texts(&reader, &staying.collect::<Vec<_>>())? {
        texts.remove(&text);
    }
    let has_it = |bytes: &[u8]| {
        let mut lines = bytes.split(|byte| *byte == b'\n');
        lines.any(|line| text_of(line).is_some_and(|found| texts.contains(&found.text)))
    };
    let trace = |backup: &st::Backup| {
        let path = format!("backups/{}", backup.file);
        match crate::regular::read(&backup.path) {
            Ok(bytes) => has_it(&bytes).then_some(Trace { path, kind: TraceKind::ChatBackup }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(_) => Some(unreadable(path)),
        }
    };
    Ok(found.iter().filter_map(trace).collect())
}

fn key_of(name: &TimelineName) -> &str {
    name.folder().unwrap_or(name.chat())
}

/// The texts of all messages of some snapshots, each object read once.
fn texts(reader: &Reader, snapshots: &[&Snapshot]) -> Result<HashSet<String>> {
    let mut seen: HashSet<ObjectId> = HashSet::new();
    let mut texts = HashSet::new();
    for snapshot in snapshots.iter().filter(|snapshot| snapshot.timeline.is_chat()) {
        let Some(tree) = unless_lost(Tree::open(reader, snapshot.tree))? else { continue };
        for id in tree.messages() {
            if !seen.insert(*id) {
                continue;
            }
            if let Some(line) = unless_lost(reader.blob(*id))?
                && let Some(found) = text_of(&line)
            {
                texts.insert(found.text);
            }
        }
    }
    texts.retain(|text| !text.trim().is_empty());
    Ok(texts)
}
