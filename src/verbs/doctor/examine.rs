//! Reading the library, one chat at a time, for what the rules need to know of it.

use std::collections::{BTreeMap, BTreeSet};

use super::unlisted::{self, Group, Unlisted};
use crate::archive::{Role, Snapshot, SnapshotId, Tree};
use crate::auto_recap::{running_recap, settings_hash};
use crate::engine::files;
use crate::engine::free_names::free_restored;
use crate::engine::unused_lorebooks::{by_book, unused_lorebooks};
use crate::history::History;
use crate::history::latest_valid::{Part, described, first_valid, stored_version};
use crate::history::owner_of_snapshot::Owners;
use crate::progress::Monitor;
use crate::rules::{
    self, BookFacts, CharacterFacts, Code, DamagedFile, Finding, LibraryFacts, TimelineFacts,
};
use crate::st::{
    self, Captured, Category, Chat, Damage, Disk, Library, LibraryPath, Message, References, Scan,
    TimelineFiles, TimelineName, User, lorebook_path,
};
use crate::store::Store;
use crate::verbs::Result;

/// A library that was looked at.
pub(super) struct Examined {
    pub facts: LibraryFacts,
    /// What was found in single timelines.
    pub findings: Vec<Finding>,
    /// How many lorebooks there are.
    pub lorebooks: usize,
    /// The latest valid versions of lorebooks that are missing or damaged, and of groups and other single files that are damaged.
    pub stored: BTreeMap<LibraryPath, Snapshot>,
    /// Group chats that no group lists.
    pub unlisted: Vec<Unlisted>,
    pub groups: Vec<Group>,
}

/// Look at all of it. Findings about single timelines are only for those in `only`, if there are any.
pub(super) fn examine(
    library: &Library,
    scan: Scan,
    store: Option<&Store>,
    only: &BTreeSet<TimelineName>,
    monitor: &mut dyn Monitor,
) -> Result<Examined> {
    let scan_is_whole = scan.unreadable.is_empty();
    let mut unread = Vec::new();
    let mut unlisted = Vec::new();
    let mut look = Look {
        library,
        only,
        seen: BTreeSet::new(),
        facts: LibraryFacts::default(),
        findings: Vec::new(),
    };
    if only.is_empty() {
        look.findings.extend(scan.unreadable.iter().map(|(subject, why)| unreadable(subject, why)));
    }
    monitor.begin("looking at chats", Some(scan.chats.len() as u64));
    for name in &scan.chats {
        match st::capture(library, &scan.groups, name, &Disk) {
            Ok(captured) => {
                let chat = captured.files.split();
                look.at_chat(name, &captured, &chat);
                unlisted.extend(Unlisted::read(name, &chat, &scan));
            }
            Err(error) => {
                unread.push((name.file().to_string(), error.to_string()));
                if only.is_empty() || only.contains(name) {
                    look.findings.push(unreadable(name.as_str(), &error.to_string()));
                }
            }
        }
        monitor.advance(1);
    }
    monitor.begin("looking at lorebooks", None);
    // If they cannot be listed, the scan says so, and none is missing.
    let books = library.lorebooks().ok();
    look.facts.is_partial |= books.is_none();
    look.at_other_books(books.as_deref().unwrap_or_default());
    if only.is_empty() {
        look.at_single_files(&scan);
    }
    let Look { mut facts, mut findings, .. } = look;
    let references = library.references(&scan);
    let mut characters = character_facts(&scan, &references, books.as_deref());
    let books = books.unwrap_or_default();
    let history = match store {
        // What was undone is not evidence of anything.
        Some(store) => History::load(store)?,
        None => History::default(),
    };
    let owners = Owners::of(&history);
    learn_from_store(&mut facts, &history, &owners, &scan);
    let may_be_here =
        history.heads().map(|(name, _)| name).filter(|name| name.is_chat() && scan.may_have(name));
    facts.here = scan.chats.iter().chain(may_be_here).cloned().collect();
    let mut stored = BTreeMap::new();
    if let Some(store) = store {
        stored = find_books(&mut facts, &history, &owners, store)?;
        find_valid(&mut facts, &mut stored, &history, store)?;
    }
    let groups = unlisted::groups(library, &scan);
    for chat in &mut unlisted {
        let stored = store.map(|store| (store, &history));
        chat.find_groups(&groups, &facts, &scan, stored)?;
    }
    facts.unused = unused_lorebooks(&references, &books, &facts.here, &history, &owners);
    facts.is_partial |= !unread.is_empty() || !scan_is_whole;
    if only.is_empty() {
        // What is wrong with a chat alone was found above.
        let is_new = |(subject, _): &&(String, String)| unread.iter().all(|(it, _)| it != subject);
        let unread = references.unread.iter().filter(is_new);
        findings.extend(unread.map(|(subject, why)| unreadable(subject, why)));
        let stored = history.heads().filter(|(name, _)| name.category() == Category::Card);
        characters.stored = stored.map(|(name, _)| name.chat().to_owned()).collect();
        findings.extend(rules::characters(&characters));
    }
    facts.unknown = references.unreadable;
    // Chats that are all gone with their folder may come back, and with them the uses of lorebooks.
    if history.heads().any(|(name, _)| name.is_chat())
        && st::is_absent(&library.root().join("chats")).unwrap_or(true)
    {
        facts.unknown.push(("chats".into(), "the folder does not exist".into()));
    }
    unread.retain(|(subject, _)| facts.unknown.iter().all(|(known, _)| known != subject));
    facts.unknown.append(&mut unread);
    for finding in &mut findings {
        facts.advise(finding);
        advise_unreadable(finding, &history, library);
    }
    Ok(Examined { facts, findings, lorebooks: books.len(), stored, unlisted, groups })
}

/// What was found so far in the files of the library.
struct Look<'l> {
    library: &'l Library,
    /// The timelines that are asked about; none: all.
    only: &'l BTreeSet<TimelineName>,
    /// The lorebooks of the chats that were looked at.
    seen: BTreeSet<LibraryPath>,
    facts: LibraryFacts,
    findings: Vec<Finding>,
}

impl Look<'_> {
    fn at_chat(&mut self, name: &TimelineName, captured: &Captured, chat: &Chat<'_>) {
        let (library, files) = (self.library, &captured.files);
        if self.only.is_empty() || self.only.contains(name) {
            let found = rules::of_files(files, chat, rules::ALL, library.book_template());
            // Said of the library as a whole, with what can be done about it.
            self.findings.extend(found.into_iter().filter(|f| f.code != Code::LorebookMissing));
            let named = st::attachments(chat, files.metadata(chat));
            let is_gone = |path: &LibraryPath| {
                st::is_absent(&path.under(library.root())).is_ok_and(|gone| gone)
            };
            let gone: Vec<_> = named.into_iter().filter(is_gone).collect();
            self.findings.extend(rules::missing_attachments(name, &gone));
        }
        self.note_damage(&files.main.path, st::chat_damage(chat, rules::ALL));
        if let Some(book) = files.book() {
            self.seen.insert(book.path.clone());
            self.note_damage(book.path, st::book_damage(book.bytes));
        }
        self.facts.timelines.push(timeline_facts(captured, chat));
    }

    fn note_damage(&mut self, path: &LibraryPath, damage: Option<Damage>) {
        if let Some(damage) = damage {
            self.facts.damaged.insert(path.clone(), DamagedFile { damage, stored: None });
        }
    }

    /// Looks at the lorebooks that no chat is bound to.
    fn at_other_books(&mut self, books: &[String]) {
        for book in books {
            let Ok(path) = LibraryPath::parse(&format!("worlds/{book}.json")) else { continue };
            let name = TimelineName::of_file(&path).filter(|_| !self.seen.contains(&path));
            let Some(name) = name else { continue };
            match files::read(self.library.root(), &path) {
                Ok(Some(bytes)) => {
                    self.note_damage(&path, st::book_damage(&bytes));
                    if self.only.is_empty() {
                        let files = TimelineFiles::alone(&name, bytes);
                        let (chat, template) = (files.split(), self.library.book_template());
                        self.findings.extend(rules::of_files(&files, &chat, rules::ALL, template));
                    }
                }
                Ok(None) => {}
                Err(error) => {
                    self.facts.is_partial = true;
                    if self.only.is_empty() {
                        self.findings.push(unreadable(path.as_str(), &error.to_string()));
                    }
                }
            }
        }
    }

    /// Looks at groups, cards, personas and the settings.
    fn at_single_files(&mut self, scan: &Scan) {
        for name in scan.others.iter().filter(|name| name.category() != Category::Lorebook) {
            // A file that the system cannot read is told by the scan or as an unknown reference.
            if let Ok(Some(damage)) = st::damage_on_disk(self.library.root(), name) {
                self.findings.push(rules::damaged(name, damage.words()));
                self.note_damage(&name.file(), Some(damage));
            }
        }
    }
}

/// Names the command that restores a chat whose files cannot be read: beside them, since nothing is replaced that could not be stored, or into another folder where nothing can be
/// written beside them.
fn advise_unreadable(finding: &mut Finding, history: &History, library: &Library) {
    let name = Some(&*finding).filter(|finding| finding.code == Code::Unreadable);
    let name = name.and_then(|finding| TimelineName::parse(&finding.subject).ok());
    if let Some(head) =
        name.filter(TimelineName::is_chat).and_then(|name| history.head(&name).cloned())
    {
        let (name, snapshot) = (head.timeline.as_str(), described(&head));
        let can_be_listed = library.lorebooks().is_ok();
        let free = can_be_listed.then(|| free_restored(&head.timeline, library, history));
        let command = match free.flatten() {
            Some(free) => format!(
                "`stvc restore {name:?} --as {free:?}` writes {snapshot} as a chat of its own"
            ),
            None => {
                format!("`stvc restore {name:?} --to FOLDER` writes {snapshot} into another folder")
            }
        };
        finding.remedy = Some(format!("check its name, its permissions and the disk; {command}"));
    }
}

/// A file or folder that the system cannot read.
fn unreadable(subject: &str, why: &str) -> Finding {
    Finding::new(Code::Unreadable, subject, why)
        .remedy("check its name, its permissions and the disk")
}

/// Collects the facts about characters. Without a list of the lorebooks none of them counts as missing.
fn character_facts(
    scan: &Scan,
    references: &References,
    books: Option<&[String]>,
) -> CharacterFacts {
    let mut facts = CharacterFacts::default();
    let cards = scan.others.iter().filter(|name| name.category() == Category::Card);
    facts.cards = cards.map(|name| name.chat().to_owned()).collect();
    for folder in scan.chats.iter().filter_map(|name| name.folder()) {
        *facts.chats.entry(folder.to_owned()).or_default() += 1;
    }
    let is_there = |book: &str| {
        let path = lorebook_path(book);
        let file = path.as_ref().map(|path| path.file_name());
        books.is_none_or(|books| books.iter().any(|name| file == Some(&format!("{name}.json"))))
    };
    for reference in &references.list {
        if let User::Card(card) = &reference.user
            && !is_there(&reference.book)
        {
            facts.missing_books.push((card.clone(), reference.book.clone()));
        }
    }
    facts
}

fn timeline_facts(captured: &Captured, chat: &Chat<'_>) -> TimelineFacts {
    let name = &captured.files.timeline;
    let metadata = st::metadata(chat, name, captured.files.group_bytes());
    let recap = metadata.and_then(running_recap).filter(|recap| recap.exists());
    TimelineFacts {
        name: name.clone(),
        group: captured.files.group.as_ref().map(|group| group.path.clone()),
        book: captured.files.lorebook.as_ref().map(|book| BookFacts {
            name: book.name.clone(),
            path: book.path.clone(),
            exists: book.bytes.is_some(),
            stored: None,
        }),
        main_chat: metadata.and_then(st::main_chat),
        origin: None,
        links: chat.messages.iter().enumerate().filter_map(link).collect(),
        settings_hash: metadata.and_then(settings_hash).map(str::to_owned),
        recap_of: recap.and_then(|recap| recap.chat_id),
        metadata_in: metadata.and_then(|metadata| {
            let header = chat.header.unwrap_or_default();
            if metadata.span_in(header).is_empty() {
                captured.files.group.as_ref().map(|group| group.path.clone())
            } else {
                Some(captured.files.main.path.clone())
            }
        }),
    }
}

/// The checkpoint that a message links to.
fn link((number, line): (usize, &&[u8])) -> Option<(usize, String)> {
    // Few messages have one, and looking for a word is much cheaper than reading the line.
    memchr::memmem::find(line, b"bookmark_link")?;
    let link = Message::read(line)?.extra()?.get("bookmark_link")?.string()?;
    (!link.is_empty()).then_some((number, link))
}

/// Where each timeline comes from by what was said, and which are gone.
fn learn_from_store(facts: &mut LibraryFacts, history: &History, owners: &Owners, scan: &Scan) {
    for timeline in &mut facts.timelines {
        let origin = history.head(&timeline.name).and_then(|head| history.own(head).1);
        timeline.origin = origin.map(|origin| owners.of_snapshot(origin).clone());
    }
    let stored = history.heads().map(|(name, _)| name);
    let is_gone = |name: &&TimelineName| name.is_chat() && !scan.may_have(name);
    facts.deleted = stored.filter(is_gone).cloned().collect();
}

/// Looks in the store for valid versions of lorebooks that are missing or damaged: in their own histories, then in the snapshots of a chat that is bound to one, then in any.
fn find_books(
    facts: &mut LibraryFacts,
    history: &History,
    owners: &Owners,
    store: &Store,
) -> Result<BTreeMap<LibraryPath, Snapshot>> {
    let mut users: BTreeMap<LibraryPath, BTreeSet<TimelineName>> = BTreeMap::new();
    for (path, _) in facts.damaged.iter().filter(|(path, _)| is_lorebook(path)) {
        users.entry(path.clone()).or_default();
    }
    for timeline in &facts.timelines {
        let Some(book) = &timeline.book else { continue };
        if let Some(path) = &book.path
            && (!book.exists || facts.damaged.contains_key(path))
        {
            users.entry(path.clone()).or_default().insert(timeline.name.clone());
        }
    }
    if users.is_empty() {
        return Ok(BTreeMap::new());
    }
    let reader = store.reader();
    let by_book = by_book(history);
    let mut found = BTreeMap::new();
    for (path, users) in users {
        let mut snapshots = by_book.get(&path).cloned().unwrap_or_default();
        snapshots.sort_by_key(|snapshot| !users.contains(owners.of_snapshot(snapshot)));
        let own = TimelineName::of_file(&path).and_then(|name| history.head(&name));
        snapshots.splice(0..0, own.into_iter().flat_map(|head| history.own(head).0));
        if let Some(valid) = first_valid(&reader, Part::Book, snapshots)? {
            found.insert(path, valid.snapshot.clone());
        }
    }
    for book in facts.timelines.iter_mut().filter_map(|timeline| timeline.book.as_mut()) {
        let snapshot = book.path.as_ref().and_then(|path| found.get(path));
        book.stored = snapshot.map(described);
    }
    Ok(found)
}

/// Looks for the latest valid versions of other files that are damaged, adds those that are one file to `stored`, and notes those of lorebooks.
fn find_valid(
    facts: &mut LibraryFacts,
    stored: &mut BTreeMap<LibraryPath, Snapshot>,
    history: &History,
    store: &Store,
) -> Result<()> {
    let reader = store.reader();
    for (path, damaged) in &mut facts.damaged {
        let Some(name) = TimelineName::of_file(path) else { continue };
        let is_book = name.category() == Category::Lorebook;
        let head = history.head(&name).filter(|_| !is_book);
        let own = head.map(|head| history.own(head).0).unwrap_or_default();
        let valid = first_valid(&reader, Part::Own, own)?.map(|valid| valid.snapshot);
        if let Some(valid) = valid.filter(|_| !name.is_chat()) {
            stored.insert(path.clone(), valid.clone());
        }
        let snapshot = valid.or_else(|| stored.get(path));
        damaged.stored = snapshot.map(|snapshot| stored_version(snapshot, &name));
    }
    Ok(())
}

pub(super) fn is_lorebook(path: &LibraryPath) -> bool {
    TimelineName::of_file(path).is_some_and(|name| name.category() == Category::Lorebook)
}

/// Returns the lorebook that a snapshot has, and whether it has it under that path.
pub(super) fn stored_book(
    store: &Store,
    snapshot: SnapshotId,
    path: &LibraryPath,
) -> Result<Option<(Vec<u8>, bool)>> {
    let reader = store.reader();
    let snapshot = Snapshot::read(&reader.commit(snapshot.0)?)?;
    let tree = Tree::open(&reader, snapshot.tree)?;
    let role = if snapshot.timeline.is_chat() { Role::Lorebook } else { tree.manifest.main_role() };
    match tree.manifest.file(role) {
        Some(record) => Ok(Some((tree.rebuild(&reader, record)?, record.path == path.as_str()))),
        None => Ok(None),
    }
}
