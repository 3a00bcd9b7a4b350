//! What of the library is kept: every chat and every lorebook, and of the rest what the configuration says.

use super::configuration::Configuration;
pub(crate) use super::configuration::Include;
use crate::st::{Category, Scan, TimelineName};
use crate::store::Store;

impl Include {
    /// As it is said in a store; before there is one, and where that cannot be understood, as it is by itself.
    pub(crate) fn of(store: Option<&Store>) -> Self {
        store.map(Configuration::or_defaults).unwrap_or_default().include
    }

    /// Whether the files of a kind are kept.
    pub(crate) fn has(&self, category: Category) -> bool {
        match category {
            Category::Chat | Category::GroupChat | Category::Lorebook => true,
            Category::Card => self.characters,
            Category::Persona => self.personas,
            Category::Group => self.groups,
            Category::Settings => self.settings,
        }
    }

    /// The files of the library that are kept, chats first.
    pub(crate) fn timelines(&self, scan: &Scan) -> Vec<TimelineName> {
        scan.all().filter(|name| self.has(name.category())).cloned().collect()
    }
}
