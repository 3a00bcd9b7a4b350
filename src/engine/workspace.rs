//! What every verb works on: a library, its store, and the moment of the command.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use chrono::{DateTime, FixedOffset};

use super::{Error, Result};
use crate::durable;
use crate::history::moment::{Moment, Names};
use crate::history::{Broken, History, LoadedHistory};
use crate::rules::Finding;
use crate::st::{self, Library};
use crate::store::{self, LoggedOperation, Store, Time};
use crate::system_clock;

/// Where the library is.
#[derive(Clone, Debug)]
pub enum LibraryPlace {
    /// A user directory, an install, or a folder of users.
    At(PathBuf),
    /// Somewhere from this folder upward.
    Above(PathBuf),
}

/// One run of a command. What it logs after its first operation continues that one, so that `undo` takes back all of it.
#[derive(Clone, Debug)]
pub struct CommandRun {
    words: Vec<String>,
    /// The operation that it logged last, and in which store.
    logged: Arc<Mutex<Option<(PathBuf, u64)>>>,
}

impl CommandRun {
    /// Begins a run of a command line, program first.
    pub fn new(words: Vec<String>) -> Self {
        Self { words, logged: Arc::default() }
    }

    /// Begins another run of the same command line.
    pub fn again(&self) -> Self {
        Self::new(self.words.clone())
    }

    pub fn words(&self) -> &[String] {
        &self.words
    }

    /// Returns the operation that this run logged last in a store.
    pub(crate) fn last_in(&self, store: &Store) -> Option<u64> {
        let logged = self.logged.lock().unwrap_or_else(PoisonError::into_inner);
        logged.as_ref().filter(|(path, _)| path == store.path()).map(|(_, number)| *number)
    }

    /// Notes that this run logged an operation.
    pub(crate) fn logged(&self, store: &Store, number: u64) {
        let mut logged = self.logged.lock().unwrap_or_else(PoisonError::into_inner);
        *logged = Some((store.path().to_owned(), number));
    }
}

/// The surroundings of a command.
#[derive(Clone, Debug)]
pub struct Workspace {
    /// Where the library is.
    pub library: LibraryPlace,
    /// Which user's, if there are several.
    pub user: Option<String>,
    /// Where the store is, if not in the library.
    pub store: Option<PathBuf>,
    /// The command, for the lock and the operation log.
    pub command: CommandRun,
    /// Whether nobody asked for it: `undo` without a number passes it by.
    pub automatic: bool,
    /// The moment of the command.
    pub now: DateTime<FixedOffset>,
    /// How long to wait for another process.
    pub patience: Duration,
    /// What was noticed on the way, and is to be told.
    pub notices: Arc<Mutex<Vec<Finding>>>,
    /// Operations that were found interrupted, and are finished by now.
    pub finished: Arc<Mutex<Vec<LoggedOperation>>>,
    /// What was read of the store, for those who ask again and again.
    pub loaded: LoadedHistory,
}

/// How long a command waits for another process before it gives up.
const PATIENCE: Duration = Duration::from_secs(10);

impl Workspace {
    /// Returns a workspace for the library of a folder, at the present time: a folder of SillyTavern, of its users or of one user. `program` is named in the operation log.
    pub fn at(folder: impl Into<PathBuf>, program: &str) -> Self {
        Self {
            library: LibraryPlace::At(folder.into()),
            user: None,
            store: None,
            command: CommandRun::new(vec![program.to_owned()]),
            automatic: false,
            now: system_clock::now_or_1970(),
            patience: PATIENCE,
            notices: Arc::default(),
            finished: Arc::default(),
            loaded: LoadedHistory::default(),
        }
    }

    /// The library.
    pub fn library(&self) -> Result<Library> {
        let user = self.user.as_deref();
        Ok(match &self.library {
            LibraryPlace::At(dir) => Library::open(dir, user)?,
            LibraryPlace::Above(dir) => Library::find(dir, user)?,
        })
    }

    /// The same for each user, by name.
    pub fn of_all_users(&self) -> Result<Vec<(String, Self)>> {
        let mut roots: Vec<_> = match self.library() {
            Ok(library) => {
                let (root, others) = (library.root(), library.other_users().iter());
                let beside = |user: &String| root.with_file_name(user);
                others.map(beside).chain([root.to_owned()]).collect()
            }
            // None of them is meant more than the others, and all are asked for.
            Err(Error::St(st::Error::SeveralUsers { path, users })) => {
                users.iter().map(|user| path.join(user)).collect()
            }
            Err(error) => return Err(error),
        };
        let name = |root: &Path| root.file_name().map(|name| name.to_string_lossy().into_owned());
        roots.sort();
        let of = |root: PathBuf| {
            let user = name(&root).unwrap_or_default();
            (user, Self { library: LibraryPlace::At(root), user: None, ..self.clone() })
        };
        Ok(roots.into_iter().map(of).collect())
    }

    /// The same for bringing everything back, which may be into a folder with nothing in it; then also that folder.
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

    /// Makes an empty folder that [`for_recovery`](Self::for_recovery) returned the folder of a user, so that other commands find it.
    pub(crate) fn begin_library(root: &Path) -> Result<()> {
        let chats = root.join("chats");
        let made = durable::create_dir_all(&chats);
        Ok(made.map_err(|source| store::Error::Io { path: chats, source })?)
    }

    /// Where the store is or will be.
    pub fn store_path(&self) -> Result<PathBuf> {
        match &self.store {
            Some(path) => Ok(path.clone()),
            None => Ok(self.library()?.root().join(st::STORE)),
        }
    }

    /// The store, which must exist.
    pub fn open_store(&self) -> Result<Store> {
        Ok(Store::open(&self.store_path()?)?)
    }

    /// Returns the moment that somebody named.
    pub(crate) fn moment(&self, name: &str, store: &Store) -> Result<Moment> {
        let library = self.library().ok();
        Ok(self.names(store, library.as_ref()).moment(name)?)
    }

    /// What names stand for in a store.
    pub(crate) fn names<'a>(&'a self, store: &'a Store, library: Option<&'a Library>) -> Names<'a> {
        Names { store, library, now: self.now, loaded: &self.loaded }
    }

    /// Returns the history of a store. Loads it again only if a branch or a tag moved.
    pub(crate) fn history(&self, store: &Store) -> Result<Arc<History>> {
        Ok(self.loaded.of(store)?)
    }

    /// Returns the history of a store for commands that remove from it; refused if a part of it cannot be read.
    pub(crate) fn whole_history(&self, store: &Store) -> Result<History> {
        let mut history = History::load(store)?;
        if history.broken.is_empty() {
            return Ok(history);
        }
        let Broken { subject, why } = history.broken.remove(0);
        Err(Error::BrokenHistory { subject, why })
    }

    /// The store, or `None` if there is none yet.
    pub fn find_store(&self) -> Result<Option<Store>> {
        match Store::open(&self.store_path()?) {
            Ok(store) => Ok(Some(store)),
            Err(store::Error::NoStore { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns the store, made now if there is none yet.
    pub(crate) fn find_or_create_store(&self) -> Result<Store> {
        match self.find_store()? {
            Some(store) => Ok(store),
            None => Ok(Store::create(&self.store_path()?)?),
        }
    }

    /// The same with a store that is gone once the folder is dropped: what a command would do before the first snapshot is done there.
    pub(crate) fn with_store_for_now(&self) -> Result<(tempfile::TempDir, Self)> {
        let folder = store::folder_for_now(&std::env::temp_dir())?;
        let store = Some(folder.path().join("store"));
        Ok((folder, Self { store, ..self.clone() }))
    }

    /// The same with a copy of the store, or a new one where there is none: whatever is done there is what would be done here, and is gone with the folder. Only for commands
    /// that write nothing but the store.
    pub(crate) fn on_a_copy(&self) -> Result<(tempfile::TempDir, Self)> {
        let (folder, elsewhere) = self.with_store_for_now()?;
        if let Some(store) = self.find_store()? {
            store.borrowing_copy(&elsewhere.store_path()?)?;
        }
        Ok((folder, elsewhere))
    }

    /// Say something that has nothing to do with what was asked for: that something else was finished first.
    pub(crate) fn notice(&self, findings: Vec<Finding>) {
        let mut notices = self.notices.lock().unwrap_or_else(PoisonError::into_inner);
        notices.extend(findings);
    }

    /// What was noticed since the last time.
    pub fn take_notices(&self) -> Vec<Finding> {
        std::mem::take(&mut *self.notices.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The moment of the command as text.
    pub(crate) fn timestamp(&self) -> String {
        self.now.to_rfc3339_opts(chrono::SecondsFormat::Secs, true)
    }

    /// Returns the local date, for names that are derived from others.
    pub(crate) fn day(&self) -> String {
        self.now.format("%Y-%m-%d").to_string()
    }

    /// The moment of the command as git keeps it.
    pub(crate) fn time(&self) -> Time {
        Time { seconds: self.now.timestamp(), offset: self.now.offset().local_minus_utc() }
    }
}
