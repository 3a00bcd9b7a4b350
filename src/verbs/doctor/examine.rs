//! Reading the library, one chat at a time, for what the rules need to know of it.

use std::collections::{BTreeMap, BTreeSet};

use super::unlisted::{self, Group, Unlisted};
use crate::archive::{Role, Snapshot, SnapshotId, Tree};
use crate::history::History;
use crate::history::owner_of_snapshot::Owners;
use crate::progress::Monitor;
use crate::rules::{
    self, BookFacts, CharacterFacts, Code, Finding, Level, LibraryFacts, TimelineFacts, UnusedBook,
};
use crate::st::auto_recap::{is_fork_book, lorebook_map, running_recap};
use crate::st::{
    self, Captured, Category, Chat, Disk, Library, LibraryPath, Message, Raw, References, Scan,
    TimelineName, User, lorebook_path,
};
use crate::store::{Store, unless_lost};
use crate::verbs::Result;

/// A library that was looked at.
pub(super) struct Examined {
    pub facts: LibraryFacts,
    /// What was found in single timelines.
    pub findings: Vec<Finding>,
    /// How many lorebooks there are.
    pub lorebooks: usize,
    /// Missing lorebooks that the store has, and where.
    pub stored: BTreeMap<LibraryPath, Snapshot>,
    /// Group chats that no group lists.
    pub unlisted: Vec<Unlisted>,
    pub groups: Vec<Group>,
}

/// What chats say of lorebooks beside the one that they are bound to.
type Maps = BTreeMap<LibraryPath, String>;

/// Look at all of it. Findings about single timelines are only for those in `only`, if there are any.
pub(super) fn examine(
    library: &Library,
    scan: Scan,
    store: Option<&Store>,
    only: &BTreeSet<TimelineName>,
    monitor: &mut dyn Monitor,
) -> Result<Examined> {
    let mut findings = Vec::new();
    let unreadable = |subject: &str, why: &str| {
        Finding::new(Code::Unreadable, Level::Error, subject, why)
            .remedy("check its name, its permissions and the disk")
    };
    if only.is_empty() {
        findings.extend(scan.unreadable.iter().map(|(subject, why)| unreadable(subject, why)));
    }
    let mut facts = LibraryFacts::default();
    let mut maps = Maps::new();
    let mut unlisted = Vec::new();
    monitor.begin("looking at chats", Some(scan.chats.len() as u64));
    for name in &scan.chats {
        let is_asked = only.is_empty() || only.contains(name);
        match st::capture(library, &scan.groups, name, &Disk) {
            Ok(captured) => {
                let chat = captured.files.split();
                if is_asked {
                    let template = library.book_template();
                    let found = rules::of_files(&captured.files, &chat, rules::ALL, template);
                    // Said of the library as a whole, with what can be done about it.
                    findings.extend(found.into_iter().filter(|f| f.code != Code::LorebookMissing));
                    let named = st::attachments(&chat, captured.files.metadata(&chat));
                    let is_gone = |path: &LibraryPath| {
                        st::is_absent(&path.under(library.root())).is_ok_and(|gone| gone)
                    };
                    let gone: Vec<_> = named.into_iter().filter(is_gone).collect();
                    findings.extend(rules::missing_attachments(name, &gone));
                }
                facts.timelines.push(timeline_facts(&captured, &chat, &mut maps));
                unlisted.extend(Unlisted::read(name, &chat, &scan));
            }
            Err(error) if is_asked => {
                findings.push(unreadable(name.as_str(), &error.to_string()));
            }
            Err(_) => {}
        }
        monitor.advance(1);
    }
    monitor.begin("looking at lorebooks", None);
    // If they cannot be listed, the scan says so, and none is missing.
    let books = library.lorebooks().ok();
    let references = library.references(&scan);
    let mut characters = character_facts(&scan, &references, books.as_deref());
    let books = books.unwrap_or_default();
    let history = match store {
        Some(store) => History::load_with_kept(store)?,
        None => History::default(),
    };
    let owners = Owners::of(&history);
    learn_from_store(&mut facts, &history, &owners, &scan);
    let may_be_here =
        history.heads().map(|(name, _)| name).filter(|name| name.is_chat() && scan.may_have(name));
    facts.here = scan.chats.iter().chain(may_be_here).cloned().collect();
    let stored = match store {
        Some(store) => find_missing(&mut facts, &history, &owners, store)?,
        None => BTreeMap::new(),
    };
    let groups = unlisted::groups(library, &scan);
    for chat in &mut unlisted {
        let stored = store.map(|store| (store, &history));
        chat.find_groups(&groups, &facts, &scan, stored)?;
    }
    let by_book = by_book(&history);
    let unused = references.unused(&books).into_iter();
    let unused = unused.filter_map(|name| unused_book(name, &facts, &by_book, &owners, &maps));
    facts.unused = unused.collect();
    facts.unknown = references.unreadable;
    if only.is_empty() {
        let stored = history.heads().filter(|(name, _)| name.category() == Category::Card);
        characters.stored = stored.map(|(name, _)| name.chat().to_owned()).collect();
        findings.extend(rules::characters(&characters));
    }
    Ok(Examined { facts, findings, lorebooks: books.len(), stored, unlisted, groups })
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

fn timeline_facts(captured: &Captured, chat: &Chat<'_>, maps: &mut Maps) -> TimelineFacts {
    let name = &captured.files.timeline;
    let metadata = st::metadata(chat, name, captured.files.group_bytes());
    let recap = metadata.and_then(running_recap).filter(|recap| recap.exists());
    for (chat, book) in metadata.map(lorebook_map).unwrap_or_default() {
        if let Some(path) = lorebook_path(&book) {
            maps.insert(path, chat);
        }
    }
    let settings = metadata.and_then(|metadata| metadata.path(&["auto_recap", "settings_hash"]));
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
        settings_hash: settings.filter(Raw::truthy).map(|hash| hash.as_str().to_owned()),
        recap_of: recap.and_then(|recap| recap.chat_id),
        metadata_in: metadata.and_then(|metadata| {
            let header = chat.header.unwrap_or_default();
            match metadata.span_in(header).is_empty() {
                false => Some(captured.files.main.path.clone()),
                true => captured.files.group.as_ref().map(|group| group.path.clone()),
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

/// The snapshots of chats that have a lorebook, by its file, newest first.
fn by_book(history: &History) -> BTreeMap<LibraryPath, Vec<&Snapshot>> {
    let mut found: BTreeMap<_, Vec<_>> = BTreeMap::new();
    let of_chats = history.newest_first().into_iter().filter(|found| found.timeline.is_chat());
    for snapshot in of_chats {
        if let Some(path) = snapshot.lorebook.as_deref().and_then(lorebook_path) {
            found.entry(path).or_default().push(snapshot);
        }
    }
    found
}

/// Look in the store for lorebooks that are missing: in their own histories, then in the snapshots of a chat that misses it, then in any.
fn find_missing(
    facts: &mut LibraryFacts,
    history: &History,
    owners: &Owners,
    store: &Store,
) -> Result<BTreeMap<LibraryPath, Snapshot>> {
    let mut users: BTreeMap<LibraryPath, BTreeSet<TimelineName>> = BTreeMap::new();
    for timeline in &facts.timelines {
        let book = timeline.book.as_ref().filter(|book| !book.exists);
        if let Some(path) = book.and_then(|book| book.path.clone()) {
            users.entry(path).or_default().insert(timeline.name.clone());
        }
    }
    if users.is_empty() {
        return Ok(BTreeMap::new());
    }
    let by_book = by_book(history);
    let mut found = BTreeMap::new();
    for (path, users) in users {
        let mut snapshots = by_book.get(&path).cloned().unwrap_or_default();
        snapshots.sort_by_key(|snapshot| !users.contains(owners.of_snapshot(snapshot)));
        let own = TimelineName::of_file(&path).and_then(|name| history.head(&name));
        snapshots.splice(0..0, own.into_iter().flat_map(|head| history.ancestry(head)));
        for snapshot in snapshots {
            if unless_lost(stored_book(store, snapshot.id, &path))?.flatten().is_some() {
                found.insert(path, snapshot.clone());
                break;
            }
        }
    }
    for book in facts.timelines.iter_mut().filter_map(|timeline| timeline.book.as_mut()) {
        let snapshot = book.path.as_ref().and_then(|path| found.get(path));
        book.stored = snapshot.map(|snapshot| short(snapshot.id));
    }
    Ok(found)
}

/// The lorebook of that path that a snapshot has.
pub(super) fn stored_book(
    store: &Store,
    snapshot: SnapshotId,
    path: &LibraryPath,
) -> Result<Option<Vec<u8>>> {
    let reader = store.reader();
    let tree = Tree::open(&reader, Snapshot::read(&reader.commit(snapshot.0)?)?.tree)?;
    match tree.manifest.file(Role::Lorebook).filter(|record| record.path == path.as_str()) {
        Some(record) => Ok(Some(tree.rebuild(&reader, record)?)),
        None => Ok(None),
    }
}

fn unused_book(
    name: &str,
    facts: &LibraryFacts,
    by_book: &BTreeMap<LibraryPath, Vec<&Snapshot>>,
    owners: &Owners,
    maps: &Maps,
) -> Option<UnusedBook> {
    let path = LibraryPath::parse(&format!("worlds/{name}.json")).ok()?;
    let snapshots = by_book.get(&path).map(Vec::as_slice).unwrap_or_default();
    let is_gone = |snapshot: &&&Snapshot| !facts.here.contains(owners.of_snapshot(snapshot));
    let newest =
        snapshots.first().map(|newest| (owners.of_snapshot(newest).to_string(), is_gone(&newest)));
    let mapped = maps.get(&path).map(|chat| (format!("the checkpoint {chat:?}"), false));
    let left = !snapshots.is_empty() && snapshots.iter().all(|snapshot| is_gone(&snapshot));
    let leftover = left || maps.contains_key(&path) || is_fork_book(name);
    Some(UnusedBook { path, once: newest.or(mapped), leftover })
}

/// A snapshot's id as it can be typed.
pub(super) fn short(id: SnapshotId) -> String {
    id.to_string().chars().take(10).collect()
}
