//! What a file of a timeline is.

use serde::{Deserialize, Serialize};

use crate::st::Category;

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
    /// What a timeline's own file is in its snapshots.
    pub fn of_main(category: Category) -> Self {
        match category {
            Category::Chat | Category::GroupChat => Role::Chat,
            Category::Lorebook => Role::Lorebook,
            Category::Card => Role::Card,
            Category::Persona | Category::Group | Category::Settings => Role::File,
        }
    }

    /// The word used in manifests and output.
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
