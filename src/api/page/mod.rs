//! The page: its files, which are a part of the program, and the page with everything it shows in one file.

mod assets;
mod bundle;
mod kept;
mod one_file;

pub use assets::{ASSETS, Asset};
pub use bundle::at;
pub use one_file::{Options, Written, write};
