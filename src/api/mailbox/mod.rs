//! The API over files that SillyTavern itself writes and serves, for a page that has no other way to this program (docs/mailbox.md).
//!
//! The page puts a request into the user's `user/files`, by SillyTavern's own file API; who serves the mailbox takes it away and puts an answer there, which the page
//! fetches and deletes. Any script in that page can do the same: hence the closed list of verbs, and limits.

#[cfg(any(test, fuzzing))]
pub(crate) mod fuzzing;
mod letters;
mod limits;
mod status;

use std::collections::{BTreeMap, HashSet, VecDeque};
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

/// Answers that nobody fetched, and requests that nobody served, are kept no longer.
const LIFETIME: Duration = Duration::from_secs(60);
/// So long after the last request the status tells now and then that somebody is there.
const ATTENTION: Duration = Duration::from_secs(5 * 60);
const HEARTBEAT: Duration = Duration::from_secs(15);
/// How often the folder is looked at where the system does not tell of changes.
const POLL: Duration = Duration::from_millis(500);
/// How often a folder that is not there is looked for.
const SEEK: Duration = Duration::from_secs(2);
/// How often it is looked at though nothing was heard.
const LOOK: Duration = Duration::from_secs(60);
/// The last so many ids are known, and not served twice.
const KNOWN: usize = 4096;

type Clock<'a> = &'a dyn Fn() -> chrono::DateTime<chrono::FixedOffset>;

/// What rings at the mailbox.
enum Ring {
    /// A file came.
    Mail,
    /// The watch has something to tell.
    News(Vec<Alarm>),
    Stop,
}

/// Whoever tells the mailbox something.
#[derive(Clone)]
pub struct Bell(Sender<Ring>);

impl Bell {
    /// Snapshots were taken, and this was noticed.
    pub fn news(&self, alarms: Vec<Alarm>) {
        let _ = self.0.send(Ring::News(alarms));
    }

    /// Serve no more.
    pub fn stop(&self) {
        let _ = self.0.send(Ring::Stop);
    }
}

/// A mailbox that is not served yet, and its bell.
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
    pub fn bell(&self) -> Bell {
        self.bell.clone()
    }

    /// Serve it until the bell says stop; `poll`: file events are not relied on.
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
                // What came before anybody listened.
                served.look();
            }
            let wait = match (&watcher, folder.is_dir()) {
                (_, false) => SEEK,
                (watcher, true) => served.wait(watcher.is_some()),
            };
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

/// Whether a request may have come. That the folder is read, and that answers are written there, is told as well: who listened to that would never rest.
fn is_mail(event: &notify::Event) -> bool {
    let is_read = match event.kind {
        EventKind::Access(AccessKind::Close(AccessMode::Write)) => false,
        EventKind::Access(_) => true,
        _ => false,
    };
    event.need_rescan()
        || (!is_read
            && event.paths.iter().filter_map(|path| path.file_name()).any(letters::is_request))
}

struct Served<'a> {
    workspace: &'a Workspace,
    clock: Clock<'a>,
    /// Tells requests that were made for this watch from those that somebody prepared: a file from an archive, say.
    session: String,
    letters: Letters,
    limits: Limits,
    status: Status,
    /// The ids that were served, and in which order.
    known: HashSet<String>,
    order: VecDeque<String>,
    /// Answers that lie there, by their names, and since when.
    answers: BTreeMap<OsString, Instant>,
    /// When somebody asked last.
    asked: Option<Instant>,
    /// When the status was written last, or should have been.
    told: Option<Instant>,
}

impl<'a> Served<'a> {
    fn new(workspace: &'a Workspace, clock: Clock<'a>, session: String, library: PathBuf) -> Self {
        Self {
            workspace,
            clock,
            session,
            letters: Letters::new(library),
            limits: Limits::default(),
            status: Status::default(),
            known: HashSet::new(),
            order: VecDeque::new(),
            answers: BTreeMap::new(),
            asked: None,
            told: None,
        }
    }

    /// How long there is nothing to do.
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

    /// Serve what waits, and clear away what nobody fetched.
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
        // Somebody else took it, or it went.
        let Some(read) = read else { return };
        if !self.known.insert(letter.id.clone()) {
            return;
        }
        self.order.push_back(letter.id.clone());
        if self.order.len() > KNOWN {
            self.order.pop_front().map(|old| self.known.remove(&old));
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
            // One that breaks down must not leave the others without an answer.
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
                // For a few words there may be room where there is none for all.
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
        let mut command = vec!["stvc".to_owned(), "extension".to_owned()];
        command.extend(request.words());
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
        // What cannot be read may say no.
        let may_write = configuration.is_ok_and(|configuration| configuration.extension.write);
        if may_write { Rights::Change } else { Rights::Read }
    }

    /// Write the status.
    fn tell(&mut self) {
        // Where it cannot be written, because the disk is full or nobody made the folder yet, it is tried again no sooner than it would have been told again.
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
