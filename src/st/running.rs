//! Detects whether SillyTavern is running on this library.
//!
//! SillyTavern's page keeps the open chat and every loaded lorebook in memory, and writes them back
//! later. No file shows whether a page is open, and a port that answers does not show which library
//! the server uses. On Linux, the working directory and the arguments of the server's process show
//! it. On other systems, stvc can only be certain that SillyTavern is not running: if no process
//! could be its JavaScript runtime.

use std::path::{Path, PathBuf};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Running {
    /// `asks`: whether SillyTavern asks the user before its page overwrites a chat file with a
    /// different integrity value. Users can turn off this check in SillyTavern.
    Seen {
        process: u32,
        asks: bool,
    },
    NotSeen,
    /// The operating system does not show whether SillyTavern is running.
    Unknown,
}

/// Returns the id of the SillyTavern process that runs on `library`. `None` if no such process
/// runs, or if the operating system does not show processes.
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

    /// Returns the names of all processes, one per line; `None` if the system does not show them.
    pub fn programs() -> Option<String> {
        let (program, arguments) = if cfg!(windows) {
            ("tasklist", ["/FO", "CSV", "/NH"])
        } else {
            ("ps", ["-A", "-o", "comm="])
        };
        let output = Command::new(program).args(arguments).output().ok()?;
        let listed = String::from_utf8_lossy(&output.stdout).to_lowercase();
        // A list that does not contain this process is incomplete.
        (output.status.success() && listed.contains("stvc")).then_some(listed)
    }

    /// Returns whether `line` names a JavaScript runtime, or a program in which one may run unseen
    /// (a container or a virtual machine).
    pub fn may_run_it(line: &str) -> bool {
        const NAMES: [&str; 9] =
            ["node", "bun", "deno", "electron", "docker", "podman", "wsl", "vmmem", "qemu"];
        NAMES.iter().any(|name| line.contains(name))
    }
}

/// Returns whether stvc is the first process of its container. In this case SillyTavern runs in
/// another container, whose processes are not visible.
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
    let on_library = processes(proc).into_iter().filter(|(_, process)| {
        process.is_sillytavern() && data.is_some() && process.data_folder() == data
    });
    let first = on_library.min_by_key(|(id, _)| *id);
    first.map_or(Running::NotSeen, |(id, it)| Running::Seen { process: id, asks: it.asks() })
}

#[cfg(not(unix))]
pub(super) fn data_folders(_proc: &Path) -> Vec<(u32, PathBuf)> {
    Vec::new()
}

/// Returns the processes of all running servers, each with its data folder.
#[cfg(unix)]
pub(super) fn data_folders(proc: &Path) -> Vec<(u32, PathBuf)> {
    let servers = processes(proc).into_iter().filter(|(_, process)| process.is_sillytavern());
    let mut found: Vec<_> =
        servers.filter_map(|(id, process)| Some((id, process.data_path(proc)?))).collect();
    found.sort_unstable();
    found
}

#[cfg(unix)]
fn processes(proc: &Path) -> Vec<(u32, linux::Process)> {
    let entries = std::fs::read_dir(proc).into_iter().flatten().flatten();
    let ids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    ids.map(|id| (id, linux::Process(proc.join(id.to_string())))).collect()
}

#[cfg(unix)]
mod linux {
    use std::ffi::OsStr;
    use std::fs;
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::MetadataExt;
    use std::path::{Path, PathBuf};

    use crate::regular;

    /// Returns the device and file numbers, which identify a folder independently of its path, also
    /// across containers.
    pub fn identity(path: &Path) -> Option<(u64, u64)> {
        fs::metadata(path).ok().map(|metadata| (metadata.dev(), metadata.ino()))
    }

    /// A process, identified by its folder in `/proc`. Most files of another user's process cannot
    /// be read.
    pub struct Process(pub PathBuf);

    impl Process {
        /// Returns whether the process is a JavaScript runtime that runs SillyTavern's server. The
        /// server changes to SillyTavern's folder when it starts, so its working directory has
        /// SillyTavern's `package.json`.
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

        /// Returns the identity of the server's data folder, which is set by an argument, the
        /// environment or the configuration file, or else is the default.
        pub fn data_folder(&self) -> Option<(u64, u64)> {
            identity(&self.seen(&self.named_data_folder()))
        }

        fn named_data_folder(&self) -> PathBuf {
            let arguments = self.words("cmdline");
            option(&arguments, "--dataRoot")
                .or_else(|| option(&self.words("environ"), "SILLYTAVERN_DATAROOT"))
                .or_else(|| self.configured("dataRoot"))
                .unwrap_or_else(|| "data".into())
        }

        /// Returns the path of the server's data folder outside containers.
        pub fn data_path(&self, proc: &Path) -> Option<PathBuf> {
            let named = self.named_data_folder();
            let folder = self.data_folder()?;
            let inside = fs::read_link(self.0.join("cwd")).ok()?.join(&named);
            // The folder of a container, as this system mounts it. A volume or a bind mount is a
            // folder of a file system that is mounted here, too.
            let outside = || {
                let (device, in_device) = at_device(&read_mounts(&self.0), &inside)?;
                at_path(&read_mounts(&proc.join("self")), &device, &in_device)
            };
            let is_it = |path: &PathBuf| identity(path) == Some(folder);
            let real = fs::canonicalize(&inside).ok().filter(is_it);
            real.or_else(|| outside().filter(is_it))
        }

        /// Returns whether the server compares integrity values before it saves a chat, which is
        /// the default.
        pub fn asks(&self) -> bool {
            option(&self.words("environ"), "SILLYTAVERN_BACKUPS_CHAT_CHECKINTEGRITY")
                .or_else(|| self.configured("checkIntegrity"))
                .is_none_or(|value| value != Path::new("false"))
        }

        /// Returns a value of the server's configuration file. Parses only plain values, as
        /// SillyTavern writes them. Nesting is ignored, because no other key of the file has the
        /// name `key`.
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

        /// Resolves a path as the process does: relative paths from the process's working
        /// directory, absolute paths from the process's root, which may be that of a container.
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

    /// A line of `/proc/<process>/mountinfo`: the device, the mounted folder of the device, and the
    /// mount point.
    type Mount = (String, PathBuf, PathBuf);

    fn read_mounts(process: &Path) -> Vec<Mount> {
        let text = fs::read_to_string(process.join("mountinfo")).unwrap_or_default();
        let path = |word: &str| PathBuf::from(word.replace("\\040", " "));
        let mount = |line: &str| {
            let mut words = line.split(' ').skip(2);
            Some((words.next()?.to_owned(), path(words.next()?), path(words.next()?)))
        };
        text.lines().filter_map(mount).collect()
    }

    /// Returns the device that contains `path`, and the path in the device.
    fn at_device(mounts: &[Mount], path: &Path) -> Option<(String, PathBuf)> {
        let on_path = mounts.iter().filter(|(_, _, point)| path.starts_with(point));
        let (device, root, point) = on_path.max_by_key(|(_, _, point)| point.iter().count())?;
        Some((device.clone(), root.join(path.strip_prefix(point).ok()?)))
    }

    fn at_path(mounts: &[Mount], device: &str, in_device: &Path) -> Option<PathBuf> {
        let of_device = mounts.iter().filter(|(of, ..)| of == device);
        let mut paths = of_device
            .filter_map(|(_, root, point)| Some(point.join(in_device.strip_prefix(root).ok()?)));
        paths.find(|path| path.is_dir())
    }

    /// Returns the value of an option that is written `name value` or `name=value`.
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
