//! Runs a command for all users of an installation. If it fails for one user, it still runs for the
//! others.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, PoisonError};
use std::thread::available_parallelism;

use super::backup::{self, Target};
use super::command_line::{Command, CommandLine};
use super::error::{Error, Result};
use super::output::{Output, bold};
use super::passphrase::SharedSecret;
use super::wording::{self, clean};
use super::{exit, report_error, watch};
use stvc::Workspace;
use stvc::json_output::{Counts, Line, Summary};
use stvc::watch::Users;

/// A user's name and workspace.
type User = (String, Workspace);

/// Runs a command for each user, one after another with `run`. The watch runs for all at once, and
/// backups of several users run side by side.
pub fn run(
    args: &CommandLine,
    workspace: &Workspace,
    out: &mut Output,
    run: &dyn Fn(&Workspace, &mut Output) -> Result<u8>,
) -> Result<u8> {
    let command = args.name;
    if !args.command.is_for_users() {
        return Err(Error::OneUser { command });
    }
    let users = workspace.of_all_users()?;
    let codes = match &args.command {
        Command::Watch(args) => {
            let users = users.into_iter().map(watch::watched).collect();
            return watch::run(args, workspace, Users::All(users), out);
        }
        Command::Backup(backup) => {
            let secret = SharedSecret::new(&args.global.secret);
            side_by_side(&users, out, |(name, workspace), out| {
                let target = Target { user: Some(name), secret: &secret };
                for_user(command, (name, workspace), out, |workspace, out| {
                    out.findings(workspace.broken_settings().as_slice());
                    backup::run(backup, target, workspace, out)
                })
            })
        }
        _ => users
            .iter()
            .map(|(name, workspace)| {
                wording::use_group_names(workspace);
                for_user(command, (name, workspace), out, run)
            })
            .collect(),
    };
    let failed = codes.iter().filter(|code| **code != exit::DONE).count();
    let counts = Counts(vec![("users", codes.len().into()), ("failed", failed.into())]);
    out.end_with(Summary { command, ok: failed == 0, counts });
    let first = codes.first().copied().unwrap_or(exit::DONE);
    Ok(if codes.iter().all(|code| *code == first) { first } else { exit::PARTLY })
}

/// Runs a command for one user, and prints the result or the error.
fn for_user(
    command: &'static str,
    (name, workspace): (&str, &Workspace),
    out: &mut Output,
    run: impl Fn(&Workspace, &mut Output) -> Result<u8>,
) -> u8 {
    out.object(Line::User { user: name });
    out.line(bold(clean(name)));
    let outcome = run(workspace, out);
    out.findings(&workspace.take_notices());
    let code = outcome.unwrap_or_else(|problem| report_error::report(&problem, command, out));
    out.end_summary();
    code
}

/// Runs `work` for several users at once. The output of each user is printed in one piece when that
/// user is done. Returns the exit codes.
fn side_by_side(
    users: &[User],
    out: &mut Output,
    work: impl Fn(&User, &mut Output) -> u8 + Sync,
) -> Vec<u8> {
    let (next, form) = (Mutex::new(users.iter()), out.captured());
    let shared = Mutex::new((out, Vec::new()));
    let take_part = || {
        loop {
            let user = next.lock().unwrap_or_else(PoisonError::into_inner).next();
            let Some(user) = user else { return };
            let mut own = form.captured();
            let done = catch_unwind(AssertUnwindSafe(|| work(user, &mut own)));
            let code = done.unwrap_or_else(|_| {
                let error = Error::Internal;
                report_error::report(&error, "backup", &mut own)
            });
            own.end_summary();
            let mut shared = shared.lock().unwrap_or_else(PoisonError::into_inner);
            shared.0.replay(own);
            shared.1.push(code);
        }
    };
    // More users than cores, because a backup waits for the disk most of the time.
    let workers = available_parallelism().map_or(1, usize::from).saturating_mul(2);
    std::thread::scope(|scope| {
        for _ in 1..workers.min(users.len()) {
            // If the system cannot start all threads, the others do the work.
            let _ = std::thread::Builder::new().spawn_scoped(scope, take_part);
        }
        take_part();
    });
    shared.into_inner().unwrap_or_else(PoisonError::into_inner).1
}
