use std::io::{self, IsTerminal, Write};
use std::path::Path;

use clap_complete::engine::ArgValueCompleter;

use super::args::Secret;
use super::clock::{self, Clock};
use super::complete::timelines;
use super::error::{Error, Result};
use super::output::{Out, bold, dim};
use super::passphrase;
use super::wording::{AND, clean, count, shell, size, snapshots_of};
use stvc::copies::{CopyError, CopyPlace, May, Purpose, Since, last_backups, mirror, server};
use stvc::lines::answers::{BackedUp, Backup};
use stvc::verbs::backup::file::{self, Options, Report};
use stvc::verbs::backup::{self};
use stvc::{TakenFirst, Workspace, errors};

#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
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

const HELP: &str = "First a snapshot of every chat that changed is taken. A file is written whole each time; it is read back and every object in it hashed before it gets its name. On standard output it cannot be, so check it where it went: \
                    `stvc check FILE`. A folder is a store of its own (`stvc --store FOLDER log`) to which only what is new is copied, and a git server, such as ssh://host/chats.git or \
                    me@host:chats.git, gets it through your git; what you delete here stays there without --prune. \
                    A backup holds all timelines and tags and what they lead to, not what only `undo` needs. \
                    Everything comes back with `stvc import DEST && stvc restore --all`, also into an empty folder (--data).";

/// With `--all-users`, each user gets a destination of their own beside the others.
pub fn run(
    args: &Args,
    user: Option<&str>,
    secret: &Secret,
    workspace: &Workspace,
    out: &mut Out,
) -> Result<u8> {
    let remembered = match (&args.destination, args.last) {
        (None, false) => {
            let place = last_backups::remembered(workspace, Purpose::Backup)?;
            Some(place.ok_or(Error::NoPlace { command: "backup" })?)
        }
        _ => None,
    };
    if let Some((place, _)) = &remembered {
        out.note(&format!("To {}, as the last time.", clean(place)));
    }
    let (remembered, encrypted) = remembered.unzip();
    let encrypted = encrypted.unwrap_or(false);
    let destination = match (user, args.destination.as_deref().or(remembered.as_deref())) {
        (Some(user), Some(destination)) => Some(place_of(user, destination)),
        (_, destination) => destination.map(str::to_owned),
    };
    if args.last {
        return tell_last(destination.as_deref(), workspace, out);
    }
    let place = CopyPlace::parse(destination.as_deref().unwrap_or_default())?;
    if let (Some(_), CopyPlace::Output | CopyPlace::Remote(_)) = (user, &place) {
        return Err(no_place(args, "for all users it must be a file or a folder"));
    }
    match place {
        CopyPlace::File(_) if args.prune => {
            let why = "a file is written anew each time, so there is nothing to prune";
            return Err(no_place(args, why));
        }
        CopyPlace::File(_) | CopyPlace::Output => {}
        CopyPlace::Folder(_) | CopyPlace::Remote(_) => {
            return to_copy(&place, args, workspace, out);
        }
    }
    let to_stdout = place == CopyPlace::Output;
    if to_stdout && out.is_json() {
        return Err(Error::BadOutput { what: "standard output together with --json" });
    }
    if to_stdout && io::stdout().is_terminal() {
        return Err(Error::BadOutput { what: "a terminal" });
    }
    let first = take_first(args, workspace, out)?;
    // Before anybody is asked for a passphrase.
    workspace.must_have_store()?;
    let options = Options {
        timelines: args.timelines.clone(),
        passphrase: passphrase::for_writing(secret, args.encrypt || encrypted)?,
        overwrite: args.overwrite,
    };
    let report = match &place {
        CopyPlace::File(path) => file::to_file(workspace, path, &options, &mut out.progress())?,
        _ => {
            let mut stdout = io::stdout().lock();
            let report = file::to_writer(workspace, &mut stdout, &options, &mut out.progress())?;
            let failed =
                |source| errors::LibraryError::Io { path: "standard output".into(), source };
            stdout.flush().map_err(failed)?;
            report
        }
    };
    let backed_up = BackedUp { backup: Backup::File(&report), first: &first };
    Ok(out.answer(&backed_up, |out| tell(&report, out)))
}

fn take_first(args: &Args, workspace: &Workspace, out: &mut Out) -> Result<TakenFirst> {
    if args.no_snapshot {
        return Ok(TakenFirst::default());
    }
    let first = backup::take_first(workspace, &mut out.progress())?;
    if first.new > 0 {
        let new = count(first.new, "snapshot");
        out.note(&format!("First, {new} of the chats as they are now."));
    }
    out.findings(&first.findings);
    Ok(first)
}

fn tell_odd(odd: usize, out: &mut Out) {
    if odd > 0 {
        let odd = count(odd, "snapshot");
        out.note(&format!("{odd} in it `stvc import` will leave out; all others come back."));
    }
}

fn to_copy(place: &CopyPlace, args: &Args, workspace: &Workspace, out: &mut Out) -> Result<u8> {
    if args.encrypt {
        return Err(no_place(args, "only a file can be encrypted; it must end in .stvc"));
    }
    let options = mirror::Options {
        timelines: args.timelines.clone(),
        may: May { overwrite: args.overwrite, prune: args.prune },
        ..mirror::Options::default()
    };
    let first = take_first(args, workspace, out)?;
    let report = match place {
        CopyPlace::Folder(folder) => {
            mirror::to_folder(workspace, folder, &options, &mut out.progress())?
        }
        CopyPlace::Remote(url) => {
            let asks = out.may_ask();
            server::to_server(workspace, url, &options, asks, &mut out.progress())?
        }
        CopyPlace::Output | CopyPlace::File(_) => {
            return Err(no_place(args, "it is no folder and no server"));
        }
    };
    let backed_up = BackedUp { backup: Backup::Mirror(&report), first: &first };
    Ok(out.answer(&backed_up, |out| tell_copy(&report, out)))
}

/// `chats.stvc` becomes `chats-alice.stvc` for Alice, `/media/stick` becomes `/media/stick/alice`.
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

fn tell_copy(report: &mirror::Report, out: &mut Out) {
    let place = clean(&report.backup.destination);
    let all = snapshots_of(report.snapshots, report.timelines);
    let size = report.copied.map_or(String::new(), |copied| format!(", {}", size(copied.bytes)));
    if report.moved == 0 {
        out.say(format!("Nothing is new: {place} has all {all}."));
    } else {
        let read = if report.copied.is_some() { " and read back" } else { "" };
        let new = count(report.new_snapshots, "new snapshot");
        out.say(format!("Backed up{read}: {new}{size}. {place} now has {all}."));
    }
    if report.ahead > 0 {
        let ahead = count(report.ahead, "timeline");
        out.say(format!("{ahead} went further there than here, and stayed so."));
    }
    if report.created || report.moved > 0 {
        out.say(way_back(&report.backup.destination));
    }
    out.findings(&report.findings);
    tell_odd(report.odd, out);
}

fn way_back(place: &str) -> String {
    let import = format!("stvc import {}{AND}stvc restore --all", shell(place));
    dim(format!("All of it comes back with `{import}`."))
}

fn tell(report: &Report, out: &mut Out) {
    let (backup, header) = (&report.backup, &report.header);
    let encrypted = if backup.encrypted { ", encrypted" } else { "" };
    let size = size(backup.bytes.unwrap_or_default());
    let what = snapshots_of(header.snapshots, header.timelines.len());
    let what = format!("{what}, {size}{encrypted}");
    match backup.destination.as_str() {
        "-" => out.note(&format!(
            "Backed up: {what}, each object hashed as it was written. Nothing could be read back: `stvc check FILE` does that where it went."
        )),
        path => {
            out.say(format!("Backed up and read back: {what}, in {}.", clean(path)));
            out.say(way_back(path));
        }
    }
    out.findings(&report.findings);
    tell_odd(report.odd, out);
}

fn tell_last(destination: Option<&str>, workspace: &Workspace, out: &mut Out) -> Result<u8> {
    let backups = last_backups::last(workspace, destination)?;
    let text = |out: &mut Out| {
        backups.iter().for_each(|since| out.line(line(since, out.clock)));
        if backups.is_empty() {
            out.say("No backup was taken yet. `stvc backup chats.stvc` takes one.");
        }
    };
    Ok(out.answer(&backups, text))
}

/// `D:\stick  3 days ago, 4 snapshots of 2 timelines since`.
pub fn line(since: &Since, clock: Clock) -> String {
    let taken = &since.taken;
    let age = clock::parse(&taken.taken).map(|time| clock.age(time));
    let age = age.unwrap_or_else(|| clean(&taken.taken));
    let place = match taken.destination.as_str() {
        "-" => "standard output".to_owned(),
        place => clean(place),
    };
    let part = if taken.whole { "" } else { ", some timelines" };
    let moved = match since.snapshots {
        0 => "nothing came since".to_owned(),
        n => format!("{} of {} since", count(n, "snapshot"), count(since.timelines, "timeline")),
    };
    let (name, dim) = (bold(place), dim(age));
    format!("{name}  {dim}{part}, {moved}")
}
