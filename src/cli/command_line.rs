//! The list of commands. The arguments of each command are defined in the command's own file.

use std::ffi::OsString;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use super::args::GlobalArgs;
use super::{
    backup, check, completions, config, diff, doctor, erase, examples, extension, forget, fork, gc,
    help_groups, import, log, lore, man, merge, operations, reconstruct, remote, restore, search,
    setup, show, snapshot, status, sync, tag, timelines, undo, view, watch,
};

/// Version control for SillyTavern chats and their lorebooks
///
/// Run stvc in your SillyTavern folder, or pass the folder with --data. Snapshots are stored in a
/// git repository and restored byte for byte.
#[derive(Debug, Parser)]
#[command(name = "stvc", version, long_version = env!("STVC_VERSION"), propagate_version = true, arg_required_else_help = true)]
pub struct CommandLine {
    #[command(flatten)]
    pub global: GlobalArgs,

    #[command(subcommand)]
    pub command: Command,

    #[arg(skip)]
    pub name: &'static str,
}

impl CommandLine {
    /// Parses the command line with the definition of only the command that it names. If that
    /// fails, parses it with all definitions, so that clap's error message is complete. Building
    /// all definitions takes longer than running most commands.
    pub fn read(arguments: &[OsString]) -> Result<Self, clap::Error> {
        let all = Self::command();
        let alone = arguments.iter().skip(1).find_map(|word| all.find_subcommand(word)).map(|it| {
            clap::Command::new("stvc").args(all.get_arguments().cloned()).subcommand(it.clone())
        });
        match alone.map(|command| Self::read_with(command, arguments)) {
            Some(Ok(args)) => Ok(args),
            _ => Self::read_with(Self::described(), arguments),
        }
    }

    pub fn described() -> clap::Command {
        help_groups::add_to(examples::add_to(Self::command()))
    }

    pub fn read_with(command: clap::Command, arguments: &[OsString]) -> Result<Self, clap::Error> {
        let found = command.try_get_matches_from(arguments)?;
        let name = found.subcommand_name().and_then(examples::name_of).unwrap_or_default();
        Ok(Self { name, ..Self::from_arg_matches(&found)? })
    }
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Set everything up: first snapshot, extension, watch and backups
    Setup(setup::Args),
    /// Create the store
    ///
    /// `stvc snapshot` also creates it if it does not exist.
    Init,
    /// Create snapshots of all changed chats, or of the named ones
    Snapshot(snapshot::Args),
    /// Show whether your chats are protected, and what changed
    Status(status::Args),
    /// List all timelines, including those of deleted chats
    Timelines(timelines::Args),
    /// List snapshots, newest first
    Log(log::Args),
    /// Show a snapshot
    Show(show::Args),
    /// Compare two snapshots, or a snapshot with the current files
    Diff(diff::Args),
    /// Search the text of all snapshots
    Search(search::Args),
    /// Show lorebooks, their entries, and when each entry changed
    Lore(lore::Args),
    /// Restore the files of a snapshot
    Restore(restore::Args),
    /// Create a fork of a chat, with its own lorebook
    Fork(fork::Args),
    /// Merge the lorebook of one timeline into that of another
    ///
    /// Entries are merged field by field.
    Merge(merge::Args),
    /// Rebuild snapshots of earlier scenes from ST-Auto-Recap's records
    Reconstruct(reconstruct::Args),
    /// Verify the store or a backup
    ///
    /// Every object is read and every snapshot is rebuilt.
    Check(check::Args),
    /// Find and repair problems in chats and lorebooks
    Doctor(doctor::Args),
    /// Create, list, move or delete tags
    Tag(tag::Args),
    /// Back up snapshots to a file, a folder or a git server
    Backup(backup::Args),
    /// Import a backup, or SillyTavern's own backups as snapshots
    Import(import::Args),
    /// Synchronise devices through a remote, a folder or a git server
    Sync(sync::Args),
    /// Add, list, test or remove remotes on plain storage
    Remote(remote::Args),
    /// Show the size of the store, its timelines and largest messages
    Stats,
    /// Remove old snapshots according to a retention policy
    ///
    /// The latest snapshot of each timeline, tagged snapshots and fork points are always kept.
    Forget(forget::Args),
    /// Erase chats permanently from history, operation log and disk
    Erase(erase::Args),
    /// Compact the store and delete unreachable objects
    Gc(gc::Args),
    /// Undo the last operation, or an earlier one
    Undo(undo::Args),
    /// List operations, newest first
    Operations(operations::Args),
    /// Create a snapshot after every save, until stopped
    Watch(watch::Args),
    /// Open the viewer in the browser
    View(view::Args),
    /// Install, update or remove the extension for SillyTavern
    Extension(extension::Args),
    /// Show and change settings
    ///
    /// Settings include the backup destination, colours, the pager, the date format and retention.
    Config(config::Args),
    /// Print the completion script for a shell
    Completions(completions::Args),
    /// Print the manual page, or write all pages into a folder
    Man(man::Args),
    /// Demonstrate stvc on a sample library in a temporary folder
    Demo,
}

impl Command {
    /// Returns whether the command supports `--all-users`. Without this option, such a command
    /// warns if the library has other users.
    pub fn is_for_users(&self) -> bool {
        matches!(
            self,
            Command::Snapshot(_)
                | Command::Watch(_)
                | Command::Extension(_)
                | Command::Backup(_)
                | Command::Check(_)
                | Command::Config(_)
                | Command::Doctor(_)
                | Command::Stats
        )
    }

    /// Returns whether the output is shown in a pager. Such output may be long and contains only
    /// results.
    pub fn is_for_reading(&self) -> bool {
        let reads = matches!(
            self,
            Command::Status(_)
                | Command::Timelines(_)
                | Command::Log(_)
                | Command::Show(_)
                | Command::Diff(_)
                | Command::Search(_)
                | Command::Lore(_)
                | Command::Stats
                | Command::Operations(_)
                | Command::Tag(_)
        );
        reads && (self.only_looks() || matches!(self, Command::Operations(_)))
    }

    /// Returns whether the command leaves the store unchanged. Such a command also works on a
    /// backup.
    pub fn only_looks(&self) -> bool {
        match self {
            Command::Timelines(timelines) => timelines.parent.is_none() && !timelines.no_parent,
            Command::Status(_)
            | Command::Log(_)
            | Command::Show(_)
            | Command::Diff(_)
            | Command::Search(_)
            | Command::Lore(_)
            | Command::Check(_)
            | Command::Stats => true,
            Command::View(view) => !view.write,
            Command::Restore(restore) => restore.to.is_some(),
            Command::Tag(tag) => tag.snapshot.is_none() && !tag.delete,
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reference() -> String {
        let mut root = CommandLine::described().term_width(100);
        root.build();
        let mut text = String::from(
            "# Commands\n\nThis page is generated from the program's help; a test compares them. \
             Exit codes: 0 success, also if there was nothing to do; 1 failure; 2 invalid usage; 3 partial success; \
             4 refused by a rule, nothing changed; 10 no store; 11 locked by another process; 130 interrupted. \
             `diff --exit-code` exits with 1 if there are differences, as git does, and `search` with 1 if nothing was found, as grep does.\n",
        );
        text.push_str(&section("stvc", &mut root));
        let names: Vec<_> =
            root.get_subcommands().map(|command| command.get_name().to_owned()).collect();
        for name in names.iter().filter(|name| *name != "help") {
            if let Some(command) = root.find_subcommand_mut(name) {
                text.push_str(&section(&format!("stvc {name}"), command));
            }
        }
        text
    }

    fn section(title: &str, command: &mut clap::Command) -> String {
        let help = command.render_long_help().to_string();
        let help: Vec<_> = help.lines().map(str::trim_end).collect();
        format!("\n## {title}\n\n```text\n{}\n```\n", help.join("\n").trim())
    }

    /// To update docs/cli.md, run `UPDATE_DOCS=1 cargo test reference`.
    #[test]
    fn command_reference_equals_the_generated_text() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/cli.md");
        let made = reference();
        if std::env::var_os("UPDATE_DOCS").is_some() {
            std::fs::write(path, &made).unwrap();
        }
        let written = std::fs::read_to_string(path).unwrap_or_default();
        assert!(
            written == made,
            "docs/cli.md is out of date; run UPDATE_DOCS=1 cargo test reference"
        );
    }
}
