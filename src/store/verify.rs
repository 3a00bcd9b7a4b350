//! Is the repository sound? Every object of every file is read, unpacked and hashed.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use gix::odb::pack::Bundle;

use super::delta_pack::{DeltaPack, Kept};
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

/// There while the store is known to be damaged.
const DAMAGED: &str = "damaged";

impl Store {
    /// Whether the last check found objects damaged or missing. As long as that is so, a snapshot takes nothing for stored that it
    /// cannot read, and so mends what the files still have.
    pub fn is_marked_damaged(&self) -> bool {
        self.private_dir().join(DAMAGED).exists()
    }

    /// Remember what a check found.
    pub fn mark_damaged(&self, damaged: bool) -> Result<()> {
        let path = self.private_dir().join(DAMAGED);
        if damaged == path.exists() {
            return Ok(());
        }
        let dir = self.private_dir();
        crate::durable::create_dir_all(&dir).map_err(Error::io(&dir))?;
        if damaged { fs::write(&path, "see `stvc check`\n") } else { fs::remove_file(&path) }
            .map_err(Error::io(path))
    }

    /// Read every object that the repository holds.
    pub fn verify_objects(&self, monitor: &mut dyn Monitor) -> Result<Health> {
        let mut health = Health::default();
        let dir = self.git_dir.join("objects").join("pack");
        let mut bad = BTreeMap::new();
        let files = sorted_files(&dir)?;
        let packs: Vec<_> = files.iter().filter(|path| has_extension(path, "idx")).collect();
        for path in files.iter().filter(|path| has_extension(path, "pack")) {
            if !path.with_extension("idx").exists() {
                health.file(self, path, "it has no index, so git does not see it; a command was interrupted, or the index was lost", false);
            }
        }
        for index in packs {
            self.verify_pack(index, &mut health, &mut bad, monitor)?;
        }
        self.verify_loose(&mut health, &mut bad, monitor)?;
        bad.retain(|id, _| !health.sound.contains(id));
        health.damaged = bad;
        Ok(health)
    }

    /// Read every object of the packs with these indices.
    pub(super) fn verify_packs(&self, indices: &[PathBuf], monitor: &mut dyn Monitor) -> Health {
        let (mut health, mut bad) = (Health::default(), BTreeMap::new());
        for index in indices {
            // Whoever asks has just written them: what cannot be read now is not taken for sound.
            if let Err(error) = self.verify_pack(index, &mut health, &mut bad, monitor) {
                health.file(self, index, error.to_string(), true);
            }
        }
        bad.retain(|id, _| !health.sound.contains(id));
        health.damaged = bad;
        health
    }

    fn verify_pack(
        &self,
        path: &Path,
        health: &mut Health,
        bad: &mut BTreeMap<ObjectId, String>,
        monitor: &mut dyn Monitor,
    ) -> Result<()> {
        let pack_path = path.with_extension("pack");
        can_be_opened(path)?;
        can_be_opened(&pack_path)?;
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
                health.file(self, subject, format!("it cannot be opened: {error}"), true);
                return Ok(());
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
        // In the order in which they stand, so that what many deltas are made of is made once.
        let quick = DeltaPack::at(path);
        let mut kept = Kept::default();
        let mut objects: Vec<_> =
            bundle.index.iter().map(|entry| (entry.pack_offset, entry.oid)).collect();
        objects.sort_unstable();
        for (offset, id) in objects {
            health.objects += 1;
            monitor.advance(1);
            let mut sound = || {
                let kind = quick.as_ref()?.read_at(offset, &mut kept, &mut buffer)?;
                verify(id, kind, &buffer).ok()
            };
            if sound().is_some() {
                health.sound.insert(id);
                continue;
            }
            // Git's library says what is wrong.
            let found = bundle.find(&id, &mut buffer, &mut inflate, &mut cache);
            let outcome = match found {
                Ok(Some((data, _))) => verify(id, data.kind, data.data),
                Ok(None) => Err(Error::Missing { id }),
                Err(error) => Err(Error::Damaged { id, why: error.to_string() }),
            };
            match outcome {
                Ok(()) => {
                    health.sound.insert(id);
                }
                Err(error) => {
                    bad.insert(id, format!("{error} (in {})", file_name(&pack_path)));
                }
            }
        }
        Ok(())
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
                    can_be_opened(&loose.object_path(&id))?;
                    health.file(self, &loose.object_path(&id), error.to_string(), true);
                    bad.insert(id, error.to_string());
                }
            }
        }
        Ok(())
    }
}

/// That a file cannot be opened just now (too many are open, or nobody may) says nothing about what is in it, and is an error. One that is gone is another matter.
fn can_be_opened(path: &Path) -> Result<()> {
    match fs::File::open(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(Error::Io { path: path.to_owned(), source: error })
        }
        _ => Ok(()),
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
        let config = match gix::config::File::try_from(String::from_utf8_lossy(&text).as_ref()) {
            Ok(config) => config,
            Err(error) => return Some(error.to_string().replace('\n', " ")),
        };
        let switch = |key: &str| match config.boolean(key) {
            Ok(None) => Err(format!("{key} is missing")),
            Err(_) => Err(format!("{key} is neither true nor false")),
            Ok(Some(on)) => Ok(on),
        };
        let version =
            config.string("core.repositoryformatversion").map(|version| version.to_string());
        let is_inner = self.git_dir.file_name().is_some_and(|name| name == ".git");
        if !matches!(version.as_deref(), Some("0" | "1")) {
            return Some("core.repositoryformatversion is neither 0 nor 1".into());
        }
        // A clone with a work tree says what it is, too.
        match switch("core.bare") {
            Ok(true) => {}
            Ok(false) if is_inner => {}
            Ok(false) => return Some("it does not say that the repository is bare".into()),
            Err(why) => return Some(why),
        }
        let optional = [
            "core.filemode",
            "core.logallrefupdates",
            "core.ignorecase",
            "core.precomposeunicode",
            "core.symlinks",
        ];
        let bad = optional.iter().find(|key| config.boolean(**key).is_err());
        bad.map(|key| format!("{key} is neither true nor false"))
    }
}
