//! One way in for every front end that is no command line: one request, one answer, whose lines are the objects of `--json` (docs/api.md). No logic of its own.

pub mod extension;
pub mod http;
pub mod mailbox;
pub mod page;
mod request;
mod security_policy;
mod serve;

pub use request::{Refusal, Request, VERBS, Verb};
pub use serve::{Answer, Rights, serve};
