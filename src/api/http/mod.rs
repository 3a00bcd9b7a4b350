//! The API over HTTP, for a page in a browser on this machine.

mod gate;
mod server;

pub use gate::{Admitted, Denied, Gate, OWN_HEADER};
pub use server::{Linger, Server};
