//! One point's folder: the disk with one or two devices and what they share, and beside it what is no part of the experiment.
//!
//! The program runs sealed: no user's configuration, a fixed clock, and paths that are the same wherever the folder lies.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

/// The moment at which every start state begins to be made.
pub const NOW: i64 = 1_794_650_000;
/// Whoever takes longer hangs.
const LIMIT: Duration = Duration::from_secs(90);

/// Files by their path with `/`.
pub type Files = BTreeMap<String, Vec<u8>>;

/// What a command answered.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    /// None: it was killed.
    pub code: Option<i32>,
    /// It had to be stopped.
    pub hung: bool,
    pub stdout: String,
    pub stderr: String,
}

impl Answer {
    /// The answer, which must have this exit code. Only for what is not the experiment itself.
    #[track_caller]
    pub fn exits(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{}\n{}", self.stdout, self.stderr);
        self
    }

    /// The JSON lines of one type; a line that was not written to its end counts as not written.
    pub fn of_type(&self, kind: &str) -> Vec<Value> {
        let lines = self.stdout.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        lines.filter(|line| line["type"] == kind).collect()
    }

    /// Its last words.
    pub fn words(&self) -> String {
        let said = self.of_type("error").pop().map(|line| line["message"].to_string());
        let line = self.stderr.lines().find(|line| !line.trim().is_empty()).map(str::to_owned);
        let code = match (self.hung, self.code) {
            (true, _) => "hung".to_owned(),
            (false, Some(code)) => format!("exit {code}"),
            (false, None) => "killed".to_owned(),
        };
        format!("{code}: {}", said.or(line).unwrap_or_default())
    }
}

/// A snapshot that was acknowledged, and the files that it must give back.
#[derive(Clone, Debug)]
pub struct Ack {
    pub id: String,
    pub files: Files,
}

/// The folder of one point.
pub struct Stage {
    work: PathBuf,
    pub now: i64,
    pub acks: Vec<Ack>,
}

impl Stage {
    /// A new one, empty.
    pub fn new(work: &Path) -> Self {
        for folder in ["disk", "beside/tmp"] {
            fs::create_dir_all(work.join(folder)).unwrap();
        }
        Self { work: work.canonicalize().unwrap(), now: NOW, acks: Vec::new() }
    }

    /// A copy of this one's disk elsewhere, at the same moment.
    pub fn copy(&self, work: &Path) -> Self {
        let copy = Self::new(work);
        copy_all(&self.disk(), &copy.disk());
        Self { now: self.now, acks: self.acks.clone(), ..copy }
    }

    /// What calls are counted on.
    pub fn disk(&self) -> PathBuf {
        self.work.join("disk")
    }

    /// What is no part of it.
    pub fn beside(&self) -> PathBuf {
        self.work.join("beside")
    }

    pub fn library(&self, device: &str) -> PathBuf {
        self.disk().join(device).join("default-user")
    }

    pub fn store(&self, device: &str) -> PathBuf {
        self.library(device).join(".stvc")
    }

    /// The folder in the place of a server's disk.
    pub fn server(&self) -> PathBuf {
        self.disk().join("server.git")
    }

    /// The files of a device's library; the store is none of them.
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

    /// The program, with `--json`, not started yet.
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
            .env("TMPDIR", self.beside().join("tmp"))
            .env("GIT_CONFIG_SYSTEM", "/dev/null")
            .env("TZ", "UTC")
            .env("STVC_COLUMNS", "100")
            .env("SOURCE_DATE_EPOCH", self.now.to_string());
    }

    /// Run the program a minute later than the last time.
    pub fn stvc(&mut self, device: &str, arguments: &[impl AsRef<str>]) -> Answer {
        self.now += 60;
        run(self.command(device, arguments), &self.beside())
    }

    /// Take a snapshot of what changed, which is acknowledged from now on.
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

    /// The files that a snapshot gives back, or why it does not.
    pub fn snapshot_files(&self, device: &str, id: &str) -> Result<Files, String> {
        let to = tempfile::tempdir_in(self.beside()).unwrap();
        let target = to.path().join("out");
        let arguments = ["restore", id, "--to", target.to_str().unwrap()];
        let answer = run(self.command(device, &arguments), &self.beside());
        match answer.code {
            Some(0) => Ok(files(&target)),
            _ => Err(answer.words()),
        }
    }

    /// A real git on a repository.
    pub fn git(&self, repository: &Path, arguments: &[&str]) -> Answer {
        let mut command = Command::new("git");
        command.arg("-C").arg(repository).args(arguments);
        self.seal(&mut command, "nobody");
        run(command, &self.beside())
    }

    /// Branches and tags of a repository, each with the tree it leads to: content, whatever the commits are called.
    pub fn refs(&self, repository: &Path) -> BTreeMap<String, String> {
        let format = "--format=%(refname)%09%(tree)";
        let found = self.git(repository, &["for-each-ref", format, "refs/heads", "refs/tags"]);
        let lines = found.stdout.lines().filter_map(|line| line.split_once('\t'));
        lines.map(|(name, tree)| (name.to_owned(), tree.to_owned())).collect()
    }

    /// All snapshots that branches and tags lead to, each as its tree and those of its parents: ids differ with the time.
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

/// Run a command to its end; what it printed goes through files, so that nobody waits for a reader.
pub fn run(mut command: Command, beside: &Path) -> Answer {
    let (out, err) = (beside.join("stdout"), beside.join("stderr"));
    command.stdin(Stdio::null());
    command.stdout(File::create(&out).unwrap()).stderr(File::create(&err).unwrap());
    // A group of its own, which is killed as a whole.
    let mut child = command.process_group(0).spawn().unwrap();
    let ended = wait(&mut child, LIMIT);
    let text = |path: &Path| String::from_utf8_lossy(&fs::read(path).unwrap()).into_owned();
    let code = ended.and_then(|status| status.code());
    Answer { code, hung: ended.is_none(), stdout: text(&out), stderr: text(&err) }
}

/// Wait that long at most; none: it did not end and was stopped.
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

/// Copy a folder with all that is in it, with modes and times.
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
            // A file that may not be written to keeps the time of its copying.
            if let Ok(file) = File::options().append(true).open(&target) {
                file.set_modified(time).unwrap();
            }
        }
    }
    fs::set_permissions(to, fs::metadata(from).unwrap().permissions()).unwrap();
}

/// Every file below a folder with its bytes; a store in it is left out.
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
