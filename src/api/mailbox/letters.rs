//! The files of the mailbox: who puts what there, and what of it is looked at.

use std::fs::{self, Metadata};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde::Deserialize;
use serde_json::Value;

use crate::api::{Answer, Refusal, Request};
use crate::durable::{self, TEMP_PREFIX};
use crate::regular;

/// What page and program speak. A change that the other one does not understand makes it one more.
pub const PROTOCOL: u32 = 1;

const REQUEST: &str = "stvc-req-";
const ANSWER: &str = "stvc-res-";
const STATUS: &str = "stvc-status.json";

/// No request is longer.
const LONGEST: u64 = 64 << 10;
/// So many are looked at in one go; the others come after.
const AT_ONCE: usize = 64;

/// A request that lies there.
pub struct Letter {
    pub id: String,
    path: PathBuf,
}

/// What is asked.
pub enum Asked {
    /// Whether somebody is there.
    Hello,
    Api(Box<Request>),
}

impl Asked {
    pub fn changes(&self) -> bool {
        matches!(self, Self::Api(request) if request.changes())
    }

    pub fn verb(&self) -> &'static str {
        match self {
            Self::Hello => "hello",
            Self::Api(request) => request.verb(),
        }
    }
}

/// A request as the page writes it.
#[derive(Deserialize)]
struct Envelope {
    protocol: u32,
    verb: String,
    #[serde(default)]
    args: Option<Value>,
}

/// The folder.
pub struct Letters {
    folder: PathBuf,
}

impl Letters {
    pub fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// Requests that lie there, those that came first before the others.
    pub fn waiting(&self) -> Vec<Letter> {
        let mut found: Vec<_> = self
            .named(REQUEST)
            .filter_map(|path| {
                let id = id_of(&path, REQUEST)?;
                // A folder is nobody's request, and must not stand in line for ever.
                let found = fs::symlink_metadata(&path).ok().filter(|found| !found.is_dir())?;
                Some((found.modified().ok()?, Letter { id, path }))
            })
            .collect();
        found.sort_by_key(|(came, _)| *came);
        found.into_iter().take(AT_ONCE).map(|(_, letter)| letter).collect()
    }

    fn named(&self, prefix: &'static str) -> impl Iterator<Item = PathBuf> {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let is_meant = move |entry: &fs::DirEntry| {
            entry.file_name().to_str().is_some_and(|name| name.starts_with(prefix))
        };
        entries.filter(is_meant).map(|entry| entry.path())
    }

    /// Take a request away and read it; nothing if somebody else did.
    pub fn take(&self, letter: &Letter, lifetime: Duration) -> Option<Result<Asked, Refusal>> {
        let found = fs::symlink_metadata(&letter.path).ok()?;
        let read = read(&letter.path, &found, lifetime);
        // Whoever removes it serves it.
        durable::remove(&letter.path).ok()?;
        Some(read)
    }

    /// Put an answer where the page looks for it; to a change, with the number of the newest operation.
    pub fn put(&self, id: &str, answer: &Answer, operation: Option<u64>) -> io::Result<PathBuf> {
        #[derive(serde::Serialize)]
        struct Told<'a> {
            protocol: u32,
            program: &'static str,
            #[serde(flatten)]
            answer: &'a Answer,
            #[serde(skip_serializing_if = "Option::is_none")]
            operation: Option<u64>,
        }
        let program = env!("CARGO_PKG_VERSION");
        let told = Told { protocol: PROTOCOL, program, answer, operation };
        self.write(&format!("{ANSWER}{id}.json"), &serde_json::to_vec(&told)?)
    }

    pub fn put_status(&self, status: &Value) -> io::Result<PathBuf> {
        self.write(STATUS, status.to_string().as_bytes())
    }

    /// Nobody reads half of it. It need not outlive a power cut: whoever asked asks again.
    fn write(&self, name: &str, bytes: &[u8]) -> io::Result<PathBuf> {
        let temp = self.folder.join(format!("{TEMP_PREFIX}mail-{}.tmp", std::process::id()));
        let path = self.folder.join(name);
        let written = fs::File::create(&temp)
            .and_then(|mut file| file.write_all(bytes))
            .and_then(|()| durable::rename(&temp, &path));
        if written.is_err() {
            durable::remove_own(&temp);
        }
        written.map(|()| path)
    }

    /// Remove what others left: answers of a program that was killed, and what only looks like a request.
    pub fn clear(&self, lifetime: Duration) {
        durable::clear_left_behind(&self.folder);
        for path in self.named(ANSWER).chain(self.named(REQUEST)) {
            let found = fs::symlink_metadata(&path);
            if found.is_ok_and(|found| !found.is_dir() && age(&found) > 2 * lifetime) {
                durable::remove_own(&path);
            }
        }
    }
}

/// Whether a file is called as a request is.
pub fn is_request(path: &Path) -> bool {
    id_of(path, REQUEST).is_some()
}

fn id_of(path: &Path, prefix: &str) -> Option<String> {
    let id = path.file_name()?.to_str()?.strip_prefix(prefix)?.strip_suffix(".json")?;
    let is_id = id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_id.then(|| id.to_owned())
}

fn age(found: &Metadata) -> Duration {
    let modified = found.modified().unwrap_or(SystemTime::UNIX_EPOCH);
    SystemTime::now().duration_since(modified).unwrap_or_default()
}

fn read(path: &Path, found: &Metadata, lifetime: Duration) -> Result<Asked, Refusal> {
    let malformed = |why: String| Refusal::Malformed { why };
    regular::must_be_file(found.file_type()).map_err(|error| malformed(error.to_string()))?;
    if age(found) > lifetime {
        return Err(malformed("it is too old; nobody served it when it was made".into()));
    }
    if found.len() > LONGEST {
        return Err(malformed(format!("it is longer than {LONGEST} bytes")));
    }
    let bytes = regular::open(path).and_then(|file| {
        let mut bytes = Vec::new();
        io::Read::take(file, LONGEST).read_to_end(&mut bytes)?;
        Ok(bytes)
    });
    let bytes = bytes.map_err(|error| malformed(error.to_string()))?;
    let envelope: Envelope =
        serde_json::from_slice(&bytes).map_err(|error| malformed(error.to_string()))?;
    if envelope.protocol != PROTOCOL {
        return Err(Refusal::Protocol { page: envelope.protocol, program: PROTOCOL });
    }
    match envelope.verb.as_str() {
        "hello" => Ok(Asked::Hello),
        verb => Request::of(verb, envelope.args).map(|request| Asked::Api(Box::new(request))),
    }
}
