//! The command line: arguments in, words out, and no logic of its own.

mod args;
mod backup;
mod check;
mod clock;
mod command_line;
#[cfg(test)]
mod command_reference;
mod complete;
mod completions;
mod config;
mod demo;
mod demo_library;
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
mod import;
mod import_backup;
mod init;
mod log;
mod lore;
mod man;
mod merge;
mod message_versions;
mod operations;
mod output;
mod pager;
mod passphrase;
mod place;
mod progress_bar;
mod read;
mod reconstruct;
mod report_error;
mod restore;
mod restore_all;
mod restored_files;
mod screen;
mod search;
mod show;
mod snapshot;
mod stats;
mod story;
mod sync;
mod table;
mod tag;
mod timelines;
mod tree;
mod undo;
mod view;
mod watch;
mod wording;
mod wrap;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use chrono::{DateTime, FixedOffset};
use clap_complete::CompleteEnv;

use args::GlobalArgs;
use command_line::{Command, CommandLine};
use error::{Error, Result};
use output::{LOOK, Out, paint};
use stvc::engine::configuration::{self, Configuration};
use stvc::engine::copies::CopyPlace;
use stvc::engine::{self, Workspace};
pub use stvc::exit;
use stvc::lines::{Counts, Summary, UserLine};
use stvc::rules;
use stvc::store;
use stvc::system_clock;
use wording::clean;

/// How long to wait for another stvc to finish.
const PATIENCE: Duration = Duration::from_secs(10);

/// Run the program on its own arguments.
pub fn main() -> ExitCode {
    // A shell may ask what fits; then that is the answer, and the end.
    CompleteEnv::with_factory(CommandLine::described)
        .var(completions::ASKED)
        .bin("stvc")
        .complete();
    ExitCode::from(run(&std::env::args_os().collect::<Vec<_>>()))
}

/// Run one command line; its exit code.
fn run(arguments: &[OsString]) -> u8 {
    let args = match CommandLine::read(arguments) {
        Ok(args) => args,
        Err(problem) => {
            return report_error::usage(
                &problem,
                arguments.iter().any(|argument| argument == "--json"),
            );
        }
    };
    let name = args.name;
    let workspace = workspace(&args.global, arguments);
    let settings = settings(&workspace);
    let mut out = Out::new(&args.global, &settings, workspace.now);
    if args.command.is_for_reading() {
        out = out.collecting(&args.global, &settings);
    }
    let outcome = match (clock_problem(), args.global.all_users) {
        (Some(problem), _) => Err(problem),
        (None, true) => for_all_users(&args, &workspace, &mut out),
        (None, false) => {
            tell_of_configuration(&args, &workspace, &mut out);
            tell_of_others(&args, &workspace, &mut out);
            on_backup(&args, &workspace, &mut out)
        }
    };
    out.findings(&workspace.take_notices());
    let code = outcome.unwrap_or_else(|problem| report_error::report(&problem, name, &mut out));
    out.finish(code)
}

/// Returns the user's settings, or the defaults if they cannot be understood.
fn settings(workspace: &Workspace) -> Configuration {
    let Some(store) = workspace.find_store().ok().flatten() else {
        return Configuration::default();
    };
    let mut found = Configuration::or_defaults(&store);
    // A store that is named, or is a copy, may be somebody else's: what it says is not run.
    let is_own = workspace.store.is_none() && !store.is_mirror();
    found.pager = found.pager.filter(|_| is_own);
    found
}

/// Warns of a configuration that cannot be understood. `config` fails because of it, and the watch looks at it again and again.
fn tell_of_configuration(args: &CommandLine, workspace: &Workspace, out: &mut Out) {
    if !matches!(args.command, Command::Config(_) | Command::Watch(_))
        && let Ok(Some(store)) = workspace.find_store()
    {
        out.findings(configuration::finding(&store).as_slice());
    }
}

/// Somebody else's chats are not taken, and they may not know.
fn tell_of_others(args: &CommandLine, workspace: &Workspace, out: &mut Out) {
    let is_told = args.command.is_for_users() || matches!(args.command, Command::Status(_));
    let library = workspace.library().ok().filter(|_| is_told && workspace.store.is_none());
    let others = library.as_ref().map(|library| library.other_users()).unwrap_or_default();
    if let (false, Some(library)) = (others.is_empty(), &library) {
        let user = library.root().file_name().unwrap_or_default().to_string_lossy();
        out.findings(&[rules::other_users(&user, others)]);
    }
}

/// The same command for each user. One that fails does not keep the others from it.
fn for_all_users(args: &CommandLine, workspace: &Workspace, out: &mut Out) -> Result<u8> {
    let command = args.name;
    if !args.command.is_for_users() {
        return Err(Error::OneUser { command });
    }
    let users = workspace.of_all_users()?;
    if let Command::Watch(args) = &args.command {
        return watch::run(args, &users, out);
    }
    let mut codes = Vec::new();
    for (user, workspace) in &users {
        out.object(UserLine { user });
        out.line(paint(LOOK.name, clean(user)));
        tell_of_configuration(args, workspace, out);
        let outcome = match &args.command {
            Command::Backup(backup) => {
                backup::run(backup, Some(user), &args.global.secret, workspace, out)
            }
            _ => dispatch(args, workspace, out),
        };
        out.findings(&workspace.take_notices());
        codes.push(outcome.unwrap_or_else(|problem| report_error::report(&problem, command, out)));
        out.end_summary();
    }
    let failed = codes.iter().filter(|code| **code != exit::DONE).count();
    let counts = Counts(vec![("users", users.len().into()), ("failed", failed.into())]);
    out.end_with(Summary { command, ok: failed == 0, counts });
    let first = codes.first().copied().unwrap_or(exit::DONE);
    Ok(if codes.iter().all(|code| *code == first) { first } else { exit::PARTLY })
}

/// A command on a backup works on a store that is unpacked for it and gone afterwards.
fn on_backup(args: &CommandLine, workspace: &Workspace, out: &mut Out) -> Result<u8> {
    let Some(path) = workspace.store.as_deref() else { return dispatch(args, workspace, out) };
    let typed = args.global.store.as_deref().and_then(Path::to_str);
    let place = match typed.map(stvc::engine::copies::CopyPlace::parse).transpose()? {
        Some(place @ CopyPlace::Remote(_)) => place,
        _ if stvc::engine::copies::is_encrypted(path).is_some() => CopyPlace::File(path.to_owned()),
        _ => return dispatch(args, workspace, out),
    };
    if !args.command.only_looks() {
        let path = PathBuf::from(store::Url::without_password(typed.unwrap_or_default()));
        return Err(Error::BackupIsNoStore { path });
    }
    let passphrase = passphrase::of_place(&args.global.secret, &place)?;
    let (asks, mut progress) = (out.may_ask(), out.progress());
    let unpacked = stvc::engine::receive::look_at(
        workspace,
        &place,
        passphrase.as_ref(),
        asks,
        &mut progress,
    )?;
    drop(progress);
    let store = Some(unpacked.store.path().to_owned());
    dispatch(args, &Workspace { store, ..workspace.clone() }, out)
}

fn dispatch(args: &CommandLine, workspace: &Workspace, out: &mut Out) -> Result<u8> {
    let secret = &args.global.secret;
    match &args.command {
        Command::Init => init::run(workspace, out),
        Command::Snapshot(args) => snapshot::run(args, workspace, out),
        Command::Status(args) => timelines::status(args, workspace, out),
        Command::Timelines(args) => timelines::run(args, workspace, out),
        Command::Log(args) => match args.message {
            Some(message) => message_versions::run(args, message, workspace, out),
            None => log::run(args, workspace, out),
        },
        Command::Show(args) if args.book || args.entry.is_some() => {
            lore::of_snapshot(args, workspace, out)
        }
        Command::Show(args) if args.is_to_read() => read::run(args, workspace, out),
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
        Command::Backup(args) => backup::run(args, None, secret, workspace, out),
        Command::Import(args) => import::run(args, secret, workspace, out),
        Command::Sync(args) => sync::run(args, workspace, out),
        Command::Stats => stats::run(workspace, out),
        Command::Forget(args) => forget::run(args, workspace, out),
        Command::Erase(args) => erase::run(args, workspace, out),
        Command::Gc(args) => gc::run(args, workspace, out),
        Command::Undo(args) => undo::run(args, workspace, out),
        Command::Operations(args) => operations::run(args, workspace, out),
        Command::Watch(args) => watch::run(args, &[(String::new(), workspace.clone())], out),
        Command::View(args) => view::run(args, workspace, out),
        Command::Extension(args) => extension::run(args, workspace, out),
        Command::Config(args) => config::run(args, workspace, out),
        Command::Completions(args) => completions::run(args, out),
        Command::Man(args) => man::run(args, CommandLine::described(), out),
        Command::Demo => demo::run(out),
    }
}

fn workspace(args: &GlobalArgs, arguments: &[OsString]) -> Workspace {
    let here = || std::env::current_dir().unwrap_or_else(|_| PathBuf::from("."));
    let absolute = |path: &PathBuf| std::path::absolute(path).unwrap_or_else(|_| path.clone());
    Workspace {
        automatic: false,
        library: match &args.data {
            Some(dir) => engine::LibraryPlace::At(absolute(dir)),
            None => engine::LibraryPlace::Above(here()),
        },
        user: args.user.clone(),
        store: args.store.as_ref().map(absolute),
        command: engine::CommandRun::new(without_secrets(arguments)),
        now: now(),
        patience: PATIENCE,
        notices: Default::default(),
        finished: Default::default(),
        loaded: Default::default(),
    }
}

/// A command line for the log and the lock, which others read: without passwords in addresses, and without the command that prints a passphrase, which may well have it in it.
fn without_secrets(arguments: &[OsString]) -> Vec<String> {
    const SECRET: &str = "--passphrase-command";
    let mut is_secret = false;
    let hide = |word: &OsString| {
        let word = word.to_string_lossy();
        let hidden = std::mem::replace(&mut is_secret, word == SECRET);
        match word.split_once('=') {
            _ if hidden => "***".to_owned(),
            Some((SECRET, _)) => format!("{SECRET}=***"),
            _ => store::Url::without_password(&word),
        }
    };
    // Whatever the file is called: `stvc.exe`, or a path.
    std::iter::once("stvc".to_owned()).chain(arguments.iter().skip(1).map(hide)).collect()
}

/// The present moment, or the one that `SOURCE_DATE_EPOCH` fixes: two runs with the same one write the same commits.
fn now() -> DateTime<FixedOffset> {
    let fixed = fixed_now().and_then(|text| read_source_date(&text));
    fixed.unwrap_or_else(system_clock::now_or_1970)
}

/// Returns the reason why no snapshot could say when it was created.
fn clock_problem() -> Option<Error> {
    match fixed_now() {
        Some(text) if read_source_date(&text).is_none() => Some(Error::BadSourceDate { text }),
        None if system_clock::now().is_none() => Some(Error::BadClock),
        _ => None,
    }
}

/// Returns the value of `SOURCE_DATE_EPOCH`. An empty one counts as unset.
fn fixed_now() -> Option<String> {
    let text = std::env::var_os("SOURCE_DATE_EPOCH")?.to_string_lossy().into_owned();
    (!text.is_empty()).then_some(text)
}

fn read_source_date(text: &str) -> Option<DateTime<FixedOffset>> {
    text.parse().ok().and_then(system_clock::at)
}
