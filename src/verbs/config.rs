//! Shows and changes the user's configuration of a store.

use crate::engine::{self, ConfigurationError, Workspace, configuration};
use crate::settings::Key;
use crate::verbs::Result;

/// The setting to show, and an optional change of its value.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Name of the setting. `None` selects all settings.
    pub key: Option<String>,
    /// The new value, if any.
    pub change: Change,
}

/// A change of one setting.
#[derive(Clone, Debug, Default)]
pub enum Change {
    /// Only read the setting.
    #[default]
    None,
    /// Store this value.
    Set(String),
    /// Remove the value, so that the default applies.
    Unset,
}

/// The requested settings. A value is `None` if the configuration does not set the key.
#[non_exhaustive]
pub struct Report {
    /// Keys with their values.
    pub settings: Vec<(Key, Option<String>)>,
}

/// Applies the change, if any, and returns the requested settings.
pub fn config(workspace: &Workspace, options: &Options) -> Result<Report> {
    let store = match options.change {
        // Only setting a value creates a missing store.
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
