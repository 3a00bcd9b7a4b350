//! The folder of one point: the disk with one or two devices and their remote, and beside it
//! everything outside the experiment.
//!
//! The program runs isolated: no user configuration, a fixed clock, and paths that do not depend on
//! the folder's location.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

/// Clock at the start of every preparation.
pub const NOW: i64 = 1_794_650_000;
/// A command that takes longer has hung.
const LIMIT: Duration = Duration::from_secs(90);

/// Files by their path with `/`.
pub type Files = BTreeMap<String, Vec<u8>>;

/// The output of a command.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    /// `None`: killed.
    pub code: Option<i32>,
    /// Killed after [`LIMIT`].
    pub hung: bool,
    pub stdout: String,
    pub stderr: String,
}

impl Answer {
    /// Asserts the exit code. Only for commands outside the experiment.
    #[track_caller]
    pub fn exits(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{}\n{}", self.stdout, self.stderr);
        self
    }

    /// Returns the JSON lines of type `kind`; ignores an incomplete line.
    pub fn of_type(&self, kind: &str) -> Vec<Value> {
        let lines = self.stdout.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        lines.filter(|line| line["type"] == kind).collect()
    }

    /// Returns the end of its output.
    pub fn last_output(&self) -> String {
        let error = self.of_type("error").pop().map(|line| line["message"].to_string());
        let line = self.stderr.lines().find(|line| !line.trim().is_empty()).map(str::to_owned);
        let code = match (self.hung, self.code) {
            (true, _) => "hung".to_owned(),
            (false, Some(code)) => format!("exit {code}"),
            (false, None) => "killed".to_owned(),
        };
        format!("{code}: {}", error.or(line).unwrap_or_default())
    }
}

/// A snapshot that was acknowledged, and the files that it must restore.
#[derive(Clone, Debug)]
pub struct Ack {
    pub id: String,
    pub files: Files,
}

pub struct Stage {
    work: PathBuf,
    pub now: i64,
    pub acks: Vec<Ack>,
}

impl Stage {
    pub fn new(work: &Path) -> Self {
        for folder in ["disk", "beside/tmp"] {
            fs::create_dir_all(work.join(folder)).unwrap();
        }
        Self { work: work.canonicalize().unwrap(), now: NOW, acks: Vec::new() }
    }

    /// Copies the disk to another folder; the clock stays.
    pub fn copy(&self, work: &Path) -> Self {
        let copy = Self::new(work);
        copy_all(&self.disk(), &copy.disk());
        Self { now: self.now, acks: self.acks.clone(), ..copy }
    }

    /// Folder on which calls are counted.
    pub fn disk(&self) -> PathBuf {
        self.work.join("disk")
    }

    /// Folder for everything outside the experiment.
    pub fn outside(&self) -> PathBuf {
        self.work.join("beside")
    }

    pub fn library(&self, device: &str) -> PathBuf {
        self.disk().join(device).join("default-user")
    }

    pub fn store(&self, device: &str) -> PathBuf {
        self.library(device).join(".stvc")
    }

    /// Folder that represents the server's disk.
    pub fn server(&self) -> PathBuf {
        self.disk().join("server.git")
    }

    /// Reads the files of a device's library without its store.
    pub fn files(&self, device: &str) -> Files {
        files(&self.library(device))
    }

    pub fn read(&self, device: &str, path: &str) -> Vec<u8> {
        fs::read(self.library(device).join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    pub fn write(&self, device: &str, path: &str, bytes: impl AsRef<[u8]>) {
        let path = self.library(device).join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    pub fn append(&self, device: &str, path: &str, line: &str) {
        let bytes = [self.read(device, path).as_slice(), b"\n", line.as_bytes()].concat();
        self.write(device, path, bytes);
    }

    /// Builds a command that runs the program with `--json`.
    pub fn command(&self, device: &str, arguments: &[impl AsRef<str>]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_stvc"));
        command.arg("--json").args(arguments.iter().map(AsRef::as_ref));
        command.current_dir(self.library(device));
        self.seal(&mut command, device);
        command
    }

    fn seal(&self, command: &mut Command, device: &str) {
        command
            .env_clear()
            .env("HOME", self.disk().join(device))
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("TMPDIR", self.outside().join("tmp"))
            .env("GIT_CONFIG_SYSTEM", "/dev/null")
            .env("TZ", "UTC")
            .env("STVC_COLUMNS", "100")
            .env("SOURCE_DATE_EPOCH", self.now.to_string());
    }

    /// Advances the clock by a minute and runs the program.
    pub fn stvc(&mut self, device: &str, arguments: &[impl AsRef<str>]) -> Answer {
        self.now += 60;
        run(self.command(device, arguments), &self.outside())
    }

    /// Takes snapshots and records them as acknowledged.
    pub fn snapshot(&mut self, device: &str) {
        let taken = self.stvc(device, &["snapshot"]).exits(0);
        for line in taken.of_type("snapshot") {
            let id = line["id"].as_str().unwrap().to_owned();
            let files = self.snapshot_files(device, &id).unwrap();
            let now = self.files(device);
            for (path, bytes) in &files {
                assert_eq!(now.get(path), Some(bytes), "{path} is not what was stored");
            }
            self.acks.push(Ack { id, files });
        }
    }

    /// Restores a snapshot and returns its files, or the error.
    pub fn snapshot_files(&self, device: &str, id: &str) -> Result<Files, String> {
        let to = tempfile::tempdir_in(self.outside()).unwrap();
        let target = to.path().join("out");
        let arguments = ["restore", id, "--to", target.to_str().unwrap()];
        let answer = run(self.command(device, &arguments), &self.outside());
        match answer.code {
            Some(0) => Ok(files(&target)),
            _ => Err(answer.last_output()),
        }
    }

    /// Runs git on a repository.
    pub fn git(&self, repository: &Path, arguments: &[&str]) -> Answer {
        let mut command = Command::new("git");
        command.arg("-C").arg(repository).args(arguments);
        self.seal(&mut command, "nobody");
        run(command, &self.outside())
    }

    /// Returns branches and tags with the tree of their commit, which does not depend on the time.
    pub fn refs(&self, repository: &Path) -> BTreeMap<String, String> {
        let format = "--format=%(refname)%09%(tree)";
        let found = self.git(repository, &["for-each-ref", format, "refs/heads", "refs/tags"]);
        let lines = found.stdout.lines().filter_map(|line| line.split_once('\t'));
        lines.map(|(name, tree)| (name.to_owned(), tree.to_owned())).collect()
    }

    /// Lists every reachable snapshot as its tree and those of its parents: commit ids depend on
    /// the time.
    pub fn history(&self, repository: &Path) -> Vec<String> {
        let log = self.git(repository, &["log", "--branches", "--tags", "--format=%H %T %P"]);
        let lines: Vec<Vec<_>> = log.stdout.lines().map(|line| line.split(' ').collect()).collect();
        let tree: BTreeMap<_, _> = lines.iter().map(|line| (line[0], line[1])).collect();
        let mut snapshots: Vec<_> = lines
            .iter()
            .map(|line| {
                let parents = line[2..].iter().filter_map(|id| tree.get(id).copied());
                [line[1]].into_iter().chain(parents).collect::<Vec<_>>().join(" ")
            })
            .collect();
        snapshots.sort_unstable();
        snapshots
    }
}

/// Runs a command to its end. Its output goes to files, so that no pipe fills up.
pub fn run(mut command: Command, beside: &Path) -> Answer {
    let (out, err) = (beside.join("stdout"), beside.join("stderr"));
    command.stdin(Stdio::null());
    command.stdout(File::create(&out).unwrap()).stderr(File::create(&err).unwrap());
    // A separate process group, so that all of it can be killed.
    let mut child = command.process_group(0).spawn().unwrap();
    let ended = wait(&mut child, LIMIT);
    let text = |path: &Path| String::from_utf8_lossy(&fs::read(path).unwrap()).into_owned();
    let code = ended.and_then(|status| status.code());
    Answer { code, hung: ended.is_none(), stdout: text(&out), stderr: text(&err) }
}

/// Waits for at most `limit`; kills the process and returns `None` after that.
pub fn wait(child: &mut Child, limit: Duration) -> Option<std::process::ExitStatus> {
    let begin = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            debug_assert!(status.code().is_some() || status.signal().is_some());
            return Some(status);
        }
        if begin.elapsed() > limit {
            let _ = child.kill();
            let _ = child.wait();
            return None;
        }
        let pause = if begin.elapsed() < Duration::from_millis(50) { 300 } else { 3000 };
        std::thread::sleep(Duration::from_micros(pause));
    }
}

/// Copies a folder recursively, with modes and times.
pub fn copy_all(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            copy_all(&entry.path(), &target);
        } else if kind.is_symlink() {
            std::os::unix::fs::symlink(fs::read_link(entry.path()).unwrap(), &target).unwrap();
        } else {
            fs::copy(entry.path(), &target).unwrap();
            let time = entry.metadata().unwrap().modified().unwrap();
            // A read-only file keeps the time of the copy.
            if let Ok(file) = File::options().append(true).open(&target) {
                file.set_modified(time).unwrap();
            }
        }
    }
    fs::set_permissions(to, fs::metadata(from).unwrap().permissions()).unwrap();
}

/// Reads every file below a folder. Skips a store.
pub fn files(root: &Path) -> Files {
    let mut found = Files::new();
    let mut open = vec![(root.to_owned(), String::new())];
    while let Some((dir, prefix)) = open.pop() {
        for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            match entry.file_type() {
                Ok(kind) if kind.is_dir() && name == ".stvc" => {}
                Ok(kind) if kind.is_dir() => open.push((entry.path(), format!("{prefix}{name}/"))),
                _ => {
                    drop(found.insert(
                        format!("{prefix}{name}"),
                        fs::read(entry.path()).unwrap_or_default(),
                    ))
                }
            }
        }
    }
    found
}
