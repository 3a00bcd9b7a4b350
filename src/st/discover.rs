//! Finds the user's folder from a path that the user passes, or from a path inside the folder.

use std::io;
use std::path::{Component, Path, PathBuf};

use super::folder::{list_existing, list_folder};
use super::{Error, Result};
use crate::real_path;

const DEFAULT_USER: &str = "default-user";

/// The name of the store's folder in a user's folder.
pub const STORE: &str = ".stvc";

/// Evidence required to treat a folder as a user's folder.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Proof {
    /// The user passed the path: a `chats/` folder is sufficient.
    Named,
    /// The folder was found while searching parent folders, where any folder may have a `chats/`,
    /// so it must contain more files of SillyTavern. Only with `holder` may the folder also contain
    /// users' folders: a home folder must not count as the library that the user copied into it.
    Found { holder: bool },
}

/// A user's folder, and the other users of the install if the caller did not name a user.
pub(super) struct UserFolder {
    pub root: PathBuf,
    pub others: Vec<String>,
}

pub(super) fn open(dir: &Path, user: Option<&str>) -> Result<UserFolder> {
    let dir = std::path::absolute(dir).map_err(Error::io(dir))?;
    list_existing(&dir).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => Error::NoSuchFolder { path: dir.clone() },
        _ => Error::io(&dir)(error),
    })?;
    match at(&dir, user, Proof::Named)? {
        Some(root) => Ok(root),
        None if is_unused_install(&dir) => Err(never_started(&dir, user)),
        None => Err(Error::NotALibrary { path: dir }),
    }
}

/// Returns whether `dir` is a SillyTavern install that was never started. SillyTavern creates its
/// users' folders when it first starts.
fn is_unused_install(dir: &Path) -> bool {
    dir.join("server.js").is_file() && dir.join("public").is_dir() && dir.join("default").is_dir()
}

fn never_started(install: &Path, user: Option<&str>) -> Error {
    let root = install.join("data").join(user.unwrap_or(DEFAULT_USER));
    Error::NeverStarted { path: install.to_owned(), root }
}

pub(super) fn find(start: &Path, user: Option<&str>) -> Result<UserFolder> {
    let mut from = std::path::absolute(start).map_err(Error::io(start))?;
    if from.components().any(|part| part == Component::ParentDir) {
        from = real_path::of_existing(&from).map_err(Error::io(start))?;
    }
    let (mut without_user, mut unused) = (None, None);
    for dir in from.ancestors() {
        if is_unused_install(dir) {
            unused.get_or_insert_with(|| never_started(dir, user));
        }
        // The folder of the named user may be next to the folder of another user.
        let holder = dir == from || dir.ends_with("data") || without_user.is_some();
        let proof = Proof::Found { holder };
        match at(dir, user, proof) {
            Ok(Some(root)) => return Ok(root),
            Ok(None) => {}
            Err(error @ Error::NoSuchUser { .. }) if is_user(dir, proof) => {
                without_user = Some(error)
            }
            // This folder contains users, but not the named user.
            Err(error) => return Err(error),
        }
    }
    let nothing = || Error::NoLibraryFound { start: start.to_path_buf() };
    Err(without_user.or(unused).unwrap_or_else(nothing))
}

fn at(dir: &Path, user: Option<&str>, proof: Proof) -> Result<Option<UserFolder>> {
    if is_user(dir, proof) {
        return match user {
            Some(user) if dir.file_name().is_none_or(|name| name != user) => {
                Err(no_such_user(dir, user, &[]))
            }
            _ => Ok(Some(UserFolder { root: dir.to_path_buf(), others: Vec::new() })),
        };
    }
    if let Some(root) = among(&dir.join("data"), user, proof)? {
        return Ok(Some(root));
    }
    match proof {
        Proof::Found { holder: false } => Ok(None),
        _ => among(dir, user, proof),
    }
}

fn no_such_user(path: &Path, user: &str, users: &[String]) -> Error {
    Error::NoSuchUser { path: path.to_owned(), user: user.to_owned(), users: users.to_vec() }
}

/// Returns the folder of the chosen user in `holder`; `None` if `holder` has no users' folders.
fn among(holder: &Path, user: Option<&str>, proof: Proof) -> Result<Option<UserFolder>> {
    let users = match users(holder, proof) {
        Ok(users) => users,
        // A parent folder that cannot be listed does not count as the library.
        Err(error) if proof != Proof::Named || is_absent(&error) => return Ok(None),
        Err(error) => return Err(Error::io(holder)(error)),
    };
    if users.is_empty() {
        return Ok(None);
    }
    let called = |user: &str| users.iter().find(|name| *name == user);
    let chosen = match (user, users.as_slice()) {
        (Some(user), _) => called(user).ok_or_else(|| no_such_user(holder, user, &users))?,
        (None, [only]) => only,
        (None, _) => called(DEFAULT_USER).ok_or_else(|| Error::SeveralUsers {
            path: holder.to_path_buf(),
            users: users.clone(),
        })?,
    };
    let unnamed = |other: &&String| user.is_none() && *other != chosen;
    let others = users.iter().filter(unnamed).cloned().collect();
    Ok(Some(UserFolder { root: holder.join(chosen), others }))
}

fn users(holder: &Path, proof: Proof) -> io::Result<Vec<String>> {
    let entries = list_existing(holder)?.into_iter().filter(|it| is_user(&it.path(), proof));
    let mut users: Vec<_> = entries.filter_map(|it| it.file_name().into_string().ok()).collect();
    users.sort_unstable();
    Ok(users)
}

fn is_user(dir: &Path, proof: Proof) -> bool {
    let has = |name: &str| dir.join(name).is_dir();
    let settings = dir.join("settings.json").is_file();
    // A store proves that this is a user's folder, even if other files were lost later.
    if dir.join(STORE).join("HEAD").is_file() {
        return true;
    }
    if !has("chats") {
        return settings && (has("group chats") || has("worlds"));
    }
    settings
        || proof == Proof::Named
        || dir.file_name().is_some_and(|name| name == DEFAULT_USER)
        || ["group chats", "groups", "worlds", "characters"].into_iter().any(has)
        || holds_chats(&dir.join("chats"))
}

fn holds_chats(dir: &Path) -> bool {
    let list = |dir: &Path| list_folder(dir).entries.into_iter();
    list(dir).flat_map(|folder| list(&folder.path())).any(|file| {
        Path::new(&file.file_name()).extension().is_some_and(|ending| ending == "jsonl")
    })
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}
