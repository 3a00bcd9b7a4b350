//! Finds the user directory from a folder that the user names, or that lies inside it.

use std::io;
use std::path::{Component, Path, PathBuf};

use super::folder::{list_existing, list_folder};
use super::{Error, Result};
use crate::real_path;

const DEFAULT_USER: &str = "default-user";

/// The name of the store in a user's folder.
pub const STORE: &str = ".stvc";

/// How much a folder must look like a user directory.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Proof {
    /// Named by the user: `chats/` is enough.
    Named,
    /// Met on the way up, where any folder may have a `chats/`: there must be more of SillyTavern in
    /// it. And only a `holder` may have users in it: a home folder is not the library that somebody
    /// copied into it.
    Found { holder: bool },
}

/// A user's directory, and the users beside it if none was named.
pub(super) struct Found {
    pub root: PathBuf,
    pub others: Vec<String>,
}

pub(super) fn open(dir: &Path, user: Option<&str>) -> Result<Found> {
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

/// Whether it is a SillyTavern that never ran: it creates its users' folders when it starts.
fn is_unused_install(dir: &Path) -> bool {
    dir.join("server.js").is_file() && dir.join("public").is_dir() && dir.join("default").is_dir()
}

fn never_started(install: &Path, user: Option<&str>) -> Error {
    let root = install.join("data").join(user.unwrap_or(DEFAULT_USER));
    Error::NeverStarted { path: install.to_owned(), root }
}

pub(super) fn find(start: &Path, user: Option<&str>) -> Result<Found> {
    let mut from = std::path::absolute(start).map_err(Error::io(start))?;
    if from.components().any(|part| part == Component::ParentDir) {
        from = real_path::of_existing(&from).map_err(Error::io(start))?;
    }
    let (mut without_user, mut unused) = (None, None);
    for dir in from.ancestors() {
        if is_unused_install(dir) {
            unused.get_or_insert_with(|| never_started(dir, user));
        }
        // The directory of the user may lie beside that of another one.
        let holder = dir == from || dir.ends_with("data") || without_user.is_some();
        let proof = Proof::Found { holder };
        match at(dir, user, proof) {
            Ok(Some(root)) => return Ok(root),
            Ok(None) => {}
            Err(error @ Error::NoSuchUser { .. }) if is_user(dir, proof) => {
                without_user = Some(error)
            }
            // The users are here, and this one is not among them.
            Err(error) => return Err(error),
        }
    }
    let nothing = || Error::NoLibraryFound { start: start.to_path_buf() };
    Err(without_user.or(unused).unwrap_or_else(nothing))
}

fn at(dir: &Path, user: Option<&str>, proof: Proof) -> Result<Option<Found>> {
    if is_user(dir, proof) {
        return match user {
            Some(user) if dir.file_name().is_none_or(|name| name != user) => {
                Err(no_such_user(dir, user, &[]))
            }
            _ => Ok(Some(Found { root: dir.to_path_buf(), others: Vec::new() })),
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

/// Returns the directory of the chosen user among those in `holder`; none if it has no user
/// directory.
fn among(holder: &Path, user: Option<&str>, proof: Proof) -> Result<Option<Found>> {
    let users = match users(holder, proof) {
        Ok(users) => users,
        // On the way up a folder that cannot be listed is not the library.
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
    Ok(Some(Found { root: holder.join(chosen), others }))
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
    // A store shows that it was one, whatever was lost since.
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
