//! stvc, and an earlier version of it.

use std::path::Path;
use std::process::Command;

use super::program::program;
use super::{Place, Tool, text};

pub struct Stvc {
    name: &'static str,
    program: String,
    place: Place,
}

/// Path of an earlier version of the program, to be measured too.
pub const BEFORE: &str = "STVC_BEFORE";

impl Stvc {
    pub fn new(place: Place) -> Self {
        Self { name: "stvc", program: program().into(), place }
    }

    pub fn before(place: Place) -> Option<Self> {
        let program = std::env::var(BEFORE).ok()?;
        Some(Self { name: "before", program, place })
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.env_remove("STVC_DATA").env_remove("STVC_STORE");
        command.arg("--data").arg(&self.place.library);
        command.arg("--store").arg(self.place.store());
        command.arg("--quiet").args(arguments);
        command
    }
}

impl Tool for Stvc {
    fn name(&self) -> &'static str {
        self.name
    }

    fn place(&self) -> &Place {
        &self.place
    }

    fn save(&self) -> Vec<Command> {
        vec![self.command(&["snapshot"])]
    }

    fn restore(&self, _chat: &Path, timeline: &str, _target: &Path) -> Vec<Command> {
        vec![self.command(&["restore", timeline])]
    }

    fn log(&self) -> Vec<Command> {
        vec![self.command(&["log", "--graph"])]
    }

    fn check(&self) -> Vec<Command> {
        vec![self.command(&["check"])]
    }

    fn gc(&self) -> Vec<Command> {
        vec![self.command(&["gc", "--grace", "0s"])]
    }

    fn backup(&self, file: &Path) -> Vec<Command> {
        vec![self.command(&["backup", text(file)])]
    }
}
