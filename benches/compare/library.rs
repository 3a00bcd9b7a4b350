//! The library on disk, saved as SillyTavern saves it.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

#[derive(Clone)]
pub struct Library {
    pub root: PathBuf,
    begin: SystemTime,
    saves: u32,
}

impl Library {
    pub fn new(root: &Path) -> Self {
        fs::create_dir_all(root).expect("make the library");
        fs::write(root.join("settings.json"), "{}").expect("write settings.json");
        let begin = SystemTime::now() - Duration::from_secs(24 * 3600);
        Self { root: root.to_owned(), begin, saves: 0 }
    }

    /// Starts the next save: later writes get its time.
    pub fn next_save(&mut self) {
        self.saves += 1;
    }

    /// Writes a temporary file and renames it. Its modification time is in the past, two seconds
    /// after that of the last save: real saves are rare, and every tool rereads a file that was
    /// modified just now.
    pub fn write(&self, path: &Path, bytes: &[u8]) {
        let path = self.root.join(path);
        fs::create_dir_all(path.parent().expect("a file in a folder")).expect("make a folder");
        let temp = path.with_extension("tmp");
        fs::write(&temp, bytes).expect("write a file");
        let file = File::options().append(true).open(&temp).expect("open a file");
        file.set_modified(self.begin + self.saves * Duration::from_secs(2)).expect("set a time");
        fs::rename(&temp, &path).expect("rename a file");
    }
}

/// Quotes a text like JSON.stringify; the text has no control characters.
pub fn quoted(text: &str) -> String {
    let escaped = text.replace('\\', "\\\\").replace('"', "\\\"");
    format!("\"{}\"", escaped.replace('\n', "\\n"))
}

/// Date of message `index`: one every three minutes, in months of 28 days.
pub fn date(index: usize) -> String {
    let minutes = index * 3;
    let (hours, days) = (minutes / 60, minutes / 1440);
    format!(
        "{}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z",
        2025 + days / 336,
        days / 28 % 12 + 1,
        days % 28 + 1,
        hours % 24,
        minutes % 60,
        index * 7 % 60,
        index * 131 % 1000
    )
}
