//! Who may pass: no state is taken in the middle of the extension's work, unless the user says so.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use super::options::Options;
use crate::archive::uses_auto_recap;
use crate::engine::take_snapshots::Judgement;
use crate::history::at_message::message_not_found;
use crate::progress::Monitor;
use crate::rules::{self, Code, Point, Wish};
use crate::st::auto_recap::{queue_activity, scene_breaks};
use crate::st::{self, Captured, Library, Scan, TimelineName};

/// How often the queue is looked at while waiting for it.
const PAUSE: Duration = Duration::from_millis(250);

/// Judge a state; `at` is the message of a checkpoint.
pub(super) fn judge(options: &Options, captured: &Captured, at: Option<usize>) -> Judgement {
    let name = &captured.files.timeline;
    let subject = name.as_str();
    let book = captured.files.book_bytes();
    let mut judgement = Judgement::default();
    match options.allow_active_queue {
        true => judgement.warnings.extend(rules::queue_active(subject, book, Wish::TakeAnyway)),
        false => {
            let wish = if options.wait.is_some() { Wish::TakeAfterWaiting } else { Wish::Take };
            judgement.refused.extend(rules::queue_active(subject, book, wish));
        }
    }
    let blockers: &[Code] = match (options.strict, options.require_scene_break) {
        (true, _) => &rules::STRICT,
        (_, true) => &[Code::SceneBreakMissing],
        _ => &[],
    };
    if at.is_none() && blockers.is_empty() {
        return judgement;
    }
    let chat = captured.files.split();
    let metadata = captured.files.metadata(&chat);
    let last = chat.messages.iter().rposition(|line| !line.trim_ascii().is_empty());
    let Some(message) = at.or(last) else {
        judgement.refused.push(message_not_found(name, 0, 0));
        return judgement;
    };
    let point = Point { timeline: name, chat: &chat, metadata, book, message };
    let (refused, rest) = rules::refuse(rules::readiness(&point), blockers);
    judgement.refused.extend(refused);
    // Whoever does not use the extension is not told of its scenes.
    if uses_auto_recap(&chat, metadata, book) || !scene_breaks(&chat).is_empty() {
        judgement.warnings.extend(rest);
    }
    if at.is_some() {
        judgement.warnings.extend(rules::recap_from_future(&point));
        if last.is_some_and(|last| message < last) && book.is_some() {
            judgement.warnings.push(rules::lorebook_of_now(name, message));
        }
    }
    judgement
}

/// Wait until no work is pending in the lorebooks of these timelines, or until the time is up. How long it took.
pub(super) fn wait(
    library: &Library,
    scan: &Scan,
    names: &[TimelineName],
    limit: Option<Duration>,
    monitor: &mut dyn Monitor,
) -> Duration {
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
        let left = limit.map(|limit| limit.saturating_sub(began.elapsed()));
        if left == Some(Duration::ZERO) {
            break;
        }
        std::thread::sleep(left.map_or(PAUSE, |left| left.min(PAUSE)));
        let now = pending();
        match now > most {
            // More came: there is more to wait for.
            true => {
                most = now;
                monitor.begin("waiting for ST-Auto-Recap", Some(most));
            }
            false => monitor.advance(left_to_do.saturating_sub(now)),
        }
        left_to_do = now;
    }
    began.elapsed()
}
