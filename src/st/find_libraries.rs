//! Finds the SillyTavern libraries of a computer: the data folders of running servers, and folders
//! named after SillyTavern in the places where people install it.

use std::path::{Path, PathBuf};

use super::folder::list_folder;
use super::running;
use super::{Error, Library};
use crate::real_path;

/// The parts of a computer that are searched.
#[derive(Clone, Debug, Default)]
pub struct Surroundings {
    /// The home folder of the user.
    pub home: Option<PathBuf>,
    /// Folders for the data of programs, and the folder of Termux's system.
    pub data: Vec<PathBuf>,
    /// The root folder, or the drives of Windows.
    pub roots: Vec<PathBuf>,
    /// The folder `/proc` of Linux.
    pub processes: Option<PathBuf>,
}

/// A library of this computer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundLibrary {
    /// The folder of one user.
    pub root: PathBuf,
    /// The process of the SillyTavern that runs on it.
    pub process: Option<u32>,
}

/// Folders of a home folder in which people put SillyTavern.
const AT_HOME: [&str; 20] = [
    "",
    "Desktop",
    "Documents",
    "Downloads",
    "OneDrive/Desktop",
    "OneDrive/Documents",
    "git",
    "GitHub",
    "src",
    "code",
    "projects",
    "repos",
    "apps",
    "AI",
    "docker",
    "pinokio/api",
    ".local/share",
    "Library/Application Support",
    // Rootless Docker and Podman.
    ".local/share/docker/volumes",
    ".local/share/containers/storage/volumes",
];

/// Folders of a root folder or drive.
const AT_ROOT: [&str; 14] = [
    "",
    "opt",
    "srv",
    "usr/local",
    "usr/local/share",
    "var/lib",
    "var/lib/docker/volumes",
    "var/lib/containers/storage/volumes",
    // The image of SillyTavern, for stvc in the same container.
    "home/node",
    "root",
    "mnt",
    "AI",
    "Games",
    "Program Files",
];

/// The systems that Termux's proot-distro has installed, each with a home folder `root`.
const PROOT: &str = "var/lib/proot-distro/installed-rootfs";

/// Places of the data below a folder named after SillyTavern: the folder itself, the launcher, the
/// compose file of SillyTavern, Pinokio, a volume of Docker.
const BELOW: [&str; 5] = ["", "SillyTavern", "docker", "app", "_data"];

impl Surroundings {
    /// Returns the surroundings of this program.
    pub fn here() -> Self {
        let variable = |name: &str| std::env::var_os(name).map(PathBuf::from);
        let roots = if cfg!(windows) {
            let drives = ('C'..='Z').map(|letter| PathBuf::from(format!("{letter}:\\")));
            drives.filter(|drive| drive.is_dir()).collect()
        } else {
            vec![PathBuf::from("/")]
        };
        let data = ["XDG_DATA_HOME", "LOCALAPPDATA", "APPDATA", "PREFIX"];
        Self {
            home: std::env::home_dir(),
            data: data.into_iter().filter_map(variable).collect(),
            roots,
            processes: cfg!(any(target_os = "linux", target_os = "android"))
                .then(|| PathBuf::from("/proc")),
        }
    }

    /// Returns the libraries of this computer: those of running servers first. `user` chooses the
    /// user in libraries that have several.
    pub fn find_libraries(&self, user: Option<&str>) -> Vec<FoundLibrary> {
        let mut found: Vec<FoundLibrary> = Vec::new();
        let running = self.processes.as_deref().map(running::data_folders).unwrap_or_default();
        let running = running.into_iter().map(|(id, folder)| (Some(id), folder));
        for (process, folder) in running.chain(self.named().into_iter().map(|path| (None, path))) {
            for root in libraries(&folder, user) {
                let root = real_path::of(&root);
                if !found.iter().any(|known| known.root == root) {
                    found.push(FoundLibrary { root, process });
                }
            }
        }
        found
    }

    /// Returns the folders that may have a library, in the usual places.
    fn named(&self) -> Vec<PathBuf> {
        let at_home = self.home.iter().flat_map(|home| AT_HOME.map(|at| home.join(at)));
        let at_root = self.roots.iter().flat_map(|root| AT_ROOT.map(|at| root.join(at)));
        let proot = self.data.iter().flat_map(|prefix| list_folder(&prefix.join(PROOT)).entries);
        let proot = proot.map(|system| system.path().join("root"));
        let places = at_home.chain(self.data.iter().cloned()).chain(proot).chain(at_root);
        let mut named = Vec::new();
        for place in places {
            // The image of SillyTavern has a folder with another name.
            if place.ends_with("home/node") {
                named.push(place.join("app"));
            }
            let mut entries = list_folder(&place).entries;
            entries.sort_unstable_by_key(std::fs::DirEntry::file_name);
            for entry in entries {
                let name = entry.file_name().to_string_lossy().to_lowercase();
                if name.contains("sillytavern") || name.contains("silly-tavern") {
                    named.extend(BELOW.map(|below| entry.path().join(below)));
                }
            }
        }
        named
    }
}

/// Returns the folders of the users in a folder, or of the chosen user; empty if it has none.
fn libraries(folder: &Path, user: Option<&str>) -> Vec<PathBuf> {
    match Library::open(folder, user) {
        Ok(library) => {
            let root = library.root();
            let others = library.other_users().iter().map(|other| root.with_file_name(other));
            [root.to_owned()].into_iter().chain(others).collect()
        }
        Err(Error::SeveralUsers { path, users }) => {
            users.iter().map(|user| path.join(user)).collect()
        }
        Err(_) => Vec::new(),
    }
}
