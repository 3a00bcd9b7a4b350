//! Reads passphrases from a file, from a command, or from the terminal without echo.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};

use console::Term;

use super::args::Secret;
use super::error::{Error, Result};
use super::wording::clean;
use stvc::copies::{self, CopyPlace, Passphrase};
use stvc::storages::{Credentials, Password};

/// The maximum number of bytes to read, because the file may be a device that never ends.
const MAX_PASSPHRASE_BYTES: u64 = 1 << 16;

/// The passphrase for the backups of all users, which is read or asked for only once.
pub struct SharedSecret<'a> {
    secret: &'a Secret,
    known: Mutex<Option<Passphrase>>,
}

impl<'a> SharedSecret<'a> {
    pub fn new(secret: &'a Secret) -> Self {
        Self { secret, known: Mutex::default() }
    }

    /// Returns the passphrase for a new backup. Asks for it if the command line does not give one.
    pub fn for_writing(&self) -> Result<Passphrase> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.is_none() {
            *known = Some(for_writing(self.secret)?);
        }
        known.clone().ok_or_else(|| no("it is empty"))
    }

    /// Returns the passphrase that the command line gives.
    pub fn given(&self) -> Result<Option<Passphrase>> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.is_none() {
            *known = given(self.secret)?;
        }
        Ok(known.clone())
    }
}

/// Returns the passphrase for a new backup. Asks for it if the command line does not give one.
pub fn for_writing(secret: &Secret) -> Result<Passphrase> {
    if let Some(given) = given(secret)? {
        return Ok(given);
    }
    let first = ask("Passphrase for the backup: ")?;
    if first != ask("Repeat the passphrase: ")? {
        return Err(no("the two passphrases differ"));
    }
    passphrase(first)
}

/// Returns the passphrase or the recovery key of an existing remote.
pub fn for_remote(secret: &Secret) -> Result<Passphrase> {
    match given(secret)? {
        Some(given) => Ok(given),
        None => passphrase(ask("Passphrase of the remote: ")?),
    }
}

/// Returns the passphrase of an existing backup, or `None` if none is needed. The store may have
/// the key of a remote, so its passphrase is never asked for.
pub fn of_place(secret: &Secret, place: &CopyPlace) -> Result<Option<Passphrase>> {
    match place {
        CopyPlace::File(path) if copies::is_encrypted(path) == Some(true) => {}
        CopyPlace::Storage(_) => return given(secret),
        _ => return Ok(None),
    }
    match given(secret)? {
        Some(given) => Ok(Some(given)),
        None => passphrase(ask("Passphrase of the backup: ")?).map(Some),
    }
}

/// Returns the passphrase that the command line gives.
pub fn given(secret: &Secret) -> Result<Option<Passphrase>> {
    if let Some(path) = &secret.passphrase_file {
        let file = File::open(path)
            .map_err(|error| no(format!("cannot read {}: {error}", path.display())))?;
        return first_line(file).map(Some);
    }
    let Some(command) = &secret.passphrase_command else { return Ok(None) };
    let (shell, flag) = if cfg!(windows) { ("cmd", "/C") } else { ("sh", "-c") };
    let mut child = Command::new(shell)
        .args([flag, command])
        .stdin(Stdio::inherit())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| no(format!("cannot start the command: {error}")))?;
    let line = match child.stdout.take() {
        Some(output) => first_line(output),
        None => Err(no("the command has no output")),
    };
    let ended = child.wait().map_err(|error| no(error.to_string()))?;
    if !ended.success() {
        return Err(no(format!("the command failed ({ended})")));
    }
    line.map(Some)
}

fn first_line(input: impl Read) -> Result<Passphrase> {
    let mut line = Vec::new();
    let mut input = BufReader::new(input).take(MAX_PASSPHRASE_BYTES);
    input.read_until(b'\n', &mut line).map_err(|error| no(error.to_string()))?;
    // The rest of the output is read too, so that the command does not fail because of a closed
    // pipe.
    let _ = std::io::copy(&mut input, &mut std::io::sink());
    let line = String::from_utf8(line).map_err(|_| no("it is not valid UTF-8"))?;
    passphrase(line.trim_end_matches(['\r', '\n']).to_owned())
}

fn ask(words: &str) -> Result<String> {
    let terminal = Term::stderr();
    if !terminal.is_term() {
        return Err(no("there is no terminal to ask for it"));
    }
    let read = terminal.write_str(words).and_then(|()| terminal.read_secure_line());
    read.map_err(|error| no(error.to_string()))
}

/// Returns whether there is a terminal to ask on.
pub fn can_ask() -> bool {
    Term::stderr().is_term()
}

/// Asks for the login of a server. `user` is the user name in the address.
pub fn login(user: Option<&str>) -> Result<Credentials> {
    let user = match user {
        Some(user) => user.to_owned(),
        None => {
            let terminal = Term::stderr();
            let read = terminal.write_str("User name: ").and_then(|()| terminal.read_line());
            read.map_err(|error| no(error.to_string()))?
        }
    };
    let password = Password::new(ask(&format!("Password of {}: ", clean(&user)))?);
    Ok(Credentials { user: Some(user), password: Some(password), ..Credentials::default() })
}

fn passphrase(text: String) -> Result<Passphrase> {
    Passphrase::new(text).ok_or_else(|| no("it is empty"))
}

fn no(why: impl Into<String>) -> Error {
    Error::NoPassphrase { why: why.into() }
}
