//! Findings about a library as a whole: lorebooks that several chats share, that are missing or
//! unused, and names of chats that do not exist.

use std::collections::{BTreeMap, BTreeSet};

use super::damage::{StoredVersion, advise_damaged, damaged_timeline};
use super::{Code, Finding, Level, listed};
use crate::st::{LibraryPath, TimelineName, chat_name};

pub fn other_users(user: &str, others: &[String]) -> Finding {
    let message = format!("there are other users, too: {}", listed(others));
    Finding::new(Code::OtherUsers, user, message)
        .remedy("`--user NAME` for another one, `--all-users` for all")
}

#[derive(Clone, Debug, Default)]
pub struct LibraryFacts {
    /// Sorted by name; without those whose files could not be read.
    pub timelines: Vec<TimelineFacts>,
    pub here: BTreeSet<TimelineName>,
    /// Timelines that are stored and whose file is gone.
    pub deleted: BTreeSet<TimelineName>,
    /// Damaged files of timelines, with the latest valid version that is stored.
    pub damaged: BTreeMap<LibraryPath, Option<StoredVersion>>,
    pub unused: Vec<UnusedBook>,
    /// Files that could not be read, and why: each may use any lorebook.
    pub unknown: Vec<(String, String)>,
    /// Whether the system could not read all chats and lorebooks, so that not all users of a
    /// lorebook are known.
    pub is_partial: bool,
}

#[derive(Clone, Debug)]
pub struct TimelineFacts {
    pub name: TimelineName,
    pub group: Option<LibraryPath>,
    pub book: Option<BookFacts>,
    /// The chat that it says it was forked from, as typed.
    pub main_chat: Option<String>,
    /// The timeline that it was forked from by its messages, under its present name, as the store
    /// knows.
    pub origin: Option<TimelineName>,
    /// Links to checkpoints: number of the message, name as typed.
    pub links: Vec<(usize, String)>,
    pub settings_hash: Option<String>,
    /// The chat that its running recap says it belongs to.
    pub recap_of: Option<String>,
    /// The file that its metadata stands in: the chat's own or its group's; none if it cannot be
    /// read, and so cannot be changed.
    pub metadata_in: Option<LibraryPath>,
}

#[derive(Clone, Debug)]
pub struct BookFacts {
    pub name: String,
    pub path: Option<LibraryPath>,
    pub exists: bool,
    /// If it is missing or damaged: the snapshot with the latest valid version, in words.
    pub stored: Option<String>,
}

#[derive(Clone, Debug)]
pub struct UnusedBook {
    pub path: LibraryPath,
    /// The chat that used it once, and whether that is gone.
    pub once: Option<(String, bool)>,
    /// Whether a chat left it behind, so that it is not a book that a writer keeps for later.
    pub leftover: bool,
    /// The chats whose map from checkpoints to lorebooks has it.
    pub mapped_in: Vec<TimelineName>,
}

#[derive(Clone, Debug)]
pub struct SharedBook<'f> {
    pub path: &'f LibraryPath,
    pub users: Vec<&'f TimelineFacts>,
    /// Those of the users that should have a copy of their own: the chat they were forked from, or
    /// another fork of it, keeps this one.
    pub forks: Vec<&'f TimelineFacts>,
}

impl LibraryFacts {
    /// Returns the chat beside `chat` that it means by `id`, with the file's ending or without, if
    /// it exists.
    pub fn chat_called(&self, chat: &TimelineName, id: &str) -> Option<TimelineName> {
        called(&self.here, chat, id)
    }

    /// Returns the timeline that this one was forked from, if it exists: by its metadata, else by
    /// its messages.
    pub fn parent(&self, timeline: &TimelineFacts) -> Option<TimelineName> {
        let named = timeline.main_chat.as_deref();
        let named = named.and_then(|id| self.chat_called(&timeline.name, id));
        let by_messages = || timeline.origin.clone().filter(|origin| self.here.contains(origin));
        named.or_else(by_messages).filter(|parent| *parent != timeline.name)
    }

    pub fn timeline(&self, name: &TimelineName) -> Option<&TimelineFacts> {
        self.timelines.iter().find(|timeline| timeline.name == *name)
    }

    /// Whether a lorebook exists and is valid: a copy of damage is damage.
    pub fn may_be_copied(&self, book: &BookFacts) -> bool {
        book.exists && book.path.as_ref().is_none_or(|path| !self.damaged.contains_key(path))
    }

    /// Names the stored version that replaces a damaged file in the finding about it.
    pub fn advise(&self, finding: &mut Finding) {
        if let Some(name) = damaged_timeline(finding)
            && let Some(stored) = self.damaged.get(&name.file())
        {
            advise_damaged(finding, &name, stored.as_ref());
        }
    }

    pub fn shared(&self) -> Vec<SharedBook<'_>> {
        let mut users: BTreeMap<&LibraryPath, Vec<&TimelineFacts>> = BTreeMap::new();
        for timeline in &self.timelines {
            let book = timeline.book.as_ref().filter(|book| book.exists);
            if let Some(path) = book.and_then(|book| book.path.as_ref()) {
                users.entry(path).or_default().push(timeline);
            }
        }
        let shared = users.into_iter().filter(|(_, users)| users.len() > 1);
        shared
            .map(|(path, users)| SharedBook { path, forks: self.forks_among(&users), users })
            .collect()
    }

    /// Returns the users of a lorebook whose parent is among them, and all but the first of those
    /// that have the same parent.
    fn forks_among<'f>(&self, users: &[&'f TimelineFacts]) -> Vec<&'f TimelineFacts> {
        let is_fork = |user: &TimelineFacts| user.main_chat.is_some() || user.origin.is_some();
        let place = |user: &'f TimelineFacts| (user.name.folder(), &user.group);
        let mut firsts = BTreeSet::new();
        let mut forks: Vec<&TimelineFacts> = Vec::new();
        for user in users.iter().copied().filter(|user| is_fork(user)) {
            let parent = self.parent(user);
            let with_parent = match &parent {
                Some(parent) => users.iter().any(|other| other.name == *parent),
                // Its parent is gone or was renamed: any chat of the same character or group that is
                // not a fork itself counts as the parent.
                None => users.iter().any(|other| !is_fork(other) && place(other) == place(user)),
            };
            let named = || beside(&user.name, user.main_chat.as_deref()?);
            let family = parent.or_else(named).or_else(|| user.origin.clone());
            if with_parent || !firsts.insert(family) {
                forks.push(user);
            }
        }
        // After renames two can name each other. One keeps the book.
        if forks.len() == users.len() {
            forks.remove(0);
        }
        forks
    }
}

fn beside(chat: &TimelineName, id: &str) -> Option<TimelineName> {
    chat.sibling(&chat_name(id)?).ok()
}

fn called(names: &BTreeSet<TimelineName>, chat: &TimelineName, id: &str) -> Option<TimelineName> {
    let bare = id.strip_suffix(".jsonl").unwrap_or(id);
    [id, bare].iter().find_map(|id| beside(chat, id).filter(|name| names.contains(name)))
}

pub fn library(facts: &LibraryFacts) -> Vec<Finding> {
    let mut findings: Vec<_> = facts.shared().iter().map(|book| shared(facts, book)).collect();
    for timeline in &facts.timelines {
        if timeline.book.is_none() && timeline.metadata_in.is_some() {
            let message = "it has no lorebook, which is allowed";
            findings.push(Finding::new(Code::LorebookNone, timeline.name.as_str(), message));
        }
        findings.extend(missing(timeline));
        findings.extend(dangling_links(facts, timeline));
        findings.extend(missing_parent(facts, timeline));
        findings.extend(other_settings(facts, timeline));
    }
    findings.extend(facts.unused.iter().map(|book| orphan(book, &facts.unknown)));
    findings.extend(facts.unknown.iter().map(|(subject, why)| {
        let message = format!("{why}, so which lorebooks it uses is not known");
        Finding::new(Code::ReferencesUnknown, subject, message)
            .remedy("mend or remove it; until then no lorebook is removed as unused")
    }));
    findings
}

fn shared(facts: &LibraryFacts, book: &SharedBook<'_>) -> Finding {
    let names: Vec<_> = book.users.iter().map(|user| user.name.as_str()).collect();
    let message = format!(
        "{} chats use it, and what changes in one changes in all: {}",
        names.len(),
        listed(&names)
    );
    let remedy = match book.forks.iter().filter(|fork| fork.metadata_in.is_some()).count() {
        _ if facts.damaged.contains_key(book.path) => {
            "it is damaged, so no copy of it is made; once it is valid again, `stvc doctor --fix` gives each fork a copy of its own"
        }
        0 => "if they should not share it, choose another lorebook for one of them in SillyTavern",
        _ => "`stvc doctor --fix` gives each fork a copy of its own",
    };
    Finding::new(Code::LorebookShared, book.path.as_str(), message).remedy(remedy)
}

pub fn missing_attachments(timeline: &TimelineName, missing: &[LibraryPath]) -> Option<Finding> {
    const SHOWN: usize = 3;
    if missing.is_empty() {
        return None;
    }
    let mut names: Vec<_> =
        missing.iter().take(SHOWN).map(|path| path.as_str().to_owned()).collect();
    if missing.len() > SHOWN {
        names.push(format!("and {} more", missing.len() - SHOWN));
    }
    let message = format!("its messages name files that are not there: {}", names.join(", "));
    let finding = Finding::new(Code::AttachmentMissing, timeline.as_str(), message);
    let remedy = format!(
        "`stvc restore \"{timeline}\"` brings back those that were stored; the chat itself stays as it is"
    );
    Some(finding.remedy(remedy))
}

fn missing(timeline: &TimelineFacts) -> Option<Finding> {
    let book = timeline.book.as_ref().filter(|book| !book.exists)?;
    let message =
        format!("its lorebook {:?} does not exist; SillyTavern shows it as empty", book.name);
    let remedy = match &book.stored {
        Some(snapshot) => format!("`stvc doctor --fix` brings it back from {snapshot}"),
        None => "no snapshot has it. `stvc doctor --fix --repair empty` makes an empty one, `--repair clone` a copy of the \
                 parent's, `--clone-of NAME` a copy of any other, `--repair detach` lets the chat go without"
            .to_owned(),
    };
    let subject = timeline.name.as_str();
    Some(Finding::new(Code::LorebookMissing, subject, message).remedy(remedy))
}

fn dangling_links(facts: &LibraryFacts, timeline: &TimelineFacts) -> Option<Finding> {
    let name = &timeline.name;
    let is_dangling = |link: &&(usize, String)| facts.chat_called(name, &link.1).is_none();
    let dangling: Vec<_> = timeline.links.iter().filter(is_dangling).collect();
    if dangling.is_empty() {
        return None;
    }
    let shown: Vec<_> =
        dangling.iter().map(|(n, link)| format!("message {n} to {link:?}")).collect();
    let message = format!(
        "links to checkpoints that do not exist: {}; SillyTavern would begin a new chat there",
        listed(&shown)
    );
    let stored = dangling.iter().find_map(|(_, link)| called(&facts.deleted, name, link));
    let remedy = match stored {
        Some(gone) => restores(&gone),
        None => "remove the link in SillyTavern, or leave it alone".into(),
    };
    let finding = Finding::new(Code::CheckpointLinkDangling, name.as_str(), message);
    Some(finding.remedy(remedy))
}

fn missing_parent(facts: &LibraryFacts, timeline: &TimelineFacts) -> Option<Finding> {
    let main_chat = timeline.main_chat.as_deref()?;
    let name = &timeline.name;
    if facts.chat_called(name, main_chat).is_some() {
        return None;
    }
    let mut message = format!("the chat that it was forked from, {main_chat:?}, does not exist");
    let remedy = match facts.parent(timeline) {
        Some(parent) => {
            message.push_str(&format!(" under that name; by what was said it comes from {parent}"));
            "SillyTavern does not follow renames: \"Back to parent chat\" does not work in it"
                .into()
        }
        None => match called(&facts.deleted, name, main_chat) {
            Some(gone) => restores(&gone),
            None => {
                "\"Back to parent chat\" does not work in it; nothing else depends on it".into()
            }
        },
    };
    Some(Finding::new(Code::ParentMissing, name.as_str(), message).remedy(remedy))
}

fn restores(timeline: &TimelineName) -> String {
    format!("`stvc restore {:?}` brings it back", timeline.as_str())
}

fn other_settings(facts: &LibraryFacts, timeline: &TimelineFacts) -> Option<Finding> {
    let parent = facts.timeline(&facts.parent(timeline)?)?;
    if timeline.settings_hash.as_ref()? == parent.settings_hash.as_ref()? {
        return None;
    }
    let message =
        format!("Auto-Recap's settings are not those of {}, which it was forked from", parent.name);
    Some(Finding::new(Code::SettingsHashDiffers, timeline.name.as_str(), message))
}

/// Returns the finding about a lorebook that nothing uses. `unread` are files that may use it and
/// could not be read.
pub fn orphan(book: &UnusedBook, unread: &[(String, String)]) -> Finding {
    let once = match &book.once {
        Some((chat, true)) => format!("; it was the lorebook of {chat}, which is gone"),
        Some((chat, false)) => format!("; it was once the lorebook of {chat}"),
        None => String::new(),
    };
    let (who, remedy) = match (unread.is_empty(), book.leftover) {
        (false, _) => (
            "nothing that could be read uses it",
            "it is kept, because something could not be read",
        ),
        (true, true) => (
            "no chat, group, character, persona or setting uses it",
            "`stvc doctor --fix` removes it, and `stvc undo` would bring it back",
        ),
        (true, false) => (
            "no chat, group, character, persona or setting uses it",
            "keep it for later, or remove it with `stvc doctor --fix --orphans`",
        ),
    };
    let level = if book.leftover { Level::Warning } else { Level::Info };
    Finding::new(Code::LorebookOrphaned, book.path.as_str(), format!("{who}{once}"))
        .at(level)
        .remedy(remedy)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(chat: &str) -> TimelineName {
        TimelineName::solo("A", chat).unwrap()
    }

    /// A chat with the lorebook `Lore`.
    fn chat(chat: &str, main_chat: Option<&str>) -> TimelineFacts {
        let path = crate::st::lorebook_path("Lore");
        TimelineFacts {
            name: name(chat),
            group: None,
            book: Some(BookFacts { name: "Lore".into(), path, exists: true, stored: None }),
            main_chat: main_chat.map(str::to_owned),
            origin: None,
            links: Vec::new(),
            settings_hash: None,
            recap_of: None,
            metadata_in: Some(name(chat).file()),
        }
    }

    fn facts(timelines: Vec<TimelineFacts>) -> LibraryFacts {
        let here = timelines.iter().map(|timeline| timeline.name.clone()).collect();
        LibraryFacts { timelines, here, ..Default::default() }
    }

    fn forks(timelines: Vec<TimelineFacts>) -> Vec<String> {
        let facts = facts(timelines);
        let shared = facts.shared();
        assert_eq!(shared.len(), 1);
        shared[0].forks.iter().map(|fork| fork.name.chat().to_owned()).collect()
    }

    #[test]
    fn req_40_the_one_that_forks_come_from_keeps_the_lorebook() {
        let family = || vec![chat("a", Some("m")), chat("b", Some("a")), chat("m", None)];
        assert_eq!(forks(family()), ["a", "b"]);
        // The main chat has another name now.
        let mut renamed = family();
        renamed[2].name = name("renamed");
        assert_eq!(forks(renamed), ["a", "b"]);
        // The main chat is gone: the first keeps it, and whoever comes from that gets its own.
        assert_eq!(forks(family()[..2].to_vec()), ["b"]);
        assert_eq!(forks(vec![chat("a", Some("m")), chat("b", Some("m"))]), ["b"]);
        // They name each other.
        assert_eq!(forks(vec![chat("a", Some("b")), chat("b", Some("a"))]), ["b"]);
        // Known by what was said only.
        let mut fork = chat("b", None);
        fork.origin = Some(name("a"));
        assert_eq!(forks(vec![chat("a", None), fork]), ["b"]);
    }

    #[test]
    fn chats_that_are_no_relatives_are_left_alone() {
        assert_eq!(forks(vec![chat("a", None), chat("b", None)]), [""; 0]);
        let mut far = chat("x", None);
        far.name = TimelineName::solo("B", "x").unwrap();
        assert_eq!(forks(vec![chat("a", Some("gone")), far]), [""; 0]);
        // Forks of different chats that do not use the book themselves.
        let mut others = vec![chat("m", None), chat("n", None)];
        others.iter_mut().for_each(|other| other.book = None);
        let all = [vec![chat("a", Some("m")), chat("b", Some("n"))], others].concat();
        assert_eq!(forks(all), [""; 0]);
    }

    #[test]
    fn req_56_links_are_found_as_they_were_typed() {
        let mut main = chat("m", None);
        main.links = ["one", "one.jsonl", "two: \"x\"?", "gone", "gone.jsonl"]
            .into_iter()
            .map(str::to_owned)
            .enumerate()
            .collect();
        let found = library(&facts(vec![main, chat("one", None), chat("two x", None)]));
        let links: Vec<_> =
            found.iter().filter(|finding| finding.code == Code::CheckpointLinkDangling).collect();
        assert_eq!(links.len(), 1);
        assert!(
            links[0].message.contains("message 3 to \"gone\", message 4 to \"gone.jsonl\";"),
            "{}",
            links[0].message
        );
    }
}
