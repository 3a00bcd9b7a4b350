//! What each verb answers: which lines, in which order, and how it ended. Every front end tells these; what is said to a person besides is its own.

mod answer;
mod change;
mod copies;
mod keep;
mod look;
mod parts;

pub use answer::{Answer, Tell};
pub use change::Snapshots;
pub use copies::BackedUp;
pub use keep::{Decision, Doctored, Erasure};
pub use look::{DiffCounts, Diffed, Lore, Timelines};
