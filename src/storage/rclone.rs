//! Everything that the user's rclone reaches (Google Drive, OneDrive, Dropbox …).
//!
//! rclone runs once for each call, as git does for git servers. It starts in less than 0.1 seconds,
//! so that a server of its own (`rclone rcd`) would save little and could outlive stvc. It has the
//! logins in its configuration; its arguments contain no secrets. All paths begin with the name of
//! the remote, so that none is an option.

use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use serde::Deserialize;

use super::address::Rclone;
use super::{Address, Error, Listed, Options, Result, Storage, object_name};
use crate::regular::read_some;
use crate::words;

/// Maximum length, in bytes, of a list.
const LONGEST_LIST: u64 = 128 << 20;
/// rclone's messages are kept up to this length, in bytes.
const LONGEST_MESSAGES: usize = 1 << 16;
/// A call is stopped after this many times the patience. rclone itself stops a transfer without
/// progress after the patience.
const MOST_PATIENCE: u32 = 30;
/// Exit codes of rclone.
const NO_FOLDER: i32 = 3;
const NO_FILE: i32 = 4;

pub struct RcloneStorage {
    address: Rclone,
    place: String,
    program: PathBuf,
    patience: Duration,
    retries: usize,
}

/// How a run of rclone ended.
struct Run {
    status: ExitStatus,
    printed: Vec<u8>,
    messages: Vec<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Item {
    path: String,
    size: i64,
    #[serde(default)]
    is_dir: bool,
}

/// A process that is stopped on drop.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl RcloneStorage {
    pub fn new(address: &Rclone, options: Options) -> Self {
        Self {
            address: address.clone(),
            place: Address::Rclone(address.clone()).to_string(),
            program: options.rclone,
            patience: options.patience,
            retries: options.retries,
        }
    }

    fn target(&self, name: &str) -> String {
        let Rclone { remote, path } = &self.address;
        let slash = if path.is_empty() || name.is_empty() { "" } else { "/" };
        format!("{remote}:{path}{slash}{name}")
    }

    /// Runs rclone. Reads at most `limit` bytes of its output; returns `None` if there are more.
    fn run(
        &self,
        arguments: &[&str],
        target: &str,
        input: &[u8],
        limit: u64,
    ) -> Result<Option<Run>> {
        let seconds = |time: Duration| format!("{}s", time.as_secs().max(1));
        let mut command = Command::new(&self.program);
        command
            .args(arguments)
            .args(["--use-json-log", "--log-level=NOTICE", "--ask-password=false", "--stats=0"])
            .arg(format!("--retries={}", self.retries + 1))
            .arg(format!("--timeout={}", seconds(self.patience)))
            .arg(format!("--contimeout={}", seconds(self.patience.min(Duration::from_secs(30)))))
            .arg(target)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let child = command.spawn().map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => Error::NoRclone,
            _ => self.failed(&format!("cannot start rclone: {error}")),
        })?;
        let mut child = Running(child);
        let (stdin, stdout, stderr) =
            (child.0.stdin.take(), child.0.stdout.take(), child.0.stderr.take());
        let until = Instant::now() + self.patience * MOST_PATIENCE;
        let input = input.to_vec();
        let written = in_thread(move || write(stdin, &input));
        let messages = in_thread(move || read_end(stderr, LONGEST_MESSAGES));
        let printed = in_thread(move || read_start(stdout, limit));
        let started = written.and_then(|written| Ok((written, messages?, printed?)));
        let (written, messages, printed) =
            started.map_err(|error| self.failed(&error.to_string()))?;
        let Some(printed) = self.wait(&printed, until)? else { return Ok(None) };
        self.wait(&written, until)?;
        let messages = self.wait(&messages, until)?;
        let status = child.0.wait().map_err(|error| self.failed(&error.to_string()))?;
        Ok(Some(Run { status, printed, messages: parse_messages(&messages) }))
    }

    fn wait<T>(&self, result: &Receiver<T>, until: Instant) -> Result<T> {
        let left = until.saturating_duration_since(Instant::now());
        result.recv_timeout(left).map_err(|error| match error {
            RecvTimeoutError::Timeout => {
                let seconds = (self.patience * MOST_PATIENCE).as_secs();
                Error::Timeout { host: self.host(), seconds }
            }
            RecvTimeoutError::Disconnected => self.failed("rclone was interrupted"),
        })
    }

    fn host(&self) -> String {
        format!("the rclone remote {}", self.address.remote)
    }

    fn failed(&self, why: &str) -> Error {
        Error::Failed { place: self.place.clone(), why: why.to_owned() }
    }

    /// Returns the error that rclone's messages describe.
    fn error(&self, run: &Run) -> Error {
        let all = run.messages.join("\n").to_lowercase();
        let says = |signs: &[&str]| signs.iter().any(|sign| all.contains(sign));
        let (place, host) = (self.place.clone(), self.host());
        let why = run.messages.last().cloned().unwrap_or_else(|| run.status.to_string());
        let remote = self.address.remote.clone();
        if says(&["didn't find section in config"]) {
            Error::UnknownRcloneRemote { name: remote }
        } else if says(&["unable to decrypt configuration", "couldn't decrypt configuration"]) {
            Error::RcloneLocked
        } else if says(&[
            "quota",
            "507",
            "insufficient storage",
            "insufficient_space",
            "no space left",
            "storage full",
            "storagefull",
        ]) {
            Error::Full { place }
        } else if says(&[
            "rate limit",
            "ratelimit",
            "429",
            "too many requests",
            "too_many",
            "slowdown",
        ]) {
            Error::RateLimited { host }
        } else if says(&["certificate has expired"]) && says(&[" is after "]) {
            Error::CertificateExpired { host, why }
        } else if says(&["requesttimetooskewed", "not yet valid"]) {
            Error::Clock { host, why }
        } else if says(&["x509", "certificate"]) {
            Error::Certificate { host, why }
        } else if says(&["proxyconnect"]) {
            Error::Proxy { host, proxy: "the proxy".into(), why }
        } else if says(&["no such host", "server misbehaving"]) {
            Error::UnknownHost { host }
        } else if says(&[
            "401",
            "unauthorized",
            "invalid_grant",
            "couldn't fetch token",
            "token expired",
            "invalidaccesskeyid",
            "signaturedoesnotmatch",
        ]) {
            Error::RcloneLogin { remote }
        } else if says(&["403", "forbidden", "accessdenied", "permission denied"]) {
            Error::Forbidden { place, why }
        } else if says(&[
            "connection refused",
            "connection reset",
            "network is unreachable",
            "no route to host",
            "timeout",
            "deadline exceeded",
        ]) {
            Error::Unreachable { host, why }
        } else {
            Error::Failed { place, why }
        }
    }
}

impl Storage for RcloneStorage {
    fn list(&self, prefix: &str) -> Result<Vec<Listed>> {
        object_name::check_prefix(prefix)?;
        let folder = prefix.trim_end_matches('/');
        let arguments = ["lsjson", "--recursive", "--files-only", "--no-modtime", "--no-mimetype"];
        let run = self.run(&arguments, &self.target(folder), &[], LONGEST_LIST)?;
        let run = run.ok_or_else(|| self.failed("its list of files is too long"))?;
        if run.status.code() == Some(NO_FOLDER) {
            return Ok(Vec::new());
        }
        if !run.status.success() {
            return Err(self.error(&run));
        }
        let items: Vec<Item> = serde_json::from_slice(&run.printed)
            .map_err(|_| self.failed("rclone printed a list that stvc cannot read"))?;
        let listed = items.into_iter().filter(|item| !item.is_dir).filter_map(|item| {
            let name = format!("{prefix}{}", item.path);
            let bytes = u64::try_from(item.size).unwrap_or(0);
            object_name::is_valid(&name).then_some(Listed { name, bytes })
        });
        let mut listed: Vec<_> = listed.collect();
        listed.sort();
        // Google Drive allows several files of one name.
        listed.dedup_by(|one, other| one.name == other.name);
        Ok(listed)
    }

    fn read(&self, name: &str, limit: u64) -> Result<Vec<u8>> {
        object_name::check(name)?;
        let (place, object) = (self.place.clone(), name.to_owned());
        let Some(run) = self.run(&["cat"], &self.target(name), &[], limit)? else {
            return Err(Error::TooLarge { place, name: object, limit });
        };
        match run.status.code() {
            Some(0) => Ok(run.printed),
            Some(NO_FOLDER | NO_FILE) => Err(Error::NotFound { place, name: object }),
            _ => Err(self.error(&run)),
        }
    }

    fn write(&self, name: &str, bytes: &[u8]) -> Result<()> {
        object_name::check(name)?;
        object_name::check_size(&self.place, name, bytes)?;
        // Up to the cutoff, rclone reads everything before it uploads, so that an interruption
        // leaves nothing, and the length is known to the server.
        let arguments = ["rcat", "--streaming-upload-cutoff=17M"];
        let run = self.run(&arguments, &self.target(name), bytes, LONGEST_LIST)?;
        match run {
            Some(run) if run.status.success() => Ok(()),
            Some(run) => Err(self.error(&run)),
            None => Err(self.failed("rclone printed too much")),
        }
    }

    fn delete(&self, name: &str) -> Result<()> {
        object_name::check(name)?;
        let run = self.run(&["deletefile"], &self.target(name), &[], LONGEST_LIST)?;
        match run {
            Some(run) if matches!(run.status.code(), Some(0 | NO_FOLDER | NO_FILE)) => Ok(()),
            Some(run) => Err(self.error(&run)),
            None => Err(self.failed("rclone printed too much")),
        }
    }
}

/// Starts a thread, and returns where its result arrives. The thread ends when rclone closes its
/// pipe, at the latest when [`Running`] is dropped.
fn in_thread<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<Receiver<T>> {
    let (send, receive) = channel();
    thread::Builder::new().spawn(move || drop(send.send(work())))?;
    Ok(receive)
}

/// Writes the input. If rclone stops reading, it reports why itself.
fn write(stdin: Option<ChildStdin>, input: &[u8]) {
    if let Some(mut stdin) = stdin {
        let _ = stdin.write_all(input);
    }
}

/// Reads a pipe to its end. Returns `None` after more than `limit` bytes.
fn read_start(pipe: Option<impl Read>, limit: u64) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let pipe = pipe?;
    // A pipe breaks when rclone is stopped, which its status shows.
    let _ = pipe.take(limit.saturating_add(1)).read_to_end(&mut bytes);
    (bytes.len() as u64 <= limit).then_some(bytes)
}

/// Reads a pipe, and returns its last bytes.
fn read_end(pipe: Option<impl Read>, limit: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    let Some(mut pipe) = pipe else { return bytes };
    let mut buffer = [0; 4096];
    while let Ok(read @ 1..) = read_some(&mut pipe, &mut buffer) {
        bytes.extend_from_slice(&buffer[..read]);
        let more = bytes.len().saturating_sub(limit);
        bytes.drain(..more);
    }
    bytes
}

/// Returns the texts of rclone's messages, which are one JSON object a line.
fn parse_messages(bytes: &[u8]) -> Vec<String> {
    #[derive(Deserialize)]
    struct Message {
        msg: String,
    }
    let text = String::from_utf8_lossy(bytes);
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let messages = lines.map(|line| {
        let message = serde_json::from_str(line).map(|message: Message| message.msg);
        let message = message.unwrap_or_else(|_| line.to_owned());
        words::clean(message.trim()).chars().take(300).collect()
    });
    messages.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn storage() -> RcloneStorage {
        let Address::Rclone(address) = Address::parse("rclone:drive:聊天").unwrap() else {
            panic!()
        };
        RcloneStorage::new(&address, Options::default())
    }

    fn error(message: &str) -> Error {
        let line = serde_json::json!({ "level": "error", "msg": message }).to_string();
        let status = ExitStatus::default();
        let messages = parse_messages(line.as_bytes());
        storage().error(&Run { status, printed: Vec::new(), messages })
    }

    #[test]
    fn messages_of_rclone_are_told_apart() {
        for (message, code) in [
            (
                "Failed to create file system for \"drive:\": didn't find section in config file",
                "storage-unknown-rclone-remote",
            ),
            (
                "unable to decrypt configuration and not allowed to ask for password",
                "storage-rclone-locked",
            ),
            ("couldn't fetch token: invalid_grant", "storage-rclone-login"),
            (
                "googleapi: Error 403: User rate limit exceeded, userRateLimitExceeded",
                "storage-rate-limited",
            ),
            (
                "googleapi: Error 403: The user's Drive storage quota has been exceeded",
                "storage-full",
            ),
            ("dial tcp: lookup nas.local: no such host", "storage-unknown-host"),
            ("dial tcp 127.0.0.1:1: connect: connection refused", "storage-unreachable"),
            ("tls: failed to verify certificate: x509: unknown authority", "storage-certificate"),
            (
                "x509: certificate has expired or is not yet valid: current time 2026-11-19T10:00:00Z is before 2027-11-19T10:00:00Z",
                "storage-clock",
            ),
            (
                "x509: certificate has expired or is not yet valid: current time 2026-11-19T10:00:00Z is after 2025-11-19T10:00:00Z",
                "storage-certificate-expired",
            ),
            (
                "proxyconnect tcp: dial tcp 127.0.0.1:1: connect: connection refused",
                "storage-proxy",
            ),
            ("something else", "storage-failed"),
        ] {
            assert_eq!(error(message).code(), code, "{message}");
        }
    }

    #[test]
    fn paths_begin_with_the_remote() {
        assert_eq!(storage().target("packs/a"), "drive:聊天/packs/a");
        assert_eq!(storage().target(""), "drive:聊天");
    }

    #[test]
    fn missing_rclone_is_reported() {
        let mut storage = storage();
        storage.program = "/nowhere/rclone".into();
        assert!(matches!(storage.list("").unwrap_err(), Error::NoRclone));
    }
}
