//! Installs the extension for SillyTavern's page. The extension's files are part of the program and
//! are written into a folder among the user's extensions. A new version is written into a separate
//! folder, which then replaces the old folder. Thus SillyTavern's page loads either the old modules
//! or the new ones, never a mixture. The old folder stays in `REPLACED` until the user's own files
//! in it have been moved to the new folder. `recover` finishes or reverts an interrupted update.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::api::page;
use crate::archive::Blake3;
use crate::durable::{self, Existing, TEMP_PREFIX};
use crate::engine::Workspace;
use crate::exit;
use crate::hint::{self, Hint, unchanged};
use crate::regular;
use crate::st::mailbox::{MAILBOX, is_of_mailbox};
use crate::verbs;
use crate::words::listed;

const VERSION: &str = env!("CARGO_PKG_VERSION");
/// The file that lists the installed version and the hash of each of its files. It identifies a
/// folder that stvc wrote, and detects edited files.
const NOTE: &str = "stvc.json";
/// The folder that contains the old version during an update. It has no manifest, so SillyTavern
/// loads nothing from it.
const REPLACED: &str = ".stvc-replaced";

macro_rules! files {
    ($($name:literal),* $(,)?) => { [$(($name, include_str!(concat!("../../extension/", $name)))),*] };
}

const FILES: [(&str, &str); 12] = files![
    "manifest.json",
    "index.js",
    "actions.js",
    "badge.js",
    "commands.js",
    "mailbox.js",
    "offers.js",
    "settings.js",
    "settings_panel.js",
    "sillytavern.js",
    "viewer.js",
    "style.css",
];

/// Modules of the viewer that the extension uses, too.
const SHARED: [&str; 4] = ["codes.js", "dom.js", "texts.js", "words.js"];

/// Returns the name and the text of every file of the extension.
pub fn files() -> Vec<(&'static str, String)> {
    let own = |(name, text): (&'static str, &str)| match name {
        "manifest.json" => (name, text.replace("0.0.0", VERSION)),
        // All modules are installed in one folder.
        _ => (name, text.replace("\"../page/", "\"./")),
    };
    let mut files: Vec<_> = FILES.into_iter().map(own).collect();
    files.extend(SHARED.map(|name| (name, page::module(name).to_owned())));
    let asset = |path| page::at(path).map_or("", |(_, text)| text);
    let frame = asset("/").replace("/style.css", "page.css").replace("/page.js", "page.js");
    let frame = frame.replace("<link rel=\"icon\" href=\"/icon.svg\">\n", "");
    files.push(("viewer.html", frame));
    files.push(("page.css", asset("/style.css").to_owned()));
    files.push(("page.js", asset("/page.js").to_owned()));
    files
}

/// The state of the extension's folder.
pub enum State {
    /// The folder does not exist, or an installation was interrupted before it wrote a file.
    Absent,
    /// The folder, or a file in its place, was not written by stvc.
    Foreign,
    /// stvc wrote the folder.
    Installed(Installed),
}

/// An installed version.
pub struct Installed {
    note: InstallRecord,
    /// Files that were changed after stvc wrote them.
    pub edited: Vec<String>,
    is_incomplete: bool,
    /// Names of files and folders in the extension's folder that stvc did not write.
    others: Vec<OsString>,
}

impl Installed {
    /// Returns the version of stvc that wrote the extension.
    pub fn version(&self) -> &str {
        &self.note.version
    }

    /// Returns whether a file of that version is missing.
    pub fn is_incomplete(&self) -> bool {
        self.is_incomplete
    }
}

/// An error while installing or removing the extension.
#[derive(Debug, thiserror::Error, strum::IntoStaticStr)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the message of each variant describes it")]
#[strum(serialize_all = "kebab-case", prefix = "extension-")]
pub enum Error {
    #[error(transparent)]
    Verb(#[from] verbs::Error),
    #[error("{} already exists and was not created by stvc", path.display())]
    Foreign { path: PathBuf },
    #[error("files of the extension were changed: {}", listed(files))]
    Edited { files: Vec<String> },
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
}

type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// Returns the exit code for this error.
    pub fn exit(&self) -> u8 {
        match self {
            Self::Verb(error) => error.exit(),
            Self::Foreign { .. } | Self::Edited { .. } => exit::REFUSED,
            Self::Io { .. } => exit::FAILED,
        }
    }

    /// Returns a hint for the user.
    pub fn hint(&self) -> Option<Hint> {
        match self {
            Self::Verb(error) => error.hint(),
            Self::Foreign { .. } => Some(unchanged("check the file and move it away")),
            Self::Edited { .. } => {
                Some(unchanged("copy your changes elsewhere, then delete these files"))
            }
            Self::Io { source, .. } => hint::of_io(source),
        }
    }
}

/// The installed version, and the hash of each of its files. Stored in [`NOTE`].
#[derive(PartialEq, Serialize, Deserialize)]
struct InstallRecord {
    version: String,
    files: BTreeMap<String, Blake3>,
}

/// Returns the path of the extension's folder.
pub fn folder(workspace: &Workspace) -> Result<PathBuf> {
    let library = workspace.library().map_err(verbs::Error::from)?;
    Ok(library.root().join("extensions").join("stvc"))
}

/// Examines the folder of the extension.
pub fn state(workspace: &Workspace) -> Result<State> {
    look(&folder(workspace)?)
}

/// Examines an extension folder. Fails if the folder cannot be read, because its author is then
/// unknown.
fn look(folder: &Path) -> Result<State> {
    let entries = match fs::symlink_metadata(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(State::Absent),
        Err(error) => return Err(failed(folder)(error)),
        Ok(found) if !found.is_dir() => return Ok(State::Foreign),
        Ok(_) => fs::read_dir(folder).map_err(failed(folder))?,
    };
    let entries: io::Result<Vec<_>> = entries.collect();
    let mut others: Vec<_> =
        entries.map_err(failed(folder))?.into_iter().map(|entry| entry.file_name()).collect();
    others.retain(|name| !name.to_string_lossy().starts_with(TEMP_PREFIX));
    if others.is_empty() {
        return Ok(State::Absent);
    }
    let Some(note) = read(folder, NOTE)? else { return Ok(State::Foreign) };
    let Ok(note) = serde_json::from_slice::<InstallRecord>(&note) else {
        return Ok(State::Foreign);
    };
    let is_plain = |name: &String| !name.contains(['/', '\\']) && !name.starts_with('.');
    if !note.files.keys().all(is_plain) {
        return Ok(State::Foreign);
    }
    let (mut edited, mut is_incomplete) = (Vec::new(), false);
    for (name, hash) in &note.files {
        match read(folder, name)? {
            Some(bytes) if Blake3::of(&bytes) != *hash => edited.push(name.clone()),
            found => is_incomplete |= found.is_none(),
        }
    }
    let is_ours = |name: &str| name == NOTE || note.files.contains_key(name);
    others.retain(|name| !name.to_str().is_some_and(is_ours));
    Ok(State::Installed(Installed { note, edited, is_incomplete, others }))
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

/// Installs this version of the extension, or replaces another version.
pub fn install(workspace: &Workspace) -> Result<State> {
    let folder = folder(workspace)?;
    let around = durable::parent(&folder);
    durable::clear_left_behind(around);
    recover(&folder)?;
    let texts = files();
    let hash = |(name, text): &(&str, String)| ((*name).to_owned(), Blake3::of(text.as_bytes()));
    let note =
        InstallRecord { version: VERSION.to_owned(), files: texts.iter().map(hash).collect() };
    let mut others = Vec::new();
    if let Some(there) = ours(&folder)? {
        if there.note == note && !there.is_incomplete {
            return Ok(State::Installed(there));
        }
        others = there.others;
        let is_new = |name: &&str| note.files.contains_key(*name);
        let files = others.iter().filter_map(|name| name.to_str()).filter(is_new);
        let files: Vec<_> = files.map(str::to_owned).collect();
        if !files.is_empty() {
            return Err(Error::Edited { files });
        }
    }
    durable::create_dir_all(around).map_err(failed(around))?;
    let temp = durable::create_temp_dir(around, durable::TEMP_PREFIX).map_err(failed(around))?;
    let new = temp.join("stvc");
    let replaced = write_version(&new, &note, &texts)
        .and_then(|()| others.iter().try_for_each(|name| carry_over(&folder, &new, name)))
        .and_then(|()| replace(&folder, &new));
    let _ = fs::remove_dir_all(&temp);
    // `recover` must run even if syncing the new folder failed.
    recover(&folder)?;
    replaced?;
    state(workspace)
}

fn write_version(folder: &Path, note: &InstallRecord, texts: &[(&str, String)]) -> Result<()> {
    fs::create_dir(folder).map_err(failed(folder))?;
    for (name, text) in texts {
        write(folder, name, text.as_bytes())?;
    }
    write(folder, NOTE, &serde_json::to_vec_pretty(note).unwrap_or_default())
}

/// Links or copies a user's file into the new folder, before the new folder replaces the old one.
/// The user's folders are moved after the replacement.
fn carry_over(folder: &Path, new: &Path, name: &OsString) -> Result<()> {
    let (from, to) = (folder.join(name), new.join(name));
    if fs::symlink_metadata(&from).map_err(failed(&from))?.is_file() {
        fs::hard_link(&from, &to)
            .or_else(|_| fs::copy(&from, &to).map(drop))
            .and_then(|()| durable::sync_dir(new))
            .map_err(failed(&to))
    } else {
        Ok(())
    }
}

/// Moves the old folder into [`REPLACED`], and renames `new` to `folder`.
fn replace(folder: &Path, new: &Path) -> Result<()> {
    let around = durable::parent(folder);
    let waiting = around.join(REPLACED);
    let old = waiting.join("stvc");
    let is_there = fs::symlink_metadata(folder).is_ok();
    if is_there {
        durable::create_dir_all(&waiting).map_err(failed(&waiting))?;
        durable::rename(folder, &old).map_err(failed(folder))?;
    }
    if let Err(error) = durable::rename(new, folder) {
        if is_there {
            let _ = durable::rename(&old, folder).and_then(|()| fs::remove_dir(&waiting));
        }
        return Err(failed(folder)(error));
    }
    durable::sync_dir(around).map_err(failed(around))
}

/// Finishes or reverts an interrupted update. If `folder` does not exist, restores the old folder.
/// Otherwise moves the user's files from the old folder to `folder`, and removes the old folder.
fn recover(folder: &Path) -> Result<()> {
    let around = durable::parent(folder);
    let waiting = around.join(REPLACED);
    let old = waiting.join("stvc");
    match fs::symlink_metadata(&waiting) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(failed(&waiting)(error)),
        Ok(found) if !found.is_dir() => return Err(Error::Foreign { path: waiting }),
        Ok(_) => {}
    }
    match look(&old)? {
        State::Absent => drop(fs::remove_dir_all(&old)),
        _ if fs::symlink_metadata(folder).is_err() => {
            durable::rename(&old, folder).map_err(failed(folder))?;
        }
        State::Foreign => return Err(Error::Foreign { path: waiting }),
        State::Installed(Installed { note, edited, others, .. }) => {
            let edited = edited.into_iter().map(OsString::from);
            for name in others.into_iter().chain(edited) {
                move_over(&old, folder, &name)?;
            }
            durable::sync_dir(folder).map_err(failed(folder))?;
            for name in note.files.keys() {
                remove_file(&old, name)?;
            }
            // The record is removed last, because it identifies the other files as written by stvc.
            remove_file(&old, NOTE)?;
            durable::clear_left_behind(&old);
            remove_empty(&old);
        }
    }
    remove_empty(&waiting);
    durable::sync_dir(around).map_err(failed(around))
}

/// Removes a folder if it is empty. Retries once, because no later command removes the folder.
fn remove_empty(folder: &Path) {
    if fs::remove_dir(folder).is_err() {
        let _ = fs::remove_dir(folder);
    }
}

/// Moves a user's file from the old folder to `folder`. If `folder` has a different file of this
/// name, `.former` is appended to the name.
fn move_over(old: &Path, folder: &Path, name: &OsStr) -> Result<()> {
    let from = old.join(name);
    let mut to = folder.join(name);
    let is_file = |path: &Path| fs::symlink_metadata(path).is_ok_and(|found| found.is_file());
    if is_file(&from) && is_file(&to) {
        let read = |path: &Path| regular::read(path).map_err(failed(path));
        if read(&from)? == read(&to)? {
            return durable::remove(&from).map_err(failed(&from));
        }
    }
    while fs::symlink_metadata(&to).is_ok() {
        to.as_mut_os_string().push(".former");
    }
    durable::rename(&from, &to).map_err(failed(&to))
}

/// Removes the extension. The user's own files in its folder stay.
pub fn remove(workspace: &Workspace) -> Result<()> {
    let folder = folder(workspace)?;
    recover(&folder)?;
    let Some(parent) = folder.parent().filter(|_| folder.exists()) else { return Ok(()) };
    if let Some(there) = ours(&folder)? {
        for name in there.note.files.keys() {
            remove_file(&folder, name)?;
        }
        remove_file(&folder, NOTE)?;
    }
    durable::clear_left_behind(&folder);
    clear_mailbox(workspace)?;
    // The folder is not empty if it contains the user's own files.
    let rest = if fs::remove_dir(&folder).is_ok() { parent } else { &folder };
    durable::sync_dir(rest).map_err(failed(rest))
}

/// Removes the files that the extension and the watch wrote for each other.
fn clear_mailbox(workspace: &Workspace) -> Result<()> {
    let library = workspace.library().map_err(verbs::Error::from)?;
    let folder = library.root().join(MAILBOX);
    let failed = failed(&folder);
    let mailbox = match crate::st::open_folder(library.root(), MAILBOX) {
        Ok(mailbox) => mailbox,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(failed(error)),
    };
    for entry in fs::read_dir(mailbox.path()).map_err(&failed)? {
        let entry = entry.map_err(&failed)?;
        // A folder of such a name is not from stvc.
        let is_file = entry.file_type().is_ok_and(|kind| !kind.is_dir());
        let name = entry.file_name();
        if is_file && name.to_str().is_some_and(is_of_mailbox) {
            mailbox.remove(&name).map_err(&failed)?;
        }
    }
    Ok(())
}

/// Returns the installed version, or `None` if the extension is not installed. Fails if a file was
/// edited or if stvc did not write the folder.
fn ours(folder: &Path) -> Result<Option<Installed>> {
    match look(folder)? {
        State::Absent => Ok(None),
        State::Foreign => Err(Error::Foreign { path: folder.to_owned() }),
        State::Installed(there) if there.edited.is_empty() => Ok(Some(there)),
        State::Installed(there) => Err(Error::Edited { files: there.edited }),
    }
}
