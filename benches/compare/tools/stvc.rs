//! stvc itself.

use std::path::Path;
use std::process::Command;

use super::{Place, Tool, text};

pub struct Stvc(pub Place);

impl Stvc {
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_stvc"));
        command.env_remove("STVC_DATA").env_remove("STVC_STORE");
        command.arg("--data").arg(&self.0.library);
        command.arg("--store").arg(self.0.store());
        command.arg("--quiet").args(arguments);
        command
    }
}

impl Tool for Stvc {
    fn name(&self) -> &'static str {
        "stvc"
    }

    fn place(&self) -> &Place {
        &self.0
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
