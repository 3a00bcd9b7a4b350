//! The readiness check of every command that creates a checkpoint. While ST-Auto-Recap is working,
//! no snapshot is created and no chat is forked, unless the user allows it.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use serde::Deserialize;

use super::take_snapshots::Judgement;
use super::{Error, Result, Workspace};
use crate::auto_recap::{
    self, CheckpointSource, QueueIntent, queue_activity, scene_breaks, uses_auto_recap,
};
use crate::history::at_message::message_not_found;
use crate::history::origin::without_blank_end;
use crate::progress::Monitor;
use crate::rules::{self, Code, Finding};
use crate::st::{self, Chat, Library, Scan, TimelineFiles, TimelineName};

const PAUSE: Duration = Duration::from_millis(250);

/// The options of the readiness check.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
pub struct GatePolicy {
    /// The response to a message that does not end a finished scene.
    #[serde(rename = "strict")]
    pub scene: SceneRule,
    /// The time to wait for ST-Auto-Recap's queue in the lorebook before the check; `None` to check
    /// at once.
    pub wait: Option<WaitLimit>,
    /// Whether a snapshot may be created while work is pending in the queue.
    pub allow_active_queue: bool,
}

/// The response to a scene that ST-Auto-Recap has not finished.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(from = "bool")]
pub enum SceneRule {
    /// Report the unfinished scene as a warning.
    #[default]
    Warn,
    /// Refuse a message that does not end a scene. Report other unfinished work as warnings.
    RequireBreak,
    /// Refuse a message whose scene is not finished.
    Strict,
}

/// The limit of the wait for ST-Auto-Recap's queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(from = "u64")]
pub enum WaitLimit {
    /// Give up after this time.
    AtMost(Duration),
    /// Wait until the queue is empty.
    Forever,
}

/// The longest wait that a request can ask for, in seconds. Requests are served one after the
/// other, so a longer wait would block the other requests.
const LONGEST_WAIT: u64 = 10;

/// Converts the number of seconds in a request, up to a limit.
impl From<u64> for WaitLimit {
    fn from(seconds: u64) -> Self {
        Self::AtMost(Duration::from_secs(seconds.min(LONGEST_WAIT)))
    }
}

/// Converts the option `strict` of a request or a command line.
impl From<bool> for SceneRule {
    fn from(is_strict: bool) -> Self {
        if is_strict { Self::Strict } else { Self::Warn }
    }
}

impl SceneRule {
    fn blockers(self) -> &'static [Code] {
        match self {
            Self::Warn => &[],
            Self::RequireBreak => &[Code::SceneBreakMissing],
            Self::Strict => &auto_recap::STRICT,
        }
    }
}

/// Runs the readiness check on the files of a timeline. `at` is the message of a checkpoint; `None`
/// for a snapshot of the entire chat.
pub(crate) fn judge(policy: GatePolicy, files: &TimelineFiles, at: Option<usize>) -> Judgement {
    let mut judgement = judge_queue(policy, &files.timeline, files.book_bytes());
    let ready = judge_message(policy, files, at);
    judgement.refused.extend(ready.refused);
    judgement.warnings.extend(ready.warnings);
    // Refuse an unreadable lorebook, because its queue cannot be checked.
    if policy.scene == SceneRule::Strict
        && let Some(book) = &files.lorebook
        && let Some(why) = &book.unread
    {
        let unread = rules::lorebook_unread(&files.timeline, &book.name, why);
        judgement.refused.extend(auto_recap::refuse(vec![unread], &[Code::LorebookUnread]).0);
    }
    judgement
}

pub(crate) fn judge_queue(
    policy: GatePolicy,
    timeline: &TimelineName,
    book: Option<&[u8]>,
) -> Judgement {
    let active =
        |intent| auto_recap::queue_active(timeline.as_str(), book, intent).into_iter().collect();
    match (policy.allow_active_queue, policy.wait) {
        (true, _) => {
            Judgement { warnings: active(QueueIntent::SnapshotAnyway), ..Judgement::default() }
        }
        (_, Some(_)) => {
            Judgement { refused: active(QueueIntent::SnapshotAfterWaiting), ..Judgement::default() }
        }
        _ => Judgement { refused: active(QueueIntent::Snapshot), ..Judgement::default() },
    }
}

/// Checks whether ST-Auto-Recap has finished the scene that ends at message `at`. If `at` is
/// `None`, checks the last message, but only if the policy can refuse a message.
pub(crate) fn judge_message(
    policy: GatePolicy,
    files: &TimelineFiles,
    at: Option<usize>,
) -> Judgement {
    let mut judgement = Judgement::default();
    let blockers = policy.scene.blockers();
    if at.is_none() && blockers.is_empty() {
        return judgement;
    }
    let chat = files.split();
    let Some(message) = at.or(last_message(&chat)) else {
        judgement.refused.push(message_not_found(&files.timeline, 0, 0));
        return judgement;
    };
    let point = point(files, &chat, message);
    let (refused, rest) = auto_recap::refuse(auto_recap::readiness(&point), blockers);
    judgement.refused.extend(refused);
    // Users without ST-Auto-Recap get no warnings about scenes.
    if uses_auto_recap(&chat, point.metadata, files.book_bytes()) || !scene_breaks(&chat).is_empty()
    {
        judgement.warnings.extend(rest);
    }
    judgement
}

/// Returns findings for a copy of a chat that ends at message `at` but has the present metadata and
/// lorebook, which may describe later messages.
pub(crate) fn findings_about_later_messages(files: &TimelineFiles, at: usize) -> Vec<Finding> {
    let chat = files.split();
    let mut findings = auto_recap::recap_from_future(&point(files, &chat, at));
    let is_earlier = last_message(&chat).is_some_and(|last| at < last);
    if is_earlier && files.book_bytes().is_some() {
        findings.push(auto_recap::lorebook_of_now(&files.timeline, at));
    }
    findings
}

fn point<'a>(files: &'a TimelineFiles, chat: &'a Chat<'a>, message: usize) -> CheckpointSource<'a> {
    CheckpointSource { timeline: &files.timeline, chat, metadata: files.metadata(chat), message }
}

fn last_message(chat: &Chat<'_>) -> Option<usize> {
    chat.messages.iter().rposition(|line| !line.trim_ascii().is_empty())
}

pub(crate) fn must_have(files: &TimelineFiles, at: usize) -> Result<()> {
    let messages = without_blank_end(&files.split().messages).len();
    if at < messages {
        Ok(())
    } else {
        Err(Error::refused(message_not_found(&files.timeline, messages, at)))
    }
}

/// Waits until no work is pending in the lorebooks of these timelines, or until the limit `wait` is
/// reached. Then advances `workspace.now` by the time waited.
pub(crate) fn wait(
    workspace: &mut Workspace,
    library: &Library,
    scan: &Scan,
    names: &[&TimelineName],
    wait: WaitLimit,
    monitor: &mut dyn Monitor,
) {
    let began = Instant::now();
    // Several chats may use one lorebook.
    let books: BTreeSet<_> =
        names.iter().filter_map(|name| st::lorebook_of(library, &scan.groups, name)).collect();
    let pending = || -> u64 {
        let bytes = books.iter().filter_map(|book| st::read(library.root(), book).ok());
        bytes.map(|bytes| queue_activity(&bytes).total()).sum()
    };
    let mut left_to_do = pending();
    let mut most = left_to_do;
    if most > 0 {
        monitor.begin("waiting for ST-Auto-Recap", Some(most));
    }
    while left_to_do > 0 {
        let left = match wait {
            WaitLimit::AtMost(limit) => Some(limit.saturating_sub(began.elapsed())),
            WaitLimit::Forever => None,
        };
        if left == Some(Duration::ZERO) {
            break;
        }
        std::thread::sleep(left.map_or(PAUSE, |left| left.min(PAUSE)));
        let now = pending();
        if now > most {
            // New work was queued.
            most = now;
            monitor.begin("waiting for ST-Auto-Recap", Some(most));
        } else {
            monitor.advance(left_to_do.saturating_sub(now))
        }
        left_to_do = now;
    }
    workspace.now += chrono::Duration::seconds(began.elapsed().as_secs().try_into().unwrap_or(0));
}
