use std::io;
use std::path::{Path, PathBuf};

use clap_mangen::Man;

use super::error::{Error, Result};
use super::exit;
use super::output::Output;
use super::wording::count;
use stvc::json_output::{Counts, Summary};
use stvc::output_files::{self, Existing};
use stvc::verbs;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Print the page of this command (default: the page of stvc)
    #[arg(value_name = "COMMAND", conflicts_with = "dir")]
    pub command: Option<String>,

    /// Write one page per command to this folder, such as ~/.local/share/man/man1
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
}

/// The sections at the end of every page.
const SECTIONS: &str = r#".SH "EXIT STATUS"
.TP
0
Success, also if there was nothing to do.
.TP
1
Failure. \fBdiff \-\-exit\-code\fR: there are differences. \fBsearch\fR: nothing was found.
.TP
2
Invalid usage.
.TP
3
Partial success.
.TP
4
Refused by a rule; nothing was changed.
.TP
10
There is no store.
.TP
11
Another process holds the lock of the store.
.TP
130
Interrupted.
.SH ENVIRONMENT
.TP
STVC_DATA, STVC_STORE
Defaults of \fB\-\-data\fR and \fB\-\-store\fR.
.TP
STVC_PAGER, PAGER
The pager for long output; an empty value means no pager.
.TP
NO_COLOR
No colours.
"#;

pub fn run(args: &Args, mut command: clap::Command, out: &mut Output) -> Result<u8> {
    // `build` adds the global options to every subcommand.
    command.build();
    let Some(dir) = &args.dir else {
        let command = match &args.command {
            Some(name) => command
                .find_subcommand(name)
                .ok_or_else(|| Error::NoSuchCommand { name: name.clone() })?
                .clone(),
            None => command,
        };
        let page = page(&Man::new(command)).unwrap_or_default();
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
        let page = page(&man)?;
        output_files::write(&dir.join(man.get_filename()), &page, Existing::Replace)?;
        pages += 1;
    }
    Ok(pages)
}

fn page(man: &Man) -> io::Result<Vec<u8>> {
    let mut page = Vec::new();
    man.render(&mut page)?;
    page.extend_from_slice(SECTIONS.as_bytes());
    Ok(page)
}
