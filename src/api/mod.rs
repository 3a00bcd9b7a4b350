//! The API for front ends other than the command line. Answers contain the objects that `--json`
//! prints (docs/api.md).

mod background_jobs;
pub mod extension;
pub mod http;
pub mod mailbox;
pub mod page;
mod request;
mod security_policy;
mod serve;

pub use background_jobs::BackgroundJobs;
pub(crate) use request::Refusal;
pub use request::{Request, Rights, VERBS, Verb};
pub use serve::{Answer, serve};

fn random_hex<const BYTES: usize>() -> std::io::Result<String> {
    let mut bytes = [0; BYTES];
    getrandom::fill(&mut bytes).map_err(std::io::Error::other)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
