//! The report of `view --out`: the timelines in the file, with the parts that it contains of each.

use std::path::PathBuf;

use crate::json_output::{Counts, Line, answers, counts};
use crate::st::TimelineName;

/// The parts of each timeline that the file contains.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Extent {
    /// The text that the reader of the story sees: one state of each timeline.
    #[default]
    Story,
    /// All snapshots, with everything that the viewer shows of them.
    AllHistory,
}

impl Extent {
    /// Returns the name of the extent in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Story => "story",
            Self::AllHistory => "all-history",
        }
    }
}

/// A written file.
#[non_exhaustive]
pub struct PageStats {
    /// Path of the file.
    pub path: PathBuf,
    /// Length of the file.
    pub bytes: u64,
    /// The parts that the file contains of each timeline.
    pub extent: Extent,
    /// The timelines in the file.
    pub timelines: Vec<Exported>,
}

/// A timeline in a file.
#[non_exhaustive]
pub struct Exported {
    /// Current name, or the last name of a deleted timeline.
    pub timeline: TimelineName,
    /// Number of snapshots that the viewer can show.
    pub snapshots: usize,
    /// Contents of the story. `None` for [`Extent::AllHistory`].
    pub story: Option<StoryStats>,
}

/// Number of texts of one timeline in a file with [`Extent::Story`].
#[derive(Default)]
#[non_exhaustive]
pub struct StoryStats {
    /// Number of messages.
    pub messages: usize,
    /// Number of lorebook entries.
    pub entries: usize,
    /// Whether the chat or its lorebook changed since the snapshot that the file contains.
    pub has_changed: bool,
    /// Number of texts of this state that are not in the file.
    pub left_out: LeftOut,
    /// Descriptions of texts that the store has lost.
    pub broken: Vec<String>,
}

/// Number of texts that were left out of a file.
#[derive(Clone, Copy, Default)]
#[non_exhaustive]
pub struct LeftOut {
    /// Messages that are hidden from the prompt.
    pub hidden: usize,
    /// Lorebook entries that are disabled.
    pub disabled: usize,
    /// Lines and entries that SillyTavern cannot read, and texts that the store has lost.
    pub unreadable: usize,
}

impl PageStats {
    /// Returns the contents of all stories in the file.
    pub fn stories(&self) -> impl Iterator<Item = &StoryStats> {
        self.timelines.iter().filter_map(|timeline| timeline.story.as_ref())
    }

    /// Returns the number of snapshots that the viewer can show.
    pub fn snapshots(&self) -> usize {
        self.timelines.iter().map(|timeline| timeline.snapshots).sum()
    }

    /// Returns the number of texts that were left out of all stories.
    pub fn left_out(&self) -> LeftOut {
        let mut sum = LeftOut::default();
        for LeftOut { hidden, disabled, unreadable } in self.stories().map(|story| story.left_out) {
            sum.hidden += hidden;
            sum.disabled += disabled;
            sum.unreadable += unreadable;
        }
        sum
    }

    /// Returns the descriptions of texts that the store has lost.
    pub fn broken(&self) -> impl Iterator<Item = &String> {
        self.stories().flat_map(|story| &story.broken)
    }
}

/// Answer of `view --out`.
impl answers::Answer for PageStats {
    fn lines<'a>(&'a self, tell: answers::Emit<'_, 'a>) {
        for Exported { timeline, snapshots, story } in &self.timelines {
            let left_out = story.as_ref().map(|story| story.left_out);
            tell(Line::Exported {
                timeline,
                snapshots: *snapshots,
                changed: story.as_ref().map(|story| story.has_changed),
                messages: story.as_ref().map(|story| story.messages),
                entries: story.as_ref().map(|story| story.entries),
                hidden: left_out.map(|left_out| left_out.hidden),
                disabled: left_out.map(|left_out| left_out.disabled),
                unreadable: left_out.map(|left_out| left_out.unreadable),
            });
        }
        let path = self.path.display().to_string();
        tell(Line::Page { path, bytes: self.bytes, extent: self.extent.name() });
    }

    fn counts(&self) -> (&'static str, Counts) {
        let sum = |of: fn(&StoryStats) -> usize| match self.extent {
            Extent::Story => Some(self.stories().map(of).sum::<usize>()),
            Extent::AllHistory => None,
        };
        counts! {
            "view" =>
                timelines: self.timelines.len(), snapshots: self.snapshots(),
                messages: sum(|story| story.messages), entries: sum(|story| story.entries),
        }
    }

    fn is_partial(&self) -> bool {
        self.broken().next().is_some()
    }
}
