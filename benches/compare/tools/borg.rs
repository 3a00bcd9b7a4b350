use std::cell::Cell;
use std::path::Path;
use std::process::Command;

use super::{Place, Tool, text};
use crate::measure::run;

pub struct Borg {
    place: Place,
    /// Number of archives, for their names.
    saves: Cell<usize>,
}

impl Borg {
    pub fn new(place: Place) -> Self {
        Self { place, saves: Cell::new(0) }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("borg");
        command.env("BORG_REPO", self.place.store());
        command.env("BORG_BASE_DIR", self.place.home.join("base"));
        command.env("BORG_UNKNOWN_UNENCRYPTED_REPO_ACCESS_IS_OK", "yes");
        command.current_dir(&self.place.library).args(arguments);
        command
    }

    fn newest(&self) -> String {
        format!("::save-{}", self.saves.get())
    }
}

impl Tool for Borg {
    fn name(&self) -> &'static str {
        "borg"
    }

    fn place(&self) -> &Place {
        &self.place
    }

    fn create(&self) {
        run(self.command(&["init", "--encryption", "none"]));
    }

    fn save(&self) -> Vec<Command> {
        self.saves.set(self.saves.get() + 1);
        vec![self.command(&["create", &self.newest(), "."])]
    }

    fn restore(&self, chat: &Path, _timeline: &str, target: &Path) -> Vec<Command> {
        let mut command = self.command(&["extract", &self.newest(), text(chat)]);
        command.current_dir(target);
        vec![command]
    }

    fn log(&self) -> Vec<Command> {
        vec![self.command(&["list"])]
    }

    fn check(&self) -> Vec<Command> {
        vec![self.command(&["check", "--verify-data"])]
    }

    fn gc(&self) -> Vec<Command> {
        vec![self.command(&["compact"])]
    }
}
