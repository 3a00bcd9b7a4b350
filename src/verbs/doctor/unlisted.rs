//! Finds group chats that are not listed in any group. SillyTavern does not show these chats. The
//! group is determined from the store, the parent chat or the speakers. If several groups are
//! possible, the user has to choose one of them.

use std::collections::BTreeSet;

use crate::archive::{Role, Tree};
use crate::history::History;
use crate::regular;
use crate::rules::{Code, Finding, LibraryFacts};
use crate::st::{Category, Chat, Groups, Library, LibraryPath, Message, Raw, Scan, TimelineName};
use crate::store::{Store, unless_lost};
use crate::verbs::Result;

pub(super) struct Unlisted {
    pub chat: TimelineName,
    speakers: BTreeSet<String>,
    pub groups: Vec<Group>,
    /// Metadata of a chat without a header, from an earlier version of the group's file.
    pub metadata: Option<Vec<u8>>,
}

#[derive(Clone)]
pub(super) struct Group {
    pub path: LibraryPath,
    pub name: String,
    members: BTreeSet<String>,
}

impl Unlisted {
    /// Returns `None` if a group lists the chat, or if not all groups can be read.
    pub(super) fn read(name: &TimelineName, chat: &Chat<'_>, scan: &Scan) -> Option<Self> {
        let is_unlisted = name.is_group()
            && scan.groups.are_complete()
            && scan.groups.group_of(name.chat()).is_none();
        let speaker = |line: &&[u8]| {
            let message = Message::read(line).filter(|message| !message.is_user())?;
            message.raw().get("original_avatar")?.string()
        };
        is_unlisted.then(|| Self {
            chat: name.clone(),
            speakers: chat.messages.iter().filter_map(speaker).collect(),
            groups: Vec::new(),
            metadata: None,
        })
    }

    pub(super) fn find_groups(
        &mut self,
        all: &[Group],
        facts: &LibraryFacts,
        scan: &Scan,
        stored: Option<(&Store, &History)>,
    ) -> Result<()> {
        let is_here = |path: &LibraryPath| all.iter().find(|group| group.path == *path).cloned();
        if let Some((store, history)) = stored {
            if let Some(path) = self.recorded(store, history)? {
                self.groups.extend(is_here(&path));
            }
            if self.groups.is_empty() {
                self.groups = self.listed_once(all, store, history)?;
            }
        }
        if self.groups.is_empty() {
            let timeline = facts.timeline(&self.chat);
            let parent = timeline.and_then(|timeline| facts.parent(timeline));
            let group = parent.and_then(|parent| scan.groups.group_of(parent.chat()).cloned());
            self.groups.extend(group.as_ref().and_then(is_here));
        }
        if self.groups.is_empty() && !self.speakers.is_empty() {
            let fits = |group: &&Group| group.members.is_superset(&self.speakers);
            self.groups = all.iter().filter(fits).cloned().collect();
        }
        Ok(())
    }

    /// Returns the group in the latest snapshot of the chat that records a group. Sets `metadata`
    /// from the latest snapshot in which the group's file contains metadata of the chat.
    fn recorded(&mut self, store: &Store, history: &History) -> Result<Option<LibraryPath>> {
        let Some(head) = history.head(&self.chat) else { return Ok(None) };
        let reader = store.reader();
        let mut path = None;
        for snapshot in history.own(head).0 {
            let Some(tree) = unless_lost(Tree::open(&reader, snapshot.tree))? else { continue };
            let Some(record) = tree.manifest.file(Role::Group) else { continue };
            path = path.or_else(|| LibraryPath::parse(&record.path).ok());
            let Some(stored) = unless_lost(tree.materialise(&reader))? else { continue };
            self.metadata = stored.files.own_group_metadata();
            // If this snapshot was created after the group's file lost the metadata, continue with
            // an earlier snapshot.
            if self.metadata.is_some() || stored.files.header().is_some() {
                break;
            }
        }
        Ok(path)
    }

    /// Returns the groups of which an earlier version listed the chat.
    fn listed_once(&self, all: &[Group], store: &Store, history: &History) -> Result<Vec<Group>> {
        let reader = store.reader();
        let mut found = Vec::new();
        for group in all {
            let name = TimelineName::of_file(&group.path);
            let Some(head) = name.and_then(|name| history.head(&name)) else { continue };
            for snapshot in history.ancestry(head) {
                let Some(tree) = unless_lost(Tree::open(&reader, snapshot.tree))? else { continue };
                let Some(files) = unless_lost(tree.materialise(&reader))? else { continue };
                let mut groups = Groups::default();
                groups.read_again(&group.path, &files.files.main.bytes);
                if groups.group_of(self.chat.chat()).is_some() {
                    found.push(group.clone());
                    break;
                }
            }
        }
        Ok(found)
    }

    pub(super) fn finding(&self) -> Finding {
        let remedy = match &self.groups[..] {
            [group] => {
                format!("run `stvc doctor --fix` to list it in {:?} ({})", group.name, group.path)
            }
            [] => "run `stvc doctor --fix --group GROUP` to list it in a group".to_owned(),
            several => {
                let names: Vec<_> = several
                    .iter()
                    .map(|group| format!("{:?} ({})", group.name, group.path))
                    .collect();
                format!(
                    "it may belong to {}; run `stvc doctor --fix --group GROUP` to list it in one of them",
                    names.join(" or ")
                )
            }
        };
        let message = "no group lists this chat, so SillyTavern does not show it";
        Finding::new(Code::GroupChatUnlisted, self.chat.as_str(), message).remedy(remedy)
    }
}

pub(super) fn groups(library: &Library, scan: &Scan) -> Vec<Group> {
    let names = scan.others.iter().filter(|name| name.category() == Category::Group);
    let read = |name: &TimelineName| {
        let path = name.file();
        let bytes = regular::read(&path.under(library.root())).ok()?;
        let text = String::from_utf8_lossy(&bytes);
        let group = Raw::parse_str(&text).filter(Raw::is_object)?;
        let called = group.get("name").and_then(|name| name.string()).unwrap_or_default();
        let members = group.get("members").and_then(|members| members.items()).unwrap_or_default();
        let members = members.iter().filter_map(Raw::string).collect();
        Some(Group { path, name: called, members })
    };
    names.filter_map(read).collect()
}
