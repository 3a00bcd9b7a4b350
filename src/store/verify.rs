//! Is the repository sound? Every object of every file is read, unpacked and hashed.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use gix::odb::pack::Bundle;

use super::objects::verify;
use super::{Error, ObjectId, Result, Store};
use crate::progress::Monitor;

/// What was found.
#[derive(Debug, Default)]
pub struct Health {
    /// How many objects were read.
    pub objects: u64,
    /// Objects of which no sound copy exists, and why.
    pub damaged: BTreeMap<ObjectId, String>,
    /// Files that are not as they should be.
    pub files: Vec<DamagedFile>,
    sound: HashSet<ObjectId>,
}

/// A file of the store that is damaged or does not belong there.
#[derive(Debug)]
pub struct DamagedFile {
    /// Where it is, from the store's folder.
    pub path: PathBuf,
    /// What is wrong with it.
    pub why: String,
    /// Whether something was lost by it, as far as the file alone tells.
    pub harmful: bool,
}

impl Health {
    /// Whether a sound copy of the object was read.
    pub fn is_sound(&self, id: ObjectId) -> bool {
        self.sound.contains(&id)
    }

    fn file(&mut self, store: &Store, path: &Path, why: impl Into<String>, harmful: bool) {
        let path = path.strip_prefix(&store.git_dir).unwrap_or(path).to_owned();
        self.files.push(DamagedFile { path, why: why.into(), harmful });
    }
}

impl Store {
    /// Read every object that the repository holds.
    pub fn verify_objects(&self, monitor: &mut dyn Monitor) -> Result<Health> {
        let mut health = Health::default();
        let dir = self.git_dir.join("objects").join("pack");
        let mut bad = BTreeMap::new();
        let files = sorted_files(&dir)?;
        let packs: Vec<_> = files.iter().filter(|path| has_extension(path, "idx")).collect();
        for path in files.iter().filter(|path| has_extension(path, "pack")) {
            if !path.with_extension("idx").exists() {
                health.file(self, path, "it has no index, so git does not see it", true);
            }
        }
        for index in packs {
            self.verify_pack(index, &mut health, &mut bad, monitor);
        }
        self.verify_loose(&mut health, &mut bad, monitor)?;
        bad.retain(|id, _| !health.sound.contains(id));
        health.damaged = bad;
        Ok(health)
    }

    fn verify_pack(
        &self,
        path: &Path,
        health: &mut Health,
        bad: &mut BTreeMap<ObjectId, String>,
        monitor: &mut dyn Monitor,
    ) {
        let pack_path = path.with_extension("pack");
        let bundle = match Bundle::at(path, gix::hash::Kind::Sha1) {
            Ok(bundle) => bundle,
            Err(error) => {
                let subject = if pack_path.exists()
                    && fs::metadata(&pack_path).is_ok_and(|f| f.len() >= 32)
                {
                    path
                } else {
                    &pack_path
                };
                return health.file(self, subject, format!("it cannot be opened: {error}"), true);
            }
        };
        let mut quiet = gix::progress::Discard;
        let never = std::sync::atomic::AtomicBool::new(false);
        if let Err(error) = bundle.index.verify_checksum(&mut quiet, &never) {
            health.file(self, path, format!("its checksum is wrong: {error}"), true);
        }
        if let Err(error) = bundle.pack.verify_checksum(&mut quiet, &never) {
            health.file(self, &pack_path, format!("its checksum is wrong: {error}"), true);
        }
        monitor.begin("reading objects", Some(u64::from(bundle.index.num_objects())));
        let (mut buffer, mut inflate) = (Vec::new(), Default::default());
        let mut cache = gix::odb::pack::cache::Never;
        for entry in bundle.index.iter() {
            health.objects += 1;
            monitor.advance(1);
            let found = bundle.find(&entry.oid, &mut buffer, &mut inflate, &mut cache);
            let outcome = match found {
                Ok(Some((data, _))) => verify(entry.oid, data.kind, data.data),
                Ok(None) => Err(Error::Missing { id: entry.oid }),
                Err(error) => Err(Error::Damaged { id: entry.oid, why: error.to_string() }),
            };
            match outcome {
                Ok(()) => {
                    health.sound.insert(entry.oid);
                }
                Err(error) => {
                    bad.insert(entry.oid, format!("{error} (in {})", file_name(&pack_path)));
                }
            }
        }
    }

    fn verify_loose(
        &self,
        health: &mut Health,
        bad: &mut BTreeMap<ObjectId, String>,
        monitor: &mut dyn Monitor,
    ) -> Result<()> {
        let loose = gix::odb::loose::Store::at(self.git_dir.join("objects"), gix::hash::Kind::Sha1);
        monitor.begin("reading loose objects", None);
        let mut buffer = Vec::new();
        for found in loose.iter() {
            let Ok(id) = found else { continue };
            health.objects += 1;
            monitor.advance(1);
            let outcome = match loose.try_find(&id, &mut buffer) {
                Ok(Some(data)) => verify(id, data.kind, data.data),
                Ok(None) => Err(Error::Missing { id }),
                Err(error) => Err(Error::Damaged { id, why: error.to_string() }),
            };
            match outcome {
                Ok(()) => {
                    health.sound.insert(id);
                }
                Err(error) => {
                    health.file(self, &loose.object_path(&id), error.to_string(), true);
                    bad.insert(id, error.to_string());
                }
            }
        }
        Ok(())
    }
}

fn sorted_files(dir: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(dir).map_err(Error::io(dir))?;
    let mut files: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    files.sort();
    Ok(files)
}

fn has_extension(path: &Path, extension: &str) -> bool {
    path.extension().is_some_and(|found| found == extension)
}

fn file_name(path: &Path) -> String {
    path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned())
}

impl Store {
    /// What is wrong with the repository's configuration, in words. stvc itself does not read it.
    pub fn config_problem(&self) -> Option<String> {
        let path = self.git_dir.join("config");
        let text = match fs::read(&path) {
            Ok(text) => text,
            Err(error) => return Some(error.to_string()),
        };
        let parsed = gix::config::parse::Events::from_bytes(&text, None);
        let Ok(text) = std::str::from_utf8(&text) else {
            return Some("it is no UTF-8".into());
        };
        let has = |words: &str| text.lines().any(|line| line.trim() == words);
        match parsed {
            Err(error) => Some(error.to_string()),
            Ok(_)
                if !has("bare = true")
                    && self.git_dir.file_name().is_some_and(|name| name != ".git") =>
            {
                Some("it does not say that the repository is bare".into())
            }
            Ok(_) if !has("repositoryformatversion = 0") && !has("repositoryformatversion = 1") => {
                Some("it names no repository format".into())
            }
            Ok(_) => None,
        }
    }
}
