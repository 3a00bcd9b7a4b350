//! What other programs need of this one.

use std::path::PathBuf;

#[derive(Debug, clap::Args)]
pub struct Completions {
    /// The shell
    #[arg(value_name = "SHELL")]
    pub shell: clap_complete::Shell,
}

#[derive(Debug, clap::Args)]
pub struct Man {
    /// Write a page for each command into this folder, such as ~/.local/share/man/man1
    #[arg(value_name = "DIR")]
    pub dir: Option<PathBuf>,
}
