//! The header of a backup: one line of JSON.

use std::collections::BTreeMap;

use chrono::DateTime;
use serde::{Deserialize, Serialize};

use super::{BackupError, Result};
use crate::st::{Raw, TimelineName};
use crate::store::{ObjectId, RefName};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    pub program: String,
    /// Time of creation, in RFC 3339 format.
    pub taken: String,
    pub whole: bool,
    pub timelines: Vec<String>,
    pub snapshots: u64,
    pub objects: u64,
    pub refs: BTreeMap<String, String>,
}

impl Header {
    pub(super) fn parse(line: &[u8]) -> Result<Self> {
        let damaged = |why: String| BackupError::damaged(format!("its header: {why}"));
        let header: Self =
            serde_json::from_slice(line).map_err(|error| damaged(error.to_string()))?;
        // Repeated names are refused, because two programs could choose different ids.
        let listed = Raw::parse(line).and_then(|header| header.get("refs")?.members());
        if listed.is_none_or(|listed| listed.len() != header.refs.len()) {
            return Err(damaged("a ref occurs twice".into()));
        }
        header.refs()?;
        if DateTime::parse_from_rfc3339(&header.taken).is_err() {
            return Err(damaged(format!("{:?} is not a valid time", header.taken)));
        }
        for name in &header.timelines {
            TimelineName::parse(name).map_err(|error| damaged(error.to_string()))?;
        }
        if header.snapshots > header.objects {
            return Err(damaged("it has more snapshots than objects".into()));
        }
        Ok(header)
    }

    /// Returns the branches and tags in the backup. Any other ref is an error, because importing a
    /// backup must not change other refs.
    pub fn refs(&self) -> Result<BTreeMap<RefName, ObjectId>> {
        let check = |(name, id): (&String, &String)| {
            let ours = name.starts_with("refs/heads/") || name.starts_with("refs/tags/");
            let parsed = RefName::try_from(name.clone()).ok().filter(|_| ours);
            let parsed = parsed.zip(ObjectId::from_hex(id.as_bytes()).ok());
            parsed.ok_or_else(|| BackupError::hostile(format!("the ref {name} at {id}")))
        };
        self.refs.iter().map(check).collect()
    }

    pub fn day(&self) -> &str {
        let day = self.taken.split('T').next().unwrap_or_default();
        let plain = day.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
        if plain && day.len() == 10 { day } else { "unknown day" }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn header() -> Value {
        json!({
            "program": "other", "taken": "2026-11-15T09:00:00+01:00", "whole": true,
            "timelines": ["chats/a/b"], "snapshots": 1, "objects": 5,
            "refs": { "refs/heads/chats/a/b": "0".repeat(40) },
        })
    }

    fn read(header: &Value) -> Result<Header> {
        Header::parse(header.to_string().as_bytes())
    }

    #[test]
    fn header_requires_every_known_field_and_ignores_unknown_ones() {
        let mut more = header();
        more["mood"] = json!({ "sunny": true });
        assert_eq!(read(&more).unwrap(), read(&header()).unwrap());
        for field in header().as_object().unwrap().keys() {
            let mut less = header();
            less.as_object_mut().unwrap().remove(field);
            assert!(read(&less).is_err(), "{field}");
        }
    }

    #[test]
    fn header_with_invalid_or_duplicate_values_is_refused() {
        for (field, value) in [
            ("taken", json!("yesterday")),
            ("timelines", json!(["a"])),
            ("timelines", json!(["chats/../b"])),
            ("snapshots", json!(6)),
            ("snapshots", json!(-1)),
            ("refs", json!({ "refs/stvc/kept/x": "0".repeat(40) })),
            ("refs", json!({ "refs/heads/a": "0" })),
        ] {
            let mut wrong = header();
            wrong[field] = value;
            assert!(read(&wrong).is_err(), "{field}");
        }
        let text = header().to_string();
        let id = "0".repeat(40);
        let entry = format!("\"refs/heads/chats/a/b\":\"{id}\"");
        let twice = text.replace(&entry, &format!("{entry},{entry}"));
        assert_ne!(text, twice);
        assert!(Header::parse(twice.as_bytes()).is_err());
    }
}
