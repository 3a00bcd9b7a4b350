//! Makes the answers of [`Extent::Story`](super::Extent::Story): the latest state of each timeline,
//! as the reader of the story sees it.
//!
//! The lines have only the fields of [`StoryLine`]. They are not made by removing fields from the
//! API's answers. So no value of a message, an entry or a chat gets into the file unless it is
//! named here, even if a later SillyTavern or an extension adds it.
//!
//! - A message has its speaker and the text that SillyTavern displays. Dates are left out, as in
//!   `stvc show --text`. Messages are numbered in the file, because gaps would show where messages
//!   are hidden.
//! - Lorebook entries explain the story's world, so the enabled ones are included with title and
//!   text. The lorebook's name is not: ST-Auto-Recap names a lorebook after its chat, and a fork
//!   has the lorebook of another chat.
//! - There are no ids, dates, tags or descriptions of snapshots. The moment of a timeline is its
//!   name.

use std::io;
use std::path::Path;

use serde::Serialize;
use serde_json::json;
use serde_json::value::to_raw_value;

use super::stored_answers::{LONG_PAGE, StoredAnswers};
use super::{Exported, StoryStats};
use crate::api::Answer;
use crate::archive::{Snapshot, Tree};
use crate::engine::{Workspace, changed_timelines};
use crate::history::moment::Moment;
use crate::progress::NoProgress;
use crate::st::{self, Category, Groups, Library, Message, Raw, TimelineName};
use crate::store::{self, Loss, Store};
use crate::verbs::{Error, Result, lore};

/// A line of the file. [`Line`](crate::json_output::Line) has the same types with more fields.
#[derive(Clone, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum StoryLine<'a> {
    Timeline {
        timeline: &'a TimelineName,
        head: &'a TimelineName,
        state: &'static str,
        messages: usize,
        #[serde(skip_serializing_if = "Option::is_none")]
        entries: Option<usize>,
    },
    Snapshot {
        id: &'a TimelineName,
        timeline: &'a TimelineName,
        messages: usize,
        entries: usize,
        tags: [&'static str; 0],
    },
    Message {
        index: usize,
        name: String,
        user: bool,
        text: String,
        swipes: [&'static str; 0],
    },
    LoreEntry {
        uid: String,
        value: EntryText,
    },
    Summary {
        entries: usize,
    },
}

#[derive(Clone, Serialize)]
struct EntryText {
    comment: String,
    content: String,
}

/// Writes stories, and then the list of them.
pub(super) struct StoryLibrary<'a> {
    workspace: &'a Workspace,
    store: &'a Store,
    /// The current files. `None` if there is no library, for example for a backup.
    current: Option<(Library, Groups)>,
    /// The file that is written.
    out: &'a Path,
    exported: Vec<Exported>,
}

impl<'a> StoryLibrary<'a> {
    pub fn new(workspace: &'a Workspace, store: &'a Store, out: &'a Path) -> Self {
        let current = workspace.library().ok();
        let current = current.and_then(|library| {
            let groups = library.scan().ok()?.groups;
            Some((library, groups))
        });
        Self { workspace, store, current, out, exported: Vec::new() }
    }

    /// Writes the latest state of the timeline that ends with `head`.
    pub fn add(&mut self, head: &Snapshot, kept: &mut StoredAnswers<'_>) -> Result<()> {
        let timeline = &head.timeline;
        if !timeline.is_chat() && timeline.category() != Category::Lorebook {
            return Err(Error::NoStory { timeline: timeline.to_string() });
        }
        let moment = self.workspace.moment(timeline.as_str(), self.store)?;
        let mut stats = StoryStats::default();
        let messages = self.messages(&moment, &mut stats)?;
        let entries = self.entries(&moment, &mut stats)?;
        (stats.messages, stats.entries) = (messages.len(), entries.len());
        stats.has_changed |= self.has_changed(timeline);
        let snapshot = StoryLine::Snapshot {
            id: timeline,
            timeline,
            messages: messages.len(),
            entries: entries.len(),
            tags: [],
        };
        let of_moment = json!({ "snapshot": timeline, "brief": true });
        let summary = StoryLine::Summary { entries: entries.len() };
        let mut write = || -> io::Result<()> {
            kept.keep("show", &of_moment, &answer([&snapshot])?)?;
            let log = json!({ "timeline": timeline, "first": 0, "count": LONG_PAGE });
            kept.keep("log", &log, &answer([&snapshot])?)?;
            write_whole("messages", timeline, &messages, None, kept)?;
            write_whole("lore", timeline, &entries, Some(&summary), kept)
        };
        write().map_err(store::Error::io(self.out))?;
        self.exported.push(Exported {
            timeline: timeline.clone(),
            snapshots: 1,
            story: Some(stats),
        });
        Ok(())
    }

    /// Writes the list of the stories.
    pub fn end(self, kept: &mut StoredAnswers<'_>) -> io::Result<Vec<Exported>> {
        let line = |Exported { timeline, story, .. }: &'_ Exported| {
            let (messages, entries) =
                story.as_ref().map_or((0, 0), |story| (story.messages, story.entries));
            let entries = Some(entries).filter(|_| !timeline.is_chat());
            to_raw_value(&StoryLine::Timeline {
                timeline,
                head: timeline,
                state: "unchanged",
                messages,
                entries,
            })
        };
        let lines = self.exported.iter().map(line).collect::<serde_json::Result<_>>()?;
        kept.keep("library", &json!({}), &Answer { lines, ..Answer::default() })?;
        Ok(self.exported)
    }

    /// Returns whether the files of a timeline differ from its latest snapshot. Deleted and
    /// unreadable files do not count: no later text can be shared.
    fn has_changed(&self, timeline: &TimelineName) -> bool {
        let Some((library, groups)) = &self.current else { return false };
        if !timeline.file().under(library.root()).exists() {
            return false;
        }
        let state = changed_timelines::look(self.store, library, groups, timeline);
        state.is_ok_and(|state| state.head.is_some() && state.is_new())
    }

    /// Returns the displayed messages. Lines that SillyTavern cannot read are left out: they may
    /// contain anything.
    fn messages(&self, moment: &Moment, stats: &mut StoryStats) -> Result<Vec<StoryLine<'static>>> {
        let reader = self.store.reader();
        let tree = match Tree::open(&reader, moment.snapshot.tree) {
            Ok(tree) => tree,
            Err(error) if error.is_loss() => {
                stats.lose(format!("{}: {error}", moment.timeline));
                return Ok(Vec::new());
            }
            Err(error) => return Err(error.into()),
        };
        let mut lines = Vec::new();
        for (number, id) in tree.messages().iter().enumerate() {
            let bytes = match reader.blob(*id) {
                Ok(bytes) => bytes,
                Err(error) if error.is_loss() => {
                    stats.lose(format!("{} #{number}: {error}", moment.timeline));
                    continue;
                }
                Err(error) => return Err(error.into()),
            };
            if st::is_blank(&bytes) {
                continue;
            }
            let line = String::from_utf8_lossy(&bytes);
            match Message::read(line.as_bytes()) {
                None => stats.left_out.unreadable += 1,
                Some(message) if message.is_system() => stats.left_out.hidden += 1,
                Some(message) => lines.push(StoryLine::Message {
                    index: lines.len(),
                    name: message.name().unwrap_or_default(),
                    user: message.is_user(),
                    text: message.displayed_text().unwrap_or_default(),
                    swipes: [],
                }),
            }
        }
        Ok(lines)
    }

    /// Returns the enabled entries of the lorebook.
    fn entries(&self, moment: &Moment, stats: &mut StoryStats) -> Result<Vec<StoryLine<'static>>> {
        if moment.timeline.is_chat() && moment.snapshot.lorebook.is_none() {
            return Ok(Vec::new());
        }
        let options = lore::Options { snapshot: Some(moment.id()), ..lore::Options::default() };
        let then = match lore::lore(self.workspace, &options, &mut NoProgress) {
            Ok(lore::Report::Then(then)) => then,
            Ok(_) | Err(Error::NoLorebookThen { .. }) => return Ok(Vec::new()),
            Err(error) if error.is_loss() => {
                stats.lose(format!("{}: {error}", moment.timeline));
                return Ok(Vec::new());
            }
            Err(error) => return Err(error),
        };
        stats.has_changed |= self.has_changed(&then.book);
        for _ in then.entries.len()..then.total {
            stats.lose(format!("{}: a lorebook entry is missing from the store", moment.timeline));
        }
        let mut lines = Vec::new();
        for entry in &then.entries {
            match Raw::parse_str(&entry.text).filter(Raw::is_object) {
                None => stats.left_out.unreadable += 1,
                Some(entry) if entry.get("disable").is_some_and(|value| value.truthy()) => {
                    stats.left_out.disabled += 1;
                }
                Some(entry) => lines.push(StoryLine::LoreEntry {
                    uid: lines.len().to_string(),
                    value: EntryText {
                        comment: title(entry),
                        content: st::entry_content(entry).unwrap_or_default(),
                    },
                }),
            }
        }
        Ok(lines)
    }
}

impl StoryStats {
    fn lose(&mut self, why: String) {
        self.left_out.unreadable += 1;
        self.broken.push(why);
    }
}

/// Returns the title of an entry, or else its keywords.
fn title(entry: Raw<'_>) -> String {
    let title = st::entry_comment(entry).unwrap_or_default();
    if !title.trim().is_empty() {
        return title;
    }
    let keys: Vec<_> = entry.list("key").iter().filter_map(Raw::string).collect();
    keys.join(", ")
}

fn answer<'l>(lines: impl IntoIterator<Item = &'l StoryLine<'l>>) -> io::Result<Answer> {
    let lines = lines.into_iter().map(to_raw_value).collect::<serde_json::Result<_>>()?;
    Ok(Answer { lines, ..Answer::default() })
}

/// Writes all lines of an answer that the viewer requests in pages.
fn write_whole(
    verb: &str,
    timeline: &TimelineName,
    lines: &[StoryLine<'_>],
    summary: Option<&StoryLine<'_>>,
    kept: &mut StoredAnswers<'_>,
) -> io::Result<()> {
    let arguments = json!({ "snapshot": timeline });
    kept.keep(verb, &arguments, &answer(lines.iter().chain(summary))?)
}
