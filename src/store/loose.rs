//! Loose objects: one file each, as git writes them.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::files::unless_absent;
use super::inflate::ZLIB_RATIO;
use super::limits::longest;
use super::pack_file::again;
use super::symlinks::refuse_link;
use super::{Error, Kind, ObjectId, Result};

pub(super) struct Loose {
    pub id: ObjectId,
    pub path: PathBuf,
    pub bytes: u64,
    pub modified: SystemTime,
}

pub(super) fn loose_objects(dir: &Path) -> Result<Vec<Loose>> {
    let mut objects = Vec::new();
    for folder in fs::read_dir(dir).map_err(Error::io(dir))? {
        let folder = folder.map_err(Error::io(dir))?;
        let name = folder.file_name();
        let fan = |name: &&str| name.len() == 2 && name.bytes().all(|b| b.is_ascii_hexdigit());
        let Some(first) = name.to_str().filter(fan) else { continue };
        let dir = folder.path();
        let Some(files) = unless_absent(fs::read_dir(&dir), &dir)? else { continue };
        for file in files {
            let file = file.map_err(Error::io(&dir))?;
            let name = file.file_name();
            let hex = format!("{first}{}", name.to_string_lossy());
            let Ok(id) = ObjectId::from_hex(hex.as_bytes()) else { continue };
            let path = file.path();
            // Another program may have packed the object and removed its file in the meantime.
            let Some(found) = unless_absent(file.metadata(), &path)? else { continue };
            objects.push(Loose {
                id,
                path,
                bytes: found.len(),
                modified: found.modified().unwrap_or(SystemTime::UNIX_EPOCH),
            });
        }
    }
    Ok(objects)
}

/// Fails if one of the objects is in a linked folder. The target of the link may be outside the
/// store, where no file may be removed.
pub(super) fn refuse_linked(loose: &[Loose]) -> Result<()> {
    let folders: HashSet<_> = loose.iter().filter_map(|object| object.path.parent()).collect();
    folders.into_iter().try_for_each(refuse_link)
}

pub(super) fn read_loose(id: ObjectId, file: &Path, out: &mut Vec<u8>) -> Result<Kind> {
    let found = unless_absent(fs::metadata(file), file)?.ok_or(Error::Missing { id })?;
    if !found.is_file() {
        return Err(Error::Damaged { id, why: "it is not a file".into() });
    }
    let (_, size) = loose_header(id, file)?;
    if size > found.len().saturating_mul(ZLIB_RATIO) {
        let why = "its recorded length is impossible for the size of its file".to_owned();
        return Err(Error::Damaged { id, why });
    }
    match loose_store(file).try_find(&id, out) {
        Ok(Some(found)) => {
            let kind = found.kind;
            let length = found.data.len();
            out.truncate(length);
            Ok(kind)
        }
        Ok(None) => Err(Error::Missing { id }),
        Err(error) => Err(loose_error(id, file, &error)),
    }
}

pub(super) fn loose_header(id: ObjectId, file: &Path) -> Result<(Kind, u64)> {
    match loose_store(file).try_header(&id) {
        Ok(Some((length, kind))) if length > longest(kind) => {
            let why = "its recorded length exceeds the limit for such objects".to_owned();
            Err(Error::Damaged { id, why })
        }
        Ok(Some((length, kind))) => Ok((kind, length)),
        Ok(None) => Err(Error::Missing { id }),
        Err(error) => Err(loose_error(id, file, &error)),
    }
}

fn loose_store(file: &Path) -> gix::odb::loose::Store {
    let objects = file.parent().and_then(Path::parent).unwrap_or(Path::new("."));
    gix::odb::loose::Store::at(objects, gix::hash::Kind::Sha1)
}

fn loose_error(id: ObjectId, file: &Path, error: &gix::Error) -> Error {
    match error.downcast_any_ref::<io::Error>() {
        // Errors of zlib are also I/O errors, but have no error number of the system.
        Some(error) if error.raw_os_error().is_some() => {
            Error::Io { path: file.to_owned(), source: again(error) }
        }
        _ => Error::Damaged { id, why: error.to_string() },
    }
}
