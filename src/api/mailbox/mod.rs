//! The API over files, for the extension in SillyTavern's page, which cannot reach this program in
//! another way (docs/mailbox.md). The page writes a request into `user/files` with SillyTavern's
//! file API. The watch removes the request and writes an answer, which the page fetches and
//! deletes. Every script in SillyTavern's page can send requests. Therefore the list of verbs is
//! closed, and the rate of requests is limited.

#[cfg(any(test, fuzzing))]
pub(crate) mod fuzzing;
mod limits;
mod request_files;
mod status;

use std::collections::{BTreeMap, VecDeque};
use std::ffi::OsString;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use notify::event::{AccessKind, AccessMode};
use notify::{EventKind, Watcher as _};

use super::{Answer, BackgroundJobs, Refusal, Rights, extension, random_hex, serve};
use crate::engine::Workspace;
use crate::engine::configuration::Configuration;
use limits::Limits;
pub use request_files::PROTOCOL;
use request_files::{RequestFile, RequestFolder};
pub use status::Alarm;
use status::Status;

/// The age after which answers that were not fetched and requests that were not served are removed.
const LIFETIME: Duration = Duration::from_secs(60);
/// The time after the last request during which the status file is rewritten regularly.
const ATTENTION: Duration = Duration::from_secs(5 * 60);
const HEARTBEAT: Duration = Duration::from_secs(15);
/// The interval at which the folder is listed if there are no file events.
const POLL: Duration = Duration::from_millis(500);
/// The interval at which to check whether a missing folder exists now.
const SEEK: Duration = Duration::from_secs(2);
/// The interval at which the folder is listed even if there are file events, in case an event is
/// lost.
const LOOK: Duration = Duration::from_secs(60);
/// The number of request ids that are remembered, so that no request is served twice.
const KNOWN: usize = 4096;

type Clock<'a> = &'a dyn Fn() -> chrono::DateTime<chrono::FixedOffset>;

enum WakeReason {
    Mail,
    News(Vec<Alarm>),
    Stop,
}

/// A handle that wakes the mailbox.
#[derive(Clone)]
pub struct MailboxWaker(Sender<WakeReason>);

impl MailboxWaker {
    /// Passes on alarms about new snapshots, which the status file lists.
    pub fn news(&self, alarms: Vec<Alarm>) {
        let _ = self.0.send(WakeReason::News(alarms));
    }

    /// Stops the mailbox.
    pub fn stop(&self) {
        let _ = self.0.send(WakeReason::Stop);
    }
}

/// The way in which the mailbox notices new requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notice {
    /// By file events, and by listing the folder if the system has none.
    Events,
    /// Only by listing the folder.
    Polling,
}

/// A mailbox that is not served yet.
pub struct Mailbox {
    bell: MailboxWaker,
    rings: Receiver<WakeReason>,
}

impl Default for Mailbox {
    fn default() -> Self {
        let (sender, rings) = channel();
        Self { bell: MailboxWaker(sender), rings }
    }
}

impl Mailbox {
    /// Returns a handle that wakes the mailbox.
    pub fn waker(&self) -> MailboxWaker {
        self.bell.clone()
    }

    /// Serves requests until [`MailboxWaker::stop`] is called.
    pub fn serve(self, workspace: &Workspace, clock: Clock<'_>, notice: Notice) {
        let Ok(library) = workspace.library() else { return };
        let Ok(session) = random_hex::<16>() else { return };
        let folder = library.root().join(crate::st::mailbox::MAILBOX);
        let mut served = MailboxService::new(workspace, clock, session, library.root().to_owned());
        let mut watcher = None;
        served.write_status();
        loop {
            // SillyTavern creates the folder with its first file, and a drive can be disconnected
            // and reconnected.
            if watcher.is_none() && notice == Notice::Events && folder.is_dir() {
                let bell = self.bell.clone();
                let heard = move |event: notify::Result<notify::Event>| {
                    if event.map_or(true, |event| is_mail(&event)) {
                        let _ = bell.0.send(WakeReason::Mail);
                    }
                };
                watcher = notify::recommended_watcher(heard).ok();
                let mode = notify::RecursiveMode::NonRecursive;
                let watches = watcher.as_mut().map(|watcher| watcher.watch(&folder, mode).is_ok());
                watcher = watcher.filter(|_| watches == Some(true));
                // Serves requests that were written before the file events were enabled.
                served.look();
            }
            let interval = if watcher.is_some() { LOOK } else { POLL };
            let wait = if folder.is_dir() { served.wait(interval) } else { SEEK };
            match self.rings.recv_timeout(wait) {
                Ok(WakeReason::Stop) | Err(RecvTimeoutError::Disconnected) => break,
                Ok(WakeReason::News(alarms)) => {
                    served.status.news(alarms);
                    served.write_status();
                }
                Ok(WakeReason::Mail) | Err(RecvTimeoutError::Timeout) => {}
            }
            if !folder.is_dir() {
                watcher = None;
                continue;
            }
            served.look();
        }
        served.end();
    }
}

/// Returns whether an event may report a new request. Reading the folder and writing answers also
/// cause events, which must not wake the mailbox.
fn is_mail(event: &notify::Event) -> bool {
    let is_read = matches!(event.kind, EventKind::Access(kind)
        if kind != AccessKind::Close(AccessMode::Write));
    let mut names = event.paths.iter().filter_map(|path| path.file_name());
    event.need_rescan() || !is_read && names.any(request_files::is_request)
}

struct MailboxService<'a> {
    workspace: &'a Workspace,
    clock: Clock<'a>,
    /// A random id of this watch. A request that changes data must contain it, so that a request
    /// file prepared by someone else, for example in an archive, is refused.
    session: String,
    request_folder: RequestFolder,
    limits: Limits,
    jobs: BackgroundJobs,
    status: Status,
    known: VecDeque<String>,
    /// The names of answers that were not fetched yet, with the time when each was written.
    answers: BTreeMap<OsString, Instant>,
    asked: Option<Instant>,
    status_written: Option<Instant>,
}

impl<'a> MailboxService<'a> {
    fn new(workspace: &'a Workspace, clock: Clock<'a>, session: String, library: PathBuf) -> Self {
        let (limits, jobs, status, known, answers) = Default::default();
        let (request_folder, asked, status_written) = (RequestFolder::new(library), None, None);
        Self {
            workspace,
            clock,
            session,
            request_folder,
            limits,
            jobs,
            status,
            known,
            answers,
            asked,
            status_written,
        }
    }

    /// Returns the time until the next look, which is at most `wait`.
    fn wait(&self, mut wait: Duration) -> Duration {
        if let Some(first) = self.answers.values().min() {
            wait = wait.min(LIFETIME.saturating_sub(first.elapsed()));
        }
        if self.is_attended() {
            let since =
                self.status_written.map_or(HEARTBEAT, |status_written| status_written.elapsed());
            wait = wait.min(HEARTBEAT.saturating_sub(since));
        }
        wait.max(Duration::from_millis(10))
    }

    fn is_attended(&self) -> bool {
        self.asked.is_some_and(|asked| asked.elapsed() < ATTENTION)
    }

    fn look(&mut self) {
        for letter in self.request_folder.waiting() {
            self.answer(&letter);
        }
        let request_folder = &self.request_folder;
        self.answers.retain(|name, since| {
            let is_old = since.elapsed() >= LIFETIME;
            if is_old {
                request_folder.remove(name);
            }
            !is_old && request_folder.has(name)
        });
        self.request_folder.clear(LIFETIME);
        let is_time =
            self.status_written.is_none_or(|status_written| status_written.elapsed() >= HEARTBEAT);
        if self.is_attended() && is_time {
            self.write_status();
        }
    }

    fn answer(&mut self, letter: &RequestFile) {
        let read = self.request_folder.take(letter, LIFETIME);
        // Another process served the request, or the page deleted it.
        let Some(read) = read else { return };
        if self.known.contains(&letter.id) {
            return;
        }
        self.known.push_back(letter.id.clone());
        if self.known.len() > KNOWN {
            self.known.pop_front();
        }
        let changes = read.as_ref().is_ok_and(|asked| asked.needs() == Rights::Change);
        let must_tell = !self.is_attended() || changes;
        self.asked = Some(Instant::now());
        let verb = read.as_ref().map_or("", request_files::MailboxRequest::verb);
        let answer = read.and_then(|asked| {
            self.limits.admit(asked.needs())?;
            if changes && asked.session.as_ref() != Some(&self.session) {
                return Err(Refusal::Session { verb });
            }
            // If one request panics, the other requests must still be answered.
            let served = catch_unwind(AssertUnwindSafe(|| self.serve(&asked)));
            served.map_err(|_| Refusal::Panicked { verb })
        });
        let answer = answer.unwrap_or_else(|why| Answer::refused(&why));
        // The answer contains the number of the new operation, so that the page does not treat its
        // own change as someone else's.
        let newest =
            || self.workspace.open_store().ok()?.last_operations().ok()?.into_iter().next();
        let operation = changes.then(newest).flatten().map(|operation| operation.number);
        let put = self.request_folder.put(&letter.id, &answer, &self.session, operation).or_else(
            |error| {
                // A full disk may still have room for this shorter answer.
                let refusal = Refusal::Unwritable { verb, why: error.to_string() };
                let refused = Answer::refused(&refusal);
                self.request_folder.put(&letter.id, &refused, &self.session, operation)
            },
        );
        if let Ok(name) = put {
            self.answers.insert(name, Instant::now());
        }
        if must_tell {
            self.write_status();
        }
    }

    fn serve(&self, asked: &request_files::MailboxRequest) -> Answer {
        let Some(request) = &asked.request else { return Answer::default() };
        let workspace = Workspace {
            // The user sent the request, so the change is not automatic.
            automatic: false,
            command: request.command("extension"),
            now: (self.clock)(),
            ..self.workspace.clone()
        };
        serve(&workspace, request, self.rights(), &self.jobs)
    }

    fn rights(&self) -> Rights {
        let configuration = self.workspace.open_store().and_then(|store| Configuration::of(&store));
        // If the configuration cannot be read, changes are forbidden, because the configuration may
        // forbid them.
        let may_write = configuration.is_ok_and(|configuration| configuration.extension.write);
        if may_write { Rights::Change } else { Rights::Read }
    }

    /// Writes the status file, if a page can read it: if the extension is installed or another page
    /// sent a request.
    fn write_status(&mut self) {
        let is_installed = extension::folder(self.workspace).is_ok_and(|folder| folder.is_dir());
        if !is_installed && self.asked.is_none() {
            return;
        }
        // The time is set even if writing fails, so that a failed write is retried only after the
        // usual interval.
        self.status_written = Some(Instant::now());
        let status = catch_unwind(AssertUnwindSafe(|| {
            self.status.to_json(self.workspace, (self.clock)(), self.rights(), &self.session)
        }));
        if let Ok(status) = status {
            let _ = self.request_folder.put_status(&status);
        }
    }

    fn end(mut self) {
        for name in self.answers.keys() {
            self.request_folder.remove(name);
        }
        self.status.end();
        self.write_status();
    }
}
