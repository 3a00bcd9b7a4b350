//! The status file, which SillyTavern's page reads without sending a request. It shows whether the
//! watch is running, the latest snapshots, and alarms.

use chrono::{DateTime, FixedOffset};
use serde::Serialize;
use serde_json::{Value, json};

use super::request_files::PROTOCOL;
use crate::api::Rights;
use crate::engine::Workspace;
use crate::engine::copies::last_sync;
use crate::rules::{Finding, Level};
use crate::store::FileChange;

/// Maximum number of timelines in the status file.
const TIMELINES: usize = 50;
/// Maximum number of alarms in the status file.
const ALARMS: usize = 20;
/// Maximum number of operations that wrote files.
const WRITTEN: usize = 20;
/// Maximum number of paths per operation.
const PATHS: usize = 100;

/// A problem to show to the user at once: a chat became shorter or was overwritten.
#[derive(Clone, Debug, Serialize)]
pub struct Alarm {
    /// Code of the finding.
    pub code: String,
    /// The name of the timeline, or the path of the file, that has the problem.
    pub subject: String,
    /// The problem, in one sentence.
    pub message: String,
    /// The moment to restore, named by snapshot ids, so that later snapshots do not change its
    /// meaning.
    pub snapshot: Option<String>,
    /// The time when the problem was noticed, in seconds since 1970.
    pub noticed: i64,
}

impl Alarm {
    /// Returns the alarm for a finding about a new snapshot; `None` if the finding is only a note.
    pub(super) fn of(finding: Finding, noticed: i64) -> Option<Self> {
        let Finding { code, level, subject, message, snapshot, .. } = finding;
        let code = code.as_str().to_owned();
        (level >= Level::Warning).then_some(Self { code, subject, message, snapshot, noticed })
    }
}

#[derive(Default)]
pub struct Status {
    alarms: Vec<Alarm>,
    is_over: bool,
}

impl Status {
    pub fn news(&mut self, alarms: impl Iterator<Item = Alarm>) {
        self.alarms.extend(alarms);
        let many = self.alarms.len().saturating_sub(ALARMS);
        self.alarms.drain(..many);
    }

    pub fn end(&mut self) {
        self.is_over = true;
    }

    pub fn to_json(
        &self,
        workspace: &Workspace,
        now: DateTime<FixedOffset>,
        rights: Rights,
        session: &str,
    ) -> Value {
        let store = workspace.open_store();
        let history = store.as_ref().ok().and_then(|store| workspace.history(store).ok());
        // SillyTavern's page reloads the files of these operations that it has in memory.
        let operations = store.as_ref().ok().and_then(|store| store.last_operations().ok());
        let sync = store.as_ref().ok().and_then(last_sync::load);
        let written =
            operations.iter().flatten().filter(|operation| !operation.effect.files.is_empty());
        let written = written.take(WRITTEN).map(|operation| {
            let paths: Vec<_> =
                operation.effect.files.iter().map(|change| change.path.as_str()).collect();
            let is_gone = |change: &&FileChange| change.after.is_none();
            let removed =
                operation.effect.files.iter().filter(is_gone).map(|change| change.path.as_str());
            // `paths` is null if there are too many paths. The page then assumes that every file
            // was written.
            let removed: Vec<_> = removed.take(PATHS).collect();
            let paths = (paths.len() <= PATHS).then_some(paths);
            json!({ "operation": operation.number, "paths": paths, "removed": removed })
        });
        let mut heads: Vec<_> = history.iter().flat_map(|history| history.heads()).collect();
        heads.retain(|(name, _)| name.is_chat());
        heads.sort_by_key(|(_, head)| std::cmp::Reverse(head.time.seconds));
        let timeline = |(name, head): &(&crate::st::TimelineName, &crate::archive::Snapshot)| {
            let (id, taken) = (head.id.to_string(), head.time.seconds);
            json!({ "timeline": name.as_str(), "snapshot": id, "taken": taken, "messages": head.messages })
        };
        // Alarms about chats that have been erased are left out.
        let is_known = |alarm: &&Alarm| {
            let name = crate::st::TimelineName::parse(&alarm.subject).ok();
            name.zip(history.as_ref()).is_none_or(|(name, history)| history.head(&name).is_some())
        };
        let alarms = self.alarms.iter().filter(is_known);
        json!({
            "protocol": PROTOCOL,
            "program": env!("CARGO_PKG_VERSION"),
            "alive": (!self.is_over).then(|| now.timestamp()),
            "session": (!self.is_over).then_some(session),
            "write": rights == Rights::Change,
            "timelines": heads.iter().take(TIMELINES).map(timeline).collect::<Vec<_>>(),
            "alarms": alarms.collect::<Vec<_>>(),
            "written": written.collect::<Vec<_>>(),
            "sync": sync,
        })
    }
}
