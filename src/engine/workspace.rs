//! The workspace of a command: a library, its store and the time.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use chrono::{DateTime, FixedOffset};

use super::{Error, Result};
use crate::durable;
use crate::history::moment::{Moment, Names};
use crate::history::{self, History, LoadedHistory, Unreadable};
use crate::rules::{self, Finding};
use crate::st::{self, Library, TimelineName};
use crate::store::{self, LoggedOperation, LoginPrompt, Store, Time};
use crate::system_clock;

/// The place where a library is looked for.
#[derive(Clone, Debug)]
pub enum LibraryPlace {
    /// This folder, which is the folder of a SillyTavern install, a folder with the folders of its
    /// users, or the folder of one user.
    At(PathBuf),
    /// This folder or a folder above it.
    Above(PathBuf),
}

/// One run of a command. If the run logs several operations, they are linked in the log, so that
/// `undo` reverts all of them.
#[derive(Clone, Debug)]
pub struct CommandRun {
    words: Vec<String>,
    logged: Arc<Mutex<Option<(PathBuf, u64)>>>,
}

impl CommandRun {
    /// Begins a run of a command line. The first word is the program.
    pub fn new(words: Vec<String>) -> Self {
        Self { words, logged: Arc::default() }
    }

    /// Begins another run of the same command line.
    pub fn again(&self) -> Self {
        Self::new(self.words.clone())
    }

    /// Returns the command line as it is logged.
    pub fn words(&self) -> &[String] {
        &self.words
    }

    pub(crate) fn last_in(&self, store: &Store) -> Option<u64> {
        let logged = self.logged.lock().unwrap_or_else(PoisonError::into_inner);
        logged.as_ref().filter(|(path, _)| path == store.path()).map(|(_, number)| *number)
    }

    pub(crate) fn logged(&self, store: &Store, number: u64) {
        let mut logged = self.logged.lock().unwrap_or_else(PoisonError::into_inner);
        *logged = Some((store.path().to_owned(), number));
    }
}

/// The library, the store and the time that a command works with.
#[derive(Clone, Debug)]
pub struct Workspace {
    /// The library, or the way to find it.
    pub library: LibraryPlace,
    /// The name of SillyTavern's user, needed if the library has several users.
    pub user: Option<String>,
    /// The path of the store; `None` if the store is in the library.
    pub store: Option<PathBuf>,
    /// The command line that the lock and the operation log record.
    pub command: CommandRun,
    /// Whether the command runs without the user's request. `undo` without a number skips
    /// operations of such commands.
    pub automatic: bool,
    /// Whether git may prompt on the terminal, for example for a password.
    pub login_prompt: LoginPrompt,
    /// Time of the command, which new snapshots and operations record.
    pub now: DateTime<FixedOffset>,
    /// The longest wait for another process to release the store's lock.
    pub patience: Duration,
    /// Findings that are not part of the command's report, for example that an interrupted
    /// operation was finished.
    pub notices: Arc<Mutex<Vec<Finding>>>,
    /// Interrupted operations that this command has finished.
    pub finished: Arc<Mutex<Vec<LoggedOperation>>>,
    /// The history that was loaded last, for reuse.
    pub loaded: LoadedHistory,
}

const PATIENCE: Duration = Duration::from_secs(10);

impl Workspace {
    /// Returns a workspace at the present time for the library in `folder`, which is the folder of
    /// a SillyTavern install, a folder with the folders of its users, or the folder of one user.
    /// The operation log records `program` as the command.
    pub fn at(folder: impl Into<PathBuf>, program: &str) -> Self {
        Self {
            library: LibraryPlace::At(folder.into()),
            user: None,
            store: None,
            command: CommandRun::new(vec![program.to_owned()]),
            automatic: false,
            login_prompt: LoginPrompt::Forbidden,
            now: system_clock::now_or_1970(),
            patience: PATIENCE,
            notices: Arc::default(),
            finished: Arc::default(),
            loaded: LoadedHistory::default(),
        }
    }

    /// Returns the names that the user gave to the groups of the library, if there is a library.
    pub fn group_names(&self) -> BTreeMap<TimelineName, String> {
        let groups = self.library().map(|library| library.groups()).unwrap_or_default();
        groups.names().map(|(group, name)| (group, name.to_owned())).collect()
    }

    pub(crate) fn library(&self) -> Result<Library> {
        let user = self.user.as_deref();
        Ok(match &self.library {
            LibraryPlace::At(dir) => Library::open(dir, user)?,
            LibraryPlace::Above(dir) => Library::find(dir, user)?,
        })
    }

    /// Returns a finding if the library has other users. Their chats are not read.
    pub fn other_users(&self) -> Option<Finding> {
        let library = self.library().ok().filter(|_| self.store.is_none())?;
        let user = library.root().file_name()?.to_string_lossy();
        let others = library.other_users();
        (!others.is_empty()).then(|| rules::other_users(&user, others))
    }

    /// Returns the name and the workspace of each user.
    pub fn of_all_users(&self) -> Result<Vec<(String, Self)>> {
        let mut roots: Vec<_> = match self.library() {
            Ok(library) => {
                let (root, others) = (library.root(), library.other_users().iter());
                let beside = |user: &String| root.with_file_name(user);
                others.map(beside).chain([root.to_owned()]).collect()
            }
            // There is no default user, but all users are wanted here.
            Err(Error::St(st::Error::SeveralUsers { path, users })) => {
                users.iter().map(|user| path.join(user)).collect()
            }
            Err(error) => return Err(error),
        };
        let name = |root: &Path| root.file_name().map(|name| name.to_string_lossy().into_owned());
        roots.sort();
        let of = |root: PathBuf| {
            let user = name(&root).unwrap_or_default();
            // Users share nothing, not even the findings that are printed at the end.
            let own = Self {
                library: LibraryPlace::At(root),
                user: None,
                command: self.command.again(),
                notices: Arc::default(),
                finished: Arc::default(),
                loaded: LoadedHistory::default(),
                ..self.clone()
            };
            (user, own)
        };
        Ok(roots.into_iter().map(of).collect())
    }

    /// Returns the workspace for a recovery. If there is no library yet, because the folder is
    /// empty or SillyTavern was never started, also returns the folder in which the recovery must
    /// create the library.
    pub(crate) fn for_recovery(&self) -> (Self, Option<PathBuf>) {
        let empty = |dir: &PathBuf| {
            let entries = st::list_existing(dir).ok()?;
            entries.iter().all(|entry| entry.file_name() == st::STORE).then(|| dir.clone())
        };
        let begin = match (&self.library, self.library()) {
            (_, Err(Error::St(st::Error::NeverStarted { root, .. }))) => Some(root),
            (LibraryPlace::At(dir), Err(_)) => empty(dir),
            _ => None,
        };
        if let Some(root) = begin {
            let store = self.store.clone().unwrap_or_else(|| root.join(st::STORE));
            let library = LibraryPlace::At(root.clone());
            return (Self { library, user: None, store: Some(store), ..self.clone() }, Some(root));
        }
        (self.clone(), None)
    }

    /// Creates the folder `chats` in a folder from [`for_recovery`](Self::for_recovery), so that
    /// other commands recognise the folder as a library.
    pub(crate) fn begin_library(root: &Path) -> Result<()> {
        let chats = root.join("chats");
        let made = durable::create_dir_all(&chats);
        Ok(made.map_err(|source| store::Error::Io { path: chats, source })?)
    }

    pub(crate) fn store_path(&self) -> Result<PathBuf> {
        match &self.store {
            Some(path) => Ok(path.clone()),
            None => Ok(self.library()?.root().join(st::STORE)),
        }
    }

    /// Checks that there is a store, and that it can be opened.
    pub fn must_have_store(&self) -> Result<()> {
        self.open_store().map(drop)
    }

    pub(crate) fn open_store(&self) -> Result<Store> {
        Ok(Store::open(&self.store_path()?)?)
    }

    pub(crate) fn moment(&self, name: &str, store: &Store) -> Result<Moment> {
        let library = self.library().ok();
        Ok(self.names(store, library.as_ref()).moment(name)?)
    }

    pub(crate) fn names<'a>(&'a self, store: &'a Store, library: Option<&'a Library>) -> Names<'a> {
        Names { store, library, now: self.now, loaded: &self.loaded }
    }

    pub(crate) fn history(&self, store: &Store) -> Result<Arc<History>> {
        Ok(self.loaded.of(store)?)
    }

    /// Returns the history of the store, with the snapshots that are kept for `undo`.
    pub(crate) fn history_with_kept(&self, store: &Store) -> Result<Arc<History>> {
        let history = self.history(store)?;
        let is_complete = history.has_kept(store)?;
        Ok(if is_complete { history } else { Arc::new(History::load_with_kept(store)?) })
    }

    /// Returns the history of the store, if there is a store, for resolving a name.
    pub(crate) fn history_if_any(
        &self,
        store: Option<&Store>,
    ) -> history::Result<Option<Arc<History>>> {
        store.map(|store| self.loaded.of(store)).transpose()
    }

    /// Returns the history of a store for commands that remove snapshots. Fails if a part of the
    /// history cannot be read.
    pub(crate) fn whole_history(&self, store: &Store) -> Result<History> {
        let mut history = History::load(store)?;
        if history.broken.is_empty() {
            return Ok(history);
        }
        let Unreadable { subject, why } = history.broken.remove(0);
        Err(Error::BrokenHistory { subject, why })
    }

    pub(crate) fn find_store(&self) -> Result<Option<Store>> {
        match Store::open(&self.store_path()?) {
            Ok(store) => Ok(Some(store)),
            Err(store::Error::NoStore { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    pub(crate) fn find_or_create_store(&self) -> Result<Store> {
        match self.find_store()? {
            Some(store) => Ok(store),
            None => Ok(Store::create(&self.store_path()?)?),
        }
    }

    /// Returns the workspace with a temporary copy of the store, for dry runs. Only for commands
    /// that write nothing but the store.
    pub(crate) fn on_a_copy(&self) -> Result<(tempfile::TempDir, Self)> {
        let folder = store::temporary_folder(&std::env::temp_dir())?;
        let copy = folder.path().join("store");
        if let Some(store) = self.find_store()? {
            store.borrowing_copy(&copy)?;
        }
        Ok((folder, Self { store: Some(copy), ..self.clone() }))
    }

    /// Records findings that are not part of the command's report.
    pub(crate) fn notice(&self, findings: Vec<Finding>) {
        let mut notices = self.notices.lock().unwrap_or_else(PoisonError::into_inner);
        notices.extend(findings);
    }

    /// Returns the findings in `notices` and clears the list.
    pub fn take_notices(&self) -> Vec<Finding> {
        std::mem::take(&mut *self.notices.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn timestamp(&self) -> String {
        self.now.to_rfc3339_opts(chrono::SecondsFormat::Secs, true)
    }

    pub(crate) fn day(&self) -> String {
        self.now.format("%Y-%m-%d").to_string()
    }

    pub(crate) fn time(&self) -> Time {
        Time { seconds: self.now.timestamp(), offset: self.now.offset().local_minus_utc() }
    }
}
