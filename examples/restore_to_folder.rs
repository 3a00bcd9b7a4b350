//! Restores a moment of a chat into a new folder. SillyTavern's files do not change.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program that is run by hand")]

use std::error::Error;
use std::path::{Path, PathBuf};

use stvc::Workspace;
use stvc::progress::NoProgress;
use stvc::verbs::restore::{Options, Target, restore};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(folder), Some(moment), Some(new)) =
        (arguments.next(), arguments.next(), arguments.next())
    else {
        return Err("a SillyTavern folder, a moment and a new folder are expected".into());
    };
    for file in run(Path::new(&folder), &moment, Path::new(&new))? {
        println!("{}", file.display());
    }
    Ok(())
}

/// Returns the files that were written.
pub fn run(folder: &Path, moment: &str, new: &Path) -> Result<Vec<PathBuf>, Box<dyn Error>> {
    let workspace = Workspace::at(folder, "restore_to_folder");
    let options = Options {
        snapshot: moment.to_owned(),
        target: Target::Folder { dir: new.to_owned(), only: None },
        ..Options::default()
    };
    let written = restore(&workspace, &options, &mut NoProgress)?.written;
    Ok(written.files.iter().map(|file| file.path.under(&written.root)).collect())
}
