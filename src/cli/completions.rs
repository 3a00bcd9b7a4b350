use clap::CommandFactory;

use super::args::{Args, Completions};
use super::error::Result;
use super::exit;
use super::output::Out;

pub fn run(args: &Completions, out: &mut Out) -> Result<u8> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Args::command(), "stvc", &mut script);
    out.text(&String::from_utf8_lossy(&script));
    Ok(exit::DONE)
}
