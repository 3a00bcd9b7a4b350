use serde::{Deserialize, Serialize};

use crate::st::Category;

/// Role of a file in a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The chat file.
    Chat,
    /// Lorebook that the chat is bound to, or the file of a lorebook's own timeline.
    Lorebook,
    /// Group file that is stored with a group chat.
    Group,
    /// A character card: a PNG image that contains the character's data.
    Card,
    /// File of a group, persona or the settings, stored as one blob.
    File,
}

impl Role {
    /// Returns the role of the timeline's own file in a timeline of this category.
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
