//! Is SillyTavern running on this library?
//!
//! Its page keeps the open chat and every lorebook it has read in memory, and writes them back.
//! Nothing on the disk shows that, and a port that answers does not say whose library is behind it;
//! but on Linux the working directory and the arguments of the process do. Elsewhere it is certain
//! only that it does not run if nothing runs that could run it.

use std::path::Path;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Running {
    /// `asks`: whether it asks before a page overwrites a chat with another mark, which can be
    /// switched off.
    Seen {
        process: u32,
        asks: bool,
    },
    NotSeen,
    /// This system does not say.
    Unknown,
}

/// Returns the process of a SillyTavern that runs on this library, where processes can be seen.
pub fn process_on(library: &Path) -> Option<u32> {
    match seen_on(library) {
        Running::Seen { process, .. } => Some(process),
        Running::NotSeen | Running::Unknown => None,
    }
}

pub fn running_on(library: &Path) -> Running {
    let seen = seen_on(library);
    let nothing_runs_it = |programs: String| !programs.lines().any(elsewhere::may_run_it);
    if seen == Running::Unknown && elsewhere::programs().is_some_and(nothing_runs_it) {
        return Running::NotSeen;
    }
    seen
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

    /// Returns the names of all processes, one per line; none if this system does not say.
    pub fn programs() -> Option<String> {
        let (program, arguments) = if cfg!(windows) {
            ("tasklist", ["/FO", "CSV", "/NH"])
        } else {
            ("ps", ["-A", "-o", "comm="])
        };
        let output = Command::new(program).args(arguments).output().ok()?;
        let listed = String::from_utf8_lossy(&output.stdout).to_lowercase();
        // A list without this very process is not complete.
        (output.status.success() && listed.contains("stvc")).then_some(listed)
    }

    /// Whether this is a JavaScript runtime, or something in which one may run unseen.
    pub fn may_run_it(line: &str) -> bool {
        const NAMES: [&str; 9] =
            ["node", "bun", "deno", "electron", "docker", "podman", "wsl", "vmmem", "qemu"];
        NAMES.iter().any(|name| line.contains(name))
    }
}

/// Whether this program is the only one in its container: then SillyTavern is in another one.
fn is_alone() -> bool {
    let own = std::env::current_exe().ok();
    own.is_some() && std::fs::read_link("/proc/1/exe").ok() == own
}

#[cfg(not(unix))]
pub(super) fn running_in(_proc: &Path, _library: &Path) -> Running {
    Running::Unknown
}

#[cfg(unix)]
pub(super) fn running_in(proc: &Path, library: &Path) -> Running {
    let data = std::fs::canonicalize(library).ok();
    let data = data.as_deref().and_then(Path::parent).and_then(linux::identity);
    let entries = std::fs::read_dir(proc).into_iter().flatten().flatten();
    let ids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let processes = ids.map(|id| (id, linux::Process(proc.join(id.to_string()))));
    let on_library = processes.filter(|(_, process)| {
        process.is_sillytavern() && data.is_some() && process.data_folder() == data
    });
    let first = on_library.min_by_key(|(id, _)| *id);
    first.map_or(Running::NotSeen, |(id, it)| Running::Seen { process: id, asks: it.asks() })
}

#[cfg(unix)]
mod linux {
    use std::ffi::OsStr;
    use std::fs;
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::MetadataExt;
    use std::path::{Path, PathBuf};

    use crate::regular;

    /// Returns device and file number: equal for a folder by any path, also in a container.
    pub fn identity(path: &Path) -> Option<(u64, u64)> {
        fs::metadata(path).ok().map(|metadata| (metadata.dev(), metadata.ino()))
    }

    /// A process, by its folder. Most files of another user's process cannot be read.
    pub struct Process(pub PathBuf);

    impl Process {
        /// Whether it is a JavaScript runtime that runs SillyTavern's server, which changes to its own
        /// folder when it starts.
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

        /// Returns its data folder: by an argument, the environment, the configuration, or the default.
        pub fn data_folder(&self) -> Option<(u64, u64)> {
            let arguments = self.words("cmdline");
            let named = option(&arguments, "--dataRoot")
                .or_else(|| option(&self.words("environ"), "SILLYTAVERN_DATAROOT"))
                .or_else(|| self.configured("dataRoot"))
                .unwrap_or_else(|| "data".into());
            identity(&self.seen(&named))
        }

        /// Whether it compares the mark of a chat that a page saves, as it does by default.
        pub fn asks(&self) -> bool {
            option(&self.words("environ"), "SILLYTAVERN_BACKUPS_CHAT_CHECKINTEGRITY")
                .or_else(|| self.configured("checkIntegrity"))
                .is_none_or(|value| value != Path::new("false"))
        }

        /// Returns a value of its configuration. Only a plain one is understood, as it writes them;
        /// no other key has one of these names.
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

        /// Resolves a path as the process does: from its folder, or, in a container, another root.
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

    /// Returns the value of `name value` or `name=value`.
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
