use super::error::Result;
use super::output::{LOOK, Out, dim, paint};
use super::wording::{clean, pad};
use stvc::Workspace;
use stvc::verbs::config::{Change, Options, Report, config};

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
    let change = match &args.value {
        Some(value) => Change::Set(value.clone()),
        None if args.unset => Change::Unset,
        None => Change::None,
    };
    let report = config(workspace, &Options { key: args.key.clone(), change })?;
    Ok(out.answer(&report, |out| tell(args, &report, out)))
}

fn tell(args: &Args, report: &Report, out: &mut Out) {
    for (key, value) in &report.settings {
        let value = match value {
            Some(value) => paint(LOOK.good, clean(value)),
            None => dim("not set"),
        };
        match (&args.key, args.value.is_some() || args.unset) {
            // A single value is for scripts.
            (Some(_), false) => out.line(value),
            _ => out.line(format!("{}  {value}  {}", pad(&key.name, 22), dim(key.about))),
        }
    }
}
