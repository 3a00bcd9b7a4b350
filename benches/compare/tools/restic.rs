//! restic. It always encrypts, and every command spends about half a second on the key.

use std::path::Path;
use std::process::Command;

use super::{Place, Tool, text};
use crate::measure::run;

pub struct Restic(pub Place);

impl Restic {
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("restic");
        command.env("RESTIC_PASSWORD", "bench");
        command.env("RESTIC_REPOSITORY", self.0.store());
        command.env("RESTIC_CACHE_DIR", self.0.home.join("cache"));
        command.current_dir(&self.0.library);
        command.arg("--quiet").args(arguments);
        command
    }
}

impl Tool for Restic {
    fn name(&self) -> &'static str {
        "restic"
    }

    fn place(&self) -> &Place {
        &self.0
    }

    fn create(&self) {
        // Version 2 of the format compresses.
        run(self.command(&["init", "--repository-version", "2"]));
    }

    fn save(&self) -> Vec<Command> {
        vec![self.command(&["backup", "."])]
    }

    fn restore(&self, chat: &Path, _timeline: &str, target: &Path) -> Vec<Command> {
        // Patterns are relative to the folder that was backed up.
        let include = format!("/{}", text(chat));
        vec![self.command(&["restore", "latest", "--target", text(target), "--include", &include])]
    }

    fn log(&self) -> Vec<Command> {
        vec![self.command(&["snapshots"])]
    }

    fn check(&self) -> Vec<Command> {
        vec![self.command(&["check", "--read-data"])]
    }

    fn gc(&self) -> Vec<Command> {
        vec![self.command(&["prune", "--max-unused", "0"])]
    }
}
