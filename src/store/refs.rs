//! Refs: branches and tags. Git's library renames a ref into place but does not sync it, so the moves are made here, by
//! git's own protocol: `<ref>.lock` is created, written, synced, renamed; then its folder is synced.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use gix::refs::transaction::{Change, PreviousValue, RefEdit, RefLog};
use gix::refs::{FullName, Target};
use serde::{Deserialize, Serialize};

use super::{Error, ObjectId, Result, Store, names};
use crate::durable;

/// How long to wait for another program (`git gc`, say) to let go of a ref.
const PATIENCE: Duration = Duration::from_secs(5);
/// A ref's lock older than this was left behind by a power cut: nobody needs a minute to write 41 bytes.
const LEFT_BEHIND: Duration = Duration::from_secs(60);

/// A ref's full name, `refs/heads/…` or `refs/tags/…`, as git accepts it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub struct RefName(String);

impl RefName {
    /// The branch whose components are `parts`, each encoded.
    pub fn branch<'a>(parts: impl IntoIterator<Item = &'a str>) -> Self {
        let parts: Vec<_> = parts.into_iter().map(names::ref_segment).collect();
        Self(format!("refs/heads/{}", parts.join("/")))
    }

    /// The tag `name`; `None` if the name is empty or too long for a tag.
    pub fn tag(name: &str) -> Option<Self> {
        let segment = names::ref_segment_exact(name).filter(|_| !name.is_empty())?;
        Some(Self(format!("refs/tags/{segment}")))
    }

    /// The ref that keeps the objects of `commit` when no branch does.
    pub fn kept(commit: ObjectId) -> Self {
        Self(format!("refs/stvc/kept/{commit}"))
    }

    /// Whether it is one of those.
    pub fn is_kept(&self) -> bool {
        self.0.starts_with("refs/stvc/kept/")
    }

    /// The name as git writes it.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The tag's own name, decoded; `None` for what is no tag.
    pub fn tag_name(&self) -> Option<String> {
        self.0.strip_prefix("refs/tags/").map(names::decode)
    }
}

impl TryFrom<String> for RefName {
    type Error = Error;

    fn try_from(name: String) -> Result<Self> {
        match FullName::try_from(name.as_str()) {
            Ok(_) if name.starts_with("refs/") => Ok(Self(name)),
            _ => Err(Error::BadRefName { name }),
        }
    }
}

impl std::fmt::Display for RefName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// One ref that moves: `None` is "not there".
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefChange {
    /// Which ref.
    #[serde(rename = "ref")]
    pub name: RefName,
    /// Where it was.
    #[serde(with = "hex")]
    pub before: Option<ObjectId>,
    /// Where it goes.
    #[serde(with = "hex")]
    pub after: Option<ObjectId>,
}

impl Store {
    /// Move refs. Each must still be where its change says it was. The caller holds the store's lock and has logged the
    /// operation; nothing here can lose an object.
    pub(super) fn move_refs(&self, changes: &[RefChange]) -> Result<()> {
        let mut folders = Vec::new();
        let mut locks = Vec::new();
        // All are written and synced before the first one is renamed: a full disk stops the whole set.
        for change in changes {
            if change.before != self.ref_target(&change.name)? {
                return Err(Error::RefMoved { name: change.name.0.clone() });
            }
            if let Some(after) = change.after {
                locks.push(LockedRef::write(&self.git_dir.join(change.name.as_str()), after)?);
            }
        }
        for lock in locks {
            folders.push(lock.commit()?);
        }
        for change in changes.iter().filter(|change| change.after.is_none()) {
            self.delete_ref(change)?;
            folders.push(self.git_dir.clone());
            folders.push(durable::parent(&self.git_dir.join(change.name.as_str())).to_owned());
        }
        folders.sort();
        folders.dedup();
        for folder in folders.iter().filter(|folder| folder.is_dir()) {
            durable::sync_dir(folder).map_err(Error::io(folder))?;
        }
        Ok(())
    }

    /// Make the repository's `HEAD` name this branch, so that plain `git log` and `git clone` have something to show.
    pub(super) fn point_head_at(&self, name: &RefName) -> Result<()> {
        let head = self.git_dir.join("HEAD");
        durable::write(&head, format!("ref: {name}\n").as_bytes(), durable::Existing::Replace)
            .map_err(Error::io(head))
    }

    /// The branch that `HEAD` names, whether or not it exists.
    pub fn head(&self) -> Result<Option<RefName>> {
        let path = self.git_dir.join("HEAD");
        let text = match fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => {
                return Err(Error::Io { path, source: error });
            }
        };
        let text = String::from_utf8_lossy(&text);
        Ok(text
            .strip_prefix("ref: ")
            .and_then(|name| RefName::try_from(name.trim_end().to_owned()).ok()))
    }

    /// Remove the locks that a killed process left on these refs. The caller holds the store's lock, so they are nobody's.
    pub(super) fn clear_ref_locks(&self, changes: &[RefChange]) -> Result<()> {
        for change in changes {
            let lock = lock_path(&self.git_dir.join(change.name.as_str()));
            match fs::remove_file(&lock) {
                Ok(()) => {}
                Err(error)
                    if matches!(
                        error.kind(),
                        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
                    ) => {}
                Err(error) => {
                    return Err(Error::Io { path: lock, source: error });
                }
            }
        }
        Ok(())
    }

    /// Where `HEAD` leads, if it names a commit and no branch.
    pub fn detached_head(&self) -> Option<ObjectId> {
        let text = fs::read(self.git_dir.join("HEAD")).ok()?;
        ObjectId::from_hex(text.trim_ascii()).ok()
    }

    /// Deletion goes through git's library: a packed ref means rewriting `packed-refs`.
    fn delete_ref(&self, change: &RefChange) -> Result<()> {
        let what = || format!("deleting the ref {}", change.name);
        let expected = match change.before {
            Some(id) => PreviousValue::MustExistAndMatch(Target::Object(id)),
            None => PreviousValue::Any,
        };
        let edit = RefEdit {
            change: Change::Delete { expected, log: RefLog::AndReference },
            name: FullName::try_from(change.name.as_str()).map_err(Error::git(what()))?,
            deref: false,
        };
        // Only stvc writes there, and the caller has its lock: whoever locked it is dead.
        if change.name.is_kept() {
            let _ = fs::remove_file(lock_path(&self.git_dir.join(change.name.as_str())));
        }
        let patience = gix::lock::acquire::Fail::AfterDurationWithBackoff(PATIENCE);
        let prepared = self
            .refs
            .transaction()
            .prepare([edit], patience, patience)
            .map_err(Error::git(what()))?;
        prepared.commit(None).map_err(Error::git(what()))?;
        Ok(())
    }
}

/// A ref's lock file that holds the new value, synced.
struct LockedRef {
    target: PathBuf,
    lock: Option<PathBuf>,
}

impl LockedRef {
    fn write(target: &Path, id: ObjectId) -> Result<Self> {
        let lock = lock_path(target);
        let deadline = Instant::now() + PATIENCE;
        let mut file = loop {
            // Again each time: git removes folders of refs that it packed.
            let made = durable::create_dir_all(durable::parent(target));
            match made.and_then(|()| OpenOptions::new().write(true).create_new(true).open(&lock)) {
                Ok(file) => break file,
                Err(error)
                    if matches!(
                        error.kind(),
                        io::ErrorKind::AlreadyExists | io::ErrorKind::NotFound
                    ) && Instant::now() < deadline =>
                {
                    if is_left_behind(&lock) {
                        fs::remove_file(&lock).map_err(Error::io(&lock))?;
                    } else {
                        std::thread::sleep(Duration::from_millis(20));
                    }
                }
                Err(error) => {
                    return Err(Error::Io { path: lock, source: error });
                }
            }
        };
        let locked = Self { target: target.to_owned(), lock: Some(lock.clone()) };
        file.write_all(format!("{id}\n").as_bytes())
            .and_then(|()| file.sync_all())
            .map_err(Error::io(lock))?;
        Ok(locked)
    }

    /// Give the ref its new value; the folder to be synced.
    fn commit(mut self) -> Result<PathBuf> {
        if let Some(lock) = self.lock.take() {
            fs::rename(&lock, &self.target).map_err(Error::io(&self.target))?;
        }
        Ok(durable::parent(&self.target).to_owned())
    }
}

impl Drop for LockedRef {
    fn drop(&mut self) {
        if let Some(lock) = &self.lock {
            let _ = fs::remove_file(lock);
        }
    }
}

fn lock_path(target: &Path) -> PathBuf {
    let mut name = target.as_os_str().to_owned();
    name.push(".lock");
    name.into()
}

fn is_left_behind(lock: &Path) -> bool {
    let written = fs::metadata(lock).and_then(|found| found.modified());
    written.is_ok_and(|written| written.elapsed().is_ok_and(|age| age > LEFT_BEHIND))
}

mod hex {
    use super::ObjectId;
    use serde::{Deserialize, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(id: &Option<ObjectId>, out: S) -> Result<S::Ok, S::Error> {
        match id {
            Some(id) => out.collect_str(id),
            None => out.serialize_none(),
        }
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(input: D) -> Result<Option<ObjectId>, D::Error> {
        let text = Option::<String>::deserialize(input)?;
        text.map(|text| {
            ObjectId::from_hex(text.as_bytes())
                .map_err(|_| serde::de::Error::custom("no object id"))
        })
        .transpose()
    }
}
