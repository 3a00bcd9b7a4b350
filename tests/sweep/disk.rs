//! A simulated disk for power cuts: it replays recorded calls and knows which of them were synced.
//!
//! Assumptions: a synced file keeps its bytes, a synced folder keeps its names, and a rename is
//! atomic. Nothing else: names and bytes are independent, and anything that was not synced may be
//! present, missing or partial.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use crate::image::Image;
use crate::trace::{Call, Effect};

/// Fate of unsynced changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Loss {
    /// All are lost.
    All,
    /// Names survive, bytes do not.
    Data,
    /// Bytes survive, names do not.
    Names,
    /// Survival varies by folder and file; the number is the seed.
    Mixed(u64),
}

impl Loss {
    pub const KINDS: [Self; 5] =
        [Self::All, Self::Data, Self::Names, Self::Mixed(1), Self::Mixed(2)];

    pub fn name(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Data => "data",
            Self::Names => "names",
            Self::Mixed(1) => "mixed",
            Self::Mixed(_) => "mixed2",
        }
    }
}

type Names = BTreeMap<String, usize>;

#[derive(Clone)]
enum Node {
    File { now: Arc<Vec<u8>>, synced: Arc<Vec<u8>>, mode: u32, time: Option<SystemTime> },
    Folder { now: Names, synced: Names, mode: u32 },
    Link,
}

#[derive(Clone)]
pub struct Disk {
    nodes: Vec<Node>,
    inodes: HashMap<u64, usize>,
}

impl Disk {
    /// Scans a folder as fully synced. Skips `except` in the root: it belongs to another machine.
    pub fn read(root: &Path, except: &str) -> Self {
        let mut disk = Self { nodes: Vec::new(), inodes: HashMap::new() };
        disk.scan(root, except);
        disk
    }

    fn scan(&mut self, path: &Path, except: &str) -> usize {
        let found = fs::symlink_metadata(path).unwrap();
        let at = self.nodes.len();
        self.inodes.insert(found.ino(), at);
        let mode = found.permissions().mode() & 0o7777;
        if found.is_dir() {
            self.nodes.push(Node::Link);
            let mut now = Names::new();
            for entry in fs::read_dir(path).unwrap() {
                let entry = entry.unwrap();
                let name = entry.file_name().into_string().unwrap();
                if name != except {
                    let node = self.scan(&entry.path(), "");
                    now.insert(name, node);
                }
            }
            self.nodes[at] = Node::Folder { synced: now.clone(), now, mode };
        } else if found.is_symlink() {
            self.nodes.push(Node::Link);
        } else {
            let now = Arc::new(fs::read(path).unwrap());
            let time = found.modified().ok();
            self.nodes.push(Node::File { synced: now.clone(), now, mode, time });
        }
        at
    }

    /// Resolves a path.
    fn find(&self, path: &str) -> Option<usize> {
        let parts = path.split('/').filter(|part| !part.is_empty());
        parts.into_iter().try_fold(0, |at, part| match &self.nodes[at] {
            Node::Folder { now, .. } => now.get(part).copied(),
            _ => None,
        })
    }

    /// Returns the names in a path's folder, and its last component.
    fn folder_of<'a>(&mut self, path: &'a str) -> Option<(&mut Names, &'a str)> {
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        let at = self.find(folder)?;
        match &mut self.nodes[at] {
            Node::Folder { now, .. } => Some((now, name)),
            _ => None,
        }
    }

    fn put(&mut self, path: &str, node: usize) {
        if let Some((names, name)) = self.folder_of(path) {
            names.insert(name.to_owned(), node);
        }
    }

    fn take(&mut self, path: &str) -> Option<usize> {
        let (names, name) = self.folder_of(path)?;
        names.remove(name)
    }

    fn add(&mut self, path: &str, inode: u64, node: Node) {
        self.nodes.push(node);
        let at = self.nodes.len() - 1;
        self.put(path, at);
        self.inodes.insert(inode, at);
    }

    /// Returns the file or folder of a call.
    fn node(&self, call: &Call) -> Option<usize> {
        match self.inodes.get(&call.inode) {
            Some(at) if call.inode != 0 => Some(*at),
            _ => self.find(&call.path),
        }
    }

    fn bytes(&mut self, call: &Call) -> Option<&mut Vec<u8>> {
        let at = self.node(call)?;
        match &mut self.nodes[at] {
            Node::File { now, time, .. } => {
                *time = None;
                Some(Arc::make_mut(now))
            }
            _ => None,
        }
    }

    /// Replays a call.
    pub fn apply(&mut self, call: &Call) {
        if call.failed || call.foreign {
            return;
        }
        match call.effect {
            Effect::Open => match self.find(&call.path) {
                Some(at) => {
                    self.inodes.insert(call.inode, at);
                    if let (1, Node::File { now, time, .. }) = (call.value, &mut self.nodes[at]) {
                        *now = Arc::default();
                        *time = None;
                    }
                }
                None => {
                    let (now, synced) = (Arc::default(), Arc::default());
                    let node = Node::File { now, synced, mode: 0o644, time: None };
                    self.add(&call.path, call.inode, node);
                }
            },
            Effect::Write => {
                let from = call.value as usize;
                if let Some(bytes) = self.bytes(call) {
                    let end = from + call.data.len();
                    bytes.resize(bytes.len().max(end), 0);
                    bytes[from..end].copy_from_slice(&call.data);
                }
            }
            Effect::Truncate => {
                if let Some(bytes) = self.bytes(call) {
                    bytes.resize(call.value as usize, 0);
                }
            }
            // 1 marks a sync of the whole file system.
            Effect::Sync if call.value == 1 => (0..self.nodes.len()).for_each(|at| self.sync(at)),
            Effect::Sync => {
                if let Some(at) = self.node(call) {
                    self.sync(at);
                }
            }
            Effect::Rename => {
                if let Some(node) = self.take(&call.path) {
                    self.put(&call.second, node);
                }
            }
            Effect::Link => {
                if let Some(node) = self.find(&call.path) {
                    self.put(&call.second, node);
                }
            }
            Effect::Symlink => self.add(&call.path, call.inode, Node::Link),
            Effect::Unlink | Effect::Rmdir => drop(self.take(&call.path)),
            Effect::Mkdir => {
                let (now, synced) = (Names::new(), Names::new());
                let mode = call.value as u32 & 0o755;
                self.add(&call.path, call.inode, Node::Folder { now, synced, mode });
            }
            Effect::Chmod => {
                let at = self.node(call);
                if let Some(Node::File { mode, .. } | Node::Folder { mode, .. }) =
                    at.and_then(|at| self.nodes.get_mut(at))
                {
                    *mode = call.value as u32;
                }
            }
            Effect::Other | Effect::Read => {}
        }
    }

    fn sync(&mut self, at: usize) {
        match &mut self.nodes[at] {
            Node::File { now, synced, .. } => *synced = now.clone(),
            Node::Folder { now, synced, .. } => *synced = now.clone(),
            Node::Link => {}
        }
    }

    /// Returns the contents if nothing is lost.
    pub fn current(&self) -> Image {
        self.image(None)
    }

    /// Returns the contents after a power cut.
    pub fn after_power_cut(&self, loss: Loss) -> Image {
        self.image(Some(loss))
    }

    fn image(&self, loss: Option<Loss>) -> Image {
        let mut image = Image::default();
        let mut open = vec![(0, String::new())];
        while let Some((at, path)) = open.pop() {
            match &self.nodes[at] {
                Node::Folder { now, synced, mode } => {
                    let lost = match loss {
                        None | Some(Loss::Data) => false,
                        Some(Loss::All | Loss::Names) => true,
                        Some(Loss::Mixed(seed)) => pick(seed, at).is_multiple_of(2),
                    };
                    let join = |name: &String| match path.is_empty() {
                        true => name.clone(),
                        false => format!("{path}/{name}"),
                    };
                    let names = if lost { synced } else { now };
                    open.extend(names.iter().map(|(name, node)| (*node, join(name))));
                    image.folders.insert(path, *mode);
                }
                Node::File { now, synced, mode, time } => {
                    let bytes = match loss {
                        None | Some(Loss::Names) => now.clone(),
                        Some(Loss::All | Loss::Data) => synced.clone(),
                        Some(Loss::Mixed(seed)) => match pick(seed, at) % 3 {
                            0 => synced.clone(),
                            1 => half_synced(now, synced),
                            _ => now.clone(),
                        },
                    };
                    image.files.insert(path, (bytes, *mode, *time));
                }
                Node::Link => {}
            }
        }
        image
    }
}

/// Returns the synced bytes and half of those appended since.
fn half_synced(now: &Arc<Vec<u8>>, synced: &Arc<Vec<u8>>) -> Arc<Vec<u8>> {
    match now.starts_with(synced) {
        true => Arc::new(now[..synced.len() + (now.len() - synced.len()) / 2].to_vec()),
        false => Arc::new(now[..now.len() / 2].to_vec()),
    }
}

fn pick(seed: u64, at: usize) -> u64 {
    let mixed = (seed << 32 | at as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ mixed >> 31).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 40
}
