//! Two devices that share a folder.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{Sandbox, assert_same, refs, sound, text};

/// What devices share.
pub enum Remote {
    Folder(PathBuf),
    #[cfg(unix)]
    Server(PathBuf),
}

impl Remote {
    pub fn folder(of: &Sandbox) -> Self {
        Self::Folder(of.folder().join("shared"))
    }

    #[cfg(unix)]
    pub fn server(of: &Sandbox) -> Self {
        Self::Server(super::git_server::server(of.folder()))
    }

    /// Returns the address that a device reaches it by.
    pub fn address(&self, from: &Sandbox) -> PathBuf {
        match self {
            Self::Folder(path) => path.clone(),
            #[cfg(unix)]
            Self::Server(path) => super::git_server::reach(from, path).into(),
        }
    }

    /// Returns the repository.
    pub fn store(&self) -> &Path {
        match self {
            Self::Folder(path) => path,
            #[cfg(unix)]
            Self::Server(path) => path,
        }
    }
}

/// Two devices that have the same, and the folder that they share.
pub fn pair(with: impl Fn(&Sandbox)) -> (Sandbox, Sandbox, PathBuf) {
    let one = Sandbox::empty();
    with(&one);
    let folder = one.folder().join("shared");
    one.stvc(&["sync", text(&folder)]).exits(0);
    let two = Sandbox::empty();
    two.stvc(&["sync", text(&folder)]).exits(0);
    assert_same(&ours(&two), &ours(&one));
    (one, two, folder)
}

/// The chats, and the lorebooks that they use: others are in no snapshot.
pub fn ours(sandbox: &Sandbox) -> BTreeMap<String, Vec<u8>> {
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

/// Sync this device; what it said.
pub fn sync(sandbox: &mut Sandbox, folder: &Path) -> Vec<Value> {
    sandbox.wait(60);
    let answer = sandbox.json(&["sync", text(folder)]);
    // What two devices wrote against each other is for a person to settle.
    let conflicts = answer.of_type("summary")[0]["conflicts"].as_u64().unwrap();
    answer.exits(if conflicts > 0 { 3 } else { 0 }).lines()
}

/// Both sides sync until neither has news, and then have the same.
pub fn settle(one: &mut Sandbox, two: &mut Sandbox, folder: &Path) {
    for _ in 0..6 {
        sync(one, folder);
        sync(two, folder);
        if refs(&one.store()) == refs(&two.store()) && ours(one) == ours(two) {
            break;
        }
    }
    assert_eq!(refs(&one.store()), refs(&two.store()));
    assert_same(&ours(two), &ours(one));
    sound(one);
    sound(two);
}
