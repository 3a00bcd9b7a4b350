//! Findings about the library as a whole: shared, missing and unused lorebooks, and references to
//! chats that do not exist.

use std::collections::{BTreeMap, BTreeSet};

use super::damage::{StoredVersion, advise_damaged, damaged_timeline};
use super::{Code, Finding, Level, listed};
use crate::st::{LibraryPath, TimelineName, chat_name};

pub fn other_users(user: &str, others: &[String]) -> Finding {
    let message = format!("the library has other users: {}", listed(others));
    Finding::new(Code::OtherUsers, user, message)
        .remedy("use `--user NAME` for another user; use `--all-users` for all users")
}

#[derive(Clone, Debug, Default)]
pub struct LibraryFacts {
    /// Timelines of the library, sorted by name. Timelines whose files could not be read are left
    /// out.
    pub timelines: Vec<TimelineFacts>,
    pub here: BTreeSet<TimelineName>,
    /// Timelines in the store whose file no longer exists in the library.
    pub deleted: BTreeSet<TimelineName>,
    /// Damaged files of timelines, each with the latest valid version in the store; `None` if the
    /// store has no valid version.
    pub damaged: BTreeMap<LibraryPath, Option<StoredVersion>>,
    pub unused: Vec<UnusedBook>,
    /// Files that could not be read, with the reason. Each of them may use any lorebook.
    pub unknown: Vec<(String, String)>,
    /// Whether some chats or lorebooks could not be read because of a system error. In this case,
    /// the chats that use a lorebook are not all known.
    pub is_partial: bool,
}

#[derive(Clone, Debug)]
pub struct TimelineFacts {
    pub name: TimelineName,
    pub group: Option<LibraryPath>,
    pub book: Option<BookFacts>,
    /// Name of the parent chat in the chat's metadata, unchanged.
    pub main_chat: Option<String>,
    /// Current name of the timeline from which the chat was forked according to the store, which
    /// compares messages.
    pub origin: Option<TimelineName>,
    /// Links to checkpoints: number of the message, and name of the checkpoint, unchanged.
    pub links: Vec<(usize, String)>,
    pub settings_hash: Option<String>,
    /// Name of the chat that the running recap belongs to, according to the recap.
    pub recap_of: Option<String>,
    /// File that contains the chat's metadata: the chat file or the group file. `None` if the
    /// metadata cannot be read, and therefore cannot be changed.
    pub metadata_in: Option<LibraryPath>,
}

#[derive(Clone, Debug)]
pub struct BookFacts {
    pub name: String,
    pub path: Option<LibraryPath>,
    pub exists: bool,
    /// Description of the snapshot with the latest valid version, if the lorebook is missing or
    /// damaged.
    pub stored: Option<String>,
}

#[derive(Clone, Debug)]
pub struct UnusedBook {
    pub path: LibraryPath,
    /// Chat that used the lorebook before, and whether this chat was deleted.
    pub once: Option<(String, bool)>,
    /// Whether the lorebook is unused because its chat was deleted. The user may want to use other
    /// unused lorebooks later.
    pub leftover: bool,
    /// Chats whose map from checkpoints to lorebooks contains the lorebook.
    pub mapped_in: Vec<TimelineName>,
}

#[derive(Clone, Debug)]
pub struct SharedBook<'f> {
    pub path: &'f LibraryPath,
    /// Chats that use the lorebook.
    pub users: Vec<&'f TimelineFacts>,
    /// Chats in `users` that should get their own copy of the lorebook, because their parent or
    /// another fork of the same parent uses it too.
    pub forks: Vec<&'f TimelineFacts>,
}

impl LibraryFacts {
    /// Returns the chat with the name `id` in the folder of `chat`, if it exists. `id` may have the
    /// file extension.
    pub fn chat_called(&self, chat: &TimelineName, id: &str) -> Option<TimelineName> {
        called(&self.here, chat, id)
    }

    /// Returns the parent of a timeline, if the parent exists: the chat that the metadata names, or
    /// else the chat that the messages show.
    pub fn parent(&self, timeline: &TimelineFacts) -> Option<TimelineName> {
        let named = timeline.main_chat.as_deref();
        let named = named.and_then(|id| self.chat_called(&timeline.name, id));
        let by_messages = || timeline.origin.clone().filter(|origin| self.here.contains(origin));
        named.or_else(by_messages).filter(|parent| *parent != timeline.name)
    }

    pub fn timeline(&self, name: &TimelineName) -> Option<&TimelineFacts> {
        self.timelines.iter().find(|timeline| timeline.name == *name)
    }

    /// Returns whether a lorebook exists and is valid. A copy of a damaged lorebook is damaged too.
    pub fn may_be_copied(&self, book: &BookFacts) -> bool {
        book.exists && book.path.as_ref().is_none_or(|path| !self.damaged.contains_key(path))
    }

    /// Sets the remedy of a finding, if it is about a damaged file.
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

    /// Returns the chats that should get their own copy of a lorebook, given all chats that use it.
    /// A fork whose parent uses the lorebook gets a copy. If only forks of a parent use it, the
    /// first of them keeps it, and the others get a copy.
    fn forks_among<'f>(&self, users: &[&'f TimelineFacts]) -> Vec<&'f TimelineFacts> {
        let is_fork = |user: &TimelineFacts| user.main_chat.is_some() || user.origin.is_some();
        let place = |user: &'f TimelineFacts| (user.name.folder(), &user.group);
        let mut firsts = BTreeSet::new();
        let mut forks: Vec<&TimelineFacts> = Vec::new();
        for user in users.iter().copied().filter(|user| is_fork(user)) {
            let parent = self.parent(user);
            let with_parent = match &parent {
                Some(parent) => users.iter().any(|other| other.name == *parent),
                // The parent was deleted or renamed. Any chat of the same character or group that
                // is not a fork counts as the parent.
                None => users.iter().any(|other| !is_fork(other) && place(other) == place(user)),
            };
            let named = || beside(&user.name, user.main_chat.as_deref()?);
            let family = parent.or_else(named).or_else(|| user.origin.clone());
            if with_parent || !firsts.insert(family) {
                forks.push(user);
            }
        }
        // After renames, two forks can name each other. One of them keeps the lorebook.
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
            let message = "no lorebook is bound to it; this is allowed";
            findings.push(Finding::new(Code::LorebookNone, timeline.name.as_str(), message));
        }
        findings.extend(missing(timeline));
        findings.extend(dangling_links(facts, timeline));
        findings.extend(missing_parent(facts, timeline));
        findings.extend(other_settings(facts, timeline));
    }
    findings.extend(facts.unused.iter().map(|book| orphan(book, &facts.unknown)));
    findings.extend(facts.unknown.iter().map(|(subject, why)| {
        let message = format!("{why}, so its lorebooks are unknown");
        Finding::new(Code::ReferencesUnknown, subject, message)
            .remedy("repair or remove it; until then no lorebook is removed as unused")
    }));
    findings
}

fn shared(facts: &LibraryFacts, book: &SharedBook<'_>) -> Finding {
    let names: Vec<_> = book.users.iter().map(|user| user.name.as_str()).collect();
    let message =
        format!("{} chats use it, so a change in one affects all: {}", names.len(), listed(&names));
    let remedy = match book.forks.iter().filter(|fork| fork.metadata_in.is_some()).count() {
        _ if facts.damaged.contains_key(book.path) => {
            "it is damaged, so repair it first; then run `stvc doctor --fix` to give each fork its own copy"
        }
        0 => "if they should not share it, choose another lorebook for one of them in SillyTavern",
        _ => "run `stvc doctor --fix` to give each fork its own copy",
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
    let message = format!("its messages name attachments that do not exist: {}", names.join(", "));
    let finding = Finding::new(Code::AttachmentMissing, timeline.as_str(), message);
    let remedy = format!(
        "run `stvc restore \"{timeline}\"` to restore those that were stored; the chat itself is not changed"
    );
    Some(finding.remedy(remedy))
}

fn missing(timeline: &TimelineFacts) -> Option<Finding> {
    let book = timeline.book.as_ref().filter(|book| !book.exists)?;
    let message =
        format!("its lorebook {:?} does not exist; SillyTavern shows it as empty", book.name);
    let remedy = match &book.stored {
        Some(snapshot) => format!("run `stvc doctor --fix` to restore it from {snapshot}"),
        None => "no snapshot has it; run `stvc doctor --fix --repair empty` to create an empty one; use `--repair clone` to copy the \
                 parent's, `--clone-of NAME` to copy another one, or `--repair detach` to unbind it from the chat"
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
        "it links to checkpoints that do not exist: {}; SillyTavern would create a new chat there",
        listed(&shown)
    );
    let stored = dangling.iter().find_map(|(_, link)| called(&facts.deleted, name, link));
    let remedy = match stored {
        Some(gone) => restores(&gone),
        None => "remove the link in SillyTavern, or ignore it".into(),
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
    let mut message = format!("its parent {main_chat:?} does not exist");
    let remedy = match facts.parent(timeline) {
        Some(parent) => {
            message.push_str(&format!(
                " under that name; its messages show that it was forked from {parent}"
            ));
            "no action needed; SillyTavern does not track renames, so \"Back to parent chat\" does not work"
                .into()
        }
        None => match called(&facts.deleted, name, main_chat) {
            Some(gone) => restores(&gone),
            None => "no action needed; only \"Back to parent chat\" does not work".into(),
        },
    };
    Some(Finding::new(Code::ParentMissing, name.as_str(), message).remedy(remedy))
}

fn restores(timeline: &TimelineName) -> String {
    format!("run `stvc restore {:?}` to restore it", timeline.as_str())
}

fn other_settings(facts: &LibraryFacts, timeline: &TimelineFacts) -> Option<Finding> {
    let parent = facts.timeline(&facts.parent(timeline)?)?;
    if timeline.settings_hash.as_ref()? == parent.settings_hash.as_ref()? {
        return None;
    }
    let message =
        format!("its ST-Auto-Recap settings differ from those of its parent {}", parent.name);
    Some(Finding::new(Code::SettingsHashDiffers, timeline.name.as_str(), message))
}

/// Returns the finding about an unused lorebook. `unread` lists the files that could not be read
/// and may use the lorebook.
pub fn orphan(book: &UnusedBook, unread: &[(String, String)]) -> Finding {
    let once = match &book.once {
        Some((chat, true)) => format!("; it was the lorebook of {chat}, which no longer exists"),
        Some((chat, false)) => format!("; it was once the lorebook of {chat}"),
        None => String::new(),
    };
    let (who, remedy) = match (unread.is_empty(), book.leftover) {
        (false, _) => (
            "no file that could be read uses it",
            "repair the files that cannot be read; until then it is not removed",
        ),
        (true, true) => (
            "no chat, group, character, persona or setting uses it",
            "run `stvc doctor --fix` to remove it; `stvc undo` can restore it",
        ),
        (true, false) => (
            "no chat, group, character, persona or setting uses it",
            "keep it for later, or run `stvc doctor --fix --orphans` to remove it",
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

    /// Returns a chat that uses the lorebook `Lore`.
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
    fn req_40_parent_keeps_the_lorebook_shared_with_its_forks() {
        let family = || vec![chat("a", Some("m")), chat("b", Some("a")), chat("m", None)];
        assert_eq!(forks(family()), ["a", "b"]);
        // The main chat was renamed.
        let mut renamed = family();
        renamed[2].name = name("renamed");
        assert_eq!(forks(renamed), ["a", "b"]);
        // The main chat does not exist: the first fork keeps the lorebook, and forks of it get a
        // copy.
        assert_eq!(forks(family()[..2].to_vec()), ["b"]);
        assert_eq!(forks(vec![chat("a", Some("m")), chat("b", Some("m"))]), ["b"]);
        // Two forks name each other as their parent.
        assert_eq!(forks(vec![chat("a", Some("b")), chat("b", Some("a"))]), ["b"]);
        // The parent is known only by the messages.
        let mut fork = chat("b", None);
        fork.origin = Some(name("a"));
        assert_eq!(forks(vec![chat("a", None), fork]), ["b"]);
    }

    #[test]
    fn unrelated_chats_may_share_a_lorebook() {
        assert_eq!(forks(vec![chat("a", None), chat("b", None)]), [""; 0]);
        let mut far = chat("x", None);
        far.name = TimelineName::solo("B", "x").unwrap();
        assert_eq!(forks(vec![chat("a", Some("gone")), far]), [""; 0]);
        // The chats are forks of different parents that do not use the lorebook.
        let mut others = vec![chat("m", None), chat("n", None)];
        others.iter_mut().for_each(|other| other.book = None);
        let all = [vec![chat("a", Some("m")), chat("b", Some("n"))], others].concat();
        assert_eq!(forks(all), [""; 0]);
    }

    #[test]
    fn req_56_only_links_without_a_matching_chat_file_are_reported() {
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
