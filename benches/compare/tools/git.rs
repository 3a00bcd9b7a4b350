//! Plain git with the library as its work tree.

use std::path::Path;
use std::process::Command;

use super::{Place, Tool, text};
use crate::measure::run;

pub struct Git(pub Place);

impl Git {
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = git_in(&self.0.store());
        command.env("GIT_WORK_TREE", &self.0.library);
        command.current_dir(&self.0.library).args(arguments);
        command
    }
}

/// Builds a git command for the repository `dir` that ignores the user's configuration.
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

    fn place(&self) -> &Place {
        &self.0
    }

    fn create(&self) {
        run(self.command(&["init", "-q"]));
    }

    fn save(&self) -> Vec<Command> {
        vec![self.command(&["add", "-A"]), self.command(&["commit", "-q", "-m", "save"])]
    }

    fn restore(&self, chat: &Path, _timeline: &str, _target: &Path) -> Vec<Command> {
        vec![self.command(&["checkout", "HEAD", "--", text(chat)])]
    }

    fn log(&self) -> Vec<Command> {
        vec![self.command(&["log", "--graph", "--oneline", "--all"])]
    }

    fn check(&self) -> Vec<Command> {
        vec![self.command(&["fsck", "--full", "--no-progress"])]
    }

    fn gc(&self) -> Vec<Command> {
        vec![self.command(&["gc", "-q", "--aggressive", "--prune=now"])]
    }
}
