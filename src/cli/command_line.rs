//! The list of commands. The arguments of a command are in its own file.

use std::ffi::OsString;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use super::args::GlobalArgs;
use super::{
    backup, check, completions, config, diff, doctor, erase, examples, extension, forget, fork, gc,
    import, log, lore, man, merge, operations, reconstruct, restore, search, show, snapshot, sync,
    tag, timelines, undo, view, watch,
};

/// Snapshots of SillyTavern chats and their lorebooks, kept in a git repository and brought back byte for byte.
///
/// Run it inside your SillyTavern folder, or say where that is with --data.
#[derive(Debug, Parser)]
#[command(name = "stvc", version, long_version = env!("STVC_VERSION"), propagate_version = true, arg_required_else_help = true)]
pub struct CommandLine {
    #[command(flatten)]
    pub global: GlobalArgs,

    #[command(subcommand)]
    pub command: Command,

    /// The command's name
    #[arg(skip)]
    pub name: &'static str,
}

impl CommandLine {
    /// Describing every command takes longer than running most of them, so a valid command line is
    /// parsed with the description of its own command alone.
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
        examples::add_to(Self::command())
    }

    pub fn read_with(command: clap::Command, arguments: &[OsString]) -> Result<Self, clap::Error> {
        let found = command.try_get_matches_from(arguments)?;
        let name = found.subcommand_name().and_then(examples::name_of).unwrap_or_default();
        Ok(Self { name, ..Self::from_arg_matches(&found)? })
    }
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Make the store (snapshot does it by itself, too)
    Init,
    /// Take a snapshot of every chat that changed, or of the named ones
    Snapshot(snapshot::Args),
    /// Show what changed since the last snapshots
    Status(timelines::StatusArgs),
    /// List all timelines: every chat, also deleted ones
    Timelines(timelines::Args),
    /// List the snapshots, newest first
    Log(log::Args),
    /// Show one snapshot
    Show(show::Args),
    /// Show what changed between two snapshots, or between one and the files now
    Diff(diff::Args),
    /// Search everything that was ever said, in every snapshot
    Search(search::Args),
    /// What the story knew: lorebooks and their entries, when each changed, and at which message
    Lore(lore::Args),
    /// Bring a snapshot's files back
    Restore(restore::Args),
    /// Another ending: the beginning of a chat as a chat of its own, with a lorebook of its own
    Fork(fork::Args),
    /// Merge the lorebook of one timeline into that of another, entry by entry and field by field
    Merge(merge::Args),
    /// Snapshots of states that were never taken, from what ST-Auto-Recap noted in the messages
    Reconstruct(reconstruct::Args),
    /// Check that the store, or a backup, is sound: read every object, rebuild every snapshot
    Check(check::Args),
    /// Check that your chats and lorebooks are sound, one by one and together, and repair what can be repaired
    Doctor(doctor::Args),
    /// Give a snapshot a name, or list the names
    Tag(tag::Args),
    /// Copy all snapshots, or those of some timelines, elsewhere: into one file, a folder, or a git server
    Backup(backup::Args),
    /// Take in a backup, or SillyTavern's own backups as snapshots of the chats they are of
    Import(import::Args),
    /// Bring two devices to the same state through a folder or a git server that both reach
    Sync(sync::Args),
    /// Show what the store holds and saves: the share of each timeline, the largest messages
    Stats,
    /// Let snapshots go by a policy; the newest, tagged ones and fork points always stay
    Forget(forget::Args),
    /// Remove chats for good: out of the history, the log and the disk
    Erase(erase::Args),
    /// Make the store small: one pack with deltas, without what nobody can ask for any more
    Gc(gc::Args),
    /// Take the last command back: snapshots, tags, restores
    Undo(undo::Args),
    /// List what was done, newest first
    Operations(operations::Args),
    /// Take a snapshot after every save, until it is stopped
    Watch(watch::Args),
    /// Look at the timelines in the browser
    View(view::Args),
    /// Put the extension into SillyTavern's page, bring it up to date, or take it away
    Extension(extension::Args),
    /// See and set defaults: where backups go, colours, the pager, dates, retention
    Config(config::Args),
    /// Print what your shell needs to complete commands and options
    Completions(completions::Args),
    /// Print the manual page, or write the pages of all commands into a folder
    Man(man::Args),
    /// Try it: the whole round trip on a sample library in a temporary folder
    Demo,
}

impl Command {
    /// Whether `--all-users` works, and users without snapshots are mentioned.
    pub fn is_for_users(&self) -> bool {
        matches!(
            self,
            Command::Snapshot(_)
                | Command::Watch(_)
                | Command::Extension(_)
                | Command::Backup(_)
                | Command::Check(_)
                | Command::Doctor(_)
                | Command::Stats
        )
    }

    /// Whether its output may be long and is nothing but the answer: it goes to the pager.
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

    /// Whether it changes nothing in the store, so that it works on a backup.
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
            "# The commands\n\nMade from the program's own help; a test keeps it so. \
             Exit codes: 0 done, also when there was nothing to do; 1 failed; 2 wrong usage; 3 some done and some not; \
             4 refused by a rule, nothing changed; 10 no store; 11 locked by another process; 130 interrupted. \
             `diff --exit-code` as git: 1 if something changed. `search` as grep: 1 if nothing was found.\n",
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

    /// `UPDATE_DOCS=1 cargo test reference` writes it anew.
    #[test]
    fn the_command_reference_is_what_the_program_says() {
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
