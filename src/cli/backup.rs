use std::io::{self, IsTerminal, Write};
use std::path::Path;

use clap::ValueHint;
use clap_complete::engine::ArgValueCompleter;

use super::clock::{self, Clock};
use super::complete::timelines;
use super::error::{Error, Result};
use super::output::{Output, bold, dim};
use super::passphrase::SharedSecret;
use super::wording::{clean, count, shell, size, snapshots_of};
use stvc::copies::{
    BackupAge, CopyError, CopyPlace, Purpose, UpdatePermissions, last_backups, mirror, server,
};
use stvc::json_output::answers::{BackedUp, Backup};
use stvc::verbs::backup::file::{self, Options, Report};
use stvc::verbs::backup::{self};
use stvc::{SafetySnapshots, Workspace, verbs};

#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// Destination: a file ending in .stvc, a folder, a git server, or - for standard output
    /// (default: the configured destination, or the last one)
    #[arg(value_hint = ValueHint::AnyPath, value_name = "DEST")]
    pub destination: Option<String>,

    /// Back up only these timelines, with their history and tags (default: all)
    #[arg(add = ArgValueCompleter::new(timelines), value_name = "TIMELINE")]
    pub timelines: Vec<String>,

    /// Encrypt the backup with a passphrase
    ///
    /// The passphrase is asked for on the terminal unless --passphrase-file or --passphrase-command
    /// is given.
    #[arg(long)]
    pub encrypt: bool,

    /// Replace a backup even if it has snapshots that the new one lacks
    ///
    /// In a folder or on a server, these snapshots are kept but no longer listed.
    #[arg(long)]
    pub overwrite: bool,

    /// Delete timelines, tags and snapshots in a folder or on a server that no longer exist here
    #[arg(long, conflicts_with_all = ["timelines", "encrypt"])]
    pub prune: bool,

    /// Do not create snapshots of changed chats first
    #[arg(long)]
    pub no_snapshot: bool,

    /// Only show the last backup at each destination, or at DEST, and how many snapshots are newer
    #[arg(long, conflicts_with_all = ["timelines", "encrypt", "overwrite", "prune", "no_snapshot"])]
    pub last: bool,
}

const HELP: &str = "A snapshot of every changed chat is created first. A file that already has \
    everything is verified and left alone, else it is written in full; every object in it is read \
    back and verified before the file gets its name. Standard \
    output cannot be read back: run `stvc check FILE` on the result. A folder becomes a mirror, \
    a store (`stvc --store FOLDER log`) to which only new objects are copied. A git server, such \
    as ssh://host/chats.git or me@host:chats.git, is updated through your git. Without --prune, \
    snapshots that you delete here stay in the folder or on the server. A backup has all \
    timelines and tags with their history, but not the data that only `undo` needs. To restore \
    everything, also into an empty folder (--data), run \
    `stvc import DEST --restore`.";

/// The parts of a backup that the command line of one user does not determine.
#[derive(Clone, Copy)]
pub struct Target<'a> {
    /// The name of the user, with `--all-users`. Each user has a separate destination.
    pub user: Option<&'a str>,
    pub secret: &'a SharedSecret<'a>,
}

/// Runs the backup of one user.
pub fn run(
    args: &Args,
    Target { user, secret }: Target<'_>,
    workspace: &Workspace,
    out: &mut Output,
) -> Result<u8> {
    let remembered = match (&args.destination, args.last) {
        (None, false) => {
            let place = last_backups::remembered(workspace, Purpose::Backup)?;
            Some(place.ok_or(Error::NoPlace { command: "backup" })?)
        }
        _ => None,
    };
    if let Some((place, _)) = &remembered {
        out.note(&format!("Backing up to {}.", clean(place)));
    }
    let (remembered, encrypted) = remembered.unzip();
    let encrypted = encrypted.unwrap_or(false);
    let destination = match (user, args.destination.as_deref().or(remembered.as_deref())) {
        (Some(user), Some(destination)) => Some(place_of(user, destination)),
        (_, destination) => destination.map(str::to_owned),
    };
    if args.last {
        return print_last_backup(destination.as_deref(), workspace, out);
    }
    let place = workspace.copy_place(destination.as_deref().unwrap_or_default())?;
    if let (Some(_), CopyPlace::Output | CopyPlace::Remote(_) | CopyPlace::Storage(_)) =
        (user, &place)
    {
        return Err(no_place(args, "--all-users needs a file or a folder"));
    }
    match place {
        CopyPlace::File(_) if args.prune => {
            let why = "--prune does not apply to a file, which is always replaced as a whole";
            return Err(no_place(args, why));
        }
        CopyPlace::File(_) | CopyPlace::Output => {}
        CopyPlace::Folder(_) | CopyPlace::Remote(_) | CopyPlace::Storage(_) => {
            return to_copy(&place, args, workspace, out);
        }
    }
    let to_stdout = place == CopyPlace::Output;
    if to_stdout && out.is_json() {
        return Err(Error::BadOutput { what: "standard output with --json" });
    }
    if to_stdout && io::stdout().is_terminal() {
        return Err(Error::BadOutput { what: "a terminal" });
    }
    let first = take_first(args, workspace, out)?;
    // A missing store is reported before the user is asked for a passphrase.
    workspace.must_have_store()?;
    let options = Options {
        timelines: args.timelines.clone(),
        passphrase: if args.encrypt || encrypted {
            Some(secret.for_writing()?)
        } else {
            secret.given()?
        },
        overwrite: args.overwrite,
    };
    let same_disk = backup::same_disk(workspace, &place)?;
    let mut report = match &place {
        CopyPlace::File(path) => file::to_file(workspace, path, &options, &mut out.progress())?,
        _ => {
            let mut stdout = io::stdout().lock();
            let report = file::to_writer(workspace, &mut stdout, &options, &mut out.progress())?;
            stdout.flush().map_err(verbs::Error::at("standard output"))?;
            report
        }
    };
    report.findings.extend(same_disk);
    let backed_up = BackedUp { backup: Backup::File(&report), first: &first };
    Ok(out.answer(&backed_up, |out| print(&report, out)))
}

fn take_first(args: &Args, workspace: &Workspace, out: &mut Output) -> Result<SafetySnapshots> {
    if args.no_snapshot {
        return Ok(SafetySnapshots::default());
    }
    let first = backup::take_first(workspace, &mut out.progress())?;
    if first.new > 0 {
        let new = count(first.new, "snapshot");
        out.note(&format!("Created {new} first."));
    }
    out.findings(&first.findings);
    Ok(first)
}

fn print_invalid_snapshots(invalid: usize, out: &mut Output) {
    if invalid > 0 {
        let invalid = count(invalid, "snapshot");
        out.note(&format!("{invalid} cannot be imported from this backup; all others can."));
    }
}

fn to_copy(place: &CopyPlace, args: &Args, workspace: &Workspace, out: &mut Output) -> Result<u8> {
    if args.encrypt {
        return Err(no_place(args, "only a file can be encrypted, and its name must end in .stvc"));
    }
    let options = mirror::Options {
        timelines: args.timelines.clone(),
        may: UpdatePermissions { overwrite: args.overwrite, prune: args.prune },
        ..mirror::Options::default()
    };
    let first = take_first(args, workspace, out)?;
    let same_disk = backup::same_disk(workspace, place)?;
    let mut report = match place {
        CopyPlace::Folder(folder) => {
            mirror::to_folder(workspace, folder, &options, &mut out.progress())?
        }
        CopyPlace::Remote(url) => server::to_server(workspace, url, &options, &mut out.progress())?,
        CopyPlace::Storage(address) => {
            backup::to_storage(workspace, address, &options, &mut out.progress())?
        }
        CopyPlace::Output | CopyPlace::File(_) => {
            return Err(no_place(args, "it is not a folder or a git server"));
        }
    };
    report.findings.extend(same_disk);
    let backed_up = BackedUp { backup: Backup::Mirror(&report), first: &first };
    Ok(out.answer(&backed_up, |out| print_copy(&report, out)))
}

/// Returns the destination of one user: `chats.stvc` becomes `chats-alice.stvc`, and `/media/stick`
/// becomes `/media/stick/alice`.
fn place_of(user: &str, destination: &str) -> String {
    match destination.strip_suffix(".stvc") {
        Some(stem) => format!("{stem}-{user}.stvc"),
        None => Path::new(destination).join(user).display().to_string(),
    }
}

fn no_place(args: &Args, why: &'static str) -> Error {
    let destination = args.destination.clone().unwrap_or_default();
    CopyError::UnknownDestination { destination, why }.into()
}

fn print_copy(report: &mirror::Report, out: &mut Output) {
    let place = clean(&report.backup.destination);
    let all = snapshots_of(report.snapshots, report.timelines);
    let size = report.copied.map_or(String::new(), |copied| format!(", {}", size(copied.bytes)));
    if report.moved == 0 {
        out.say(format!("Nothing to do: {place} already has {all}."));
    } else {
        let read = if report.copied.is_some() { " and verified" } else { "" };
        let new = count(report.new_snapshots, "new snapshot");
        out.say(format!("Backed up{read}: {new}{size}. {place} now has {all}."));
    }
    if report.ahead > 0 {
        let ahead = count(report.ahead, "timeline");
        out.say(format!("Not changed: {ahead} with newer snapshots in the backup."));
    }
    if report.created || report.moved > 0 {
        out.say(way_back(&report.backup.destination));
    }
    out.findings(&report.findings);
    print_invalid_snapshots(report.invalid, out);
}

fn way_back(place: &str) -> String {
    let import = format!("stvc import {} --restore", shell(place));
    dim(format!("To restore everything, run `{import}`."))
}

fn print(report: &Report, out: &mut Output) {
    let (backup, header) = (&report.backup, &report.header);
    let encrypted = if backup.encrypted { ", encrypted" } else { "" };
    let size = size(backup.bytes.unwrap_or_default());
    let what = snapshots_of(header.snapshots, header.timelines.len());
    let what = format!("{what}, {size}{encrypted}");
    match backup.destination.as_str() {
        "-" => out.note(&format!(
            "Backed up: {what}. Not verified: run `stvc check FILE` on the result."
        )),
        path if report.up_to_date => {
            out.say(format!("Nothing to do: {} is up to date and valid: {what}.", clean(path)));
        }
        path => {
            out.say(format!("Backed up and verified: {what}, in {}.", clean(path)));
            out.say(way_back(path));
        }
    }
    out.findings(&report.findings);
    print_invalid_snapshots(report.invalid, out);
}

fn print_last_backup(
    destination: Option<&str>,
    workspace: &Workspace,
    out: &mut Output,
) -> Result<u8> {
    let backups = last_backups::last(workspace, destination)?;
    let text = |out: &mut Output| {
        backups.iter().for_each(|since| out.line(line(since, out.clock)));
        if backups.is_empty() {
            out.say("There are no backups yet. Run `stvc backup chats.stvc` to create one.");
        }
    };
    Ok(out.answer(&backups, text))
}

/// Returns the age of a recorded time.
pub fn age(recorded: &str, clock: Clock) -> String {
    clock::parse(recorded).map_or_else(|| clean(recorded), |time| clock.age(time))
}

/// Returns a line such as `D:\stick  3 days ago, 4 snapshots of 2 timelines since`.
pub fn line(since: &BackupAge, clock: Clock) -> String {
    let taken = &since.taken;
    let age = age(&taken.taken, clock);
    let place = match taken.destination.as_str() {
        "-" => "standard output".to_owned(),
        place => clean(place),
    };
    let part = if taken.whole { "" } else { ", some timelines" };
    let moved = match since.snapshots {
        0 => "no snapshots since".to_owned(),
        n => format!("{} of {} since", count(n, "snapshot"), count(since.timelines, "timeline")),
    };
    let (name, dim) = (bold(place), dim(age));
    format!("{name}  {dim}{part}, {moved}")
}
