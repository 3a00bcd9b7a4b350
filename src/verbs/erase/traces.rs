//! What still has the text of timelines that are erased, beside the store: SillyTavern's own backups, the chat's lorebook, and what `watch` put into the page's mailbox.

use std::collections::{BTreeSet, HashSet};
use std::path::Path;

use crate::archive::{Snapshot, SnapshotId, Tree};
use crate::history::History;
use crate::st::{
    self, Library, LibraryPath, TimelineName, list_backups, lorebook_path, remove_file, text_of,
};
use crate::store::{ObjectId, Reader, Store, unless_lost};
use crate::verbs::Result;

/// Answers to SillyTavern's page, what the page may read without asking, and files that were not written to their end.
const MAILBOX: &str = "user/files";
const MAIL: [&str; 3] = ["stvc-res-", "stvc-status.json", ".stvc-"];

/// A file of the library that still has the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// Its path in the library.
    pub path: String,
    pub kind: TraceKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceKind {
    /// A backup that SillyTavern made of the chat.
    ChatBackup,
    /// The chat's lorebook, which nothing else uses.
    Lorebook,
    /// The chat's lorebook, which others use: it stays.
    SharedLorebook,
    /// A file of the mailbox: it is removed with the timeline.
    Mailbox,
}

impl TraceKind {
    /// Returns the word in output.
    pub fn as_str(self) -> &'static str {
        match self {
            TraceKind::ChatBackup => "chat-backup",
            TraceKind::Lorebook => "lorebook",
            TraceKind::SharedLorebook => "shared-lorebook",
            TraceKind::Mailbox => "mailbox",
        }
    }

    /// Whether it is removed if somebody asks for it.
    pub fn can_be_removed(self) -> bool {
        matches!(self, TraceKind::ChatBackup | TraceKind::Lorebook)
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
    traces.extend(lorebooks(library, &going)?);
    traces.extend(
        mail(library.root())
            .into_iter()
            .map(|name| Trace { path: format!("{MAILBOX}/{name}"), kind: TraceKind::Mailbox }),
    );
    Ok(traces)
}

/// Removes the files of the mailbox. Whoever asked asks again, and the watch writes its status anew.
pub(super) fn clear_mailbox(library: &Library) {
    for name in mail(library.root()) {
        let _ = remove_file(library.root(), &format!("{MAILBOX}/{name}"));
    }
}

fn mail(root: &Path) -> Vec<String> {
    let entries = st::list_folder(&root.join(MAILBOX)).entries;
    let files =
        entries.into_iter().filter(|entry| entry.file_type().is_ok_and(|kind| !kind.is_dir()));
    let names = files.filter_map(|entry| entry.file_name().into_string().ok());
    let mut names: Vec<_> =
        names.filter(|name| MAIL.iter().any(|prefix| name.starts_with(prefix))).collect();
    names.sort_unstable();
    names
}

/// The lorebooks of these snapshots that exist.
fn lorebooks(library: &Library, going: &[&Snapshot]) -> Result<Vec<Trace>> {
    let chats = going.iter().filter(|snapshot| snapshot.timeline.is_chat());
    let books = chats.filter_map(|snapshot| snapshot.lorebook.as_deref().and_then(lorebook_path));
    let books: BTreeSet<LibraryPath> = books.filter(|path| library.has(path)).collect();
    if books.is_empty() {
        return Ok(Vec::new());
    }
    let names: Vec<_> =
        books.iter().filter_map(|path| path.file_name().strip_suffix(".json")).collect();
    let names: Vec<_> = names.into_iter().map(str::to_owned).collect();
    let references = library.references(&library.scan()?);
    let unused = references.unused(&names);
    let is_certain = references.unreadable.is_empty();
    let trace = |path: &LibraryPath| {
        let is_unused = unused.iter().any(|name| path.file_name() == format!("{name}.json"));
        let kind = match is_certain && is_unused {
            true => TraceKind::Lorebook,
            false => TraceKind::SharedLorebook,
        };
        Trace { path: path.to_string(), kind }
    };
    Ok(books.iter().map(trace).collect())
}

/// SillyTavern's backups that have a message which none of the chats that stay has.
fn chat_backups(
    library: &Library,
    store: &Store,
    history: &History,
    gone: &HashSet<SnapshotId>,
    going: &[&Snapshot],
) -> Result<Vec<Trace>> {
    let mut found = list_backups(&library.root().join("backups")).unwrap_or_default();
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
    let has_it = |path: &Path| {
        let bytes = crate::regular::read(path).unwrap_or_default();
        let mut lines = bytes.split(|byte| *byte == b'\n');
        lines.any(|line| text_of(line).is_some_and(|found| texts.contains(&found.text)))
    };
    found.retain(|backup| has_it(&backup.path));
    let trace = |backup: st::Backup| Trace {
        path: format!("backups/{}", backup.file),
        kind: TraceKind::ChatBackup,
    };
    Ok(found.into_iter().map(trace).collect())
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
