//! A sealed place to run the program in: a library of its own, no user's configuration, a fixed clock and a fixed width.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use stvc::Workspace;
use stvc::progress::Silent;
use stvc::verbs::log;
use stvc::verbs::snapshot::{self, Taken, TakenTimeline};
use tempfile::TempDir;

use super::recap_library::RecapLibrary;
use super::{Answer, answer, copy, files, fixtures, git, output_of};

/// The moment that every command believes it is.
pub const NOW: i64 = 1_794_700_000;

/// A library in a temporary folder, with its store inside.
pub struct Sandbox {
    folder: TempDir,
    now: i64,
}

impl Sandbox {
    /// An empty library.
    pub fn empty() -> Self {
        let sandbox = Self::in_memory();
        for folder in ["chats", "group chats", "groups", "worlds"] {
            fs::create_dir_all(sandbox.library().join(folder)).unwrap();
        }
        sandbox.write("settings.json", b"{}");
        sandbox
    }

    /// A folder in which nothing is yet.
    pub fn bare() -> Self {
        Self { folder: tempfile::tempdir().unwrap(), now: NOW }
    }

    /// The same in memory, where there is room: whoever writes there waits for no disk.
    fn in_memory() -> Self {
        Self { folder: tempfile::tempdir_in(fast_folder()).unwrap(), now: NOW }
    }

    /// A copy of a library under `fixtures/`, such as `1.19.0`.
    pub fn of_fixture(name: &str) -> Self {
        let sandbox = Self::in_memory();
        copy(&fixtures().join(name).join("default-user"), &sandbox.library());
        sandbox
    }

    /// The user's folder.
    pub fn library(&self) -> PathBuf {
        self.folder.path().join("default-user")
    }

    /// The temporary folder around it, for whatever else a test needs.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The store.
    pub fn store(&self) -> PathBuf {
        self.library().join(".stvc")
    }

    /// A file of the library.
    pub fn path(&self, path: &str) -> PathBuf {
        self.library().join(path)
    }

    /// Its bytes.
    #[track_caller]
    pub fn read(&self, path: &str) -> Vec<u8> {
        fs::read(self.path(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    /// Write a file of the library.
    pub fn write(&self, path: &str, bytes: impl AsRef<[u8]>) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    /// Save a file of the library as SillyTavern does: a file beside it, renamed. On Windows that fails while somebody has the other one open, and is tried again.
    pub fn save(&self, path: &str, bytes: impl AsRef<[u8]>) {
        let beside = format!("{path}.123");
        self.write(&beside, bytes);
        while let Err(error) = fs::rename(self.path(&beside), self.path(path)) {
            let is_held = cfg!(windows) && error.kind() == std::io::ErrorKind::PermissionDenied;
            assert!(is_held, "{path}: {error}");
        }
    }

    /// Append one line to a chat.
    pub fn append(&self, path: &str, line: &str) {
        let bytes = [self.read(path).as_slice(), b"\n", line.as_bytes()].concat();
        self.write(path, bytes);
    }

    /// Let time pass.
    pub fn wait(&mut self, seconds: i64) {
        self.now += seconds;
    }

    /// The program with these arguments, in the library's folder, not started yet.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_stvc"));
        command
            .args(arguments)
            .current_dir(self.library())
            .env_clear()
            .env("HOME", self.folder.path())
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("TZ", "UTC")
            .env("STVC_COLUMNS", "100")
            .env("SOURCE_DATE_EPOCH", self.now.to_string());
        command
    }

    /// Run the program.
    pub fn stvc(&self, arguments: &[&str]) -> Answer {
        answer(output_of(&mut self.command(arguments)))
    }

    /// Run the program with `--json`.
    pub fn json(&self, arguments: &[&str]) -> Answer {
        let mut all = vec!["--json"];
        all.extend(arguments);
        self.stvc(&all)
    }

    /// What the library's verbs work on, for tests that do without a process.
    pub fn workspace(&self) -> Workspace {
        Workspace {
            now: chrono::DateTime::from_timestamp(self.now, 0).unwrap().fixed_offset(),
            ..Workspace::at(self.library(), "stvc")
        }
    }

    /// Take snapshots of these timelines, or of all, without a process, and nothing must stand in the way; the ids of the new ones of chats.
    #[track_caller]
    pub fn take(&self, timelines: &[&str]) -> Vec<String> {
        let timelines = timelines.iter().map(|&name| name.to_owned()).collect();
        let asked = snapshot::Asked { timelines, ..Default::default() };
        let subject = asked.try_into().unwrap();
        let options = snapshot::Options { subject, ..Default::default() };
        let report = snapshot::snapshot(&self.workspace(), &options, &mut Silent).unwrap();
        let id = |outcome: &TakenTimeline| match &outcome.result {
            Taken::New(snapshot, _) if outcome.timeline.is_chat() => Some(snapshot.id.to_string()),
            Taken::New(..) | Taken::Unchanged(..) => None,
            _ => panic!("{} was not taken", outcome.timeline),
        };
        report.timelines.iter().filter_map(id).collect()
    }

    /// Every file of the library with its bytes.
    pub fn files(&self) -> BTreeMap<String, Vec<u8>> {
        files(&self.library())
    }

    /// Run a real git on the store; what it printed. It must succeed.
    #[track_caller]
    pub fn git(&self, arguments: &[&str]) -> String {
        String::from_utf8_lossy(&git(&self.store(), arguments)).into_owned()
    }

    /// The ids of all snapshots of chats, newest first.
    #[track_caller]
    pub fn chat_ids(&self) -> Vec<String> {
        let log = self.logged();
        let chats = log.iter().filter(|snapshot| snapshot.timeline.is_chat());
        chats.map(|snapshot| snapshot.id.to_string()).collect()
    }

    /// The ids of all snapshots, newest first, without a process. All must be readable.
    #[track_caller]
    pub fn snapshot_ids(&self) -> Vec<String> {
        self.logged().iter().map(|snapshot| snapshot.id.to_string()).collect()
    }

    #[track_caller]
    fn logged(&self) -> Vec<stvc::archive::Snapshot> {
        let log = log::log(&self.workspace(), &log::Options::default()).unwrap();
        assert_eq!(log.broken, [""; 0]);
        log.entries.into_iter().map(|entry| entry.snapshot).collect()
    }
}

/// In memory, if so much is free there that no test can fill it.
fn fast_folder() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    // In kilobytes.
    const ENOUGH: u64 = 2 << 20;
    let find = || {
        let memory = Path::new("/dev/shm");
        let asked = Command::new("df").arg("-Pk").arg(memory).output().ok()?;
        let text = String::from_utf8(asked.stdout).ok()?;
        let free: u64 = text.lines().nth(1)?.split_whitespace().nth(3)?.parse().ok()?;
        (free > ENOUGH && tempfile::tempdir_in(memory).is_ok()).then(|| memory.to_owned())
    };
    FOLDER.get_or_init(|| find().unwrap_or_else(std::env::temp_dir))
}

impl RecapLibrary {
    /// Write the chat and its book.
    pub fn write(&self, sandbox: &Sandbox) {
        sandbox.write(&self.chat_path(), self.chat_bytes());
        if self.book.is_some() {
            sandbox.write(&self.book_path(), self.book_bytes());
        }
    }
}
