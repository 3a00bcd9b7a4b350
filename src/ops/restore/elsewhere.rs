//! The files into an empty folder; the library is not touched.

use std::fs;
use std::io;
use std::path::Path;

use super::material::Material;
use super::{Options, Report, wanted};
use crate::ops::files::{Action, FileAction};
use crate::ops::{Error, Result};
use crate::{durable, st};

pub(super) fn restore(
    dir: &Path,
    material: &Material,
    options: &Options,
    report: &mut Report,
) -> Result<()> {
    let error = |path: &Path| {
        let path = path.to_owned();
        move |source: io::Error| Error::St(st::Error::Io { path, source })
    };
    let root = std::path::absolute(dir).map_err(error(dir))?;
    match fs::read_dir(&root).map(|mut entries| entries.next().is_some()) {
        Ok(true) => return Err(Error::NotEmpty { path: root }),
        Ok(false) => {}
        Err(problem) if problem.kind() == io::ErrorKind::NotFound => {}
        Err(problem) => return Err(error(&root)(problem)),
    }
    if !options.dry_run {
        durable::create_dir_all(&root).map_err(error(&root))?;
    }
    for file in material.contents.files.iter().filter(|file| wanted(options, file.role)) {
        if !options.dry_run {
            st::write(&root, &file.path, &file.bytes, None)?;
        }
        report.files.push(FileAction {
            path: file.path.clone(),
            action: Action::Write,
            bytes: file.bytes.len() as u64,
            blake3: file.blake3,
            replaces: false,
        });
    }
    report.root = root;
    Ok(())
}
