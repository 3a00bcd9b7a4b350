//! The tools that are compared, each over the same library and with a store of its own.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::measure::run;

/// A tool that keeps states of a library.
pub trait Tool {
    fn name(&self) -> &'static str;
    /// Make its store.
    fn create(&self);
    /// The commands that store the library as it is now.
    fn save(&self) -> Vec<Command>;
    /// Where its store is.
    fn store(&self) -> &Path;
}

/// Where a tool finds the library and keeps its store.
#[derive(Clone)]
pub struct Place {
    pub library: PathBuf,
    pub store: PathBuf,
}

pub struct Stvc(pub Place);

impl Stvc {
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_stvc"));
        command.env_remove("STVC_DATA").env_remove("STVC_STORE");
        command.arg("--data").arg(&self.0.library);
        command.arg("--store").arg(&self.0.store);
        command.arg("--quiet").args(arguments);
        command
    }
}

impl Tool for Stvc {
    fn name(&self) -> &'static str {
        "stvc"
    }

    /// The first snapshot makes it.
    fn create(&self) {}

    fn save(&self) -> Vec<Command> {
        vec![self.command(&["snapshot"])]
    }

    fn store(&self) -> &Path {
        &self.0.store
    }
}

/// Plain git with the library as its work tree.
pub struct Git(pub Place);

impl Git {
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = git_in(&self.0.store);
        command.env("GIT_WORK_TREE", &self.0.library);
        command.current_dir(&self.0.library).args(arguments);
        command
    }
}

/// Git on the repository `dir`, without the configuration of whoever runs this.
pub fn git_in(dir: &Path) -> Command {
    let mut command = Command::new("git");
    for who in ["AUTHOR", "COMMITTER"] {
        command.env(format!("GIT_{who}_NAME"), "Bench");
        command.env(format!("GIT_{who}_EMAIL"), "bench@example.invalid");
    }
    let nothing = if cfg!(windows) { "NUL" } else { "/dev/null" };
    command.env("GIT_CONFIG_GLOBAL", nothing);
    command.env("GIT_CONFIG_NOSYSTEM", "1").env("GIT_DIR", dir);
    command.args(["-c", "gc.auto=0", "-c", "core.autocrlf=false"]);
    command
}

impl Tool for Git {
    fn name(&self) -> &'static str {
        "git"
    }

    fn create(&self) {
        run(self.command(&["init", "-q"]));
    }

    fn save(&self) -> Vec<Command> {
        vec![self.command(&["add", "-A"]), self.command(&["commit", "-q", "-m", "save"])]
    }

    fn store(&self) -> &Path {
        &self.0.store
    }
}

pub struct Restic(pub Place);

impl Restic {
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("restic");
        command.env("RESTIC_PASSWORD", "bench");
        command.env("RESTIC_REPOSITORY", &self.0.store);
        command.env("RESTIC_CACHE_DIR", self.0.store.with_extension("cache"));
        command.current_dir(&self.0.library);
        command.arg("--quiet").args(arguments);
        command
    }
}

impl Tool for Restic {
    fn name(&self) -> &'static str {
        "restic"
    }

    fn create(&self) {
        run(self.command(&["init"]));
    }

    fn save(&self) -> Vec<Command> {
        vec![self.command(&["backup", "."])]
    }

    fn store(&self) -> &Path {
        &self.0.store
    }
}

pub struct Borg(pub Place);

impl Borg {
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("borg");
        command.env("BORG_REPO", &self.0.store);
        command.env("BORG_BASE_DIR", self.0.store.with_extension("base"));
        command.env("BORG_UNKNOWN_UNENCRYPTED_REPO_ACCESS_IS_OK", "yes");
        command.current_dir(&self.0.library).args(arguments);
        command
    }
}

impl Tool for Borg {
    fn name(&self) -> &'static str {
        "borg"
    }

    fn create(&self) {
        run(self.command(&["init", "--encryption", "none"]));
    }

    fn save(&self) -> Vec<Command> {
        vec![self.command(&["create", "::{now:%Y%m%dT%H%M%S.%f}", "."])]
    }

    fn store(&self) -> &Path {
        &self.0.store
    }
}

/// The version a tool says it has; none if it is not installed.
pub fn version(program: &str, argument: &str) -> Option<String> {
    let output = Command::new(program).arg(argument).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    Some(text.lines().next()?.to_owned())
}
