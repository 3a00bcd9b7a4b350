//! The command line: parses arguments and prints answers. The logic is in the library.

mod all_users;
mod args;
mod backup;
mod check;
mod clock;
mod command_line;
mod complete;
mod completions;
mod config;
mod demo;
mod diff;
mod doctor;
mod erase;
mod error;
mod examples;
mod extension;
mod forget;
mod fork;
mod gc;
mod graph;
mod help_groups;
mod import;
mod init;
mod interrupt;
mod log;
mod lore;
mod man;
mod merge;
mod operations;
mod output;
mod pager;
mod passphrase;
mod progress_bar;
mod reconstruct;
mod remote;
mod report_error;
mod restore;
mod restore_all;
mod screen;
mod search;
mod setup;
mod show;
mod snapshot;
mod stats;
mod status;
mod story;
mod sync;
mod table;
mod tag;
mod timelines;
mod undo;
mod view;
mod watch;
mod wording;
mod wrap;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap_complete::CompleteEnv;

use backup::Target;
use command_line::{Command, CommandLine};
use error::{Error, Result};
use interrupt::Access;
use output::Output;
use passphrase::SharedSecret;
use stvc::copies::{CopyPlace, LoginPrompt};
pub use stvc::exit;
use stvc::watch::Users;
use stvc::{Workspace, stores};

pub fn main() -> ExitCode {
    // If the shell requests completions, prints them and exits.
    CompleteEnv::with_factory(|| complete::with_paths(CommandLine::described()))
        .var(completions::ASKED)
        .bin("stvc")
        .complete();
    ExitCode::from(run(&std::env::args_os().collect::<Vec<_>>()))
}

/// Runs one command line and returns its exit code.
fn run(arguments: &[OsString]) -> u8 {
    let args = match CommandLine::read(arguments) {
        Ok(args) => args,
        Err(problem) => return report_error::usage(&problem, arguments),
    };
    let name = args.name;
    let mut workspace = args.global.workspace(arguments);
    let settings = workspace.settings();
    let mut out = Output::new(&args.global, &settings, workspace.now);
    if out.may_ask() {
        workspace.login_prompt = LoginPrompt::Allowed;
    }
    let access = if args.command.only_looks() { Access::Read } else { Access::Write };
    interrupt::report_on_terminal(&workspace, access);
    if args.command.is_for_reading() {
        out = out.collecting(&args.global, &settings);
    }
    wording::use_group_names(&workspace);
    let outcome = match (clock::problem(), args.global.all_users) {
        (Some(problem), _) => Err(problem),
        (None, true) => {
            let run = |workspace: &Workspace, out: &mut Output| {
                print_configuration_problems(&args, workspace, out);
                dispatch(&args, workspace, out)
            };
            all_users::run(&args, &workspace, &mut out, &run)
        }
        (None, false) => {
            print_configuration_problems(&args, &workspace, &mut out);
            // Warns if the library has other users, because this command does not read their chats.
            let is_for_users = args.command.is_for_users() && !is_config(&args.command);
            if is_for_users || matches!(args.command, Command::Status(_) | Command::Setup(_)) {
                out.findings(workspace.other_users().as_slice());
            }
            on_backup(&args, &workspace, &mut out)
        }
    };
    out.findings(&workspace.take_notices());
    let code = outcome.unwrap_or_else(|problem| report_error::report(&problem, name, &mut out));
    out.finish(code)
}

/// Warns about an invalid configuration. `config` reports it as an error instead, and `watch`
/// checks the configuration itself.
fn print_configuration_problems(args: &CommandLine, workspace: &Workspace, out: &mut Output) {
    if !is_config(&args.command) && !matches!(args.command, Command::Watch(_)) {
        out.findings(workspace.broken_settings().as_slice());
    }
}

fn is_config(command: &Command) -> bool {
    matches!(command, Command::Config(_))
}

/// Runs the command. If the store is a backup file or a remote, it is unpacked into a temporary
/// store, and only commands that do not change the store are allowed.
fn on_backup(args: &CommandLine, workspace: &Workspace, out: &mut Output) -> Result<u8> {
    let Some(path) = workspace.store.as_deref() else { return dispatch(args, workspace, out) };
    let typed = args.global.store.as_deref().and_then(Path::to_str);
    let place = match typed.map(stvc::copies::CopyPlace::parse).transpose()? {
        Some(place @ (CopyPlace::Remote(_) | CopyPlace::Storage(_))) => place,
        _ if stvc::copies::is_encrypted(path).is_some() => CopyPlace::File(path.to_owned()),
        _ => return dispatch(args, workspace, out),
    };
    if !args.command.only_looks() {
        let path = PathBuf::from(stores::Url::without_password(typed.unwrap_or_default()));
        return Err(Error::BackupIsNoStore { path });
    }
    let passphrase = passphrase::of_place(&args.global.secret, &place)?;
    let unpacked =
        stvc::copies::look_at(workspace, &place, passphrase.as_ref(), &mut out.progress())?;
    let store = Some(unpacked.store.path().to_owned());
    dispatch(args, &Workspace { store, ..workspace.clone() }, out)
}

fn dispatch(args: &CommandLine, workspace: &Workspace, out: &mut Output) -> Result<u8> {
    let secret = &args.global.secret;
    match &args.command {
        Command::Setup(args) => setup::run(args, workspace, out),
        Command::Init => init::run(workspace, out),
        Command::Snapshot(args) => snapshot::run(args, workspace, out),
        Command::Status(args) => status::run(args, workspace, out),
        Command::Timelines(args) => timelines::run(args, workspace, out),
        Command::Log(args) => log::run(args, workspace, out),
        Command::Show(args) if args.book || args.entry.is_some() => {
            lore::of_snapshot(args, workspace, out)
        }
        Command::Show(args) if args.is_to_read() => {
            story::run(&args.snapshot, args.message.clone(), &args.story, workspace, out)
        }
        Command::Show(args) => show::run(args, workspace, out),
        Command::Diff(args) => diff::run(args, workspace, out),
        Command::Search(args) => search::run(args, workspace, out),
        Command::Lore(args) => lore::run(args, workspace, out),
        Command::Restore(args) => match &args.snapshot {
            Some(snapshot) => restore::run(args, snapshot, workspace, out),
            None => restore_all::run(args, workspace, out),
        },
        Command::Fork(args) => fork::run(args, workspace, out),
        Command::Merge(args) => merge::run(args, workspace, out),
        Command::Reconstruct(args) => reconstruct::run(args, workspace, out),
        Command::Check(args) => check::run(args, secret, workspace, out),
        Command::Doctor(args) => doctor::run(args, workspace, out),
        Command::Tag(args) => tag::run(args, workspace, out),
        Command::Backup(args) => {
            let target = Target { user: None, secret: &SharedSecret::new(secret) };
            backup::run(args, target, workspace, out)
        }
        Command::Import(args) => import::run(args, secret, workspace, out),
        Command::Sync(args) => sync::run(args, workspace, out),
        Command::Remote(args) => remote::run(args, secret, workspace, out),
        Command::Stats => stats::run(workspace, out),
        Command::Forget(args) => forget::run(args, workspace, out),
        Command::Erase(args) => erase::run(args, workspace, out),
        Command::Gc(args) => gc::run(args, workspace, out),
        Command::Undo(args) => undo::run(args, workspace, out),
        Command::Operations(args) => operations::run(args, workspace, out),
        Command::Watch(args) => watch::run(args, workspace, Users::One(workspace.clone()), out),
        Command::View(args) => view::run(args, workspace, out),
        Command::Extension(args) => extension::run(args, workspace, out),
        Command::Config(args) => config::run(args, workspace, out),
        Command::Completions(args) => completions::run(args, out),
        Command::Man(args) => man::run(args, CommandLine::described(), out),
        Command::Demo => demo::run(run, out),
    }
}
