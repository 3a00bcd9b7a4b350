//! Findings about values: what is odd or wrong in the user's data, and what to do about it. Pure: bytes in, findings out.

mod captured;
mod finding;

pub use captured::captured;
pub use finding::{Finding, Level};
