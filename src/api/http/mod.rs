//! The API over HTTP, for a page in a browser on this machine.

mod assets;
mod gate;
mod server;

pub use assets::{ASSETS, Asset};
pub use gate::{Admitted, Denied, Gate, OWN_HEADER};
pub use server::{Linger, Server};
