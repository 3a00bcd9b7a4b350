//! The API over HTTP, for the viewer in a browser on this machine.

mod connections;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzzing;
mod gate;
mod metrics;
mod redirect;
mod server;

pub use metrics::MetricsServer;
pub use redirect::Redirect;
pub use server::{IdleTimeout, Server};
