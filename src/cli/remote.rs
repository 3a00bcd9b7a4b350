use std::path::Path;

use clap::{ValueEnum, ValueHint};

use super::args::Secret;
use super::error::Result;
use super::output::{Output, STYLES, dim};
use super::passphrase;
use super::table::{self, Cell};
use super::wording::clean;
use stvc::Workspace;
use stvc::copies::{CopyPlace, last_backups};
use stvc::files::ChatOpenState;
use stvc::storages::{Address, Credentials};
use stvc::verbs::remote::{self, Access, AddOptions, Added, Remote};
use stvc::verbs::sync;

#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// Add, list, test or remove remotes
    #[arg(value_enum, default_value = "list")]
    pub action: Action,

    /// Address of the storage, or the name of a remote
    #[arg(value_hint = ValueHint::AnyPath, value_name = "REMOTE", required_if_eq_any([("action", "add"), ("action", "test"), ("action", "remove")]))]
    pub remote: Option<String>,

    /// Name of the added remote
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,

    /// Do not encrypt a new remote, or use one that is not encrypted
    #[arg(long)]
    pub unencrypted: bool,

    /// Print the recovery key, which opens the remote without the passphrase
    #[arg(long)]
    pub recovery_key: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Action {
    /// Add a remote, and create it if it does not exist
    Add,
    /// List the remotes of this store
    List,
    /// Write, list, read and delete an object
    Test,
    /// Remove a remote from this store; the storage stays unchanged
    Remove,
}

const HELP: &str = "A remote is a storage that several devices use without a server, for example a \
    folder that Syncthing, Dropbox or OneDrive synchronises (docs/remotes.md). Every device adds it \
    once; then `stvc sync` uses it. Its content is encrypted with a key, and the key with your \
    passphrase, which is asked for or read with --passphrase-file. Without the passphrase and the \
    recovery key, nobody can read the remote, not even you: keep the recovery key offline.";

pub fn run(args: &Args, secret: &Secret, workspace: &Workspace, out: &mut Output) -> Result<u8> {
    let named = args.remote.as_deref().unwrap_or_default();
    match args.action {
        Action::Add => {
            let (exists, login) = look(named)?;
            let access = access(args, exists, secret)?;
            let (address, name) = (named.to_owned(), args.name.clone());
            let options = AddOptions { address, name, access, login };
            let former = former_repository(workspace, named, exists)?;
            if let Some(repository) = &former {
                // The repository is not encrypted, so nothing is sent to it.
                sync_quietly(workspace, repository.clone(), true, out)?;
            }
            let mut added = remote::add(workspace, &options)?;
            if former.is_some() {
                let remote = CopyPlace::Storage(added.remote.address.clone());
                sync_quietly(workspace, remote, false, out)?;
            }
            if !args.recovery_key {
                added.recovery_key = None;
            }
            Ok(out.answer(&added, |out| print_added(&added, former.is_some(), out)))
        }
        Action::List => {
            let remotes = remote::list(workspace)?;
            Ok(out.answer(&remotes, |out| print(&remotes, out)))
        }
        Action::Test => {
            let tested = vec![remote::test(workspace, named)?];
            let name = clean(&tested[0].name);
            let text = format!("{name} works: an object was written, listed, read and deleted.");
            Ok(out.answer(&tested, |out| out.say(text)))
        }
        Action::Remove => {
            let removed = vec![remote::remove(workspace, named)?];
            let name = clean(&removed[0].name);
            let text = format!("Removed {name} from this store. The storage is unchanged.");
            Ok(out.answer(&removed, |out| out.say(text)))
        }
    }
}

/// Returns the git repository in the folder of a remote, if devices synced with it before. Anybody
/// who can write to the folder can create one. So if the remote exists already, the repository
/// counts only if this device has used it.
fn former_repository(
    workspace: &Workspace,
    address: &str,
    remote_exists: bool,
) -> Result<Option<CopyPlace>> {
    let place = CopyPlace::parse(address)?;
    let is_used = |folder: &Path| {
        let known = last_backups::last(workspace, folder.to_str());
        known.is_ok_and(|known| !known.is_empty())
    };
    let is_former = match &place {
        CopyPlace::Folder(folder) => {
            stvc::copies::is_repository(folder) && (!remote_exists || is_used(folder))
        }
        _ => false,
    };
    Ok(is_former.then_some(place))
}

fn sync_quietly(
    workspace: &Workspace,
    place: CopyPlace,
    receive_only: bool,
    out: &Output,
) -> Result<()> {
    let closed = ChatOpenState::Unknown;
    let options = sync::Options { place, closed, dry_run: false, receive_only };
    sync::sync(workspace, &options, &mut out.progress())?;
    Ok(())
}

/// Returns whether there is a remote at an address. Asks for the login if the server needs one that
/// the environment does not have.
fn look(address: &str) -> Result<(bool, Option<Credentials>)> {
    let refused = match remote::exists(address, None) {
        Ok(exists) => return Ok((exists, None)),
        Err(error) => error,
    };
    let code: &'static str = refused.code();
    if code != "storage-no-password" || !passphrase::can_ask() {
        return Err(refused.into());
    }
    let parsed = Address::parse(address).ok();
    let login = passphrase::login(parsed.as_ref().and_then(Address::user))?;
    Ok((remote::exists(address, Some(&login))?, Some(login)))
}

fn access(args: &Args, exists: bool, secret: &Secret) -> Result<Access> {
    if args.unencrypted {
        return Ok(Access::Unencrypted);
    }
    let given =
        if exists { passphrase::for_remote(secret)? } else { passphrase::for_writing(secret)? };
    Ok(Access::Secret(given))
}

fn print_added(added: &Added, converted: bool, out: &mut Output) {
    let Remote { name, address, .. } = &added.remote;
    let done = if added.created { "Created and added" } else { "Added" };
    let kind = if added.remote.is_encrypted() { "encrypted" } else { "not encrypted" };
    out.say(format!("{done} the remote {}, {kind}: {}", clean(name), clean(address)));
    if let Some(key) = &added.recovery_key {
        out.say(format!("Recovery key: {key}"));
    }
    if converted {
        out.say("The snapshots of the git repository in this folder are now in the remote, too.");
        out.say("Add the remote on your other devices before you delete the repository.");
    }
    out.say(dim(
        "Run `stvc sync` to use it, or `stvc config sync.every 10m` to let the watch do it.",
    ));
}

fn print(remotes: &[Remote], out: &mut Output) {
    let row = |remote: &Remote| {
        vec![
            Cell::new(STYLES.tag, clean(&remote.name)),
            Cell::plain(clean(&remote.address)).cut(),
            Cell::new(
                STYLES.dim,
                if remote.is_encrypted() { "encrypted" } else { "not encrypted" },
            ),
        ]
    };
    let rows: Vec<_> = remotes.iter().map(row).collect();
    for line in table::lines(&rows) {
        out.line(line);
    }
    if remotes.is_empty() {
        out.say("There are no remotes yet. Run `stvc remote add ADDRESS` to add one.");
    }
}
