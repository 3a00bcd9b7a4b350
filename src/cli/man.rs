use std::io;
use std::path::{Path, PathBuf};

use clap_mangen::Man;

use super::error::Result;
use super::exit;
use super::output::Output;
use super::wording::count;
use stvc::json_output::{Counts, Summary};
use stvc::output_files::{self, Existing};
use stvc::verbs;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Write one page per command to this folder, such as ~/.local/share/man/man1
    #[arg(value_name = "DIR")]
    pub dir: Option<PathBuf>,
}

pub fn run(args: &Args, mut command: clap::Command, out: &mut Output) -> Result<u8> {
    // `build` adds the global options to every subcommand.
    command.build();
    let Some(dir) = &args.dir else {
        let mut page = Vec::new();
        let _ = Man::new(command).render(&mut page);
        out.text(&String::from_utf8_lossy(&page));
        return Ok(exit::DONE);
    };
    let written = write(&command, dir).map_err(verbs::Error::at(dir))?;
    out.say(format!("{} written to {}.", count(written, "page"), dir.display()));
    let counts = Counts(vec![("pages", written.into())]);
    out.end_with(Summary { command: "man", ok: true, counts });
    Ok(exit::DONE)
}

fn write(command: &clap::Command, dir: &Path) -> io::Result<u64> {
    output_files::create_dir_all(dir)?;
    let mut pages = 0;
    for command in std::iter::once(command).chain(command.get_subcommands()) {
        if command.get_name() == "help" {
            continue;
        }
        let man = Man::new(command.clone());
        let mut page = Vec::new();
        man.render(&mut page)?;
        output_files::write(&dir.join(man.get_filename()), &page, Existing::Replace)?;
        pages += 1;
    }
    Ok(pages)
}
