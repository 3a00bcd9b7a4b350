//! File events from the system. An event only triggers a scan; the scan finds out which files
//! changed.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use notify::event::{AccessKind, AccessMode};
use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher as _};

use super::Waker;
use crate::durable::TEMP_PREFIX;
use crate::st::FOLDERS;

pub(super) struct Watcher {
    _inner: RecommendedWatcher,
    outdated: Arc<AtomicBool>,
}

impl Watcher {
    pub(super) fn new(root: &Path, waker: Waker) -> notify::Result<Self> {
        let outdated = Arc::new(AtomicBool::new(false));
        let flag = outdated.clone();
        // Events contain canonical paths.
        let root = root.canonicalize()?;
        let base = root.clone();
        let heard = move |event: notify::Result<notify::Event>| match event {
            Ok(event) => match meaning(&base, &event) {
                EventMeaning::Nothing => {}
                EventMeaning::Change => waker.ring(),
                EventMeaning::OtherFolders => {
                    flag.store(true, Ordering::SeqCst);
                    waker.ring();
                }
            },
            // Events were lost, or a folder was deleted. Create a new watcher and scan the library.
            Err(_) => {
                flag.store(true, Ordering::SeqCst);
                waker.ring();
            }
        };
        let mut inner = notify::recommended_watcher(heard)?;
        inner.watch(&root, RecursiveMode::NonRecursive)?;
        for folder in folders(&root) {
            inner.watch(&folder, RecursiveMode::Recursive)?;
        }
        Ok(Self { _inner: inner, outdated })
    }

    /// Returns whether a watched folder was created or deleted, so that the watcher must be
    /// recreated.
    pub(super) fn is_outdated(&self) -> bool {
        self.outdated.load(Ordering::SeqCst)
    }
}

fn folders(root: &Path) -> impl Iterator<Item = PathBuf> {
    FOLDERS.iter().map(|folder| root.join(folder)).filter(|folder| folder.is_dir())
}

enum EventMeaning {
    Nothing,
    Change,
    /// A watched folder was created or deleted, or events were lost.
    OtherFolders,
}

fn meaning(root: &Path, event: &notify::Event) -> EventMeaning {
    match event.kind {
        // Ignore other access events, because stvc itself causes them by reading.
        EventKind::Access(AccessKind::Close(AccessMode::Write)) => {}
        EventKind::Access(_) => return EventMeaning::Nothing,
        _ if event.need_rescan() => return EventMeaning::OtherFolders,
        _ => {}
    }
    let mut found = EventMeaning::Nothing;
    for path in &event.paths {
        let Ok(inside) = path.strip_prefix(root) else { return EventMeaning::OtherFolders };
        let mut parts = inside.iter();
        let Some(first) = parts.next() else { return EventMeaning::OtherFolders };
        if !FOLDERS.iter().any(|folder| first == *folder) {
            continue;
        }
        let Some(name) = parts.next_back() else { return EventMeaning::OtherFolders };
        if !name.to_string_lossy().starts_with(TEMP_PREFIX) {
            found = EventMeaning::Change;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::wake::{Signal, waker};
    use super::*;
    use std::fs;
    use std::time::{Duration, Instant};

    #[test]
    fn watcher_reports_writes_but_not_reads() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        fs::create_dir_all(root.join("chats/Mira")).unwrap();
        fs::write(root.join("chats/Mira/a.jsonl"), "{}").unwrap();
        let (waker, listener) = waker();
        let watcher = Watcher::new(root, waker).unwrap();
        let heard = |limit: u64| listener.wait(Instant::now() + Duration::from_millis(limit));
        fs::read(root.join("chats/Mira/a.jsonl")).unwrap();
        fs::write(root.join("settings.json"), "{}").unwrap();
        assert_eq!(heard(200), Signal::Nothing);
        fs::write(root.join("chats/Mira/a.jsonl"), "{}\n{}").unwrap();
        assert_eq!(heard(10_000), Signal::Change);
        assert!(!watcher.is_outdated());
        fs::create_dir(root.join("worlds")).unwrap();
        while !watcher.is_outdated() {
            assert_eq!(heard(10_000), Signal::Change);
        }
    }
}
