//! What refs are called, and how they move.

use gix::refs::FullName;
use serde::{Deserialize, Serialize};

use super::name_encoding;
use super::{Error, ObjectId, Result};

/// A ref's full name, `refs/heads/…` or `refs/tags/…`, as git accepts it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub struct RefName(String);

impl RefName {
    /// The branch whose components are `parts`, each encoded.
    pub fn branch<'a>(parts: impl IntoIterator<Item = &'a str>) -> Self {
        let parts: Vec<_> = parts.into_iter().map(name_encoding::ref_segment).collect();
        Self(format!("refs/heads/{}", parts.join("/")))
    }

    /// The tag `name`; `None` if the name is empty or too long for a tag.
    pub fn tag(name: &str) -> Option<Self> {
        let segment = name_encoding::ref_segment_exact(name).filter(|_| !name.is_empty())?;
        Some(Self(format!("refs/tags/{segment}")))
    }

    /// Where refs are that keep what no branch holds.
    pub const KEPT: &str = "refs/stvc/kept/";

    /// The ref that keeps the objects of `commit` when no branch does.
    pub fn kept(commit: ObjectId) -> Self {
        Self(format!("{}{commit}", Self::KEPT))
    }

    /// Returns the ref that holds the record of what was removed for good, on a git server.
    pub fn erased() -> Self {
        Self("refs/stvc/erased".into())
    }

    /// Whether it is one of those.
    pub fn is_kept(&self) -> bool {
        self.0.starts_with(Self::KEPT)
    }

    /// Whether it is a timeline's.
    pub fn is_branch(&self) -> bool {
        self.0.starts_with("refs/heads/")
    }

    /// The name as git writes it.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The tag's own name, decoded; `None` for what is no tag.
    pub fn tag_name(&self) -> Option<String> {
        self.0.strip_prefix("refs/tags/").map(name_encoding::decode)
    }
}

impl TryFrom<String> for RefName {
    type Error = Error;

    fn try_from(name: String) -> Result<Self> {
        let is_valid = is_plain(&name) || FullName::try_from(name.as_str()).is_ok();
        if is_valid && name.starts_with("refs/") {
            Ok(Self(name))
        } else {
            Err(Error::BadRefName { name })
        }
    }
}

/// Whether a name has nothing in it that any rule of git's is about: thousands are read by every command.
fn is_plain(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'%');
    let mut parts = name.split('/');
    parts.all(|part| !part.is_empty() && !part.starts_with('-') && part.bytes().all(is_plain))
}

impl std::fmt::Display for RefName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// One ref that moves: `None` is "not there".
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefChange {
    #[serde(rename = "ref")]
    pub name: RefName,
    #[serde(with = "hex")]
    pub before: Option<ObjectId>,
    /// Where it goes.
    #[serde(with = "hex")]
    pub after: Option<ObjectId>,
}

impl RefChange {
    /// The way back.
    pub fn reversed(&self) -> Self {
        Self { name: self.name.clone(), before: self.after, after: self.before }
    }
}

mod hex {
    use super::ObjectId;
    use serde::{Deserialize, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(id: &Option<ObjectId>, out: S) -> Result<S::Ok, S::Error> {
        match id {
            Some(id) => out.collect_str(id),
            None => out.serialize_none(),
        }
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(input: D) -> Result<Option<ObjectId>, D::Error> {
        let text = Option::<String>::deserialize(input)?;
        text.map(|text| {
            ObjectId::from_hex(text.as_bytes())
                .map_err(|_| serde::de::Error::custom("no object id"))
        })
        .transpose()
    }
}
