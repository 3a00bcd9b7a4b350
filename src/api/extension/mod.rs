//! The extension for SillyTavern's page: its files are a part of the program, and are put into the user's folder of extensions as they are.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::api::page;
use crate::archive::Blake3;
use crate::durable::{self, Existing, TEMP_PREFIX};
use crate::engine::Workspace;
use crate::listed::listed;
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
    #[error("changed since stvc put it there: {}", listed(files))]
    Edited { files: Vec<String> },
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
}

type Result<T> = std::result::Result<T, Error>;

/// What stvc put there: each file's hash.
#[derive(PartialEq, Serialize, Deserialize)]
struct Note {
    version: String,
    files: BTreeMap<String, Blake3>,
    /// While it is written: what was there before.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    former: BTreeMap<String, Blake3>,
}

impl Note {
    fn is_edited(&self, name: &str, bytes: &[u8]) -> bool {
        let hash = Blake3::of(bytes);
        [&self.files, &self.former].iter().all(|known| known.get(name) != Some(&hash))
    }

    fn write(&self, folder: &Path) -> Result<()> {
        write(folder, NOTE, &serde_json::to_vec_pretty(self).unwrap_or_default())
    }
}

/// What the folder holds.
enum There {
    /// Nothing, or what an installation left that was interrupted before it had written anything.
    Nothing,
    Foreign,
    Ours {
        note: Note,
        edited: Vec<String>,
        missing: bool,
    },
}

/// Where it goes.
pub fn folder(workspace: &Workspace) -> Result<PathBuf> {
    let library = workspace.library().map_err(verbs::Error::from)?;
    Ok(library.root().join("extensions").join("stvc"))
}

/// What is there.
pub fn state(workspace: &Workspace) -> Result<State> {
    Ok(match look(&folder(workspace)?)? {
        There::Nothing => State::Absent,
        There::Foreign => State::Foreign,
        There::Ours { note, edited, .. } => State::Installed { version: note.version, edited },
    })
}

/// What cannot be read is neither ours nor not.
fn look(folder: &Path) -> Result<There> {
    let entries = match fs::symlink_metadata(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(There::Nothing),
        Err(error) => return Err(failed(folder)(error)),
        Ok(found) if !found.is_dir() => return Ok(There::Foreign),
        Ok(_) => fs::read_dir(folder).map_err(failed(folder))?,
    };
    let entries: io::Result<Vec<_>> = entries.collect();
    let mut names = entries.map_err(failed(folder))?.into_iter().map(|entry| entry.file_name());
    if names.all(|name| name.to_string_lossy().starts_with(TEMP_PREFIX)) {
        return Ok(There::Nothing);
    }
    let Some(note) = read(folder, NOTE)? else { return Ok(There::Foreign) };
    let Ok(note) = serde_json::from_slice::<Note>(&note) else { return Ok(There::Foreign) };
    // Only names of ours are looked at.
    let is_plain = |name: &String| !name.contains(['/', '\\']) && !name.starts_with('.');
    if !note.files.keys().chain(note.former.keys()).all(is_plain) {
        return Ok(There::Foreign);
    }
    let (mut edited, mut missing) = (Vec::new(), !note.former.is_empty());
    for name in note.files.keys() {
        match read(folder, name)? {
            Some(bytes) if note.is_edited(name, &bytes) => edited.push(name.clone()),
            found => missing |= found.is_none_or(|bytes| Blake3::of(&bytes) != note.files[name]),
        }
    }
    Ok(There::Ours { note, edited, missing })
}

fn read(folder: &Path, name: &str) -> Result<Option<Vec<u8>>> {
    let path = folder.join(name);
    match regular::read(&path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(failed(&path)(error)),
    }
}

fn write(folder: &Path, name: &str, bytes: &[u8]) -> Result<()> {
    let path = folder.join(name);
    durable::write(&path, bytes, Existing::Replace).map_err(failed(&path))
}

fn remove_file(folder: &Path, name: &str) -> Result<()> {
    match durable::remove(&folder.join(name)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed(folder)(error)),
        _ => Ok(()),
    }
}

fn failed(path: &Path) -> impl Fn(io::Error) -> Error {
    move |source| Error::Io { path: path.to_owned(), source }
}

/// Put it there, or this version in the place of another.
pub fn install(workspace: &Workspace) -> Result<State> {
    let folder = folder(workspace)?;
    let texts = files();
    let hash = |(name, text): &(&str, String)| ((*name).to_owned(), Blake3::of(text.as_bytes()));
    let files = texts.iter().map(hash).collect();
    let mut note = Note { version: VERSION.to_owned(), files, former: BTreeMap::new() };
    let there = ours(&folder)?;
    durable::create_dir_all(&folder).map_err(failed(&folder))?;
    durable::clear_left_behind(&folder);
    if let Some((there, missing)) = there {
        if there == note && !missing {
            return state(workspace);
        }
        let former = there.files.into_iter().chain(there.former);
        note.former.extend(former.filter(|(name, hash)| note.files.get(name) != Some(hash)));
    }
    // First what tells that it is ours: whoever is interrupted can begin again.
    note.write(&folder)?;
    for (name, text) in &texts {
        write(&folder, name, text.as_bytes())?;
    }
    for name in std::mem::take(&mut note.former).keys() {
        if !note.files.contains_key(name) {
            remove_file(&folder, name)?;
        }
    }
    note.write(&folder)?;
    state(workspace)
}

/// Take it away.
pub fn remove(workspace: &Workspace) -> Result<()> {
    let folder = folder(workspace)?;
    let Some(parent) = folder.parent().filter(|_| folder.exists()) else { return Ok(()) };
    if let Some((note, _)) = ours(&folder)? {
        for name in note.files.keys().chain(note.former.keys()) {
            remove_file(&folder, name)?;
        }
        remove_file(&folder, NOTE)?;
    }
    durable::clear_left_behind(&folder);
    // What somebody else put there stays.
    let rest = if fs::remove_dir(&folder).is_ok() { parent } else { &folder };
    durable::sync_dir(rest).map_err(failed(rest))
}

/// What stvc noted of what it put there, if that is as it left it, and whether something of it is missing.
fn ours(folder: &Path) -> Result<Option<(Note, bool)>> {
    match look(folder)? {
        There::Nothing => Ok(None),
        There::Foreign => Err(Error::Foreign { path: folder.to_owned() }),
        There::Ours { edited, .. } if !edited.is_empty() => Err(Error::Edited { files: edited }),
        There::Ours { note, missing, .. } => Ok(Some((note, missing))),
    }
}
