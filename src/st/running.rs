//! Is SillyTavern running on this library?
//!
//! Its page keeps the open chat and every lorebook it has looked at in memory, and writes them back whole. Nothing on the disk tells of that, and a port that
//! answers does not say whose library is behind it; but on Linux the process says where it runs and with which arguments. Elsewhere it is only known
//! that it does not run where nothing runs that could run it.

use std::path::Path;

/// What can be seen of a SillyTavern whose data folder has a library in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Running {
    /// This process. Whether it asks before a page overwrites a chat with another mark, which can be switched off.
    Seen { process: u32, asks: bool },
    /// None, where it would be seen.
    NotSeen,
    /// This system does not tell.
    Unknown,
}

/// The process of a SillyTavern that runs on this library, where processes can be looked at.
pub fn process_on(library: &Path) -> Option<u32> {
    match seen_on(library) {
        Running::Seen { process, .. } => Some(process),
        Running::NotSeen | Running::Unknown => None,
    }
}

/// Whether SillyTavern is running on this library.
pub fn running_on(library: &Path) -> Running {
    match seen_on(library) {
        Running::Unknown => match elsewhere::programs() {
            Some(programs) if !programs.lines().any(elsewhere::may_run_it) => Running::NotSeen,
            _ => Running::Unknown,
        },
        seen => seen,
    }
}

fn seen_on(library: &Path) -> Running {
    if cfg!(any(target_os = "linux", target_os = "android")) && !is_alone() {
        running_in(Path::new("/proc"), library)
    } else {
        Running::Unknown
    }
}

pub(super) mod elsewhere {
    use std::process::Command;

    /// The names of all that runs, a line each; none if this system does not say.
    pub fn programs() -> Option<String> {
        let mut command = if cfg!(windows) { Command::new("tasklist") } else { Command::new("ps") };
        let told = if cfg!(windows) {
            command.args(["/FO", "CSV", "/NH"])
        } else {
            command.args(["-A", "-o", "comm="])
        };
        let told = told.output().ok().filter(|told| told.status.success())?;
        // A list that has not even the one who asks in it is none.
        let told = String::from_utf8_lossy(&told.stdout).to_lowercase();
        told.contains("stvc").then_some(told)
    }

    /// Whether this is a JavaScript runtime, or something in which one may run unseen.
    pub fn may_run_it(line: &str) -> bool {
        const NAMES: [&str; 9] =
            ["node", "bun", "deno", "electron", "docker", "podman", "wsl", "vmmem", "qemu"];
        NAMES.iter().any(|name| line.contains(name))
    }
}

/// Whether this program is all that runs in its container: then SillyTavern is in another one.
fn is_alone() -> bool {
    let own = std::env::current_exe().ok();
    own.is_some() && std::fs::read_link("/proc/1/exe").ok() == own
}

#[cfg(not(unix))]
pub(super) fn running_in(_proc: &Path, _library: &Path) -> Running {
    Running::Unknown
}

/// The same, told by this folder of processes.
#[cfg(unix)]
pub(super) fn running_in(proc: &Path, library: &Path) -> Running {
    let data = std::fs::canonicalize(library).ok();
    let data = data.as_deref().and_then(Path::parent).and_then(linux::identity);
    let entries = std::fs::read_dir(proc).into_iter().flatten().flatten();
    let mut processes: Vec<u32> =
        entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    processes.sort_unstable();
    for id in processes {
        let process = linux::Process(proc.join(id.to_string()));
        if process.is_sillytavern() && data.is_some() && process.data_folder() == data {
            return Running::Seen { process: id, asks: process.asks() };
        }
    }
    Running::NotSeen
}

#[cfg(unix)]
mod linux {
    use std::ffi::OsStr;
    use std::fs;
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::MetadataExt;
    use std::path::{Path, PathBuf};

    use crate::regular;

    /// Device and file number: the same for a folder by whatever path, also one that a container has under another name.
    pub fn identity(path: &Path) -> Option<(u64, u64)> {
        fs::metadata(path).ok().map(|metadata| (metadata.dev(), metadata.ino()))
    }

    /// A process, by its folder. Of somebody else's, most cannot be read; those are none that could be found.
    pub struct Process(pub PathBuf);

    impl Process {
        /// Whether it is a JavaScript runtime that runs SillyTavern's server. (It makes its own folder its working directory when it starts.)
        pub fn is_sillytavern(&self) -> bool {
            let arguments = self.words("cmdline");
            let runs = |name: &str| {
                arguments.iter().any(|word| Path::new(word).file_name() == Some(OsStr::new(name)))
            };
            if !["node", "nodejs", "bun", "deno"].into_iter().any(runs) || !runs("server.js") {
                return false;
            }
            let package = regular::read(&self.0.join("cwd/package.json")).unwrap_or_default();
            let package: Option<serde_json::Value> = serde_json::from_slice(&package).ok();
            package.is_some_and(|package| package["name"] == "sillytavern")
        }

        /// Its data folder: as an argument says, the environment, the configuration, or where it is by default.
        pub fn data_folder(&self) -> Option<(u64, u64)> {
            let arguments = self.words("cmdline");
            let named = option(&arguments, "--dataRoot")
                .or_else(|| option(&self.words("environ"), "SILLYTAVERN_DATAROOT"))
                .or_else(|| self.configured("dataRoot"))
                .unwrap_or_else(|| "data".into());
            identity(&self.seen(&named))
        }

        /// Whether it holds what a page saves against the chat's mark, as it does unless it was told not to.
        pub fn asks(&self) -> bool {
            let told = option(&self.words("environ"), "SILLYTAVERN_BACKUPS_CHAT_CHECKINTEGRITY")
                .or_else(|| self.configured("checkIntegrity"));
            told.is_none_or(|told| told != Path::new("false"))
        }

        /// A value of its configuration. Only a plain one is understood, which is what it writes there; of those that are looked for, no other has the name.
        fn configured(&self, key: &str) -> Option<PathBuf> {
            let path = option(&self.words("cmdline"), "--configPath");
            let path = path.unwrap_or_else(|| "config.yaml".into());
            let text = String::from_utf8(regular::read(&self.seen(&path)).ok()?).ok()?;
            let value =
                |line: &str| Some(line.trim().strip_prefix(key)?.strip_prefix(':')?.to_owned());
            let value = text.lines().find_map(value)?;
            let value = value.split(" #").next()?.trim().trim_matches(['"', '\'']);
            (!value.is_empty()).then(|| value.into())
        }

        /// A path as the process sees it: from its folder, or, in a container, from another root.
        fn seen(&self, path: &Path) -> PathBuf {
            match path.strip_prefix("/") {
                Ok(inside) => self.0.join("root").join(inside),
                Err(_) => self.0.join("cwd").join(path),
            }
        }

        fn words(&self, file: &str) -> Vec<PathBuf> {
            let bytes = fs::read(self.0.join(file)).unwrap_or_default();
            bytes.split(|byte| *byte == 0).map(|word| OsStr::from_bytes(word).into()).collect()
        }
    }

    /// The value of `name value` or `name=value`.
    fn option(words: &[PathBuf], name: &str) -> Option<PathBuf> {
        let value = |(at, word): (usize, &PathBuf)| {
            let rest = word.as_os_str().as_bytes().strip_prefix(name.as_bytes())?;
            match rest.split_first() {
                None => words.get(at + 1).cloned(),
                Some((b'=', value)) => Some(OsStr::from_bytes(value).into()),
                Some(_) => None,
            }
        };
        words.iter().enumerate().find_map(value).filter(|value| !value.as_os_str().is_empty())
    }
}
