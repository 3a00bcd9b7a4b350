//! Is SillyTavern running on this library?
//!
//! Its page keeps the open chat and every lorebook it has looked at in memory, and writes them back whole. Nothing on the disk tells of that, and a port that
//! answers does not say whose library is behind it; but on Linux the process says where it runs and with which arguments. Elsewhere it is not known.

use std::path::Path;

/// The process of a SillyTavern whose data folder has this library in it, if one can be seen.
pub fn running_on(library: &Path) -> Option<u32> {
    if cfg!(any(target_os = "linux", target_os = "android")) {
        return running_in(Path::new("/proc"), library);
    }
    None
}

#[cfg(not(unix))]
pub(super) fn running_in(_proc: &Path, _library: &Path) -> Option<u32> {
    None
}

/// The same, told by this folder of processes.
#[cfg(unix)]
pub(super) fn running_in(proc: &Path, library: &Path) -> Option<u32> {
    let library = std::fs::canonicalize(library).ok()?;
    let data = linux::identity(library.parent()?)?;
    let mut processes: Vec<u32> = std::fs::read_dir(proc)
        .ok()?
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect();
    processes.sort_unstable();
    processes.into_iter().find(|id| {
        let process = linux::Process(proc.join(id.to_string()));
        process.is_sillytavern() && process.data_folder() == Some(data)
    })
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
                .or_else(|| self.configured(option(&arguments, "--configPath")))
                .unwrap_or_else(|| "data".into());
            identity(&self.seen(&named))
        }

        /// `dataRoot` in its configuration. Only a plain value is understood, which is what it writes there.
        fn configured(&self, path: Option<PathBuf>) -> Option<PathBuf> {
            let path = path.unwrap_or_else(|| "config.yaml".into());
            let text = String::from_utf8(regular::read(&self.seen(&path)).ok()?).ok()?;
            let value = text.lines().find_map(|line| line.strip_prefix("dataRoot:"))?;
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
