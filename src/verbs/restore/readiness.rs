//! Makes the readiness check for a fork from the store. Work that was unfinished in the stored
//! snapshot causes only a warning, unless the policy is strict. If work is pending in the chat's
//! current lorebook, the command can wait for it.

use crate::archive;
use crate::auto_recap::{self, QueueIntent};
use crate::engine::gate::{self, SceneRule};
use crate::engine::{self, Workspace, changed_timelines, files};
use crate::history::moment::Moment;
use crate::progress::Monitor;
use crate::rules::{Code, Finding};
use crate::st::{self, Presence, TimelineName};
use crate::store::Store;
use crate::verbs::Result;

use super::options::{Options, Target};

/// Waits until no work is pending in the lorebook of the chat to fork. No lock is held while
/// waiting.
pub(super) fn wait(
    workspace: &mut Workspace,
    options: &Options,
    monitor: &mut dyn Monitor,
) -> Result<()> {
    let Target::NewTimeline { gate: Some(policy), .. } = &options.target else { return Ok(()) };
    let Some(limit) = policy.wait.filter(|_| !options.dry_run) else { return Ok(()) };
    let store = workspace.open_store()?;
    let library = workspace.library()?;
    let names = workspace.names(&store, Some(&library));
    let moment = names.moment_at(&options.snapshot, options.until.message())?;
    let Some(chat) = live_chat(workspace, &store, &moment)? else { return Ok(()) };
    gate::wait(workspace, &library, &library.scan()?, &[&chat], limit, monitor);
    Ok(())
}

/// Checks the snapshot to fork, before the messages after the fork point are removed. Returns the
/// warnings.
pub(super) fn ask(
    workspace: &Workspace,
    store: &Store,
    moment: &Moment,
    options: &Options,
) -> Result<Vec<Finding>> {
    let Target::NewTimeline { gate: Some(policy), .. } = options.target else {
        return Ok(Vec::new());
    };
    let at = moment.upto.message().or(options.until.cut());
    if !moment.snapshot.timeline.is_chat() || at.is_none() && policy.scene == SceneRule::Warn {
        return Ok(Vec::new());
    }
    let source = archive::rebuild(&store.reader(), &moment.snapshot)?.contents.files;
    let mut judgement = match live_chat(workspace, store, moment)? {
        Some(chat) => {
            let library = workspace.library()?;
            let book = st::lorebook_of(&library, &library.scan()?.groups, &chat);
            let book = book.map(|book| files::read(library.root(), &book)).transpose()?.flatten();
            gate::judge_queue(policy, &chat, book.as_deref())
        }
        None => Default::default(),
    };
    if judgement.refused.is_empty() && judgement.warnings.is_empty() {
        let subject = moment.timeline.as_str();
        let then = auto_recap::queue_active(subject, source.book_bytes(), QueueIntent::Restore);
        let is_blocker = policy.scene == SceneRule::Strict && !policy.allow_active_queue;
        let blockers: &[Code] = if is_blocker { &[Code::QueueActive] } else { &[] };
        let (refused, warnings) = auto_recap::refuse(then.into_iter().collect(), blockers);
        judgement.refused.extend(refused);
        judgement.warnings.extend(warnings);
    }
    let ready = gate::judge_message(policy, &source, at);
    judgement.refused.extend(ready.refused);
    if !judgement.refused.is_empty() {
        return Err(engine::Error::Refused { findings: judgement.refused }.into());
    }
    let mut warnings = judgement.warnings;
    warnings.extend(ready.warnings);
    warnings.extend(
        options
            .until
            .cut()
            .into_iter()
            .flat_map(|cut| gate::findings_about_later_messages(&source, cut)),
    );
    Ok(warnings)
}

/// Returns the chat to fork, if its latest snapshot is forked and its file exists. Only then can
/// ST-Auto-Recap be working on the chat.
fn live_chat(
    workspace: &Workspace,
    store: &Store,
    moment: &Moment,
) -> Result<Option<TimelineName>> {
    let chat = &moment.timeline;
    let head = changed_timelines::head(store, chat)?.0;
    let is_latest = head.is_some_and(|head| head.id == moment.snapshot.id);
    let Ok(library) = workspace.library() else { return Ok(None) };
    let is_here = is_latest && library.presence(&library.scan()?, chat) == Presence::There;
    Ok(is_here.then(|| chat.clone()))
}
