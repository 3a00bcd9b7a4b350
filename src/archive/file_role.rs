//! Roles of a timeline's files.

use serde::{Deserialize, Serialize};

use crate::st::Category;

/// The role of a file of a timeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    Chat,
    /// The lorebook bound to it.
    Lorebook,
    /// The group's own file.
    Group,
    Card,
    /// A file that is stored as it is.
    File,
}

impl Role {
    /// Returns the role of a timeline's own file.
    pub fn of_main(category: Category) -> Self {
        match category {
            Category::Chat | Category::GroupChat => Role::Chat,
            Category::Lorebook => Role::Lorebook,
            Category::Card => Role::Card,
            Category::Persona | Category::Group | Category::Settings => Role::File,
        }
    }

    /// Returns the word used in manifests and output.
    pub fn as_str(self) -> &'static str {
        match self {
            Role::Chat => "chat",
            Role::Lorebook => "lorebook",
            Role::Group => "group",
            Role::Card => "card",
            Role::File => "file",
        }
    }
}
