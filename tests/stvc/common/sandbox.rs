//! An isolated environment for the program: its own library, no user configuration, a fixed clock
//! and a fixed width.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use stvc::Workspace;
use stvc::progress::NoProgress;
use stvc::verbs::log;
use stvc::verbs::snapshot::{self, SnapshotResult, TimelineResult};
use tempfile::TempDir;

use super::recap_library::RecapLibrary;
use super::{Answer, answer, copy_folder, files, fixtures, git, output_of};

/// Initial time of the clock.
pub const NOW: i64 = 1_794_700_000;

/// A library in a temporary folder, with its store inside.
pub struct Sandbox {
    folder: TempDir,
    now: i64,
}

impl Sandbox {
    pub fn empty() -> Self {
        let sandbox = Self::in_memory();
        for folder in ["chats", "group chats", "groups", "worlds"] {
            fs::create_dir_all(sandbox.library().join(folder)).unwrap();
        }
        sandbox.write("settings.json", b"{}");
        sandbox
    }

    /// Creates an empty temporary folder without a library.
    pub fn without_library() -> Self {
        Self { folder: tempfile::tempdir().unwrap(), now: NOW }
    }

    /// Creates the folder in memory if it has room, so that writes do not wait for a disk.
    fn in_memory() -> Self {
        Self { folder: tempfile::tempdir_in(fast_folder()).unwrap(), now: NOW }
    }

    /// Copies a library under `fixtures/`, such as `1.19.0`.
    pub fn from_fixture(name: &str) -> Self {
        let sandbox = Self::in_memory();
        copy_folder(&fixtures().join(name).join("default-user"), &sandbox.library());
        sandbox
    }

    pub fn library(&self) -> PathBuf {
        self.folder.path().join("default-user")
    }

    /// Returns the temporary folder that contains the library.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub fn store(&self) -> PathBuf {
        self.library().join(".stvc")
    }

    pub fn path(&self, path: &str) -> PathBuf {
        self.library().join(path)
    }

    #[track_caller]
    pub fn read(&self, path: &str) -> Vec<u8> {
        fs::read(self.path(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    pub fn write(&self, path: &str, bytes: impl AsRef<[u8]>) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    /// Saves a file as SillyTavern does: writes a temporary file and renames it. On Windows the
    /// rename fails while another process has the target open; then this retries.
    pub fn save(&self, path: &str, bytes: impl AsRef<[u8]>) {
        let beside = format!("{path}.123");
        self.write(&beside, bytes);
        while let Err(error) = fs::rename(self.path(&beside), self.path(path)) {
            let is_held = cfg!(windows) && error.kind() == std::io::ErrorKind::PermissionDenied;
            assert!(is_held, "{path}: {error}");
        }
    }

    /// Appends one line to a chat file.
    pub fn append(&self, path: &str, line: &str) {
        let bytes = [self.read(path).as_slice(), b"\n", line.as_bytes()].concat();
        self.write(path, bytes);
    }

    /// Advances the clock.
    pub fn wait(&mut self, seconds: i64) {
        self.now += seconds;
    }

    /// Builds a command that runs the program in the library's folder.
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

    pub fn stvc(&self, arguments: &[&str]) -> Answer {
        answer(output_of(&mut self.command(arguments)))
    }

    pub fn json(&self, arguments: &[&str]) -> Answer {
        let mut all = vec!["--json"];
        all.extend(arguments);
        self.stvc(&all)
    }

    /// Returns a workspace for calling verbs without a process.
    pub fn workspace(&self) -> Workspace {
        Workspace {
            now: chrono::DateTime::from_timestamp(self.now, 0).unwrap().fixed_offset(),
            ..Workspace::at(self.library(), "stvc")
        }
    }

    /// Takes snapshots of these timelines, or of all, without a process. Every timeline must
    /// succeed. Returns the ids of the new snapshots of chats.
    #[track_caller]
    pub fn take(&self, timelines: &[&str]) -> Vec<String> {
        let timelines = timelines.iter().map(|&name| name.to_owned()).collect();
        let asked = snapshot::SnapshotRequest { timelines, ..Default::default() };
        let subject = asked.try_into().unwrap();
        let options = snapshot::Options { subject, ..Default::default() };
        let report = snapshot::snapshot(&self.workspace(), &options, &mut NoProgress).unwrap();
        let id = |outcome: &TimelineResult| match &outcome.result {
            SnapshotResult::New(snapshot, _) if outcome.timeline.is_chat() => {
                Some(snapshot.id.to_string())
            }
            SnapshotResult::New(..) | SnapshotResult::Unchanged(..) => None,
            _ => panic!("{} was not taken", outcome.timeline),
        };
        report.timelines.iter().filter_map(id).collect()
    }

    pub fn files(&self) -> BTreeMap<String, Vec<u8>> {
        files(&self.library())
    }

    /// Runs git on the store and returns its stdout. It must succeed.
    #[track_caller]
    pub fn git(&self, arguments: &[&str]) -> String {
        String::from_utf8_lossy(&git(&self.store(), arguments)).into_owned()
    }

    /// Lists the ids of all snapshots of chats, newest first.
    #[track_caller]
    pub fn chat_ids(&self) -> Vec<String> {
        let log = self.logged();
        let chats = log.iter().filter(|snapshot| snapshot.timeline.is_chat());
        chats.map(|snapshot| snapshot.id.to_string()).collect()
    }

    /// Lists the ids of all snapshots, newest first, without a process. All must be readable.
    #[track_caller]
    pub fn snapshot_ids(&self) -> Vec<String> {
        self.logged().iter().map(|snapshot| snapshot.id.to_string()).collect()
    }

    #[track_caller]
    fn logged(&self) -> Vec<stvc::internals::archive::Snapshot> {
        let log = log::log(&self.workspace(), &log::Options::default()).unwrap();
        assert_eq!(log.broken, [""; 0]);
        log.entries.into_iter().map(|entry| entry.snapshot).collect()
    }
}

/// Returns a folder in memory if it has so much free space that no test can fill it.
fn fast_folder() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    // Kilobytes.
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
    pub fn write(&self, sandbox: &Sandbox) {
        sandbox.write(&self.chat_path(), self.chat_bytes());
        if self.book.is_some() {
            sandbox.write(&self.book_path(), self.book_bytes());
        }
    }
}
