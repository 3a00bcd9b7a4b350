//! bup: splits files by a rolling hash into git packs.

use std::path::Path;
use std::process::Command;

use super::{Place, Tool, text};
use crate::measure::run;

pub struct Bup(pub Place);

impl Bup {
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("bup");
        command.env("BUP_DIR", self.0.store());
        command.current_dir(&self.0.library).args(arguments);
        command
    }
}

impl Tool for Bup {
    fn name(&self) -> &'static str {
        "bup"
    }

    fn place(&self) -> &Place {
        &self.0
    }

    fn create(&self) {
        run(self.command(&["init"]));
    }

    fn save(&self) -> Vec<Command> {
        let strip = format!("--strip-path={}", text(&self.0.library));
        vec![
            self.command(&["index", "."]),
            self.command(&["save", "-q", "-n", "library", &strip, "."]),
        ]
    }

    fn restore(&self, chat: &Path, _timeline: &str, target: &Path) -> Vec<Command> {
        let newest = format!("/library/latest/{}", text(chat));
        vec![self.command(&["restore", "-q", "-C", text(target), &newest])]
    }

    fn log(&self) -> Vec<Command> {
        vec![self.command(&["ls", "library"])]
    }

    fn check(&self) -> Vec<Command> {
        vec![self.command(&["fsck"])]
    }

    fn gc(&self) -> Vec<Command> {
        vec![self.command(&["gc", "--unsafe", "--threshold", "0"])]
    }
}
