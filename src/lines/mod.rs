//! The lines of `--json`, a documented product (`docs/json.md`): one type for each, and one for them all. Fields may be added,
//! never renamed. Every front end answers with these; what is only said to a person is not here.

pub mod answers;
mod copies;
mod diff;
mod failures;
mod found;
mod lore;
mod merge;
mod message;
mod restored;
mod snapshot;
mod store;
mod summary;
mod watch;

use serde::Serialize;

use crate::engine::files::FileAction;
pub(crate) use crate::exit;
use crate::rules::Finding;
use crate::verbs::erase::ErasedTimeline;
use crate::verbs::stats::{Large, Share};
use crate::verbs::timelines::graph;
pub use copies::{CopyLine, ImportLine, SyncLine, TakenInLine, sides};
pub use diff::{ChangeLine, ComparisonLine, kind_word, path};
pub use failures::{ErrorLine, FailedLine, OfferLine, candidates, offers};
pub use found::{MatchLine, RepairLine};
pub use lore::{
    LoreActiveLine, LoreBookLine, LoreChangeLine, LoreEntryLine, LoreSentenceLine,
    change_of as lore_change,
};
pub use merge::MergeLine;
pub use message::{MessageElsewhereLine, MessageLine, MessageVersionLine, message_change_of};
pub use restored::{EntryLine, RestoredLine};
pub use snapshot::{PlanLine, SnapshotLine, TagLine, TimelineLine, TraceLine};
pub use store::{
    ExtensionLine, OperationLine, PageLine, SettingLine, StoreLine, UserLine, ViewLine,
};
pub(crate) use summary::counts;
pub use summary::{Counts, Summary};
pub use watch::{InstallLine, WatchEvent, WatchLine};

macro_rules! lines {
    ($($variant:ident($line:ty),)*) => {
        /// One line; its `type` is the variant's name.
        #[derive(Serialize)]
        #[serde(tag = "type", rename_all = "snake_case")]
        pub enum Line<'a> {
            $($variant($line),)*
        }

        $(impl<'a> From<$line> for Line<'a> {
            fn from(line: $line) -> Self {
                Self::$variant(line)
            }
        })*
    };
}

lines! {
    Backup(ImportLine<'a>),
    Change(ChangeLine),
    Comparison(ComparisonLine<'a>),
    Copy(CopyLine<'a>),
    Entry(EntryLine<'a>),
    Erased(&'a ErasedTimeline),
    Trace(TraceLine<'a>),
    Error(ErrorLine),
    Extension(ExtensionLine<'a>),
    Failed(FailedLine<'a>),
    File(&'a FileAction),
    Finding(&'a Finding),
    Graph(&'a graph::Report),
    Install(InstallLine<'a>),
    Lane(&'a graph::Lane),
    Large(&'a Large),
    LoreActive(LoreActiveLine<'a>),
    LoreBook(LoreBookLine<'a>),
    LoreChange(LoreChangeLine<'a>),
    LoreEntry(LoreEntryLine<'a>),
    LoreSentence(LoreSentenceLine<'a>),
    Match(MatchLine<'a>),
    Merge(MergeLine<'a>),
    Message(MessageLine<'a>),
    MessageElsewhere(MessageElsewhereLine<'a>),
    MessageVersion(MessageVersionLine<'a>),
    Operation(OperationLine<'a>),
    Page(PageLine<'a>),
    Plan(PlanLine<'a>),
    Repair(RepairLine<'a>),
    Restored(RestoredLine<'a>),
    Setting(SettingLine<'a>),
    Share(&'a Share),
    Snapshot(SnapshotLine<'a>),
    Store(StoreLine),
    Summary(Summary),
    Synced(SyncLine<'a>),
    Tag(TagLine<'a>),
    TakenIn(TakenInLine<'a>),
    Timeline(TimelineLine<'a>),
    User(UserLine<'a>),
    View(ViewLine<'a>),
    Watch(WatchLine<'a>),
}
