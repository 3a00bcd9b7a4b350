//! The API over HTTP, for the viewer in a browser on this machine.

mod connections;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzzing;
mod gate;
mod redirect;
mod server;

pub use redirect::Redirect;
pub use server::{IdleTimeout, Server};
