//! The readiness check: no state is taken or forked in the middle of the extension's work, unless
//! the user says so. Every command that makes a checkpoint asks it.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use serde::Deserialize;

use super::take_snapshots::Judgement;
use super::{Error, Result, Workspace};
use crate::auto_recap::{self, Point, Wish, queue_activity, scene_breaks, uses_auto_recap};
use crate::history::at_message::message_not_found;
use crate::history::origin::without_blank_end;
use crate::progress::Monitor;
use crate::rules::{self, Code, Finding};
use crate::st::{self, Chat, Library, Scan, TimelineFiles, TimelineName};

const PAUSE: Duration = Duration::from_millis(250);

/// The user's wishes for the readiness check.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
pub struct GatePolicy {
    #[serde(rename = "strict")]
    pub scene: SceneRule,
    /// Wait for the lorebook's queue first.
    pub wait: Option<Wait>,
    /// Go on although work is pending in the queue.
    pub allow_active_queue: bool,
}

/// The response to a scene that ST-Auto-Recap has not finished.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(from = "bool")]
pub enum SceneRule {
    /// It is reported.
    #[default]
    Warn,
    /// A message that ends no scene is refused, everything else is reported.
    RequireBreak,
    /// It is refused.
    Strict,
}

/// How long to wait for the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(from = "u64")]
pub enum Wait {
    AtMost(Duration),
    Forever,
}

/// A request waits at most so many seconds, because requests are served one after the other.
const LONGEST_WAIT: u64 = 10;

/// The seconds of a request.
impl From<u64> for Wait {
    fn from(seconds: u64) -> Self {
        Self::AtMost(Duration::from_secs(seconds.min(LONGEST_WAIT)))
    }
}

/// `strict` of a request or a command line.
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

/// Judges a state with the lorebook of now; `at` is the message of a checkpoint.
pub(crate) fn judge(policy: GatePolicy, files: &TimelineFiles, at: Option<usize>) -> Judgement {
    let mut judgement = judge_queue(policy, &files.timeline, files.book_bytes());
    let ready = judge_message(policy, files, at);
    judgement.refused.extend(ready.refused);
    judgement.warnings.extend(ready.warnings);
    // A lorebook that cannot be read cannot be judged.
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
        |wish| auto_recap::queue_active(timeline.as_str(), book, wish).into_iter().collect();
    match (policy.allow_active_queue, policy.wait) {
        (true, _) => Judgement { warnings: active(Wish::TakeAnyway), ..Judgement::default() },
        (_, Some(_)) => {
            Judgement { refused: active(Wish::TakeAfterWaiting), ..Judgement::default() }
        }
        _ => Judgement { refused: active(Wish::Take), ..Judgement::default() },
    }
}

/// Judges whether the extension has finished the scene that ends at a message; `at`: not given, the
/// last one, which only who is strict is refused for.
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
    // Whoever does not use the extension is not told of its scenes.
    if uses_auto_recap(&chat, point.metadata, files.book_bytes()) || !scene_breaks(&chat).is_empty()
    {
        judgement.warnings.extend(rest);
    }
    judgement
}

/// Returns what a state knows of the time after message `at`, if it is cut there and all else is as
/// it is now.
pub(crate) fn of_later(files: &TimelineFiles, at: usize) -> Vec<Finding> {
    let chat = files.split();
    let mut findings = auto_recap::recap_from_future(&point(files, &chat, at));
    let is_earlier = last_message(&chat).is_some_and(|last| at < last);
    if is_earlier && files.book_bytes().is_some() {
        findings.push(auto_recap::lorebook_of_now(&files.timeline, at));
    }
    findings
}

fn point<'a>(files: &'a TimelineFiles, chat: &'a Chat<'a>, message: usize) -> Point<'a> {
    Point { timeline: &files.timeline, chat, metadata: files.metadata(chat), message }
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

/// Waits until no work is pending in the lorebooks of these timelines, or until the time is up. The
/// command goes on with the time after that.
pub(crate) fn wait(
    workspace: &mut Workspace,
    library: &Library,
    scan: &Scan,
    names: &[&TimelineName],
    wait: Wait,
    monitor: &mut dyn Monitor,
) {
    let began = Instant::now();
    // Several chats may use one book.
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
            Wait::AtMost(limit) => Some(limit.saturating_sub(began.elapsed())),
            Wait::Forever => None,
        };
        if left == Some(Duration::ZERO) {
            break;
        }
        std::thread::sleep(left.map_or(PAUSE, |left| left.min(PAUSE)));
        let now = pending();
        if now > most {
            // More came: there is more to wait for.
            most = now;
            monitor.begin("waiting for ST-Auto-Recap", Some(most));
        } else {
            monitor.advance(left_to_do.saturating_sub(now))
        }
        left_to_do = now;
    }
    workspace.now += chrono::Duration::seconds(began.elapsed().as_secs().try_into().unwrap_or(0));
}
