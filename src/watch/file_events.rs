//! File events from the system, for the folders of all users. An event only triggers a scan; the
//! scan finds out which files changed.
//!
//! There is one watcher for all users, because each watcher needs a thread and, on Linux, one of
//! the few inotify instances of the user. Only folders with files that stvc stores are watched, and
//! those in which such a folder may be created.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use notify::event::{AccessKind, AccessMode};
use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher as _};

use super::bell::{Bell, Reasons};
use crate::durable::TEMP_PREFIX;
use crate::st::{FOLDERS, list_folder};

/// Whether a watch of a folder costs as much as a watch of all its subfolders. Inotify needs one
/// watch for each subfolder, and most subfolders have no files that stvc stores.
const IS_RECURSIVE_CHEAP: bool = !cfg!(any(target_os = "linux", target_os = "android"));

/// The folder whose subfolders contain chats.
const CHATS: &str = "chats";

/// A folder in the library whose files wake the companion.
pub(super) struct CompanionFolder {
    /// The path relative to the library.
    pub(super) path: PathBuf,
    pub(super) is_mail: fn(&OsStr) -> bool,
    pub(super) bell: Bell,
}

struct Subscriber {
    bell: Bell,
    companion: Option<CompanionFolder>,
}

/// The subscribed libraries by their canonical path, which events contain.
type Subscribers = Arc<RwLock<HashMap<PathBuf, Subscriber>>>;

pub(super) struct FileEvents {
    inner: Mutex<RecommendedWatcher>,
    subscribers: Subscribers,
}

impl FileEvents {
    pub(super) fn new() -> notify::Result<Self> {
        let subscribers = Subscribers::default();
        let known = Arc::clone(&subscribers);
        let inner = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
            let known = known.read().unwrap_or_else(PoisonError::into_inner);
            match event {
                Ok(event) => pass_on(&event, &known),
                // Events were lost. Every library is scanned.
                Err(_) => known.values().for_each(ring_all),
            }
        })?;
        Ok(Self { inner: Mutex::new(inner), subscribers })
    }

    /// Subscribes to the events of a library, or again after its folders changed. The companion's
    /// folder need not exist yet.
    pub(super) fn subscribe(
        &self,
        root: &Path,
        bell: &Bell,
        companion: Option<CompanionFolder>,
    ) -> notify::Result<()> {
        let root = root.canonicalize()?;
        let mut folders = vec![(root.clone(), RecursiveMode::NonRecursive)];
        for folder in FOLDERS {
            folders.extend(below(&root.join(folder), *folder == *CHATS));
        }
        let places = companion.iter().flat_map(|companion| companion.path.ancestors());
        let places = places.filter(|place| !place.as_os_str().is_empty());
        let places = places.map(|place| root.join(place)).filter(|place| place.is_dir());
        folders.extend(places.map(|place| (place, RecursiveMode::NonRecursive)));
        let subscriber = Subscriber { bell: bell.clone(), companion };
        // The subscriber is added first, so that no event is without one.
        self.subscribers
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(root.clone(), subscriber);
        let mut watcher = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let mut paths = watcher.paths_mut();
        let mut outcome = Ok(());
        for (folder, mode) in &folders {
            match paths.add(folder, *mode) {
                // The folder was deleted meanwhile, which is an event of its parent.
                Err(_) if *folder != root && !folder.exists() => {}
                Err(error) => {
                    outcome = Err(error);
                    break;
                }
                Ok(()) => {}
            }
        }
        let outcome = outcome.and(paths.commit());
        drop(watcher);
        if outcome.is_err() {
            self.unsubscribe(&root);
        }
        outcome
    }

    /// Ends the subscription of a library, which may be missing. `root` is its canonical path or
    /// the path that was passed to [`subscribe`](Self::subscribe).
    pub(super) fn unsubscribe(&self, root: &Path) {
        let root = root.canonicalize().unwrap_or_else(|_| root.to_owned());
        self.subscribers.write().unwrap_or_else(PoisonError::into_inner).remove(&root);
        let mut watcher = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        // A folder that is not watched any more is an error. Watches of subfolders end with them.
        for folder in FOLDERS {
            let _ = watcher.unwatch(&root.join(folder));
        }
        let _ = watcher.unwatch(&root);
    }
}

/// Returns a folder of a library and, if necessary, its subfolders.
fn below(folder: &Path, has_subfolders: bool) -> Vec<(PathBuf, RecursiveMode)> {
    if !folder.is_dir() {
        return Vec::new();
    }
    if IS_RECURSIVE_CHEAP {
        return vec![(folder.to_owned(), RecursiveMode::Recursive)];
    }
    let mut found = vec![(folder.to_owned(), RecursiveMode::NonRecursive)];
    if has_subfolders {
        let entries = list_folder(folder).entries.into_iter();
        let folders = entries.map(|entry| entry.path()).filter(|path| path.is_dir());
        found.extend(folders.map(|path| (path, RecursiveMode::NonRecursive)));
    }
    found
}

fn ring_all(subscriber: &Subscriber) {
    subscriber.bell.ring(Reasons::FOLDERS);
    if let Some(companion) = &subscriber.companion {
        companion.bell.ring(Reasons::MAIL);
    }
}

fn pass_on(event: &notify::Event, known: &HashMap<PathBuf, Subscriber>) {
    match event.kind {
        // Ignore other access events, because stvc itself causes them by reading.
        EventKind::Access(AccessKind::Close(AccessMode::Write)) => {}
        EventKind::Access(_) => return,
        _ if event.need_rescan() => return known.values().for_each(ring_all),
        _ => {}
    }
    for path in &event.paths {
        // A path with a library inside, such as the folder with all users, has no subscriber.
        let Some((root, subscriber)) =
            path.ancestors().find_map(|root| Some((root, known.get(root)?)))
        else {
            continue;
        };
        let Ok(inside) = path.strip_prefix(root) else { continue };
        subscriber.pass_on(inside);
    }
}

impl Subscriber {
    /// Wakes the tasks that a change of `path`, relative to the library, concerns.
    fn pass_on(&self, path: &Path) {
        if let Some(companion) = &self.companion {
            let is_inside = path.parent() == Some(companion.path.as_path());
            if is_inside && path.file_name().is_some_and(companion.is_mail) {
                return companion.bell.ring(Reasons::MAIL);
            }
            if companion.path.starts_with(path) && !path.as_os_str().is_empty() {
                companion.bell.ring(Reasons::MAIL);
                return self.bell.ring(Reasons::FOLDERS);
            }
        }
        match meaning(path) {
            EventMeaning::Nothing => {}
            EventMeaning::Change => self.bell.ring(Reasons::CHANGE),
            EventMeaning::OtherFolders => self.bell.ring(Reasons::FOLDERS),
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
enum EventMeaning {
    Nothing,
    Change,
    /// A watched folder was created or deleted.
    OtherFolders,
}

/// Returns the meaning of a change of `path`, relative to the library.
fn meaning(path: &Path) -> EventMeaning {
    let mut parts = path.iter();
    let Some(first) = parts.next() else { return EventMeaning::OtherFolders };
    if !FOLDERS.iter().any(|folder| first == *folder) {
        return EventMeaning::Nothing;
    }
    let (count, last) = parts.fold((0, None), |(count, _), part| (count + 1, Some(part)));
    match last {
        None => EventMeaning::OtherFolders,
        Some(name) if name.to_string_lossy().starts_with(TEMP_PREFIX) => EventMeaning::Nothing,
        // A folder of chats of one character.
        Some(_) if first == CHATS && count == 1 => EventMeaning::OtherFolders,
        Some(_) => EventMeaning::Change,
    }
}

#[cfg(test)]
mod tests {
    use super::super::bell::{Listener, Message, waker};
    use super::*;
    use std::fs;
    use std::time::Duration;

    #[test]
    fn changes_are_passed_on_by_their_path() {
        let is = |path: &str| meaning(Path::new(path));
        assert_eq!(is(""), EventMeaning::OtherFolders);
        assert_eq!(is("settings.json"), EventMeaning::Nothing);
        assert_eq!(is("worlds"), EventMeaning::OtherFolders);
        assert_eq!(is("worlds/Sea.json"), EventMeaning::Change);
        assert_eq!(is("chats/Mira"), EventMeaning::OtherFolders);
        assert_eq!(is("chats/Mira/a.jsonl"), EventMeaning::Change);
        assert_eq!(is("chats/Mira/.stvc-7.tmp"), EventMeaning::Nothing);
    }

    #[test]
    fn each_user_hears_writes_of_own_files_but_not_reads() {
        let dir = tempfile::tempdir().unwrap();
        let events = FileEvents::new().unwrap();
        let (waker, Listener(receiver)) = waker();
        let roots: Vec<_> = ["ann", "bo"].iter().map(|user| dir.path().join(user)).collect();
        let bells: Vec<_> = (0..3).map(|task| Bell::new(task, &waker)).collect();
        for (root, bell) in roots.iter().zip(&bells) {
            fs::create_dir_all(root.join("chats/Mira")).unwrap();
            fs::write(root.join("chats/Mira/a.jsonl"), "{}").unwrap();
            let companion = CompanionFolder {
                path: "user/files".into(),
                is_mail: |name| name == "mail",
                bell: bells[2].clone(),
            };
            events.subscribe(root, bell, Some(companion)).unwrap();
        }
        let heard = |limit: u64| match receiver.recv_timeout(Duration::from_millis(limit)) {
            Ok(Message::Rung(task)) => Some((task, bells[task].take())),
            _ => None,
        };
        fs::read(roots[0].join("chats/Mira/a.jsonl")).unwrap();
        fs::write(roots[1].join("settings.json"), "{}").unwrap();
        assert_eq!(heard(200), None);
        fs::write(roots[1].join("chats/Mira/a.jsonl"), "{}\n{}").unwrap();
        let (task, why) = heard(10_000).unwrap();
        assert!(task == 1 && why.has(Reasons::CHANGE));
        while heard(200).is_some() {}
        fs::create_dir(roots[0].join("worlds")).unwrap();
        let (task, why) = heard(10_000).unwrap();
        assert!(task == 0 && why.has(Reasons::FOLDERS));
        fs::create_dir_all(roots[0].join("user/files")).unwrap();
        while !heard(10_000).unwrap().1.has(Reasons::MAIL) {}
    }
}
