//! `setup`: finds the library, and reports what is set up already. The steps themselves belong to
//! other commands, so a front end carries them out.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::engine::configuration;
use crate::engine::{Error, LibraryPlace, Workspace};
use crate::real_path;
use crate::st::{self, FoundLibrary, Library, Surroundings, list_folder};
use crate::verbs::Result;

/// A library that can be set up.
pub struct Candidate {
    /// The folder of one user.
    pub root: PathBuf,
    /// The process of the SillyTavern that runs on it.
    pub process: Option<u32>,
    /// Number of chats, including those of groups.
    pub chats: usize,
    /// Number of character cards.
    pub characters: usize,
}

/// Returns the library of the workspace. If none was named and the present folder is not part of
/// one, returns all libraries of this computer. Never returns an empty list.
pub fn find(workspace: &Workspace, surroundings: &Surroundings) -> Result<Vec<Candidate>> {
    let found = match workspace.library() {
        Ok(library) => {
            let root = library.root().to_owned();
            vec![FoundLibrary { process: st::process_on(&root), root }]
        }
        Err(error) => {
            let is_missing = matches!(
                error,
                Error::St(st::Error::NoLibraryFound { .. } | st::Error::NeverStarted { .. })
            );
            if !is_missing || matches!(workspace.library, LibraryPlace::At(_)) {
                return Err(error.into());
            }
            let found = surroundings.find_libraries(workspace.user.as_deref());
            if found.is_empty() {
                return Err(error.into());
            }
            found
        }
    };
    found.into_iter().map(candidate).collect()
}

fn candidate(found: FoundLibrary) -> Result<Candidate> {
    let FoundLibrary { root, process } = found;
    let scan = Library::open(&root, None)?.scan()?;
    let characters: BTreeSet<_> = scan.chats.iter().filter_map(|chat| chat.folder()).collect();
    Ok(Candidate { root, process, chats: scan.chats.len(), characters: characters.len() })
}

/// The parts of the setup that are in the store.
#[derive(Default)]
pub struct StoreState {
    /// Path of the store; `None` if there is no store yet.
    pub store: Option<PathBuf>,
    /// Whether `settings.json` is stored, if the user decided.
    pub settings: Option<bool>,
    /// The configured backup destination.
    pub destination: Option<String>,
    /// How often the watch backs up, as configured.
    pub schedule: Option<String>,
}

/// Returns the parts of the setup that exist in the store.
pub fn state(workspace: &Workspace) -> Result<StoreState> {
    let Some(store) = workspace.find_store()? else { return Ok(StoreState::default()) };
    let settings = configuration::list(&store)?;
    let value = |wanted: &str| {
        let of_key = settings.iter().find(|(key, _)| key.name == wanted);
        of_key.and_then(|(_, value)| value.clone())
    };
    Ok(StoreState {
        settings: value("include.settings").map(|value| value == "true"),
        destination: value("backup.destination"),
        schedule: value("backup.schedule"),
        store: Some(store.path().to_owned()),
    })
}

/// Returns the folders of connected drives that do not contain the library.
pub fn other_drives(surroundings: &Surroundings, library: &Path) -> Vec<PathBuf> {
    let below = |folders: Vec<PathBuf>| -> Vec<PathBuf> {
        let entries = folders.iter().flat_map(|folder| list_folder(folder).entries);
        entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect()
    };
    let mut drives = surroundings.roots.clone();
    for root in &surroundings.roots {
        let [media, users, volumes, mounts] =
            ["media", "run/media", "Volumes", "mnt"].map(|name| below(vec![root.join(name)]));
        for found in [media.clone(), below(media), below(users), volumes, mounts] {
            drives.extend(found);
        }
    }
    let own: BTreeSet<_> =
        [library].into_iter().chain(surroundings.roots.first().map(|root| &**root)).collect();
    let own: Vec<_> = own.into_iter().map(real_path::disk).collect();
    drives.retain(|drive| !own.contains(&real_path::disk(drive)));
    drives.sort_unstable();
    drives.dedup_by_key(|drive| real_path::disk(drive));
    drives
}
