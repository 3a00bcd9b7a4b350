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
use std::ffi::{OsStr, OsString};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{Answer, BackgroundJobs, Refusal, Rights, extension, random_hex, serve};
use crate::engine::Workspace;
use crate::engine::configuration::Configuration;
use crate::rules::Finding;
use crate::verbs::{self, Result};
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
/// The number of request ids that are remembered, so that no request is served twice.
const KNOWN: usize = 4096;

type Clock = Arc<dyn Fn() -> chrono::DateTime<chrono::FixedOffset> + Send + Sync>;

/// The mailbox of one library. The caller calls [`Mailbox::step`] regularly and when a file event
/// reports a request.
pub struct Mailbox {
    workspace: Workspace,
    clock: Clock,
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

impl Mailbox {
    /// The folder with the requests, relative to the library.
    pub const FOLDER: &'static str = crate::st::mailbox::MAILBOX;

    /// Creates the mailbox of a library. Fails if the library cannot be found, or if the system has
    /// no random numbers.
    pub fn new(workspace: Workspace, clock: Clock) -> Result<Self> {
        let session = random_hex::<16>().map_err(verbs::Error::at("random numbers"))?;
        let library = workspace.library()?.root().to_owned();
        Ok(Self::with_session(workspace, clock, session, library))
    }

    fn with_session(workspace: Workspace, clock: Clock, session: String, library: PathBuf) -> Self {
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

    /// Returns whether a file with this name is a request. Answers and the status file are in the
    /// same folder, and must not wake the mailbox.
    pub fn is_request(name: &OsStr) -> bool {
        request_files::is_request(name)
    }

    /// Serves the waiting requests. `news` has the findings of new snapshots, if any were created,
    /// which the status file lists as alarms. Returns the time until the next step, which is at
    /// most `interval`.
    pub fn step(&mut self, news: Option<Vec<Finding>>, interval: Duration) -> Duration {
        if let Some(findings) = news {
            let clock = &self.clock;
            let alarms =
                findings.into_iter().filter_map(|found| Alarm::of(found, clock().timestamp()));
            self.status.news(alarms);
            self.write_status();
        } else if self.status_written.is_none() {
            self.write_status();
        }
        self.look();
        if !self.is_attended() {
            // The histories of many users would fill the memory.
            self.workspace.loaded.forget();
        }
        self.wait(interval)
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
        let is_installed = extension::folder(&self.workspace).is_ok_and(|folder| folder.is_dir());
        if !is_installed && self.asked.is_none() {
            return;
        }
        // The time is set even if writing fails, so that a failed write is retried only after the
        // usual interval.
        self.status_written = Some(Instant::now());
        let status = catch_unwind(AssertUnwindSafe(|| {
            self.status.to_json(&self.workspace, (self.clock)(), self.rights(), &self.session)
        }));
        if let Ok(status) = status {
            let _ = self.request_folder.put_status(&status);
        }
    }

    /// Removes the answers that were not fetched, and writes that nobody serves requests.
    pub fn end(&mut self) {
        for name in self.answers.keys() {
            self.request_folder.remove(name);
        }
        self.status.end();
        self.write_status();
    }
}
