//! A disk whose power can be cut: recorded calls are replayed on it, and it knows what was synced and what was not.
//!
//! What is assumed: after the sync of a file its bytes survive, after the sync of a folder the names in it do, a rename is done or
//! not done. Nothing else: names and bytes are apart, and what was not synced may be there, be gone, or be there in part.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use crate::image::Image;
use crate::trace::{Call, Did};

/// What becomes of what was not synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Loss {
    /// It is gone.
    All,
    /// Names are there; what was written is not.
    Data,
    /// What was written is there; names are not.
    Names,
    /// Folder by folder and file by file, this or that; the number picks.
    Mixed(u64),
}

impl Loss {
    pub const KINDS: [Self; 5] =
        [Self::All, Self::Data, Self::Names, Self::Mixed(1), Self::Mixed(2)];

    pub fn words(self) -> &'static str {
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
    File { now: Arc<Vec<u8>>, safe: Arc<Vec<u8>>, mode: u32, time: Option<SystemTime> },
    Folder { now: Names, safe: Names, mode: u32 },
    Link,
}

/// The disk.
#[derive(Clone)]
pub struct Disk {
    nodes: Vec<Node>,
    inodes: HashMap<u64, usize>,
}

impl Disk {
    /// A disk as it is, all of it synced; the first folder's `except` is another machine's.
    pub fn of(root: &Path, except: &str) -> Self {
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
            self.nodes[at] = Node::Folder { safe: now.clone(), now, mode };
        } else if found.is_symlink() {
            self.nodes.push(Node::Link);
        } else {
            let now = Arc::new(fs::read(path).unwrap());
            let time = found.modified().ok();
            self.nodes.push(Node::File { safe: now.clone(), now, mode, time });
        }
        at
    }

    /// Where a path leads now.
    fn find(&self, path: &str) -> Option<usize> {
        let parts = path.split('/').filter(|part| !part.is_empty());
        parts.into_iter().try_fold(0, |at, part| match &self.nodes[at] {
            Node::Folder { now, .. } => now.get(part).copied(),
            _ => None,
        })
    }

    /// The names in the folder of a path, and its last part.
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

    /// The file or folder that a call is about.
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

    /// Do what a call did.
    pub fn apply(&mut self, call: &Call) {
        if call.failed || call.foreign {
            return;
        }
        match call.did {
            Did::Open => match self.find(&call.path) {
                Some(at) => {
                    self.inodes.insert(call.inode, at);
                    if let (1, Node::File { now, time, .. }) = (call.value, &mut self.nodes[at]) {
                        *now = Arc::default();
                        *time = None;
                    }
                }
                None => {
                    let (now, safe) = (Arc::default(), Arc::default());
                    let node = Node::File { now, safe, mode: 0o644, time: None };
                    self.add(&call.path, call.inode, node);
                }
            },
            Did::Write => {
                let from = call.value as usize;
                if let Some(bytes) = self.bytes(call) {
                    let end = from + call.data.len();
                    bytes.resize(bytes.len().max(end), 0);
                    bytes[from..end].copy_from_slice(&call.data);
                }
            }
            Did::Truncate => {
                if let Some(bytes) = self.bytes(call) {
                    bytes.resize(call.value as usize, 0);
                }
            }
            // Only what is about the whole file system says 1 here.
            Did::Sync if call.value == 1 => (0..self.nodes.len()).for_each(|at| self.sync(at)),
            Did::Sync => {
                if let Some(at) = self.node(call) {
                    self.sync(at);
                }
            }
            Did::Rename => {
                if let Some(node) = self.take(&call.path) {
                    self.put(&call.second, node);
                }
            }
            Did::Link => {
                if let Some(node) = self.find(&call.path) {
                    self.put(&call.second, node);
                }
            }
            Did::Symlink => self.add(&call.path, call.inode, Node::Link),
            Did::Unlink | Did::Rmdir => drop(self.take(&call.path)),
            Did::Mkdir => {
                let (now, safe) = (Names::new(), Names::new());
                let mode = call.value as u32 & 0o755;
                self.add(&call.path, call.inode, Node::Folder { now, safe, mode });
            }
            Did::Chmod => {
                let at = self.node(call);
                if let Some(Node::File { mode, .. } | Node::Folder { mode, .. }) =
                    at.and_then(|at| self.nodes.get_mut(at))
                {
                    *mode = call.value as u32;
                }
            }
            Did::Other | Did::Read => {}
        }
    }

    fn sync(&mut self, at: usize) {
        match &mut self.nodes[at] {
            Node::File { now, safe, .. } => *safe = now.clone(),
            Node::Folder { now, safe, .. } => *safe = now.clone(),
            Node::Link => {}
        }
    }

    /// What is there if nothing is lost.
    pub fn whole(&self) -> Image {
        self.image(None)
    }

    /// What is there after a cut.
    pub fn cut(&self, loss: Loss) -> Image {
        self.image(Some(loss))
    }

    fn image(&self, loss: Option<Loss>) -> Image {
        let mut image = Image::default();
        let mut open = vec![(0, String::new())];
        while let Some((at, path)) = open.pop() {
            match &self.nodes[at] {
                Node::Folder { now, safe, mode } => {
                    let lost = match loss {
                        None | Some(Loss::Data) => false,
                        Some(Loss::All | Loss::Names) => true,
                        Some(Loss::Mixed(seed)) => pick(seed, at).is_multiple_of(2),
                    };
                    let join = |name: &String| match path.is_empty() {
                        true => name.clone(),
                        false => format!("{path}/{name}"),
                    };
                    let names = if lost { safe } else { now };
                    open.extend(names.iter().map(|(name, node)| (*node, join(name))));
                    image.folders.insert(path, *mode);
                }
                Node::File { now, safe, mode, time } => {
                    let bytes = match loss {
                        None | Some(Loss::Names) => now.clone(),
                        Some(Loss::All | Loss::Data) => safe.clone(),
                        Some(Loss::Mixed(seed)) => match pick(seed, at) % 3 {
                            0 => safe.clone(),
                            1 => half(now, safe),
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

/// What was there before, and half of what came to it.
fn half(now: &Arc<Vec<u8>>, safe: &Arc<Vec<u8>>) -> Arc<Vec<u8>> {
    match now.starts_with(safe) {
        true => Arc::new(now[..safe.len() + (now.len() - safe.len()) / 2].to_vec()),
        false => Arc::new(now[..now.len() / 2].to_vec()),
    }
}

fn pick(seed: u64, at: usize) -> u64 {
    let mixed = (seed << 32 | at as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ mixed >> 31).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 40
}
