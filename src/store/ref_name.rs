//! Names and changes of refs.

use gix::refs::FullName;
use serde::{Deserialize, Serialize};

use super::{Error, ObjectId, Result, hex, name_encoding};

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub struct RefName(String);

impl RefName {
    pub fn branch<'a>(parts: impl IntoIterator<Item = &'a str>) -> Self {
        let parts: Vec<_> = parts.into_iter().map(name_encoding::ref_segment).collect();
        Self(format!("refs/heads/{}", parts.join("/")))
    }

    /// Returns the tag `name`; `None` if the name is empty or too long for a tag.
    pub fn tag(name: &str) -> Option<Self> {
        let segment = name_encoding::ref_segment_exact(name).filter(|_| !name.is_empty())?;
        Some(Self(format!("refs/tags/{segment}")))
    }

    /// Prefix of refs to commits that are not on a branch but must stay reachable, for `undo`.
    pub const KEPT: &str = "refs/stvc/kept/";

    pub fn kept(commit: ObjectId) -> Self {
        Self(format!("{}{commit}", Self::KEPT))
    }

    pub fn erased() -> Self {
        Self("refs/stvc/erased".into())
    }

    pub fn is_kept(&self) -> bool {
        self.0.starts_with(Self::KEPT)
    }

    pub fn is_branch(&self) -> bool {
        self.0.starts_with("refs/heads/")
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the decoded name of a tag; `None` if the ref is not a tag.
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

/// Whether a name is valid by a simple rule that is stricter than git's. This is a fast path: every
/// command reads thousands of names.
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

/// A change of one ref, from the target `before` to the target `after`. `None` means that the ref
/// does not exist.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefChange {
    #[serde(rename = "ref")]
    pub name: RefName,
    #[serde(with = "hex::optional")]
    pub before: Option<ObjectId>,
    #[serde(with = "hex::optional")]
    pub after: Option<ObjectId>,
}

impl RefChange {
    pub fn reversed(&self) -> Self {
        Self { name: self.name.clone(), before: self.after, after: self.before }
    }
}
