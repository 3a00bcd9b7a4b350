//! What other programs need of this one.

use std::path::PathBuf;

use clap::ValueEnum;

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

#[derive(Debug, clap::Args)]
#[command(after_help = EXTENSION_HELP)]
pub struct Extension {
    /// What to do with it
    #[arg(value_enum, default_value = "status")]
    pub deed: ExtensionDeed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ExtensionDeed {
    /// Put it there
    Install,
    /// Put this program's version in the place of another
    Update,
    /// Take it away
    Remove,
    /// Say what is there
    Status,
}

const EXTENSION_HELP: &str = "It goes into the user's extensions/stvc, out of this program: no download, always the same version. It asks `stvc watch` through SillyTavern's own files (docs/mailbox.md), with no port and \
                              no server plugin, so the watch must run beside SillyTavern's data. `stvc config extension.write false` lets it look and change nothing.";
