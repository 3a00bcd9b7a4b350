//! The extension for SillyTavern's page: its files are a part of the program, and are put into the user's folder of extensions as they are.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::api::page;
use crate::archive::Blake3;
use crate::durable::{self, Existing};
use crate::engine::Workspace;
use crate::regular;
use crate::verbs;

const VERSION: &str = env!("CARGO_PKG_VERSION");
/// What tells our folder from somebody else's, and our files from edited ones.
const NOTE: &str = "stvc.json";

macro_rules! files {
    ($($name:literal),* $(,)?) => { [$(($name, include_str!(concat!("../../extension/", $name)))),*] };
}

const FILES: [(&str, &str); 11] = files![
    "manifest.json",
    "index.js",
    "badge.js",
    "commands.js",
    "deeds.js",
    "mailbox.js",
    "memory.js",
    "settings.js",
    "viewer.js",
    "words.js",
    "style.css",
];

/// Every file of the extension.
pub fn files() -> Vec<(&'static str, String)> {
    let own = |(name, text): (&'static str, &str)| match name {
        "manifest.json" => (name, text.replace("0.0.0", VERSION)),
        _ => (name, text.to_owned()),
    };
    let mut files: Vec<_> = FILES.into_iter().map(own).collect();
    let asset = |path| page::at(path).map_or("", |(_, text)| text);
    let frame = asset("/").replace("/style.css", "page.css").replace("/page.js", "page.js");
    let frame = frame.replace("<link rel=\"icon\" href=\"/icon.svg\">\n", "");
    files.push(("viewer.html", frame));
    files.push(("page.css", asset("/style.css").to_owned()));
    files.push(("page.js", asset("/page.js").to_owned()));
    files
}

/// What is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// Nothing.
    Absent,
    /// Ours, of this version, as it was put there or edited since.
    Installed { version: String, edited: Vec<String> },
    /// Something else under the same name.
    Foreign,
}

/// Why it is not done.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Verb(#[from] verbs::Error),
    /// What is there is not ours.
    #[error("{} is there already, and stvc did not put it there", path.display())]
    Foreign { path: PathBuf },
    /// What is there was changed by hand.
    #[error("changed since stvc put it there: {}", files.join(", "))]
    Edited { files: Vec<String> },
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
}

type Result<T> = std::result::Result<T, Error>;

/// What stvc put there: each file's hash.
#[derive(Serialize, Deserialize)]
struct Note {
    version: String,
    files: BTreeMap<String, Blake3>,
    /// What was there before: an update may have been interrupted.
    #[serde(default)]
    former: BTreeMap<String, Blake3>,
}

impl Note {
    fn is_edited(&self, name: &str, bytes: &[u8]) -> bool {
        let hash = Blake3::of(bytes);
        [&self.files, &self.former].iter().all(|known| known.get(name) != Some(&hash))
    }
}

/// Where it goes.
pub fn folder(workspace: &Workspace) -> Result<PathBuf> {
    let library = workspace.library().map_err(verbs::Error::from)?;
    Ok(library.root().join("extensions").join("stvc"))
}

/// What is there.
pub fn state(workspace: &Workspace) -> Result<State> {
    let folder = folder(workspace)?;
    if fs::symlink_metadata(&folder).is_err() {
        return Ok(State::Absent);
    }
    let Some(note) = note(&folder) else { return Ok(State::Foreign) };
    let is_edited = |name: &&String| {
        let there = regular::read(&folder.join(name));
        there.is_ok_and(|bytes| note.is_edited(name, &bytes))
    };
    let edited = note.files.keys().filter(is_edited).cloned().collect();
    Ok(State::Installed { version: note.version, edited })
}

fn note(folder: &Path) -> Option<Note> {
    let is_folder = fs::symlink_metadata(folder).is_ok_and(|found| found.is_dir());
    let bytes = regular::read(&folder.join(NOTE)).ok().filter(|_| is_folder)?;
    let note: Note = serde_json::from_slice(&bytes).ok()?;
    // Only names of ours are looked at.
    let is_plain = |name: &String| !name.contains(['/', '\\']) && !name.starts_with('.');
    note.files.keys().all(is_plain).then_some(note)
}

/// Put it there, or this version in the place of another.
pub fn install(workspace: &Workspace) -> Result<State> {
    let folder = folder(workspace)?;
    let known = ours(workspace, &folder)?;
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| Error::Io { path, source }
    };
    fs::create_dir_all(&folder).map_err(failed(&folder))?;
    let files = files();
    let hash = |(name, text): &(&str, String)| ((*name).to_owned(), Blake3::of(text.as_bytes()));
    let note = Note {
        version: VERSION.to_owned(),
        files: files.iter().map(hash).collect(),
        former: known,
    };
    for name in note.former.keys().filter(|name| !note.files.contains_key(*name)) {
        let _ = fs::remove_file(folder.join(name));
    }
    // First what tells that it is ours: whoever is interrupted can begin again.
    let told = serde_json::to_vec_pretty(&note).unwrap_or_default();
    let written = [(NOTE, told)].into_iter();
    let written = written.chain(files.into_iter().map(|(name, text)| (name, text.into_bytes())));
    for (name, bytes) in written {
        let path = folder.join(name);
        durable::write(&path, &bytes, Existing::Replace).map_err(failed(&path))?;
    }
    state(workspace)
}

/// Take it away.
pub fn remove(workspace: &Workspace) -> Result<bool> {
    let folder = folder(workspace)?;
    if state(workspace)? == State::Absent {
        return Ok(false);
    }
    let failed = |source| Error::Io { path: folder.clone(), source };
    for name in ours(workspace, &folder)?.keys().map(String::as_str).chain([NOTE]) {
        match fs::remove_file(folder.join(name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
            _ => {}
        }
    }
    // What somebody else put there stays.
    let _ = fs::remove_dir(&folder);
    Ok(true)
}

/// The files that stvc put there, if what is there is its own and as it left it.
fn ours(workspace: &Workspace, folder: &Path) -> Result<BTreeMap<String, Blake3>> {
    match state(workspace)? {
        State::Absent => Ok(BTreeMap::new()),
        State::Foreign => Err(Error::Foreign { path: folder.to_owned() }),
        State::Installed { edited, .. } if edited.is_empty() => {
            Ok(note(folder).map(|note| note.files).unwrap_or_default())
        }
        State::Installed { edited, .. } => Err(Error::Edited { files: edited }),
    }
}
