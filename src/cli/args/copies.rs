//! Copies elsewhere, and the way back.

use clap_complete::engine::ArgValueCompleter;

use crate::cli::complete::timelines;
use std::path::PathBuf;

#[derive(Debug, clap::Args)]
#[command(after_help = BACKUP_HELP)]
pub struct Backup {
    /// Where to: a file that ends in .stvc, a folder, or a git server; - for standard output. Where the last one went, if not given
    #[arg(value_name = "DEST")]
    pub destination: Option<String>,

    /// Only these timelines, with the history they come from and their tags; everything if none is named
    #[arg(add = ArgValueCompleter::new(timelines), value_name = "TIMELINE")]
    pub timelines: Vec<String>,

    /// Encrypt it with a passphrase, which is asked for on the terminal if neither --passphrase-file nor --passphrase-command is given
    #[arg(long)]
    pub encrypt: bool,

    /// Also in the place of a backup that holds snapshots which this one does not; a folder or server keeps them out of sight
    #[arg(long)]
    pub overwrite: bool,

    /// In a folder or on a server, drop the timelines, tags and snapshots that are not here any more
    #[arg(long, conflicts_with_all = ["timelines", "encrypt"])]
    pub prune: bool,

    /// Only what is in the store already: no snapshots of what changed are taken first
    #[arg(long)]
    pub no_snapshot: bool,

    /// Only tell when the last backups were taken, all or the one at DEST, and what came since
    #[arg(long, conflicts_with_all = ["timelines", "encrypt", "overwrite", "prune", "no_snapshot"])]
    pub last: bool,
}

const BACKUP_HELP: &str = "First a snapshot of every chat that changed is taken. A file is written whole each time; it is read back and every object in it hashed before it gets its name. On standard output it cannot be, so check it where it went: \
                           `stvc check FILE`. A folder is a store of its own (`stvc --store FOLDER log`) to which only what is new is copied, and a git server, such as ssh://host/chats.git or \
                           me@host:chats.git, gets it through your git; what you delete here stays there without --prune. \
                           A backup holds all timelines and tags and what they lead to, not what only `undo` needs. \
                           Everything comes back with `stvc import DEST && stvc restore --all`, also into an empty folder (--data).";

#[derive(Debug, clap::Args)]
pub struct Import {
    /// A backup: a file, a folder or a git server; or a folder of SillyTavern's backups. SillyTavern's own backups/ if not given
    #[arg(value_name = "SRC")]
    pub source: Option<PathBuf>,

    /// Only show what would be done
    #[arg(long, short = 'n')]
    pub dry_run: bool,

    /// SillyTavern is running, and the chats that are replaced are closed there (menu ☰, "Close chat"): it has nothing to write back
    #[arg(long)]
    pub chat_closed: bool,
}

#[derive(Debug, clap::Args)]
#[command(after_help = SYNC_HELP)]
pub struct Sync {
    /// A folder, or a git server such as ssh://host/chats.git or me@host:chats.git; the last one if not given
    #[arg(value_name = "REMOTE")]
    pub remote: Option<String>,

    /// Only show what would be done
    #[arg(long, short = 'n')]
    pub dry_run: bool,

    /// SillyTavern is running, and the chats that are replaced are closed there (menu ☰, "Close chat"): it has nothing to write back
    #[arg(long)]
    pub chat_closed: bool,
}

const SYNC_HELP: &str = "First a snapshot of every chat that changed is taken. A chat that went on elsewhere is brought up to date here. One that went on on both sides stays as two: what came to REMOTE \
                         first keeps its name, the other is called `… (other version DAY)`. A lorebook that both changed is merged, entry by entry and field by field; where both changed one value, both \
                         lorebooks stay and the command that settles it is shown. What changed since its snapshot is left alone. `stvc undo` takes back what came; what was deleted here and is \
                         still there comes back.";
