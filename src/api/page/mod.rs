//! The viewer's files, and the viewer with all its data in one file.

mod assets;
mod bundle;
mod exported;
mod one_file;
mod stored_answers;
mod story;

pub use assets::{ASSETS, Asset};
pub(crate) use bundle::{at, module};
pub use exported::{Exported, Extent, LeftOut, PageStats, StoryStats};
pub use one_file::{Options, write};
