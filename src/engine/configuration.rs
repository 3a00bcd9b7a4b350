//! The user's configuration of a store, `stvc/config.toml`: defaults for options that are not given
//! on the command line.

use std::ops::Range;
use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;
use toml_edit::{DocumentMut, Item, Table, TableLike, value};

use super::{ConfigurationError, Result, Workspace};
use crate::durable::{self, Existing};
use crate::history::retention::{Policy, parse_span};
use crate::regular;
use crate::rules::{Code, Finding};
use crate::settings::{Key, Setting, settings};
use crate::st::{Category, Scan, TimelineName};
use crate::store::{self, Store};

settings! {
    /// All settings of a store, with their defaults.
    Configuration {
        device: Option<String> = None,
            "the name of this device on your other devices; the machine's name if not set";
        color: Option<When> = None, "when to use colours: auto, always or never";
        date: Option<Dates> = None, "the format of dates: relative, local or iso";
        pager: Option<String> = None, "the program that shows long output; empty for none";
        attachments: u64 = 500_000_000,
            "the limit for stored pictures and files of messages, in bytes; 500000000 if not set";
        [backup] BackupSettings;
        [extension] Extension;
        [include] Include;
        [limits] Limits;
        [retention] Policy;
        [sync] SyncSettings;
    }
}

settings! {
    /// The place of backups, and how often the watch creates one.
    BackupSettings {
        destination: Option<String> = None,
            "the destination of `stvc backup`; the last one if not set";
        #[serde(deserialize_with = "schedule")]
        schedule: Option<Duration> = None,
            "how often `stvc watch` backs up: daily, weekly, or a time such as 12h; never if not set";
    }
}

settings! {
    /// The remote, and how often the watch syncs.
    SyncSettings {
        remote: Option<String> = None,
            "the remote of `stvc sync`; the last folder or server if not set";
        #[serde(deserialize_with = "schedule")]
        every: Option<Duration> = None,
            "how often `stvc watch` syncs: a time such as 10m; never if not set";
    }
}

settings! {
    /// Permissions of SillyTavern's page.
    Extension {
        write: bool = true, "whether SillyTavern's page may change data; true if not set";
    }
}

settings! {
    /// Kinds of files that are stored in addition to chats and lorebooks.
    Include {
        characters: bool = true, "whether character cards are stored; true if not set";
        personas: bool = true, "whether pictures of personas are stored; true if not set";
        groups: bool = true,
            "whether groups are also stored on their own, not only with their chats; true if not set";
        settings: bool = false,
            "whether settings.json is stored, which may contain passwords; false if not set";
    }
}

settings! {
    /// Limits of the watch, for an installation with many users. They do not limit commands that a
    /// user runs.
    Limits {
        store_size: Option<u64> = None,
            "the size of the store, in bytes, above which `stvc watch` creates no snapshots; unlimited if not set";
        memory: Option<u64> = None,
            "the memory for one file, in bytes: `stvc watch` does not store a file that needs more, three times its length; unlimited if not set";
        #[serde(deserialize_with = "span")]
        time: Duration = Duration::from_secs(60),
            "the time after which a scan of `stvc watch` must not delay other users any longer, such as 30s; 60s if not set";
    }
}

impl Limits {
    /// Returns the length of the longest file that the watch stores.
    pub(crate) fn longest_file(&self) -> Option<u64> {
        self.memory.map(|memory| memory / MEMORY_PER_BYTE)
    }
}

/// The memory that a snapshot needs for each byte of its longest file (docs/performance.md).
const MEMORY_PER_BYTE: u64 = 3;

fn span<'de, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> std::result::Result<Duration, D::Error> {
    parse_span(&String::deserialize(deserializer)?).map_err(serde::de::Error::custom)
}

/// The shortest interval of scheduled backups and syncs.
const SHORTEST_SCHEDULE: Duration = Duration::from_secs(60);

/// Parses the interval of scheduled backups or syncs: `hourly`, `daily`, `weekly`, `monthly`, or a
/// duration such as `12h`.
pub fn parse_schedule(text: &str) -> std::result::Result<Duration, String> {
    let span = match text.trim() {
        "hourly" => "1h",
        "daily" => "1d",
        "weekly" => "7d",
        "monthly" => "30d",
        span => span,
    };
    let bad = "expected daily, weekly, or a duration of at least 1m, such as 12h";
    let span = parse_span(span).ok().filter(|span| *span >= SHORTEST_SCHEDULE);
    span.ok_or_else(|| bad.to_owned())
}

fn schedule<'de, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> std::result::Result<Option<Duration>, D::Error> {
    let text = Option::<String>::deserialize(deserializer)?;
    text.map(|text| parse_schedule(&text).map_err(serde::de::Error::custom)).transpose()
}

/// The setting for colours in output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum When {
    /// Decide by the terminal.
    Auto,
    /// Even if the output is not a terminal.
    Always,
    /// Not even on a terminal.
    Never,
}

/// The format of dates in output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Dates {
    /// As an age, for example "3 days ago".
    Relative,
    /// As a date in the time zone of this machine.
    Local,
    /// As RFC 3339.
    Iso,
}

impl Setting for When {}

impl Setting for Dates {}

impl Configuration {
    /// Returns the settings of a store, or the defaults if the configuration file is invalid.
    /// [`finding`] reports an invalid file.
    ///
    /// Use this only for settings whose defaults neither delete data nor grant access. A command
    /// that needs the user's own value calls [`Configuration::of`], which fails if the file is
    /// invalid.
    pub(crate) fn or_defaults(store: &Store) -> Self {
        Self::of(store).unwrap_or_default()
    }

    /// Returns the settings of a store, or the defaults if the store has no configuration file.
    /// Fails if the file is invalid.
    pub(crate) fn of(store: &Store) -> Result<Self> {
        let text = read(store)?;
        toml::from_str(&text)
            .map_err(|error| bad(store, &at_line(&text, error.span(), error.message())))
    }

    /// Returns the retention policy, if one is set.
    pub fn retention(self) -> Option<Policy> {
        Some(self.retention).filter(|policy| !policy.is_empty())
    }
}

impl Include {
    /// Returns the `include` settings of a store, or the defaults if there is no store or its
    /// configuration is invalid.
    pub(crate) fn of(store: Option<&Store>) -> Self {
        store.map(Configuration::or_defaults).unwrap_or_default().include
    }

    pub(crate) fn has(&self, category: Category) -> bool {
        match category {
            Category::Chat | Category::GroupChat | Category::Lorebook => true,
            Category::Card => self.characters,
            Category::Persona => self.personas,
            Category::Group => self.groups,
            Category::Settings => self.settings,
        }
    }

    pub(crate) fn timelines(&self, scan: &Scan) -> Vec<TimelineName> {
        scan.all().filter(|name| self.has(name.category())).cloned().collect()
    }
}

impl Workspace {
    /// Returns the user's settings, or the defaults if there is no store or its configuration is
    /// invalid.
    pub fn settings(&self) -> Configuration {
        let Ok(Some(store)) = self.find_store() else { return Configuration::default() };
        let mut found = Configuration::or_defaults(&store);
        // A backup, or a store given by `--store`, may come from somebody else. Do not run the
        // pager that its configuration names.
        let is_own = self.store.is_none() && !store.is_mirror();
        found.pager = found.pager.filter(|_| is_own);
        found
    }

    /// Returns the warning about an invalid configuration.
    pub fn broken_settings(&self) -> Option<Finding> {
        finding(&self.find_store().ok()??)
    }
}

pub(crate) fn finding(store: &Store) -> Option<Finding> {
    match Configuration::of(store) {
        Err(super::Error::Configuration(ConfigurationError::Bad { path, why })) => {
            let message = format!("{why}; the defaults are used");
            let subject = path.display().to_string();
            let finding = Finding::new(Code::ConfigurationBroken, subject, message);
            Some(
                finding.remedy(
                    "correct the file, or move it away; a running `stvc watch` reads it again",
                ),
            )
        }
        _ => None,
    }
}

pub(crate) fn list(store: &Store) -> Result<Vec<(Key, Option<String>)>> {
    Configuration::of(store)?;
    let document = document(store)?;
    let value = |key: Key| {
        let value = find(&document, &key.name);
        (key, value)
    };
    Ok(Configuration::keys().into_iter().map(value).collect())
}

/// Sets a key to the value `wanted`, or removes the key if `wanted` is `None`. The rest of the file
/// stays unchanged, including comments. Fails without writing if the file would be invalid.
pub(crate) fn set(store: &Store, key: &str, wanted: Option<&str>) -> Result<()> {
    let known = Configuration::keys().into_iter().find(|known| known.name == key);
    let known = known.ok_or_else(|| ConfigurationError::Unknown { key: key.to_owned() })?;
    let mut document = document(store)?;
    let (table, name) = match key.split_once('.') {
        Some((table, name)) => {
            let table = document.entry(table).or_insert(Item::Table(Table::new()));
            let table = table.as_table_like_mut();
            (
                table.ok_or_else(|| {
                    bad(store, &format!("cannot set {key}: its parent is not a table"))
                })?,
                name,
            )
        }
        None => (document.as_table_mut() as &mut dyn TableLike, key),
    };
    match wanted {
        Some(text) => {
            let item = match (text.parse::<i64>(), text.parse::<bool>()) {
                (Ok(number), _) if known.is_plain => value(number),
                (_, Ok(truth)) if known.is_plain => value(truth),
                _ => value(text),
            };
            // Keep the comment on the line of the old value.
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
    // Drop the comment on the line of the value.
    let plain = || value.clone().decorated("", "").to_string();
    Some(value.as_str().map_or_else(plain, str::to_owned))
}

fn document(store: &Store) -> Result<DocumentMut> {
    let text = read(store)?;
    text.parse().map_err(|error: toml_edit::TomlError| {
        bad(store, &at_line(&text, error.span(), error.message()))
    })
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedules_are_words_or_durations_of_at_least_a_minute() {
        let hours = |text| parse_schedule(text).unwrap().as_secs() / 3600;
        let words = ["hourly", "daily", "weekly", "monthly", "12h", "2d"];
        assert_eq!(words.map(hours), [1, 24, 168, 720, 12, 48]);
        for bad in ["", "never", "0s", "59s", "-1d"] {
            assert!(parse_schedule(bad).is_err(), "{bad}");
        }
    }
}
