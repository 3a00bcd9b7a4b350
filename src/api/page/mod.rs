//! The viewer's files, and the viewer with all its data in one file.

mod assets;
mod bundle;
mod one_file;
mod stored_answers;

pub use assets::{ASSETS, Asset};
pub(crate) use bundle::at;
pub use one_file::{Options, PageStats, write};
