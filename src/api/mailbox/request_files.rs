//! The request files, answer files and status file of the mailbox.

use std::ffi::{OsStr, OsString};
use std::fs::{self, Metadata};
use std::io::{self, Read};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde::Deserialize;
use serde_json::Value;

use crate::api::{Answer, Refusal, Request, Rights};
use crate::durable;
use crate::folder::Folder;
use crate::st;
use crate::st::mailbox::{ANSWER, MAILBOX, REQUEST, STATUS};

/// The version of the mailbox protocol. An incompatible change increases it.
pub const PROTOCOL: u32 = 1;

const MAX_REQUEST_BYTES: u64 = 64 << 10;
/// The maximum number of requests that are read at once.
const MAX_REQUESTS: usize = 64;

pub struct RequestFile {
    pub id: String,
    name: OsString,
}

pub struct MailboxRequest {
    /// The session id in the request, if any.
    pub session: Option<String>,
    /// The request, or `None` for `hello`, which only asks whether the watch is running.
    pub request: Option<Box<Request>>,
}

impl MailboxRequest {
    pub fn needs(&self) -> Rights {
        self.request.as_ref().map_or(Rights::Read, |request| request.verb.needs)
    }

    pub fn verb(&self) -> &'static str {
        self.request.as_ref().map_or("hello", |request| request.verb.name)
    }
}

#[derive(Deserialize)]
struct Envelope {
    protocol: u32,
    verb: String,
    #[serde(default)]
    args: Option<Value>,
    #[serde(default)]
    session: Option<String>,
}

/// The folder `user/files` of a library. Every script in SillyTavern's page can write to it.
/// Therefore each call opens the folder again and accesses files only through the open folder.
pub struct RequestFolder {
    root: PathBuf,
}

impl RequestFolder {
    pub fn new(root: PathBuf) -> Self {
        Self { root }
    }

    fn folder(&self) -> io::Result<Folder> {
        st::open_folder(&self.root, MAILBOX)
    }

    /// Returns the waiting requests, oldest first.
    pub fn waiting(&self) -> Vec<RequestFile> {
        let mut found: Vec<_> = self
            .named(REQUEST)
            .filter_map(|(name, found)| {
                let id = id_of(&name, REQUEST)?;
                Some((found.modified().ok()?, RequestFile { id, name }))
            })
            .collect();
        found.sort_by_key(|(came, _)| *came);
        found.into_iter().take(MAX_REQUESTS).map(|(_, letter)| letter).collect()
    }

    /// Returns the names that begin with `prefix`. Folders are left out, because they are never
    /// requests.
    fn named(&self, prefix: &'static str) -> impl Iterator<Item = (OsString, Metadata)> {
        let folder = self.folder().and_then(|folder| fs::read_dir(folder.path()));
        let entries = folder.into_iter().flatten().flatten();
        entries.filter_map(move |entry| {
            let name = entry.file_name();
            name.to_str().filter(|name| name.starts_with(prefix))?;
            // For a link, `metadata` describes the link itself.
            let found = entry.metadata().ok().filter(|found| !found.is_dir())?;
            Some((name, found))
        })
    }

    /// Reads and removes a request. Returns `None` if another process removed the request first.
    pub fn take(
        &self,
        letter: &RequestFile,
        lifetime: Duration,
    ) -> Option<Result<MailboxRequest, Refusal>> {
        let folder = self.folder().ok()?;
        let read = read(&folder, &letter.name, lifetime);
        // Only the process that removes a request serves it.
        folder.remove(&letter.name).ok()?;
        Some(read)
    }

    pub fn remove(&self, name: &OsStr) {
        let _ = self.folder().and_then(|folder| folder.remove(name));
    }

    pub fn has(&self, name: &OsStr) -> bool {
        self.folder().and_then(|folder| folder.has(name)).unwrap_or(false)
    }

    /// Writes an answer and returns its file name. After a change, `operation` is the number of the
    /// latest operation.
    pub fn put(
        &self,
        id: &str,
        answer: &Answer,
        session: &str,
        operation: Option<u64>,
    ) -> io::Result<OsString> {
        #[derive(serde::Serialize)]
        struct AnswerFile<'a> {
            protocol: u32,
            program: &'static str,
            session: &'a str,
            #[serde(flatten)]
            answer: &'a Answer,
            #[serde(skip_serializing_if = "Option::is_none")]
            operation: Option<u64>,
        }
        let program = env!("CARGO_PKG_VERSION");
        let answer_file = AnswerFile { protocol: PROTOCOL, program, session, answer, operation };
        self.write(&format!("{ANSWER}{id}.json"), &serde_json::to_vec(&answer_file)?)
    }

    pub fn put_status(&self, status: &Value) -> io::Result<()> {
        self.write(STATUS, status.to_string().as_bytes()).map(drop)
    }

    /// Writes a file atomically, but without syncing: after a power failure, the page sends a new
    /// request.
    fn write(&self, name: &str, bytes: &[u8]) -> io::Result<OsString> {
        let (folder, name) = (Arc::new(self.folder()?), OsString::from(name));
        durable::replace_unsynced(&folder, &name, bytes)?;
        Ok(name)
    }

    /// Removes expired answers and requests, including those that a killed process left.
    pub fn clear(&self, lifetime: Duration) {
        if let Ok(folder) = self.folder() {
            durable::clear_left_behind(folder.path());
        }
        for (name, found) in self.named(ANSWER).chain(self.named(REQUEST)) {
            if age(&found) > 2 * lifetime {
                self.remove(&name);
            }
        }
    }
}

pub fn is_request(name: &OsStr) -> bool {
    id_of(name, REQUEST).is_some()
}

fn id_of(name: &OsStr, prefix: &str) -> Option<String> {
    let id = name.to_str()?.strip_prefix(prefix)?.strip_suffix(".json")?;
    let is_id = id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_id.then(|| id.to_owned())
}

fn age(found: &Metadata) -> Duration {
    let modified = found.modified().unwrap_or(SystemTime::UNIX_EPOCH);
    SystemTime::now().duration_since(modified).unwrap_or_default()
}

fn read(folder: &Folder, name: &OsStr, lifetime: Duration) -> Result<MailboxRequest, Refusal> {
    let malformed = |why: String| Refusal::Malformed { why };
    let failed = |error: io::Error| malformed(error.to_string());
    let file = folder.open_file(name).map_err(failed)?;
    let found = file.metadata().map_err(failed)?;
    if age(&found) > lifetime {
        return Err(malformed("it expired before it was served".into()));
    }
    if found.len() > MAX_REQUEST_BYTES {
        return Err(malformed(format!("it is longer than {MAX_REQUEST_BYTES} bytes")));
    }
    let mut bytes = Vec::new();
    io::Read::take(file, MAX_REQUEST_BYTES).read_to_end(&mut bytes).map_err(failed)?;
    let envelope: Envelope =
        serde_json::from_slice(&bytes).map_err(|error| malformed(error.to_string()))?;
    if envelope.protocol != PROTOCOL {
        return Err(Refusal::Protocol { page: envelope.protocol, program: PROTOCOL });
    }
    let request = match envelope.verb.as_str() {
        "hello" => None,
        verb => Some(Box::new(Request::of(verb, envelope.args)?)),
    };
    Ok(MailboxRequest { session: envelope.session, request })
}
