//! What of the library is kept: every chat and every lorebook, and of the rest what the configuration says.

use super::configuration::{Configuration, Included};
use crate::st::{Category, Scan, TimelineName};
use crate::store::Store;

pub(crate) struct Include(Included);

impl Include {
    /// As it is said in a store; before there is one, and where that cannot be understood, as it is by itself.
    pub(crate) fn of(store: Option<&Store>) -> Self {
        let configuration = store.map(Configuration::or_defaults);
        Self(configuration.and_then(|found| found.include).unwrap_or_default())
    }

    /// Whether the files of a kind are kept. Settings may hold passwords, and are not unless somebody says so.
    pub(crate) fn has(&self, category: Category) -> bool {
        let Included { characters, personas, groups, settings } = self.0;
        match category {
            Category::Chat | Category::GroupChat | Category::Lorebook => true,
            Category::Card => characters.unwrap_or(true),
            Category::Persona => personas.unwrap_or(true),
            Category::Group => groups.unwrap_or(true),
            Category::Settings => settings.unwrap_or(false),
        }
    }

    /// The files of the library that are kept, chats first.
    pub(crate) fn timelines(&self, scan: &Scan) -> Vec<TimelineName> {
        scan.all().filter(|name| self.has(name.category())).cloned().collect()
    }
}
