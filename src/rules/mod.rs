//! Findings about values: what is odd or wrong in the user's data, and what to do about it. Pure: bytes in, findings out.

mod alarms;
mod captured;
mod finding;

pub use alarms::{Passage, alarm};
pub use captured::{ALL, captured};
pub use finding::{Finding, Level};
