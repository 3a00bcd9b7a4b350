//! The API for every front end that is not a command line: one request, one answer, whose lines are
//! the objects of `--json` (docs/api.md). No logic of its own.

pub mod extension;
pub mod http;
pub mod mailbox;
pub mod page;
mod request;
mod security_policy;
mod serve;

pub use request::{Refusal, Request, Rights, VERBS, Verb};
pub use serve::{Answer, serve};

fn random_hex<const BYTES: usize>() -> std::io::Result<String> {
    let mut bytes = [0; BYTES];
    getrandom::fill(&mut bytes).map_err(std::io::Error::other)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
