//! The user's configuration of a store, `stvc/config.toml`: what holds where a command line says nothing.

use std::ops::Range;
use std::path::PathBuf;

use serde::Deserialize;
use toml_edit::{DocumentMut, Item, Table, TableLike, value};

use super::{ConfigurationError, Result};
use crate::durable::{self, Existing};
use crate::history::retention::Policy;
use crate::regular;
use crate::rules::{Code, Finding};
use crate::store::{self, Store};

/// What can be set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Configuration {
    /// Where `backup` goes if it is told nothing.
    pub backup: Option<String>,
    /// With what `sync` meets the other devices.
    pub sync: Option<String>,
    /// What the other devices call this one.
    pub device: Option<String>,
    /// When to use colours.
    pub color: Option<When>,
    /// How moments are told.
    pub date: Option<Dates>,
    /// The program that shows long answers; empty: none.
    pub pager: Option<String>,
    /// How long snapshots are kept.
    pub retention: Option<Policy>,
    /// What of the library is kept beside the chats.
    pub include: Option<Included>,
    /// How many bytes of files that messages name are kept.
    pub attachments: Option<u64>,
    /// What SillyTavern's page may do.
    pub extension: Option<Extension>,
}

/// What SillyTavern's page may do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Extension {
    /// Whether it may take snapshots, name, restore and undo.
    pub write: Option<bool>,
}

/// What of the library is kept beside the chats.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Included {
    pub characters: Option<bool>,
    pub personas: Option<bool>,
    pub groups: Option<bool>,
    pub settings: Option<bool>,
}

/// When to use colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum When {
    Auto,
    Always,
    Never,
}

/// How moments are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Dates {
    Relative,
    Local,
    Iso,
}

/// Every key, and what it is for.
pub const KEYS: &[(&str, &str)] = &[
    ("backup", "where `stvc backup` goes; the last place if not set"),
    ("sync", "what `stvc sync` meets in; the last folder or server if not set"),
    ("device", "what your other devices call this one; the machine's name if not set"),
    ("color", "auto, always or never"),
    ("date", "how moments are told: relative, local or iso"),
    ("pager", "the program that shows long answers; empty for none"),
    (
        "attachments",
        "how much of the pictures and files in messages is kept, in bytes; 500000000 if not set",
    ),
    ("extension.write", "whether SillyTavern's page may change anything; true if not set"),
    ("include.characters", "whether characters' cards are kept"),
    ("include.personas", "whether personas' pictures are kept"),
    (
        "include.groups",
        "whether groups are kept also by themselves, and not with their chats alone",
    ),
    ("include.settings", "whether settings.json is kept; it may hold passwords, so not unless set"),
    ("retention.keep-last", "what `stvc forget` and the watch keep: the newest so many"),
    ("retention.keep-hourly", "the newest of each of so many hours"),
    ("retention.keep-daily", "of so many days"),
    ("retention.keep-weekly", "of so many weeks"),
    ("retention.keep-monthly", "of so many months"),
    ("retention.keep-within", "those younger than this, such as 30d"),
    ("retention.keep-tag", "true: tagged ones, and nothing else that is not named"),
];

impl Configuration {
    /// Returns the settings of a store, or the defaults if its file cannot be understood. [`finding`] says that.
    ///
    /// Only for settings whose defaults remove nothing and open nothing to others; a command that needs the user's own value asks [`Configuration::of`].
    pub fn or_defaults(store: &Store) -> Self {
        Self::of(store).unwrap_or_default()
    }

    /// What is set in a store; nothing, if there is no such file.
    pub fn of(store: &Store) -> Result<Self> {
        let text = read(store)?;
        toml::from_str(&text)
            .map_err(|error| bad(store, &at_line(&text, error.span(), error.message())))
    }

    /// How long snapshots are kept, if that is said.
    pub fn retention(self) -> Option<Policy> {
        self.retention.filter(|policy| !policy.is_empty())
    }
}

/// Returns the warning about a configuration that cannot be understood.
pub fn finding(store: &Store) -> Option<Finding> {
    match Configuration::of(store) {
        Err(super::Error::Configuration(ConfigurationError::Bad { path, why })) => {
            let message = format!("{why}; the defaults are used instead");
            let subject = path.display().to_string();
            let finding = Finding::new(Code::ConfigurationBroken, subject, message);
            Some(
                finding.remedy("correct the file, or move it away; `watch` notices that by itself"),
            )
        }
        _ => None,
    }
}

/// What is set, as it stands in the file, key by key.
pub fn list(store: &Store) -> Result<Vec<(&'static str, Option<String>)>> {
    Configuration::of(store)?;
    let document = document(store)?;
    Ok(KEYS.iter().map(|(key, _)| (*key, find(&document, key))).collect())
}

/// Set a key, or let it be as if it was never set. The rest of the file stays as it is, comments too. What would not be understood is not written.
pub fn set(store: &Store, key: &str, wanted: Option<&str>) -> Result<()> {
    if !KEYS.iter().any(|(known, _)| *known == key) {
        return Err(ConfigurationError::Unknown { key: key.to_owned() }.into());
    }
    let mut document = document(store)?;
    let (table, name) = match key.split_once('.') {
        Some((table, name)) => {
            let table = document.entry(table).or_insert(Item::Table(Table::new()));
            let table = table.as_table_like_mut();
            (table.ok_or_else(|| bad(store, &format!("{key}: what holds it is no table")))?, name)
        }
        None => (document.as_table_mut() as &mut dyn TableLike, key),
    };
    match wanted {
        Some(text) => {
            let item = match (text.parse::<i64>(), text.parse::<bool>()) {
                _ if !(key.contains("keep-")
                    || key.starts_with("include.")
                    || key.starts_with("extension.")
                    || key == "attachments")
                    || key.ends_with("within") =>
                {
                    value(text)
                }
                (Ok(number), _) => value(number),
                (_, Ok(truth)) => value(truth),
                _ => value(text),
            };
            // The comment beside the old value stays.
            match table.get_mut(name).and_then(Item::as_value_mut) {
                Some(there) => {
                    let decor = there.decor().clone();
                    if let Ok(mut new) = item.into_value() {
                        *new.decor_mut() = decor;
                        *there = new;
                    }
                }
                None => drop(table.insert(name, item)),
            }
        }
        None => drop(table.remove(name)),
    }
    let text = document.to_string();
    if let Err(error) = toml::from_str::<Configuration>(&text) {
        let why = error.message().to_owned();
        return Err(ConfigurationError::BadValue { key: key.to_owned(), why }.into());
    }
    let path = path(store);
    durable::create_dir_all(&store.private_dir())
        .and_then(|()| durable::write(&path, text.as_bytes(), Existing::Replace))
        .map_err(|source| store::Error::Io { path, source })?;
    Ok(())
}

fn find(document: &DocumentMut, key: &str) -> Option<String> {
    let item = match key.split_once('.') {
        Some((table, name)) => document.get(table)?.get(name)?,
        None => document.get(key)?,
    };
    let value = item.as_value()?;
    // Without the comment beside it.
    let plain = || value.clone().decorated("", "").to_string();
    Some(value.as_str().map_or_else(plain, str::to_owned))
}

fn document(store: &Store) -> Result<DocumentMut> {
    let text = read(store)?;
    text.parse().map_err(|error: toml_edit::TomlError| {
        bad(store, &at_line(&text, error.span(), error.message()))
    })
}

/// `line 3: unknown field …`.
fn at_line(text: &str, place: Option<Range<usize>>, why: &str) -> String {
    let before = place.and_then(|place| text.get(..place.start));
    match before {
        Some(before) => format!("line {}: {why}", before.matches('\n').count() + 1),
        None => why.to_owned(),
    }
}

fn read(store: &Store) -> Result<String> {
    let path = path(store);
    let text = match regular::read(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(bad(store, &error.to_string())),
    };
    String::from_utf8(text).map_err(|_| bad(store, "it is not valid UTF-8"))
}

fn bad(store: &Store, why: &str) -> super::Error {
    ConfigurationError::Bad { path: path(store), why: why.trim_end().to_owned() }.into()
}

fn path(store: &Store) -> PathBuf {
    store.private_dir().join("config.toml")
}
