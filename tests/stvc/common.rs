//! A sealed place to run the program in: a library of its own, no user's configuration, a fixed clock and a fixed width.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use serde_json::Value;
use stvc::engine::{LibraryPlace, Workspace};
use tempfile::TempDir;

/// The moment that every command believes it is.
pub const NOW: i64 = 1_794_700_000;

/// A library in a temporary folder, with its store inside.
pub struct Sandbox {
    folder: TempDir,
    now: i64,
}

/// What a command answered.
#[derive(Debug)]
pub struct Answer {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Answer {
    /// The answer, which must have this exit code.
    #[track_caller]
    pub fn exits(self, code: i32) -> Self {
        assert_eq!(self.code, code, "stdout:\n{}\nstderr:\n{}", self.stdout, self.stderr);
        self
    }

    /// The JSON lines of the answer.
    #[track_caller]
    pub fn lines(&self) -> Vec<Value> {
        let parse = |line: &str| {
            serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))
        };
        self.stdout.lines().map(parse).collect()
    }

    /// The JSON lines of one type.
    #[track_caller]
    pub fn of_type(&self, kind: &str) -> Vec<Value> {
        self.lines().into_iter().filter(|line| line["type"] == kind).collect()
    }
}

impl Sandbox {
    /// An empty library.
    pub fn empty() -> Self {
        let sandbox = Self::bare();
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

    /// A copy of a library under `fixtures/`, such as `1.19.0`.
    pub fn of_fixture(name: &str) -> Self {
        let sandbox = Self::bare();
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
            .env("COLUMNS", "100")
            .env("SOURCE_DATE_EPOCH", self.now.to_string());
        command
    }

    /// Run the program.
    pub fn stvc(&self, arguments: &[&str]) -> Answer {
        answer(self.command(arguments).output().unwrap())
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
            library: LibraryPlace::At(self.library()),
            user: None,
            store: None,
            command: vec!["stvc".into()],
            now: chrono::DateTime::from_timestamp(self.now, 0).unwrap().fixed_offset(),
            // Another test's process that is just being started holds all open files, the lock's too, for a moment.
            patience: Duration::from_secs(10),
            notices: Default::default(),
            finished: Default::default(),
        }
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

    /// The ids of all snapshots, newest first.
    pub fn snapshot_ids(&self) -> Vec<String> {
        let log = self.json(&["log"]).exits(0);
        log.of_type("snapshot").iter().map(|line| line["id"].as_str().unwrap().to_owned()).collect()
    }
}

/// Run a real git on a repository; the bytes that it printed. It must succeed.
#[track_caller]
pub fn git(repository: &Path, arguments: &[&str]) -> Vec<u8> {
    let output = Command::new("git")
        .arg("-C")
        .arg(repository)
        .args(arguments)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_SYSTEM", "/dev/null")
        .output()
        .expect("git is needed for the tests");
    assert!(
        output.status.success(),
        "git {arguments:?}: {}\n{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    output.stdout
}

pub fn answer(output: Output) -> Answer {
    Answer {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8(output.stdout).expect("the answer is UTF-8"),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// The folder `fixtures/` of the project.
pub fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures")
}

/// Copy a folder with all that is in it.
pub fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), &target).unwrap();
        }
    }
}

/// Every file below a folder with its bytes, by its path with `/`; a store in it is left out.
pub fn files(root: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut open = vec![(root.to_owned(), String::new())];
    while let Some((dir, prefix)) = open.pop() {
        for entry in fs::read_dir(dir).unwrap() {
            let entry = entry.unwrap();
            let name = entry.file_name().into_string().unwrap();
            if entry.file_type().unwrap().is_dir() {
                if name != ".stvc" {
                    open.push((entry.path(), format!("{prefix}{name}/")));
                }
            } else {
                found.insert(format!("{prefix}{name}"), fs::read(entry.path()).unwrap());
            }
        }
    }
    found
}

/// Compare files by their bytes; what differs is named, not printed in full.
#[track_caller]
pub fn assert_same(found: &BTreeMap<String, Vec<u8>>, expected: &BTreeMap<String, Vec<u8>>) {
    let paths: std::collections::BTreeSet<_> = found.keys().chain(expected.keys()).collect();
    let differing: Vec<_> = paths
        .into_iter()
        .filter(|path| found.get(*path) != expected.get(*path))
        .map(|path| {
            let length = |files: &BTreeMap<String, Vec<u8>>| files.get(path).map(Vec::len);
            format!("{path}: {:?} bytes for {:?}", length(found), length(expected))
        })
        .collect();
    assert!(differing.is_empty(), "{differing:#?}");
}
