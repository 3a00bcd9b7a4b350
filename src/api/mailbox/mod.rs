//! The API over files that SillyTavern itself writes and serves, for a page that has no other way
//! to this program (docs/mailbox.md). The page writes a request into `user/files` by SillyTavern's
//! own file API; the watch removes it and writes an answer, which the page fetches and deletes. Any
//! script in that page can do the same: hence the closed list of verbs, and limits.

#[cfg(any(test, fuzzing))]
pub(crate) mod fuzzing;
mod letters;
mod limits;
mod status;

use std::collections::{BTreeMap, VecDeque};
use std::ffi::OsString;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use notify::event::{AccessKind, AccessMode};
use notify::{EventKind, Watcher as _};

use super::{Answer, Refusal, Rights, random_hex, serve};
use crate::engine::configuration::Configuration;
use crate::engine::{CommandRun, Workspace};
pub use letters::PROTOCOL;
use letters::{Letter, Letters};
use limits::Limits;
pub use status::Alarm;
use status::Status;

/// Unfetched answers and unserved requests are removed after this.
const LIFETIME: Duration = Duration::from_secs(60);
/// The status is refreshed so long after the last request.
const ATTENTION: Duration = Duration::from_secs(5 * 60);
const HEARTBEAT: Duration = Duration::from_secs(15);
/// How often the folder is listed without file events.
const POLL: Duration = Duration::from_millis(500);
/// How often a missing folder is looked for.
const SEEK: Duration = Duration::from_secs(2);
/// How often the folder is listed although there are file events.
const LOOK: Duration = Duration::from_secs(60);
/// How many ids are remembered, so that none is served twice.
const KNOWN: usize = 4096;

type Clock<'a> = &'a dyn Fn() -> chrono::DateTime<chrono::FixedOffset>;

/// What wakes the mailbox.
enum Ring {
    Mail,
    News(Vec<Alarm>),
    Stop,
}

/// Wakes the mailbox.
#[derive(Clone)]
pub struct Bell(Sender<Ring>);

impl Bell {
    /// Reports findings about new snapshots.
    pub fn news(&self, alarms: Vec<Alarm>) {
        let _ = self.0.send(Ring::News(alarms));
    }

    /// Stops the mailbox.
    pub fn stop(&self) {
        let _ = self.0.send(Ring::Stop);
    }
}

/// A mailbox that is not served yet.
pub struct Mailbox {
    bell: Bell,
    rings: Receiver<Ring>,
}

impl Default for Mailbox {
    fn default() -> Self {
        let (sender, rings) = channel();
        Self { bell: Bell(sender), rings }
    }
}

impl Mailbox {
    /// Returns a handle that wakes the mailbox.
    pub fn bell(&self) -> Bell {
        self.bell.clone()
    }

    /// Serves it until the bell says stop; with `poll`, without file events.
    pub fn serve(self, workspace: &Workspace, clock: Clock<'_>, poll: bool) {
        let Ok(library) = workspace.library() else { return };
        let Ok(session) = random_hex::<16>() else { return };
        let folder = library.root().join(crate::st::mailbox::MAILBOX);
        let mut served = Served::new(workspace, clock, session, library.root().to_owned());
        let mut watcher = None;
        served.tell();
        loop {
            // The folder comes with the first file, and a library may go and come back.
            if watcher.is_none() && !poll && folder.is_dir() {
                let bell = self.bell.clone();
                let heard = move |event: notify::Result<notify::Event>| {
                    if event.map_or(true, |event| is_mail(&event)) {
                        let _ = bell.0.send(Ring::Mail);
                    }
                };
                watcher = notify::recommended_watcher(heard).ok();
                let mode = notify::RecursiveMode::NonRecursive;
                let watches = watcher.as_mut().map(|watcher| watcher.watch(&folder, mode).is_ok());
                watcher = watcher.filter(|_| watches == Some(true));
                // Requests from before the events.
                served.look();
            }
            let wait = if folder.is_dir() { served.wait(watcher.is_some()) } else { SEEK };
            match self.rings.recv_timeout(wait) {
                Ok(Ring::Stop) | Err(RecvTimeoutError::Disconnected) => break,
                Ok(Ring::News(alarms)) => {
                    served.status.news(alarms);
                    served.tell();
                }
                Ok(Ring::Mail) | Err(RecvTimeoutError::Timeout) => {}
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

/// Whether a request may have come. Reading the folder and writing answers are events, too, which
/// must not wake it again.
fn is_mail(event: &notify::Event) -> bool {
    let is_read = matches!(event.kind, EventKind::Access(kind)
        if kind != AccessKind::Close(AccessMode::Write));
    let mut names = event.paths.iter().filter_map(|path| path.file_name());
    event.need_rescan() || !is_read && names.any(letters::is_request)
}

struct Served<'a> {
    workspace: &'a Workspace,
    clock: Clock<'a>,
    /// Tells requests made for this watch from prepared ones: a file from an archive, for example.
    session: String,
    letters: Letters,
    limits: Limits,
    status: Status,
    known: VecDeque<String>,
    /// Answers by name, and since when.
    answers: BTreeMap<OsString, Instant>,
    asked: Option<Instant>,
    told: Option<Instant>,
}

impl<'a> Served<'a> {
    fn new(workspace: &'a Workspace, clock: Clock<'a>, session: String, library: PathBuf) -> Self {
        let (limits, status, known, answers) = Default::default();
        let (letters, asked, told) = (Letters::new(library), None, None);
        Self { workspace, clock, session, letters, limits, status, known, answers, asked, told }
    }

    fn wait(&self, hears: bool) -> Duration {
        let mut wait = if hears { LOOK } else { POLL };
        if let Some(first) = self.answers.values().min() {
            wait = wait.min(LIFETIME.saturating_sub(first.elapsed()));
        }
        if self.is_attended() {
            let since = self.told.map_or(HEARTBEAT, |told| told.elapsed());
            wait = wait.min(HEARTBEAT.saturating_sub(since));
        }
        wait.max(Duration::from_millis(10))
    }

    fn is_attended(&self) -> bool {
        self.asked.is_some_and(|asked| asked.elapsed() < ATTENTION)
    }

    fn look(&mut self) {
        for letter in self.letters.waiting() {
            self.answer(&letter);
        }
        let letters = &self.letters;
        self.answers.retain(|name, since| {
            let is_old = since.elapsed() >= LIFETIME;
            if is_old {
                letters.remove(name);
            }
            !is_old && letters.has(name)
        });
        self.letters.clear(LIFETIME);
        let is_time = self.told.is_none_or(|told| told.elapsed() >= HEARTBEAT);
        if self.is_attended() && is_time {
            self.tell();
        }
    }

    fn answer(&mut self, letter: &Letter) {
        let read = self.letters.take(letter, LIFETIME);
        // Another process took it, or it is gone.
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
        let verb = read.as_ref().map_or("", letters::Asked::verb);
        let answer = read.and_then(|asked| {
            self.limits.admit(asked.needs())?;
            if changes && asked.session.as_ref() != Some(&self.session) {
                return Err(Refusal::Session { verb });
            }
            // A request that panics must not leave the others without an answer.
            let served = catch_unwind(AssertUnwindSafe(|| self.serve(&asked)));
            served.map_err(|_| Refusal::BrokeDown { verb })
        });
        let answer = answer.unwrap_or_else(|why| Answer::refused(&why));
        // The page need not be told again of what it asked for itself.
        let newest =
            || self.workspace.open_store().ok()?.last_operations().ok()?.into_iter().next();
        let operation = changes.then(newest).flatten().map(|operation| operation.number);
        let put =
            self.letters.put(&letter.id, &answer, &self.session, operation).or_else(|error| {
                // A full disk may have room for a short answer.
                let refusal = Refusal::Unwritable { verb, why: error.to_string() };
                let refused = Answer::refused(&refusal);
                self.letters.put(&letter.id, &refused, &self.session, operation)
            });
        if let Ok(name) = put {
            self.answers.insert(name, Instant::now());
        }
        if must_tell {
            self.tell();
        }
    }

    fn serve(&self, asked: &letters::Asked) -> Answer {
        let Some(request) = &asked.request else { return Answer::default() };
        let command = ["stvc", "extension"].map(str::to_owned);
        let command = command.into_iter().chain(request.words()).collect();
        let workspace = Workspace {
            // A person asked for it.
            automatic: false,
            command: CommandRun::new(command),
            now: (self.clock)(),
            ..self.workspace.clone()
        };
        serve(&workspace, request, self.rights())
    }

    fn rights(&self) -> Rights {
        let configuration = self.workspace.open_store().and_then(|store| Configuration::of(&store));
        // A configuration that cannot be read may say no.
        let may_write = configuration.is_ok_and(|configuration| configuration.extension.write);
        if may_write { Rights::Change } else { Rights::Read }
    }

    fn tell(&mut self) {
        // A failed write is retried no sooner than the next regular one.
        self.told = Some(Instant::now());
        let status = catch_unwind(AssertUnwindSafe(|| {
            self.status.told(self.workspace, (self.clock)(), self.rights(), &self.session)
        }));
        if let Ok(status) = status {
            let _ = self.letters.put_status(&status);
        }
    }

    fn end(mut self) {
        for name in self.answers.keys() {
            self.letters.remove(name);
        }
        self.status.end();
        self.tell();
    }
}
