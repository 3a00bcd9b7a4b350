//! The device of a store, and the timelines that a device set aside in a sync.
//!
//! If both sides changed a timeline and the changes cannot be merged, a sync sets the local version
//! aside: it becomes a new timeline under another name.

use std::fmt;

use super::Result;
use super::configuration::Configuration;
use crate::archive::Snapshot;
use crate::durable::{self, Existing};
use crate::history::History;
use crate::regular;
use crate::store::{self, Store};

/// One of the devices that share a remote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device {
    /// 16 random hexadecimal digits, because two devices may have the same name.
    pub id: String,
    /// The configured name, or else the name of the machine.
    pub name: String,
}

/// The file in the store that contains the device id and the name of the machine on which the id
/// was created.
const FILE: &str = "device";

/// The beginning of the `source` text of a snapshot that a sync set aside. The rest of the text is
/// the device.
const SET_ASIDE: &str = "set aside by a sync on ";

impl Device {
    /// Returns the device of a store. Creates the device id at the first call, and a new id if the
    /// store was copied to another machine.
    pub(crate) fn of(store: &Store) -> Result<Self> {
        let machine = machine();
        let name = Configuration::or_defaults(store).device.unwrap_or_else(|| machine.clone());
        let path = store.private_dir().join(FILE);
        let known = regular::read(&path).unwrap_or_default();
        let known = String::from_utf8_lossy(&known);
        if let Some((id, of)) = known.trim_end().split_once(' ')
            && of == machine
            && is_id(id)
        {
            return Ok(Self { id: id.to_owned(), name });
        }
        let mut random = [0; 8];
        getrandom::fill(&mut random).map_err(|error| store::Error::Io {
            path: path.clone(),
            source: std::io::Error::other(error),
        })?;
        let id: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
        let text = format!("{id} {machine}\n");
        durable::write(&path, text.as_bytes(), Existing::Replace)
            .map_err(|source| store::Error::Io { path, source })?;
        Ok(Self { id, name })
    }

    pub(crate) fn sets_aside(&self) -> String {
        format!("{SET_ASIDE}{self}")
    }

    /// Returns the device whose sync set aside the timeline that ends with `head`; `None` if the
    /// timeline was not set aside.
    pub(crate) fn of_set_aside_timeline(history: &History, head: &Snapshot) -> Option<Self> {
        let own = history.own(head).0;
        let device = own.last()?.source.as_deref()?.strip_prefix(SET_ASIDE)?;
        let (name, id) = device.strip_suffix(')')?.rsplit_once(" (")?;
        is_id(id).then(|| Self { id: id.to_owned(), name: name.to_owned() })
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.name, self.id)
    }
}

pub(super) fn is_id(text: &str) -> bool {
    text.len() == 16 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

fn machine() -> String {
    #[cfg(unix)]
    let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
    #[cfg(not(unix))]
    let name = std::env::var("COMPUTERNAME").unwrap_or_default();
    let name: String = name.split_whitespace().collect::<Vec<_>>().join("-");
    if name.is_empty() { "this-device".into() } else { name }
}
