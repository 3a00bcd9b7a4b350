use clap_complete::Shell;
use clap_complete::env::{Bash, Elvish, EnvCompleter, Fish, Powershell, Zsh};

use super::error::Result;
use super::exit;
use super::output::Out;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The shell
    #[arg(value_name = "SHELL")]
    pub shell: clap_complete::Shell,
}

/// The variable by which a shell asks for completions; see [`complete`](super::complete).
pub const ASKED: &str = "COMPLETE";

pub fn run(args: &Args, out: &mut Out) -> Result<u8> {
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
    out.text(&String::from_utf8_lossy(&script));
    Ok(exit::DONE)
}
