//! Two devices that sync through one remote.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{Sandbox, assert_same, assert_valid, refs, text};

/// The remote that the devices sync with.
pub enum Remote {
    Folder(PathBuf),
    /// A folder as plain storage.
    Storage(PathBuf),
    #[cfg(unix)]
    Server(PathBuf),
}

impl Remote {
    pub fn folder(sandbox: &Sandbox) -> Self {
        Self::Folder(sandbox.folder().join("shared"))
    }

    pub fn storage(sandbox: &Sandbox) -> Self {
        let folder = sandbox.folder().join("storage");
        std::fs::create_dir(&folder).unwrap();
        Self::Storage(folder)
    }

    #[cfg(unix)]
    pub fn server(sandbox: &Sandbox) -> Self {
        Self::Server(super::git_server::create_server(sandbox.folder()))
    }

    /// Returns the address under which `from` reaches the remote.
    pub fn address(&self, from: &Sandbox) -> PathBuf {
        match self {
            Self::Folder(path) => path.clone(),
            Self::Storage(path) => {
                from.stvc(&["remote", "add", text(path), "--unencrypted"]).exits(0);
                path.clone()
            }
            #[cfg(unix)]
            Self::Server(path) => super::git_server::configure_ssh(from, path).into(),
        }
    }

    pub fn store(&self) -> &Path {
        match self {
            Self::Folder(path) | Self::Storage(path) => path,
            #[cfg(unix)]
            Self::Server(path) => path,
        }
    }
}

/// Creates two devices with equal content and the folder that they sync through.
pub fn synced_pair(with: impl Fn(&Sandbox)) -> (Sandbox, Sandbox, PathBuf) {
    let one = Sandbox::empty();
    with(&one);
    let folder = one.folder().join("shared");
    one.stvc(&["sync", text(&folder)]).exits(0);
    let two = Sandbox::empty();
    two.stvc(&["sync", text(&folder)]).exits(0);
    assert_same(&chats_and_lorebooks(&two), &chats_and_lorebooks(&one));
    (one, two, folder)
}

/// Returns the chats and the lorebooks that they use. Other lorebooks are in no snapshot.
pub fn chats_and_lorebooks(sandbox: &Sandbox) -> BTreeMap<String, Vec<u8>> {
    let mut files = sandbox.files();
    let bound = |bytes: &[u8]| {
        let line = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let header: Value = serde_json::from_slice(line).ok()?;
        Some(format!("worlds/{}.json", header["chat_metadata"]["world_info"].as_str()?))
    };
    let used: BTreeSet<_> = files.values().filter_map(|bytes| bound(bytes)).collect();
    files.retain(|path, _| path.starts_with("chats/") || used.contains(path));
    files
}

/// Syncs this device and returns the JSON lines.
pub fn sync(sandbox: &mut Sandbox, folder: &Path) -> Vec<Value> {
    sandbox.wait(60);
    let answer = sandbox.json(&["sync", text(folder)]);
    // `sync` exits with 3 while a conflict is unresolved.
    let conflicts = answer.of_type("summary")[0]["conflicts"].as_u64().unwrap();
    answer.exits(if conflicts > 0 { 3 } else { 0 }).lines()
}

/// Syncs both devices until neither has changes, and asserts that they are equal.
pub fn sync_until_equal(one: &mut Sandbox, two: &mut Sandbox, folder: &Path) {
    for _ in 0..6 {
        sync(one, folder);
        sync(two, folder);
        if refs(&one.store()) == refs(&two.store())
            && chats_and_lorebooks(one) == chats_and_lorebooks(two)
        {
            break;
        }
    }
    assert_eq!(refs(&one.store()), refs(&two.store()));
    assert_same(&chats_and_lorebooks(two), &chats_and_lorebooks(one));
    assert_valid(one);
    assert_valid(two);
}
