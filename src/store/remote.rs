//! Accesses a git server through the user's git program, which has the keys and passwords. Git runs
//! in a temporary bare repository ([`RemoteSession`]), so only the user's configuration applies.
//! Hooks, remote helpers and automatic maintenance are disabled.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

use super::borrow::{borrow, set_refs};
use super::{Error, ObjectId, RefChange, RefName, Store, Url};
use crate::hint::{Hint, unchanged};
use crate::regular::read_some;
use crate::{durable, exit};

type Local<T> = super::Result<T>;

const PREFIX: &str = ".stvc-incoming-";
/// Maximum length, in bytes, of the list of refs that is accepted from a server.
const LONGEST_LIST: u64 = 64 << 20;
/// Credential helper that gives git the user name and password from environment variables, which
/// only the same user can read.
const HELPER: &str = "!f() { test \"$1\" = get && printf 'username=%s\\npassword=%s\\n' \"$STVC_GIT_USER\" \"$STVC_GIT_PASSWORD\"; }; f";
/// Maximum length, in bytes, of the refspecs in one command line. Windows accepts command lines of
/// 32 kB.
const LONGEST_LINE: usize = 16_000;

/// Creates a temporary folder in `dir`. The folder is removed when the result is dropped.
pub fn temporary_folder(dir: &Path) -> Local<TempDir> {
    durable::clear_left_behind(dir);
    let prefix = format!("{PREFIX}{}-", std::process::id());
    tempfile::Builder::new().prefix(&prefix).tempdir_in(dir).map_err(Error::io(dir))
}

/// An error of the communication with a git server.
#[derive(Debug, thiserror::Error, strum::IntoStaticStr)]
#[strum(serialize_all = "kebab-case", prefix = "remote-")]
pub enum RemoteError {
    #[error("git is not installed on this machine")]
    NoGit,
    #[error("{url}: {words}")]
    Failed { url: String, words: String },
    #[error("cannot update {url}: another program changed it in the meantime")]
    ChangedConcurrently { url: String },
    #[error("{url} was not created by `stvc backup`: it contains {what}")]
    Foreign { url: String, what: String },
    #[error(transparent)]
    Store(#[from] Error),
}

impl RemoteError {
    /// Returns the code of the error, which scripts and pages can rely on.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Store(error) => error.into(),
            error => error.into(),
        }
    }

    /// Returns the exit code of a command that fails with this error.
    pub fn exit(&self) -> u8 {
        match self {
            Self::Foreign { .. } => exit::REFUSED,
            Self::Store(error) => error.exit(),
            _ => exit::FAILED,
        }
    }

    pub fn hint(&self) -> Option<Hint> {
        const NO_LOGIN: &[&str] = &[
            "prompts disabled",
            "could not read username",
            "could not read password",
            "authentication failed",
            "permission denied",
        ];
        let says = |words: &str, signs: &[&str]| {
            let words = words.to_lowercase();
            signs.iter().any(|sign| words.contains(sign))
        };
        Some(match self {
            Self::NoGit => {
                "install git (https://git-scm.com); or back up to a file or folder, which does not need git".into()
            }
            Self::ChangedConcurrently { .. } => "try again. Nothing is lost".into(),
            Self::Foreign { .. } => {
                "create an empty repository on the server, only for this backup".into()
            }
            Self::Failed { words, .. } if says(words, NO_LOGIN) => {
                "give git a key or password for this server, and test it with `git ls-remote ADDRESS`. Nothing is lost".into()
            }
            Self::Failed { words, .. } if says(words, &["not allowed", "not support"]) => {
                unchanged("use an address that begins with ssh://, https://, http:// or git://")
            }
            Self::Failed { .. } => {
                "check the address and the server, then try again: an interrupted transfer starts over. Nothing is lost".into()
            }
            Self::Store(error) => return error.hint(),
        })
    }
}

/// Whether git may ask the user for a password.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoginPrompt {
    /// A user is at the terminal.
    Allowed,
    /// The command must not wait for an answer.
    Forbidden,
}

/// A temporary repository for the communication with one server.
pub struct RemoteSession {
    dir: PathBuf,
    url: Url,
    prompt: LoginPrompt,
    // The last field, so that the folder is removed after all other fields are dropped.
    folder: TempDir,
}

impl RemoteSession {
    /// Creates the temporary repository in the folder `beside`. If `store` is given, the repository
    /// can read its objects.
    pub fn new(
        beside: &Path,
        store: Option<&Store>,
        url: &Url,
        prompt: LoginPrompt,
    ) -> Local<Self> {
        let folder = temporary_folder(beside)?;
        let dir = folder.path().join("store");
        Store::create(&dir)?;
        if let Some(store) = store {
            borrow(&dir, store)?;
        }
        Ok(Self { dir, url: url.clone(), prompt, folder })
    }

    /// Returns the refs of the server with their targets.
    pub fn list(&self) -> Result<BTreeMap<String, ObjectId>, RemoteError> {
        let text = self.git(&["ls-remote", "--refs", "--quiet", "--end-of-options"], &[])?;
        let mut refs = BTreeMap::new();
        for line in String::from_utf8_lossy(&text).lines() {
            let parsed = line
                .split_once('\t')
                .and_then(|(id, name)| Some((name, ObjectId::from_hex(id.as_bytes()).ok()?)));
            let (name, id) =
                parsed.ok_or_else(|| self.failed("cannot read its list of branches"))?;
            refs.insert(name.to_owned(), id);
        }
        Ok(refs)
    }

    /// Fetches refs by refspecs of the form `from:to`. The server does not send objects of the
    /// commits in `have`.
    pub fn fetch(&self, refspecs: &[String], have: &[ObjectId]) -> Result<(), RemoteError> {
        set_refs(&self.dir, have.iter().map(|id| (format!("refs/have/{id}"), *id)))?;
        if self.fetched()?.folds_names() && refspecs.iter().any(|refspec| refspec.contains('*')) {
            self.fetch_numbered(refspecs)
        } else {
            self.fetch_as_named(refspecs)
        }
    }

    /// Fetches refs by patterns where the file system folds names, so that two refs may share a
    /// file. Each ref is first fetched under a number; then the refs are written to `packed-refs`
    /// under their names.
    fn fetch_numbered(&self, kinds: &[String]) -> Result<(), RemoteError> {
        let prefixes = kinds.iter().filter_map(|kind| kind.trim_start_matches('+').split_once('*'));
        let prefixes: Vec<_> = prefixes.map(|(prefix, _)| prefix).collect();
        let mut names: Vec<_> = self.list()?.into_keys().collect();
        names.retain(|name| prefixes.iter().any(|prefix| name.starts_with(prefix)));
        let numbers: Vec<_> = (0..names.len()).map(|n| format!("refs/fetched/{n}")).collect();
        let refspecs = names.iter().zip(&numbers).map(|(name, number)| format!("+{name}:{number}"));
        self.fetch_as_named(&refspecs.collect::<Vec<_>>())?;
        let store = self.fetched()?;
        let mut refs = Vec::new();
        for (name, number) in names.into_iter().zip(numbers) {
            let id = store.ref_target(&RefName::try_from(number)?)?;
            let id = id.ok_or_else(|| self.failed("git fetched fewer refs than requested"))?;
            refs.push((name, id));
        }
        Ok(set_refs(&self.dir, refs.into_iter())?)
    }

    fn fetch_as_named(&self, refspecs: &[String]) -> Result<(), RemoteError> {
        let arguments = [
            "fetch",
            "--quiet",
            "--no-tags",
            "--no-write-fetch-head",
            "--no-auto-maintenance",
            "--no-recurse-submodules",
            "--end-of-options",
        ];
        let refspecs: Vec<_> = refspecs.iter().map(String::as_str).collect();
        for part in in_lines(&refspecs) {
            self.git(&arguments, part)?;
        }
        Ok(())
    }

    /// Updates refs of the server: first the fast-forwards, atomically if the server supports it,
    /// then the forced changes, each only if the target on the server is still `before`.
    pub fn push(&self, forward: &[RefChange], forced: &[RefChange]) -> Result<(), RemoteError> {
        if !forward.is_empty() {
            let refs =
                forward.iter().filter_map(|change| Some((change.name.to_string(), change.after?)));
            set_refs(&self.dir, refs)?;
            let all = [
                "refs/heads/*:refs/heads/*",
                "refs/tags/*:refs/tags/*",
                "refs/stvc/kept/*:refs/stvc/kept/*",
            ];
            self.push_some(&[], &all)?;
        }
        let leases: Vec<_> = forced
            .iter()
            .map(|change| {
                let before = change.before.map_or(String::new(), |id| id.to_string());
                let after = change.after.map_or(String::new(), |id| id.to_string());
                let lease = format!("--force-with-lease={}:{before}", change.name);
                (lease, format!("{after}:{}", change.name))
            })
            .collect();
        for part in leases.chunks(24) {
            let options: Vec<_> = part.iter().map(|(lease, _)| lease.as_str()).collect();
            let refspecs: Vec<_> = part.iter().map(|(_, refspec)| refspec.as_str()).collect();
            self.push_some(&options, &refspecs)?;
        }
        Ok(())
    }

    fn push_some(&self, options: &[&str], refspecs: &[&str]) -> Result<(), RemoteError> {
        let base = [
            "push",
            "--porcelain",
            "--no-verify",
            "--no-signed",
            "--no-follow-tags",
            "--recurse-submodules=no",
        ];
        let push = |atomic: &[&str]| {
            let arguments = [&base[..], atomic, options, &["--end-of-options"]].concat();
            self.git(&arguments, refspecs)
        };
        let done = match push(&["--atomic"]) {
            Err(RemoteError::Failed { words, .. }) if words.contains("--atomic") => push(&[]),
            done => done,
        };
        match done {
            Err(RemoteError::Failed { url, words }) if is_raced(&words) => {
                Err(RemoteError::ChangedConcurrently { url })
            }
            done => done.map(drop),
        }
    }

    /// Returns the repository with the fetched objects, and its folder, which is removed when
    /// dropped.
    pub fn into_store(self) -> Local<(Store, TempDir)> {
        Ok((self.fetched()?, self.folder))
    }

    /// Returns the repository with everything fetched so far.
    pub fn fetched(&self) -> Local<Store> {
        Store::open_bare(&self.dir)?.ok_or_else(|| Error::NoStore { path: self.dir.clone() })
    }

    /// Runs git and returns its standard output. The command line is `arguments`, the address of
    /// the server, and `more`.
    fn git(&self, arguments: &[&str], more: &[&str]) -> Result<Vec<u8>, RemoteError> {
        let nowhere = self.dir.join("no-hooks");
        let mut command = Command::new("git");
        command.arg("--git-dir").arg(&self.dir);
        for setting in [
            format!("core.hooksPath={}", nowhere.display()),
            // Only these protocols are allowed, even if the user's configuration replaces the
            // address.
            "protocol.allow=never".into(),
            "protocol.ssh.allow=always".into(),
            "protocol.https.allow=always".into(),
            "protocol.http.allow=always".into(),
            "protocol.git.allow=always".into(),
            "transfer.fsckObjects=true".into(),
            "fetch.unpackLimit=1".into(),
            "transfer.unpackLimit=1".into(),
            "fetch.recurseSubmodules=no".into(),
            "fetch.writeCommitGraph=false".into(),
            "push.followTags=false".into(),
            "push.gpgSign=false".into(),
            "gc.auto=0".into(),
            "maintenance.auto=false".into(),
            "core.fsmonitor=false".into(),
            "advice.pushUpdateRejected=false".into(),
        ] {
            command.arg("-c").arg(setting);
        }
        let (address, login) = self.url.split_login();
        if let Some(login) = login {
            // The login is used only for this server, not for a server to which it redirects. The
            // empty helper disables the user's credential helpers.
            for helper in ["", HELPER] {
                command.arg("-c").arg(format!("credential.{}.helper={helper}", self.url.server()));
            }
            command.env("STVC_GIT_USER", login.user).env("STVC_GIT_PASSWORD", login.password);
        }
        command.args(arguments).arg(address).args(more);
        // Git must ignore any repository in which stvc was started.
        for name in [
            "GIT_DIR",
            "GIT_WORK_TREE",
            "GIT_INDEX_FILE",
            "GIT_OBJECT_DIRECTORY",
            "GIT_ALTERNATE_OBJECT_DIRECTORIES",
            "GIT_COMMON_DIR",
            "GIT_NAMESPACE",
            "GIT_CONFIG",
            "GIT_EXTERNAL_DIFF",
        ] {
            command.env_remove(name);
        }
        command.env("GIT_ALLOW_PROTOCOL", "ssh:git+ssh:ssh+git:https:http:git");
        // Git's messages are parsed, so they must be in English.
        command.env("LC_ALL", "C");
        command.stdin(Stdio::inherit());
        if self.prompt == LoginPrompt::Forbidden {
            command.env("GIT_TERMINAL_PROMPT", "0").stdin(Stdio::null());
        }
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => RemoteError::NoGit,
            _ => self.failed(&format!("cannot start git: {error}")),
        })?;
        let errors = child.stderr.take();
        let listen = move || {
            let mut said = Vec::new();
            if let Some(mut errors) = errors {
                let mut buffer = [0; 4096];
                while let Ok(read @ 1..) = read_some(&mut errors, &mut buffer) {
                    // Only the last 64 KiB of git's messages are needed.
                    said.extend_from_slice(&buffer[..read]);
                    let more = said.len().saturating_sub(1 << 16);
                    said.drain(..more);
                }
            }
            said
        };
        let said = match std::thread::Builder::new().spawn(listen) {
            Ok(said) => said,
            Err(error) => {
                let _ = child.kill().and_then(|()| child.wait());
                return Err(self.failed(&error.to_string()));
            }
        };
        let mut printed = Vec::new();
        let read = match child.stdout.take() {
            Some(output) => output.take(LONGEST_LIST).read_to_end(&mut printed).map(drop),
            None => Ok(()),
        };
        if printed.len() as u64 >= LONGEST_LIST {
            let _ = child.kill();
        }
        let ended = child.wait();
        let said = said.join().unwrap_or_default();
        match (read, ended) {
            (Ok(()), Ok(status)) if status.success() => Ok(printed),
            (Ok(()), Ok(_)) => {
                // On a push, git prints the refused refs to standard output.
                let is_push = arguments.first() == Some(&"push");
                let reasons = if is_push { [said, printed].concat() } else { said };
                Err(self.failed(&in_words(&String::from_utf8_lossy(&reasons))))
            }
            (Err(error), _) | (_, Err(error)) => Err(self.failed(&error.to_string())),
        }
    }

    fn failed(&self, words: &str) -> RemoteError {
        RemoteError::Failed { url: self.url.to_string(), words: words.to_owned() }
    }
}

/// Whether a push was refused because a ref on the server has changed.
fn is_raced(words: &str) -> bool {
    [
        "stale info",
        "fetch first",
        "non-fast-forward",
        "already exists",
        "cannot lock ref",
        "failed to update ref",
        "incorrect old value",
    ]
    .iter()
    .any(|sign| words.contains(sign))
}

/// Returns the error messages in git's output on one line, at most the last six.
fn in_words(text: &str) -> String {
    let lines = text.lines().map(str::trim).filter(|line| {
        !line.is_empty()
            && !line.starts_with("hint:")
            && !line.starts_with("To ")
            && *line != "Done"
    });
    let lines: Vec<_> = lines
        .map(|line| {
            line.trim_start_matches("fatal: ").trim_start_matches("error: ").replace('\t', " ")
        })
        .collect();
    let begin = lines.len().saturating_sub(6);
    if lines.is_empty() {
        "git failed without an error message".into()
    } else {
        lines[begin..].join("; ")
    }
}

fn in_lines<'a, 'b>(refspecs: &'a [&'b str]) -> Vec<&'a [&'b str]> {
    let mut parts = Vec::new();
    let mut begin = 0;
    let mut length = 0;
    for (at, refspec) in refspecs.iter().enumerate() {
        if length + refspec.len() > LONGEST_LINE && at > begin {
            parts.push(&refspecs[begin..at]);
            (begin, length) = (at, 0);
        }
        length += refspec.len() + 1;
    }
    parts.push(&refspecs[begin..]);
    parts
}
