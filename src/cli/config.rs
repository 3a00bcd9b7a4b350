use super::error::Result;
use super::output::{LOOK, Out, paint};
use super::wording::{clean, pad};
use stvc::engine::{self, ConfigurationError, Workspace, configuration};
use stvc::lines::answers::{Answer, Tell};
use stvc::lines::{Counts, SettingLine};
use stvc::settings::Key;
use stvc::store::Store;

#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// What; everything is shown if it is not given
    #[arg(value_name = "KEY", required_if_eq("unset", "true"))]
    pub key: Option<String>,

    /// What it shall be
    #[arg(value_name = "VALUE", conflicts_with = "unset", allow_negative_numbers = true)]
    pub value: Option<String>,

    /// Let it be as if it had never been set
    #[arg(long)]
    pub unset: bool,
}

const HELP: &str = "What is set holds where the command line says nothing. It stands in stvc/config.toml in the store, which can be edited by hand as well; comments stay. \
                    Where it cannot be understood, the line is named and it is not used.";

pub fn run(args: &Args, workspace: &Workspace, out: &mut Out) -> Result<u8> {
    let store = match workspace.find_store()? {
        Some(store) => store,
        // Setting something is reason enough to make one.
        None if args.value.is_some() => {
            Store::create(&workspace.store_path()?).map_err(engine::Error::from)?
        }
        None => workspace.open_store()?,
    };
    match (&args.key, &args.value, args.unset) {
        (Some(key), Some(value), _) => configuration::set(&store, key, Some(value))?,
        (Some(key), None, true) => configuration::set(&store, key, None)?,
        _ => {}
    }
    let mut shown = Settings(configuration::list(&store)?);
    shown.0.retain(|(key, _)| args.key.as_ref().is_none_or(|wanted| *wanted == key.name));
    if let (Some(key), true) = (&args.key, shown.0.is_empty()) {
        return Err(engine::Error::from(ConfigurationError::Unknown { key: key.clone() }).into());
    }
    Ok(out.answer(&shown, |out| tell(args, &shown, out)))
}

/// Keys and their values, as far as they are set.
struct Settings(Vec<(Key, Option<String>)>);

impl Answer for Settings {
    fn lines<'a>(&'a self, tell: Tell<'_, 'a>) {
        for (key, value) in &self.0 {
            tell(SettingLine { key: &key.name, value: value.as_deref() }.into());
        }
    }

    fn counts(&self) -> (&'static str, Counts) {
        ("config", Counts(vec![("settings", self.0.len().into())]))
    }
}

fn tell(args: &Args, shown: &Settings, out: &mut Out) {
    for (key, value) in &shown.0 {
        let value = match value {
            Some(value) => paint(LOOK.good, clean(value)),
            None => paint(LOOK.dim, "not set"),
        };
        match (&args.key, args.value.is_some() || args.unset) {
            // One that is asked for is for scripts.
            (Some(_), false) => out.line(value),
            _ => {
                out.line(format!("{}  {value}  {}", pad(&key.name, 22), paint(LOOK.dim, key.about)))
            }
        }
    }
}
