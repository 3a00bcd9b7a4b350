//! The viewer: its files, and the viewer with all its data in one file.

mod assets;
mod bundle;
mod kept;
mod one_file;

pub use assets::{ASSETS, Asset};
pub use bundle::at;
pub use one_file::{Options, Written, write};
