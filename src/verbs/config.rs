//! The user's configuration of a store: shown, and changed key by key.

use crate::engine::{self, ConfigurationError, Workspace, configuration};
use crate::settings::Key;
use crate::verbs::Result;

/// A key, and the change to make.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// `None`: all keys.
    pub key: Option<String>,
    pub change: Change,
}

/// A change of one setting.
#[derive(Clone, Debug, Default)]
pub enum Change {
    #[default]
    None,
    Set(String),
    Unset,
}

/// Keys with their values.
pub struct Report {
    pub settings: Vec<(Key, Option<String>)>,
}

/// Returns settings, after the change if there is one.
pub fn config(workspace: &Workspace, options: &Options) -> Result<Report> {
    let store = match options.change {
        // Setting something is reason enough to create a store.
        Change::Set(_) => workspace.find_or_create_store()?,
        Change::None | Change::Unset => workspace.open_store()?,
    };
    match (&options.key, &options.change) {
        (Some(key), Change::Set(value)) => configuration::set(&store, key, Some(value))?,
        (Some(key), Change::Unset) => configuration::set(&store, key, None)?,
        _ => {}
    }
    let mut settings = configuration::list(&store)?;
    if let Some(wanted) = &options.key {
        settings.retain(|(key, _)| key.name == *wanted);
        if settings.is_empty() {
            let key = wanted.clone();
            return Err(engine::Error::from(ConfigurationError::Unknown { key }).into());
        }
    }
    Ok(Report { settings })
}
