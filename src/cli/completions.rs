use clap_complete::Shell;
use clap_complete::env::{Bash, Elvish, EnvCompleter, Fish, Powershell, Zsh};

use super::complete::TYPED;
use super::error::Result;
use super::exit;
use super::output::Output;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Shell for which to print the script
    #[arg(value_name = "SHELL")]
    pub shell: clap_complete::Shell,
}

/// The environment variable with which a shell requests completions. See
/// [`complete`](super::complete).
pub const ASKED: &str = "COMPLETE";

pub fn run(args: &Args, out: &mut Output) -> Result<u8> {
    let shell: &dyn EnvCompleter = match args.shell {
        Shell::Elvish => &Elvish,
        Shell::Fish => &Fish,
        Shell::PowerShell => &Powershell,
        Shell::Zsh => &Zsh,
        _ => &Bash,
    };
    let mut script = Vec::new();
    // Writing to memory does not fail.
    let _ = shell.write_registration(ASKED, "stvc", "stvc", "stvc", &mut script);
    // Clap's script for bash does not tell whether the last word has an opening quotation mark.
    let variable = format!("{ASKED}=\"bash\" \\\n");
    let typed = format!("        {TYPED}=\"${{COMP_WORDS[COMP_CWORD]}}\" \\\n");
    let script = String::from_utf8_lossy(&script).replace(&variable, &(variable.clone() + &typed));
    out.text(&script);
    Ok(exit::DONE)
}
