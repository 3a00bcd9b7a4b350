//! What a file of a timeline is.

use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    Chat,
    /// The lorebook bound to it.
    Lorebook,
    /// The group's own file.
    Group,
}

impl Role {
    /// The word used in manifests and output.
    pub fn as_str(self) -> &'static str {
        match self {
            Role::Chat => "chat",
            Role::Lorebook => "lorebook",
            Role::Group => "group",
        }
    }
}
