use super::error::Result;
use super::output::{Output, STYLES, dim, paint};
use super::wording::{clean, pad};
use super::wrap::with_hanging_indent;
use stvc::Workspace;
use stvc::verbs::config::{Change, Options, Report, config};

#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// Setting to show or change (default: show all)
    #[arg(value_name = "KEY", required_if_eq("unset", "true"))]
    pub key: Option<String>,

    /// Value to set
    #[arg(value_name = "VALUE", conflicts_with = "unset", allow_negative_numbers = true)]
    pub value: Option<String>,

    /// Remove the setting, so that its default applies
    #[arg(long)]
    pub unset: bool,
}

/// Columns of a key without a value: `retention.keep-last   not set  `.
const LABEL_WIDTH: usize = 33;

const HELP: &str = "Options on the command line override settings. Settings are stored in \
    stvc/config.toml in the store, which you can also edit by hand; comments are preserved. If \
    the file is invalid, stvc reports the line and uses the defaults.";

pub fn run(args: &Args, workspace: &Workspace, out: &mut Output) -> Result<u8> {
    let change = match &args.value {
        Some(value) => Change::Set(value.clone()),
        None if args.unset => Change::Unset,
        None => Change::None,
    };
    let report = config(workspace, &Options { key: args.key.clone(), change })?;
    Ok(out.answer(&report, |out| print(args, &report, out)))
}

fn print(args: &Args, report: &Report, out: &mut Output) {
    for (key, value) in &report.settings {
        let value = match value {
            Some(value) => paint(STYLES.good, clean(value)),
            None => dim("not set"),
        };
        match (&args.key, args.value.is_some() || args.unset) {
            // A single value is printed without its key, for scripts.
            (Some(_), false) => out.line(value),
            _ => {
                let label = format!("{}  {value}  ", pad(&key.name, 22));
                let about = with_hanging_indent(&label, &dim(key.about), LABEL_WIDTH);
                about.into_iter().for_each(|row| out.line(row));
            }
        }
    }
}
