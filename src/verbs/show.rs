//! One snapshot, with its files and its last messages.

use crate::archive::{self, Manifest, Rebuilt, Snapshot};
use crate::engine::{Workspace, verdict_findings};
use crate::history::History;
use crate::rules::{self, Finding};
use crate::st::{self, Library, MessageText, Raw};
use crate::verbs::Result;

/// One snapshot in detail.
pub struct Report {
    /// The snapshot.
    pub snapshot: Snapshot,
    /// Its tags.
    pub tags: Vec<String>,
    /// Its manifest.
    pub manifest: Manifest,
    /// Its last messages with their numbers, oldest first.
    pub last_messages: Vec<(usize, MessageText)>,
    /// Its lorebook's entries: key and title.
    pub entries: Vec<(String, String)>,
    /// What is odd about it.
    pub findings: Vec<Finding>,
}

/// How many of the last messages are shown.
const LAST: usize = 3;

/// Show the snapshot that `name` names.
pub fn show(workspace: &Workspace, name: &str) -> Result<Report> {
    let store = workspace.open_store()?;
    let snapshot = workspace.snapshot(name, &store)?;
    let library = workspace.library().ok();
    let Rebuilt { contents, problems } = archive::rebuild(&store.reader(), &snapshot)?;
    let chat = contents.files.split();
    let texts = chat
        .messages
        .iter()
        .enumerate()
        .rev()
        .filter_map(|(n, line)| Some((n, st::text_of(line)?)));
    let mut last_messages: Vec<_> = texts.take(LAST).collect();
    last_messages.reverse();
    let tags = History::load(&store)?.tags_of(snapshot.id);
    let entries = contents.files.book_bytes().map(titles).unwrap_or_default();
    let mut findings: Vec<_> =
        verdict_findings::unsound(&snapshot, &problems).into_iter().collect();
    findings.extend(rules::restored(&contents));
    let template = library.as_ref().map(Library::book_template).cloned().unwrap_or_default();
    findings.extend(rules::of_files(&contents.files, &chat, rules::ALL, &template));
    let manifest = contents.manifest.clone();
    Ok(Report { snapshot, tags, manifest, last_messages, entries, findings })
}

fn titles(book: &[u8]) -> Vec<(String, String)> {
    let members =
        Raw::parse(book).and_then(|book| book.get("entries")?.members()).unwrap_or_default();
    let title = |member: st::Member<'_>| {
        (member.key.to_string_lossy(), st::entry_comment(member.value).unwrap_or_default())
    };
    members.into_iter().map(title).collect()
}
