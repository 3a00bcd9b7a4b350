//! The baseline: copies of the files, and all copies in one compressed archive.

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Place, Tool};

/// Copies the whole library per save, without sync or verification.
pub struct Cp {
    place: Place,
    saves: Cell<usize>,
}

impl Cp {
    pub fn new(place: Place) -> Self {
        Self { place, saves: Cell::new(0) }
    }

    fn newest(&self) -> PathBuf {
        self.place.store().join(format!("{:06}", self.saves.get()))
    }
}

impl Tool for Cp {
    fn name(&self) -> &'static str {
        "cp"
    }

    fn place(&self) -> &Place {
        &self.place
    }

    fn create(&self) {
        std::fs::create_dir_all(self.place.store()).expect("make a folder for copies");
    }

    fn save(&self) -> Vec<Command> {
        self.saves.set(self.saves.get() + 1);
        let mut command = Command::new("cp");
        command.arg("-a").arg(&self.place.library).arg(self.newest());
        vec![command]
    }

    fn restore(&self, chat: &Path, _timeline: &str, _target: &Path) -> Vec<Command> {
        let mut command = Command::new("cp");
        command.arg("-a").arg(self.newest().join(chat)).arg(self.place.library.join(chat));
        vec![command]
    }
}

/// All copies in one archive: not a store, but about as small as a tool gets that does not know the
/// format of chats.
pub struct Zstd {
    pub place: Place,
    pub states: PathBuf,
}

impl Tool for Zstd {
    fn name(&self) -> &'static str {
        "zstd"
    }

    fn place(&self) -> &Place {
        &self.place
    }

    fn create(&self) {
        std::fs::create_dir_all(self.place.store()).expect("make a folder for an archive");
    }

    fn gc(&self) -> Vec<Command> {
        let mut command = Command::new("sh");
        let script = r#"tar --sort=name -C "$0" -cf - . | zstd -q -T0 -19 --long=31 -o "$1""#;
        command.args(["-c", script]).arg(&self.states).arg(self.place.store().join("all.zst"));
        vec![command]
    }
}
